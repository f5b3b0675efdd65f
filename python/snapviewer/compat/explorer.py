"""The explorer's promised functions, over `snapviewer.explorer` and `snapviewer.report.tree`.

A model is a live module, an object that holds some, a state dict, a checkpoint, or the path of one.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from snapviewer import SnapshotError
from snapviewer.explorer import module_info
from snapviewer.explorer.app.opening import open_explorer
from snapviewer.explorer.explored_model import load_model
from snapviewer.explorer.module_info import ModuleInfo
from snapviewer.report.tree import html, json, text
from snapviewer.text.sanitize import json_text

if TYPE_CHECKING:
    from snapviewer.explorer.app.settings import ExplorerConfig

# Open


def explore_model(model: Any, *, config: ExplorerConfig | None = None) -> None:
    """Open the explorer on a model and wait until it is closed.

    Runs recorded by `record_torch_module_forward_stats` are shown. Without a terminal, the tree is
    written as text.

    Args:
        model: A live module, or an object that holds some, such as a pipeline; a state dict, or any
            mapping of tensors; a checkpoint, or its path.
        config: The initial settings; None for those of the last run.

    Raises:
        SnapshotError: It is no model or cannot be read, or Textual is not installed.
        OSError: The file cannot be read.
    """
    name = model if isinstance(model, str) else type(model).__name__
    open_explorer(model, name=name, config=config)


def explore_torch_module(module: Any, *, config: ExplorerConfig | None = None) -> None:
    """Open the explorer on a module, as `explore_model` does."""
    explore_model(module, config=config)


explore_module = explore_torch_module


def explore_torch_module_with_stats(module: Any, *inputs: Any, **keywords: Any) -> Any:
    """Run a module once with these inputs, record it, and open the explorer on it.

    Returns:
        What the module returned.
    """
    from snapviewer.explorer.recording import record_torch_module_forward_stats

    with record_torch_module_forward_stats(module):
        result = module(*inputs, **keywords)
    explore_model(module)
    return result


def EMA(model: Any = None) -> None:  # noqa: N802 (its promised name)
    """Explore a model; in Python's prompt, by default, the result of the last line.

    Raises:
        SnapshotError: There is no last result, or it is no model.
    """
    last = getattr(builtins, "_", None) if model is None else model
    if last is None:
        raise SnapshotError("there is no last result to explore; pass a model: EMA(model)")
    explore_model(last)


# Count


def analyze_memory_usage(model: Any) -> dict[str, int]:
    """Return the bytes of each parameter by its name; tied ones once, under their first name."""
    return module_info.parameter_bytes(load_model(model).tree)


def get_parameter_statistics(model: Any) -> dict[str, int]:
    """Count the parameters of a model, each once; buffers are not among them.

    Returns:
        `total_params`, `trainable_params`, `non_trainable_params`, and `memory_usage` in bytes.
    """
    sums = load_model(model).tree.root.sums
    return {
        "total_params": sums.parameters,
        "trainable_params": sums.trainable,
        "non_trainable_params": sums.parameters - sums.trainable,
        "memory_usage": sums.parameter_bytes,
    }


get_module_by_path = module_info.find_module


def analyze_module(name: str, module: Any) -> ModuleInfo:
    """Summarize one module: its own tensors, and the sums of its subtree."""
    root = load_model(module).tree.root
    return module_info.module_info(name, root, module_info.own_shapes(root))


def analyze_module_detailed(module: Any, name: str = "") -> ModuleInfo:
    """Summarize a module with the tensors of its subtree and its recorded times."""
    return module_info.subtree_info(module, name)


def lazy_parameter_analysis(model: Any) -> Callable[[str], ModuleInfo]:
    """Return a function that analyzes the module at a path when it is called."""

    def get_module_info(module_path: str) -> ModuleInfo:
        return module_info.subtree_info(get_module_by_path(model, module_path), module_path)

    return get_module_info


# Export


def generate_text_summary(model: Any) -> str:
    """Return the tree of a model as text."""
    return text.as_text(load_model(model).tree)


def generate_json_summary(model: Any) -> str:
    """Return the tree of a model as JSON; `snapviewer.report.tree.json` documents the format."""
    return json_text(json.to_json(load_model(model).tree))


def generate_html_summary(model: Any) -> str:
    """Return the tree of a model as a foldable, self-contained page of HTML."""
    return html.as_html(load_model(model).tree)


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
    """Return a model as a graph of plain values.

    Returns:
        `nodes`, each with `id` (the path), `name`, `type`, `label`, `parameters`, `bytes`, and
        `edges`, each with `source`, `target` and `kind`: "contains" from a module to its children,
        "data" from a module to those that took its output in the last recorded run.
    """
    explored = load_model(model)
    return json.graph_to_json(explored.tree, explored.stats)


def generate_architecture_diagram(model: Any) -> str:
    """Draw a model as SVG: its modules in the order in which they ran, or are defined."""
    from snapviewer.report.tree.diagram import as_svg

    explored = load_model(model)
    return as_svg(explored.tree, explored.stats)
