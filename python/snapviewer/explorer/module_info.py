"""Plain summaries of modules: counts, bytes and shapes, for programs instead of the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any

from snapviewer import SnapshotError
from snapviewer.text.sanitize import sanitize

from .explored_model import load_model, module_finder
from .timing import ModuleTiming
from .tree import ModuleNode, Tree

MODULES_BETWEEN_TURNS = 100


@dataclass
class ModuleInfo:
    """The summary of a module.

    `shapes` are by tensor name, `timing_stats` are seconds and counts by name if a run was
    recorded, and `memory_usage` is the bytes of parameters and buffers.
    """

    name: str
    module_type: str
    parameter_count: int
    shapes: dict[str, tuple[int, ...]]
    timing_stats: dict[str, float] | None = None
    memory_usage: int | None = None


def module_info(
    name: str,
    node: ModuleNode,
    shapes: Mapping[str, tuple[int, ...]],
    timing: ModuleTiming | None = None,
) -> ModuleInfo:
    """Summarize a module of a tree."""
    return ModuleInfo(
        name=name,
        module_type=node.type_name,
        parameter_count=node.sums.parameters,
        shapes=dict(shapes),
        timing_stats=None if timing is None else _timing_stats(timing),
        memory_usage=node.sums.total_bytes,
    )


def own_shapes(node: ModuleNode) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a module's own tensors by name."""
    return {entry.name: entry.shape for entry in node.tensors}


def subtree_info(model: Any, name: str) -> ModuleInfo:
    """Summarize a model with the tensors of all its modules and its recorded times."""
    explored = load_model(model)
    root = explored.tree.root
    shapes = {entry.path: entry.shape for node in root.walk() for entry in node.tensors}
    return module_info(name, root, shapes, explored.timing_of(root))


def _timing_stats(timing: ModuleTiming) -> dict[str, float]:
    """Return times in seconds: medians of a call, including and excluding what it calls."""
    stats = {
        "calls": float(timing.calls),
        "forward": timing.total.median_s,
        "forward_own": timing.own.median_s,
        "forward_sum": timing.total.sum_s,
    }
    if timing.backward is not None:
        stats["backward"] = timing.backward.median_s
    return stats


def parameter_bytes(tree: Tree) -> dict[str, int]:
    """Return the bytes of each parameter by path; tied ones once, under their first path."""
    return {
        entry.path: entry.size_bytes
        for node in tree.root.walk()
        for entry in node.tensors
        if not entry.is_buffer and entry.tied_to is None
    }


def find_module(model: Any, path: str) -> Any:
    """Return the live module at a path such as `layer1.0.conv1`; the model itself if empty.

    Raises:
        AttributeError: There is none, as torch's `get_submodule` reports it.
    """
    try:
        return module_finder(model)(path)
    except (KeyError, SnapshotError):
        raise AttributeError(f"there is no module at {sanitize(path, 200)!r}") from None


async def analyze_model_async(
    model: Any, *, progress: Callable[[int, int], object] | None = None
) -> dict[str, ModuleInfo]:
    """Analyze every module of a model without blocking the event loop.

    The model is read in a thread, which stops soon if this is cancelled; the modules are summarized
    in the loop, which gets a turn after every hundred.

    Args:
        model: As `explore_model` takes it.
        progress: Called in the loop with (done, total) in modules.

    Returns:
        By path: a module with the shapes of its own tensors, and the sums of its subtree.

    Raises:
        SnapshotError: It is no model.
    """
    cancel = Event()
    try:
        explored = await asyncio.to_thread(load_model, model, None, cancel)
    except asyncio.CancelledError:
        cancel.set()
        raise
    found: dict[str, ModuleInfo] = {}
    total = explored.tree.root.sums.modules
    for number, node in enumerate(explored.tree.root.walk()):
        if number % MODULES_BETWEEN_TURNS == 0:
            if progress is not None:
                progress(number, total)
            await asyncio.sleep(0)
        timing = explored.timing_of(node)
        found[node.path] = module_info(node.path, node, own_shapes(node), timing)
    return found
