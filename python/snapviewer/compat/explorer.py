"""The functions that scripts of this kind know by name, over the explorer's own parts.

Wherever a model is asked for, a checkpoint or the path of one does, too.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from snapviewer import SnapshotError
from snapviewer.explorer.app.opening import open_explorer, subject_of, tree_of
from snapviewer.explorer.subject import finder_in
from snapviewer.explorer.tree import ModuleNode
from snapviewer.report.tree import html as page
from snapviewer.report.tree import json as document
from snapviewer.report.tree import text
from snapviewer.text.sanitize import sanitize

if TYPE_CHECKING:
    from snapviewer.explorer.config import ExplorerConfig
    from snapviewer.explorer.timing import ModuleTiming


@dataclass
class ModuleInfo:
    """What an analysis of a module found.

    `shapes` are by the names of tensors, `timing_stats` are seconds and counts by name, if a run
    was recorded, and `memory_usage` is what parameters and buffers take, in bytes.
    """

    name: str
    module_type: str
    parameter_count: int
    shapes: dict[str, tuple[int, ...]]
    timing_stats: dict[str, float] | None = None
    memory_usage: int | None = None


# Looking


def explore_model(model: Any, *, config: ExplorerConfig | None = None) -> None:
    """Open the explorer on a model and wait until it is closed.

    What was recorded by `record_torch_module_forward_stats` is shown. Where there is no terminal,
    the tree is written as text.

    Args:
        model: A live module, or what holds some, such as a pipeline; a checkpoint, or its path.
        config: What is shown at first; None for the choices of the last time.

    Raises:
        SnapshotError: It is no model or cannot be read, or Textual is not installed.
        OSError: The file cannot be read.
    """
    name = model if isinstance(model, str) else type(model).__name__
    open_explorer(model, name=name, config=config)


explore_torch_module = explore_model
explore_module = explore_model


def explore_torch_module_with_stats(module: Any, *inputs: Any, **keywords: Any) -> Any:
    """Run a module once with these inputs, recorded, and open the explorer on what that showed.

    Returns:
        What the module returned.
    """
    from snapviewer.explorer.recording import record_torch_module_forward_stats

    with record_torch_module_forward_stats(module):
        result = module(*inputs, **keywords)
    explore_model(module)
    return result


def EMA(model: Any = None) -> None:  # noqa: N802 (its name in the shell that it comes from)
    """Explore the answer: in Python's prompt, the model that the last line returned.

    Raises:
        SnapshotError: There is no answer, or it is no model.
    """
    answer = getattr(builtins, "_", None) if model is None else model
    if answer is None:
        raise SnapshotError("there is no answer to explore; give a model: EMA(model)")
    explore_model(answer)


# Numbers


def analyze_memory_usage(model: Any) -> dict[str, int]:
    """Return the bytes of each parameter by its name; tied ones once, under their first name."""
    return {
        entry.path: entry.size_bytes
        for node in tree_of(model).root.walk()
        for entry in node.tensors
        if not entry.is_buffer and entry.tied_to is None
    }


def get_parameter_statistics(model: Any) -> dict[str, int]:
    """Count the parameters of a model, each once; buffers are not among them.

    Returns:
        `total_params`, `trainable_params`, `non_trainable_params`, and `memory_usage` in bytes.
    """
    sums = tree_of(model).root.sums
    return {
        "total_params": sums.parameters,
        "trainable_params": sums.trainable,
        "non_trainable_params": sums.parameters - sums.trainable,
        "memory_usage": sums.parameter_bytes,
    }


def get_module_by_path(model: Any, module_path: str) -> Any:
    """Return the live module at a path such as `layer1.0.conv1`; the model itself if it is empty.

    Raises:
        AttributeError: There is none, as torch's `get_submodule` says it.
    """
    try:
        return finder_in(model)(module_path)
    except (KeyError, SnapshotError):
        raise AttributeError(f"there is no module at {sanitize(module_path, 200)!r}") from None


def analyze_module(name: str, module: Any) -> ModuleInfo:
    """Look at one module: its own tensors, and the sums of all in it."""
    root = tree_of(module).root
    return info_of(name, root, {entry.name: entry.shape for entry in root.tensors}, None)


def analyze_module_detailed(module: Any, name: str = "") -> ModuleInfo:
    """Look at a module with all in it, and at what was recorded of it."""
    subject = subject_of(module)
    root = subject.tree.root
    shapes = {entry.path: entry.shape for node in root.walk() for entry in node.tensors}
    return info_of(name, root, shapes, subject.timing_of(root))


def lazy_parameter_analysis(model: Any) -> Callable[[str], ModuleInfo]:
    """Return a function that analyzes the module at a path, and nothing before it is called."""

    def get_module_info(module_path: str) -> ModuleInfo:
        return analyze_module_detailed(get_module_by_path(model, module_path), module_path)

    return get_module_info


def info_of(
    name: str,
    root: ModuleNode,
    shapes: dict[str, tuple[int, ...]],
    timing: ModuleTiming | None,
) -> ModuleInfo:
    """Put together what is told of a module."""
    sums = root.sums
    return ModuleInfo(
        name=name,
        module_type=root.type_name,
        parameter_count=sums.parameters,
        shapes=shapes,
        timing_stats=None if timing is None else _timing_stats(timing),
        memory_usage=sums.parameter_bytes + sums.buffer_bytes,
    )


def _timing_stats(timing: ModuleTiming) -> dict[str, float]:
    """Return times in seconds: medians of a call with all that it calls, and without."""
    stats = {
        "calls": float(timing.calls),
        "forward": timing.total.median_s,
        "forward_own": timing.own.median_s,
        "forward_sum": timing.total.sum_s,
    }
    if timing.backward is not None:
        stats["backward"] = timing.backward.median_s
    return stats


# To keep


def generate_text_summary(model: Any) -> str:
    """Return the tree of a model as text."""
    return text.as_text(tree_of(model))


def generate_json_summary(model: Any) -> str:
    """Return the tree of a model as JSON; `snapviewer.report.tree.json` has the format."""
    return document.as_json(tree_of(model))


def generate_html_summary(model: Any) -> str:
    """Return the tree of a model as a page of HTML that folds and needs nothing else."""
    return page.as_html(tree_of(model))


generate_model_summary = generate_text_summary

_GENERATORS: dict[str, Callable[[Any], str]] = {
    "text": generate_text_summary,
    "json": generate_json_summary,
    "html": generate_html_summary,
}


def export_model_summary(model: Any, format: Literal["text", "json", "html"] = "text") -> str:  # noqa: A002 (its name)
    """Return the tree of a model in a format.

    Raises:
        ValueError: There is no such format.
    """
    if format not in _GENERATORS:
        raise ValueError(f"the format must be one of {', '.join(_GENERATORS)}, not {format!r}")
    return _GENERATORS[format](model)


def extract_model_graph(model: Any) -> dict[str, Any]:
    """Return a model as a graph of plain values: modules, and how they hang together.

    Returns:
        `nodes`, each with `id` (the path), `name`, `type`, `label`, `parameters`, `bytes`, and
        `edges`, each with `source`, `target` and `kind`: "contains" from a module to those in it,
        "data" from a module to those that took its output in the last recorded run.
    """
    from snapviewer.explorer.graph import graph_of

    subject = subject_of(model)
    return graph_of(subject.tree, subject.stats)


def generate_architecture_diagram(model: Any) -> str:
    """Draw a model: its modules in the order in which they ran, or else stand in it, as SVG."""
    from snapviewer.report.tree.diagram import diagram_of

    subject = subject_of(model)
    return diagram_of(subject.tree, subject.stats)
