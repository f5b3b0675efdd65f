"""One run of a live module, by the cheapest way that works."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from snapviewer import SnapshotError
from snapviewer.model.graph import Graph, Node
from snapviewer.model.live.copies import buffers_kept, copied, in_eval_mode, is_lazy
from snapviewer.model.live.inputs import Inputs, gathered, made_for
from snapviewer.model.live.process import settings_kept
from snapviewer.model.live.recorder import recording
from snapviewer.model.live.script import unseen_nodes
from snapviewer.model.live.values import value_of
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

Way: TypeAlias = Literal["meta", "fake", "cpu"]
"""Where a module runs: without storage, with fake tensors, or for real on its own device."""

_WAYS: tuple[Way, ...] = ("meta", "fake", "cpu")
_NAMES = {
    "meta": "on the meta device",
    "fake": "with fake tensors",
    "cpu": "for real",
}


_DEPENDS = (
    "how much the model computes may depend on the numbers that it is given, and on its weights: "
    "this is the count of one run"
)


@dataclass(frozen=True, slots=True)
class _Failure:
    way: Way
    said: str


def record(
    module: Any,
    inputs: Any,
    *,
    keywords: Mapping[str, Any] | None = None,
    device: Way = "meta",
) -> Graph:
    """Run a module once and return the operations that it ran.

    Args:
        module: A `torch.nn.Module`, a ScriptModule, or a `torch.export.ExportedProgram`.
        inputs: What it is called with: a tuple or list of arguments, a dict of keyword arguments,
            or one argument alone. Tensors may be anywhere inside; a `TensorSpec` stands for one.
        keywords: Keyword arguments beside them.
        device: The first way to try: "meta", "fake" or "cpu". Those behind it follow if it fails.

    Returns:
        The graph, with notes on the ways that did not work.

    Raises:
        SnapshotError: torch is not installed, or the model failed in every way.
    """
    module = runnable(module)
    arguments = gathered(inputs, keywords)
    failures: list[_Failure] = []
    for way in _WAYS[_WAYS.index(device) :]:
        if way == "meta" and _is_script(module):
            # A ScriptModule moves to another device only in its own place.
            continue
        if (
            way == "cpu"
            and failures
            and any(one.device.type == "meta" for one in module.parameters())
        ):
            # It has no weights to run with.
            continue
        # A model that asks for gradients in its own forward fails in inference mode only.
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
    said = sanitize(failures[-1].said, MAX_NAME_CHARS)
    raise SnapshotError(f"the model did not run with these inputs; it said: {said}")


def runnable(module: Any) -> Any:
    """Return what can be called of a module, an exported program or a compiled module."""
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
        raise SnapshotError(f"{sanitize(type(module).__name__, 80)} is no torch.nn.Module")
    return module


def _is_script(module: Any) -> bool:
    import torch

    return isinstance(module, torch.jit.ScriptModule)


def _run(
    module: Any, inputs: Inputs, way: Way, *, has_gradients: bool
) -> tuple[tuple[Node, ...], tuple[Any, ...], tuple[str, ...]]:
    """Run a copy of a module in one way.

    Returns:
        Its nodes, its inputs as values, and the operations that depend on what tensors hold.
    """
    dependent: dict[str, None] = {}
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        fake_mode = _fake_mode() if way == "fake" else None
        twin = module if _is_script(module) else copied(module, way, fake_mode)
        stack.enter_context(in_eval_mode(twin))
        if twin is module:
            stack.enter_context(buffers_kept(module))
        arguments = made_for(inputs, way, fake_mode, twin)
        stack.enter_context(_surroundings(way, has_gradients))
        if fake_mode is not None:
            stack.enter_context(fake_mode)
        if any(is_lazy(tensor) for tensor in (*twin.parameters(), *twin.buffers())):
            # The first run makes its parameters, which is no part of what it computes.
            twin(*arguments.positional, **arguments.named)
        nodes = stack.enter_context(recording(twin, dependent))
        twin(*arguments.positional, **arguments.named)
    values = (*arguments.positional, *arguments.named.values())
    # Forked tasks of TorchScript run in threads, which may have drawn the same number.
    numbered = (replace(node, number=number) for number, node in enumerate(nodes))
    return tuple(numbered), tuple(value_of(value) for value in values), tuple(dependent)


def _fake_mode() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_non_fake_inputs=True)


@contextmanager
def _surroundings(way: Way, has_gradients: bool) -> Iterator[None]:
    """Hold what a run changes for the whole process: the fast path, random numbers, gradients."""
    import torch

    # The fast path of transformers is one operation that hides what its parts compute.
    was_fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    # It writes the tracebacks of what cannot be faked to the terminal; the notes have them.
    log = logging.getLogger("torch._subclasses.fake_tensor")
    was_disabled, log.disabled = log.disabled, True
    try:
        with ExitStack() as stack:
            stack.enter_context(settings_kept())
            stack.enter_context(torch.random.fork_rng(devices=[]))
            stack.enter_context(_flexible_attention_as_it_is())
            # Otherwise TorchScript may fuse operations into one that nobody can hear.
            stack.enter_context(torch.jit.optimized_execution(False))
            if not has_gradients:
                stack.enter_context(torch.inference_mode())
            if way == "meta":
                # New tensors of the model belong there, too.
                stack.enter_context(torch.device("meta"))
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was_fast)
        log.disabled = was_disabled


@contextmanager
def _flexible_attention_as_it_is() -> Iterator[None]:
    """Keep flex_attention from being compiled, which nobody can listen to."""
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
        f"the model did not run {_NAMES[failure.way]}: {sanitize(failure.said, MAX_NAME_CHARS)}"
        for failure in failures
    ]
    if failures:
        notes.append(f"the model ran {_NAMES[way]}")
    if _is_script(module):
        notes.append("a ScriptModule does not say which of its modules runs an operation")
    if has_unseen:
        notes.append(
            "TorchScript runs some operations of an optimized module unseen; the file that it is "
            "saved to tells them all"
        )
    return tuple(notes)
