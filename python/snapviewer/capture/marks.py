"""Marks in the trace: the step, the phase, and the module that runs, as metadata of each event.

The text is `step=2 epoch=1 phase=forward module=layers.3.attn`; an epoch is only in it if a
callback knows it. PyTorch 2.10 and later record it. Inside of a compiled function the hooks do
nothing: they would be compiled with it, and break its graph.
"""

from __future__ import annotations

import re
import warnings
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

# What wrappers (compiled, distributed, sharded) put before the names of the modules inside of them.
_WRAPPERS = re.compile(
    r"(?:^|(?<=\.))(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\."
)


class Marks:
    """What the program does just now. Modules are named from the outermost one that is called."""

    def __init__(self) -> None:
        self.step = 0
        self.epoch: int | None = None
        self._phase = ""
        self._running: list[Any] = []  # modules, the outermost first
        self._paths: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._set: Any = None

    def attach(self) -> list[Any]:
        """Register with PyTorch, and return the hooks; none if it cannot record marks."""
        import torch
        from torch.nn.modules import module
        from torch.optim import optimizer

        self._set = getattr(torch.cuda.memory, "_set_memory_metadata", None)
        if self._set is None:
            return []
        # The hooks do fire once more for a compiled module, whose name is the module's.
        warnings.filterwarnings("ignore", "Using `torch.compile.module.` when there are global")
        is_compiling = torch.compiler.is_compiling

        def enter(module: Any, arguments: Any) -> None:
            if not is_compiling():
                self._enter(module)

        def leave(module: Any, arguments: Any, output: Any) -> None:
            if not is_compiling():
                self._leave(module)

        return [
            module.register_module_forward_pre_hook(enter),
            module.register_module_forward_hook(leave, always_call=True),
            optimizer.register_optimizer_step_pre_hook(self._begin_optimizer),
            optimizer.register_optimizer_step_post_hook(self._end_optimizer),
            _BackwardHook(self),
        ]

    def begin(self, phase: str) -> str:
        """Enter a phase, and return the one before."""
        before, self._phase = self._phase, phase
        self.write()
        return before

    def _enter(self, module: Any) -> None:
        if not self._running:
            self.name_modules(module)
        self._running.append(module)
        self.write()

    def _leave(self, module: Any) -> None:
        # A module that raised may have left others behind it.
        while self._running and self._running.pop() is not module:
            pass
        self.write()

    def name_modules(self, root: Any) -> None:
        """Name the parts of a module by their paths in it, unless they have names."""
        if root not in self._paths:
            inner = "module." if type(root).__name__ in _PARALLEL else ""
            for path, module in root.named_modules():
                name = _WRAPPERS.sub("", path.removeprefix(inner))
                self._paths.setdefault(module, name or type(root).__name__)

    def _begin_optimizer(self, *arguments: Any) -> None:
        self.begin("optimizer")

    def _end_optimizer(self, *arguments: Any) -> None:
        self.begin("")

    def write(self) -> None:
        """Set the metadata of what this thread allocates from now on."""
        parts = [f"step={self.step}"]
        parts += [] if self.epoch is None else [f"epoch={self.epoch}"]
        # An optimizer may call the model: a closure.
        is_forward = self._running and self._phase != "backward"
        phase = "forward" if is_forward else self._phase
        parts += [f"phase={phase}"] if phase else []
        if self._running:
            module = self._running[-1]
            parts.append(f"module={self._paths.get(module) or type(module).__name__}")
        with suppress(RuntimeError):  # CUDA is not initialized yet
            self._set(" ".join(parts))


_PARALLEL = ("DataParallel", "DistributedDataParallel")


class _BackwardHook:
    """Marks the backward pass: wraps the call into autograd's engine."""

    def __init__(self, marks: Marks) -> None:
        import torch.autograd
        import torch.autograd.graph

        self._places = (torch.autograd, torch.autograd.graph)
        self._original = original = torch.autograd.graph._engine_run_backward  # noqa: SLF001

        def run(outputs: Any, *arguments: Any, **keywords: Any) -> Any:
            before = marks.begin("backward")
            # Metadata belong to a thread, and the engine has its own: its first node sets them.
            nodes = [each.grad_fn for each in outputs if getattr(each, "grad_fn", None)]
            hooks = [node.register_prehook(lambda _: marks.write()) for node in nodes]
            try:
                return original(outputs, *arguments, **keywords)
            finally:
                for hook in hooks:
                    hook.remove()
                marks.begin(before)

        self._put(run)

    def _put(self, function: Any) -> None:
        for place in self._places:
            place._engine_run_backward = function  # noqa: SLF001

    def remove(self) -> None:
        """Put PyTorch's own function back."""
        self._put(self._original)
