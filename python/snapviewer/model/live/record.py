"""Records one run of a live module, in the cheapest way that works."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from snapviewer import SnapshotError
from snapviewer.model.graph import Graph, Node, Unknown
from snapviewer.model.live.inputs import Inputs, call_inputs, inputs_for
from snapviewer.model.live.isolation import (
    copy_module,
    eval_mode,
    is_lazy,
    restored_buffers,
    restored_torch_settings,
)
from snapviewer.model.live.recorder import recording, value_of
from snapviewer.model.work import kind_of
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

Way: TypeAlias = Literal["meta", "fake", "cpu"]
"""How a module runs: without storage, with fake tensors, or for real on its own device."""

_WAYS: tuple[Way, ...] = ("meta", "fake", "cpu")
_NAMES = {
    "meta": "on the meta device",
    "fake": "with fake tensors",
    "cpu": "for real",
}

_DEPENDS = "the work may depend on the values of inputs and weights: this is the count of one run"
_UNSEEN = "TorchScript runs it without the dispatcher; the graph of the saved file has its shapes"


@dataclass(frozen=True, slots=True)
class _Failure:
    way: Way
    message: str


def record(
    module: Any,
    inputs: Any,
    *,
    keywords: Mapping[str, Any] | None = None,
    device: Way = "meta",
) -> Graph:
    """Run a module once and return its operations.

    Args:
        module: A `torch.nn.Module`, a ScriptModule, or a `torch.export.ExportedProgram`.
        inputs: A tuple or list of arguments, a dict of keyword arguments, or a single argument.
            Tensors may be nested in them; a `TensorSpec` stands for a tensor.
        keywords: Further keyword arguments.
        device: The first way to try: "meta", "fake" or "cpu". The others follow if it fails.

    Returns:
        The graph, with notes on the ways that failed.

    Raises:
        SnapshotError: torch is not installed, or the model failed in every way.
    """
    module = runnable(module)
    arguments = call_inputs(inputs, keywords)
    failures: list[_Failure] = []
    for way in _WAYS[_WAYS.index(device) :]:
        if way == "meta" and _is_script(module):
            # A ScriptModule can only be moved in place.
            continue
        if (
            way == "cpu"
            and failures
            and any(one.device.type == "meta" for one in module.parameters())
        ):
            # It has no weights.
            continue
        # A model that needs gradients in its forward fails in inference mode only.
        for has_gradients in (False, True) if way == "cpu" else (False,):
            try:
                nodes, values, dependent = _run(module, arguments, way, has_gradients=has_gradients)
            except (Exception, SystemExit) as error:  # noqa: BLE001 (a model may raise anything)
                failures.append(_Failure(way, f"{type(error).__name__}: {error}"))
                continue
            unseen = unseen_nodes(module, len(nodes)) if _is_script(module) else ()
            notes = _notes(module, failures, way, has_unseen=bool(unseen))
            if dependent:
                shown = ", ".join(sanitize(op, 60) for op in dependent[:5])
                notes += (f"{_DEPENDS} ({shown})",)
            return Graph("live", nodes + unseen, values, "given", notes)
    said = sanitize(failures[-1].message, MAX_NAME_CHARS)
    raise SnapshotError(f"the model failed with these inputs: {said}")


def runnable(module: Any) -> Any:
    """Return the module of an exported program or a compiled module, or the module itself."""
    try:
        import torch
    except ImportError as error:
        raise SnapshotError(
            f"a live module needs torch, which is not installed ({error}): pip install torch"
        ) from None
    if isinstance(module, torch.export.ExportedProgram):
        return module.module()
    module = getattr(module, "_orig_mod", module)
    if not isinstance(module, torch.nn.Module):
        raise SnapshotError(f"{sanitize(type(module).__name__, 80)} is not a torch.nn.Module")
    return module


def _is_script(module: Any) -> bool:
    import torch

    return isinstance(module, torch.jit.ScriptModule)


def _run(
    module: Any, inputs: Inputs, way: Way, *, has_gradients: bool
) -> tuple[tuple[Node, ...], tuple[Any, ...], tuple[str, ...]]:
    """Run a copy of a module in one way.

    Returns:
        Its nodes, its inputs as values, and the operations that depend on values of tensors.
    """
    dependent: dict[str, None] = {}
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        fake_mode = _fake_mode() if way == "fake" else None
        twin = module if _is_script(module) else copy_module(module, way, fake_mode)
        stack.enter_context(eval_mode(twin))
        if twin is module:
            stack.enter_context(restored_buffers(module))
        arguments = inputs_for(inputs, way, fake_mode, twin)
        stack.enter_context(_process_state(way, has_gradients))
        if fake_mode is not None:
            stack.enter_context(fake_mode)
        if any(is_lazy(tensor) for tensor in (*twin.parameters(), *twin.buffers())):
            # The first run creates its parameters, which is not part of its work.
            twin(*arguments.positional, **arguments.named)
        nodes = stack.enter_context(recording(twin, dependent))
        twin(*arguments.positional, **arguments.named)
    values = (*arguments.positional, *arguments.named.values())
    # Forked tasks of TorchScript run in threads, which may have the same numbers.
    numbered = (replace(node, number=number) for number, node in enumerate(nodes))
    return tuple(numbered), tuple(value_of(value) for value in values), tuple(dependent)


def _fake_mode() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_non_fake_inputs=True)


@contextmanager
def _process_state(way: Way, has_gradients: bool) -> Iterator[None]:
    """Set, and restore, what a run changes for the whole process."""
    import torch

    # The fast path of transformers is one operation that hides its parts.
    was_fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    # It logs tracebacks of what cannot be faked; the notes have them.
    log = logging.getLogger("torch._subclasses.fake_tensor")
    was_disabled, log.disabled = log.disabled, True
    try:
        with ExitStack() as stack:
            stack.enter_context(restored_torch_settings())
            stack.enter_context(torch.random.fork_rng(devices=[]))
            stack.enter_context(_uncompiled_flex_attention())
            # Otherwise TorchScript may fuse operations into ones that the dispatcher does not see.
            stack.enter_context(torch.jit.optimized_execution(False))
            if not has_gradients:
                stack.enter_context(torch.inference_mode())
            if way == "meta":
                # New tensors of the model go there as well.
                stack.enter_context(torch.device("meta"))
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was_fast)
        log.disabled = was_disabled


@contextmanager
def _uncompiled_flex_attention() -> Iterator[None]:
    """Keep flex_attention from being compiled, which would hide its operations."""
    from torch.nn import attention

    switch = "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"
    flexible = getattr(attention, "flex_attention", None)
    if not hasattr(flexible, switch):
        yield
        return
    before = getattr(flexible, switch)
    setattr(flexible, switch, True)
    try:
        yield
    finally:
        setattr(flexible, switch, before)


def _notes(module: Any, failures: list[_Failure], way: Way, *, has_unseen: bool) -> tuple[str, ...]:
    notes = [
        f"the model did not run {_NAMES[failure.way]}: {sanitize(failure.message, MAX_NAME_CHARS)}"
        for failure in failures
    ]
    if failures:
        notes.append(f"the model ran {_NAMES[way]}")
    if _is_script(module):
        notes.append("the modules of operations are unknown in a ScriptModule")
    if has_unseen:
        notes.append(
            "a run does not show some operations of an optimized TorchScript module; the graph of "
            "the saved file has them"
        )
    return tuple(notes)


def unseen_nodes(module: Any, first_number: int) -> tuple[Node, ...]:
    """Return the operations of a ScriptModule that a run does not show.

    `torch.jit.optimize_for_inference` puts operations into a graph that the interpreter runs
    without the dispatcher. The graph of the module has their names at least.

    Args:
        module: A ScriptModule.
        first_number: The number of the first of them.
    """
    try:
        graph = module.inlined_graph
    except (AttributeError, RuntimeError):
        # A module with several methods and no forward has no single graph.
        return ()
    kinds = [node.kind() for node in _all_nodes(graph) if _is_unseen(node.kind())]
    return tuple(
        Node(first_number + index, kind, "", "", (Unknown(_UNSEEN),), (), (Unknown(_UNSEEN),), ())
        for index, kind in enumerate(kinds)
    )


def _all_nodes(block: Any) -> Iterator[Any]:
    waiting = [block]
    while waiting:
        for node in waiting.pop().nodes():
            yield node
            waiting.extend(node.blocks())


def _is_unseen(kind: str) -> bool:
    if not kind.startswith("prim::"):
        return False
    return kind_of(kind) not in ("Bookkeeping", "Other") or kind.endswith("Group")
