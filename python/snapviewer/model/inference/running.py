"""A module prepared to run repeatedly, and restored afterwards."""

from __future__ import annotations

import copy
import gc
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from snapviewer import SnapshotError
from snapviewer.model.inference.environment import ProfilerSettings
from snapviewer.model.inference.loading import torch_for
from snapviewer.model.live.inputs import Inputs, call_inputs, inputs_for
from snapviewer.model.live.isolation import (
    copy_module,
    eval_mode,
    is_lazy,
    restored_buffers,
    restored_torch_settings,
)
from snapviewer.model.live.record import runnable
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

clock_ns: Callable[[], int] = time.perf_counter_ns


@dataclass(frozen=True, slots=True)
class Runner:
    """A module with its inputs; `wait` returns when the device has finished."""

    module: Any
    inputs: Inputs
    device: str
    wait: Callable[[], object]

    def __call__(self) -> Any:
        """Run once."""
        try:
            return self.module(*self.inputs.positional, **self.inputs.named)
        except SystemExit as error:
            raise RuntimeError(f"it would exit the program ({error})") from None

    def timed_ns(self) -> int:
        """Run once with only a clock around it, and return the time."""
        was_collecting = gc.isenabled()
        gc.disable()
        try:
            self.wait()
            start_ns = clock_ns()
            # The result is freed after the clock has stopped.
            result = self()
            self.wait()
            time_ns = clock_ns() - start_ns
            del result
        finally:
            if was_collecting:
                gc.enable()
        return time_ns


@contextmanager
def prepared(
    module: Any,
    inputs: Any,
    keywords: Mapping[str, Any] | None,
    *,
    device: str | None,
    settings: ProfilerSettings,
    notes: list[str],
) -> Iterator[Runner]:
    """Prepare a module: in eval mode, on a device, with inputs of its own.

    Afterwards its mode, its buffers and the state of the random numbers are restored. A module that
    is to run on another device is copied to it.

    Raises:
        SnapshotError: torch is not installed, or the module cannot be run.
    """
    torch = torch_for("running a model")
    if getattr(module, "_orig_mod", None) is not None:
        notes.append("the module is timed without torch.compile")
    module = runnable(module)
    device = device_for(torch, module, device, settings, notes)
    is_gpu = device.startswith("cuda")
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        try:
            module = _moved(torch, module, device)
            arguments = inputs_for(call_inputs(inputs, keywords), "cpu", None, module)
            arguments = _on_device(torch, arguments, device)
        except (RuntimeError, MemoryError) as error:
            raise SnapshotError(
                f"the model could not be prepared: {sanitize(str(error), MAX_NAME_CHARS)}"
            ) from None
        stack.enter_context(restored_torch_settings())
        stack.enter_context(eval_mode(module))
        stack.enter_context(restored_buffers(module))
        stack.enter_context(torch.random.fork_rng(devices=[torch.device(device)] if is_gpu else []))
        wait = (lambda: torch.cuda.synchronize(device)) if is_gpu else (lambda: None)
        yield Runner(module, arguments, device, wait)


@contextmanager
def gradients_off(is_off: bool) -> Iterator[None]:
    """Run without gradients, unless the model needs them."""
    import torch

    with torch.inference_mode(mode=is_off):
        yield


@contextmanager
def thread_count(count: int | None) -> Iterator[None]:
    """Set the number of threads of torch for a `with` block."""
    import torch

    before = torch.get_num_threads()
    try:
        if count is not None:
            torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)


def device_for(
    torch: Any, module: Any, wanted: str | None, settings: ProfilerSettings, notes: list[str]
) -> str:
    """Choose the device to run on; note it if that is not the requested one."""
    own = [tensor.device for tensor in (*module.parameters(), *module.buffers())]
    if any(device.type == "meta" for device in own):
        raise SnapshotError("the module is on the meta device: it has no weights to run with")
    if wanted is None:
        wanted = str(own[0]) if own else "cpu"
    if not wanted.startswith(("cpu", "cuda")):
        raise SnapshotError(f"a model is profiled on 'cpu' or 'cuda', not {sanitize(wanted, 40)!r}")
    if wanted.startswith("cuda") and not torch.cuda.is_available():
        why = "CUDA_VISIBLE_DEVICES hides the GPUs" if settings.hides_gpus else "torch finds no GPU"
        notes.append(f"{why}: the model ran on the processor")
        return "cpu"
    if wanted.startswith("cuda") and settings.memory_fraction is not None:
        torch.cuda.set_per_process_memory_fraction(settings.memory_fraction, torch.device(wanted))
        notes.append(
            f"PYTORCH_CUDA_MEMORY_FRACTION: at most {100 * settings.memory_fraction:.0f} % of the "
            "GPU's memory is used"
        )
    return wanted


def _moved(torch: Any, module: Any, device: str) -> Any:
    """Return a module on a device: itself if it is there and has no lazy parameters."""
    tensors = (*module.parameters(), *module.buffers())
    kind = torch.device(device).type
    if any(tensor.device.type != kind for tensor in tensors):
        return copy.deepcopy(module).to(device)
    if any(is_lazy(tensor) for tensor in tensors):
        # The first run sets their shapes, which must not happen to the module itself.
        return copy_module(module, "cpu", None)
    return module


def _on_device(torch: Any, inputs: Inputs, device: str) -> Inputs:
    """Move tensors to a device, for a module without parameters that determine its device."""
    from torch.utils import _pytree

    def moved(value: Any) -> Any:
        return value.to(device) if isinstance(value, torch.Tensor) else value

    positional, named = _pytree.tree_map(moved, (inputs.positional, inputs.named))
    return Inputs(positional, named)


def error_text(error: Exception) -> str:
    r"""Return the message of an error on one line.

    TorchScript puts the traceback of its code first, and the message at the end.

    >>> error_text(RuntimeError("... the TorchScript interpreter.\nTraceback ..\nE: no batch of 2"))
    'E: no batch of 2'
    """
    text = str(error).strip()
    if "TorchScript" in text:
        text = text.rpartition("\n")[2]
    return sanitize(text, MAX_NAME_CHARS) or type(error).__name__
