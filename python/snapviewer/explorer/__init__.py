"""Browse a model in the terminal: a live module, or any checkpoint.

>>> from snapviewer.explorer import explore_model, export_model_summary
>>> explore_model(model)                                      # doctest: +SKIP
>>> explore_model("model.safetensors")                        # doctest: +SKIP
>>> print(export_model_summary(model, format="text"))         # doctest: +SKIP
ResNet(
├── 25.6M parameters
…

Neither torch nor Textual is imported before something is asked for that needs it, and checkpoints
do without torch altogether.

To look: `explore_model` (also under the names `explore_torch_module` and `explore_module`),
`explore_torch_module_with_stats`, and `EMA()` in Python's prompt, for what the last line returned.
To count: `analyze_memory_usage`, `get_parameter_statistics`, `analyze_module`,
`analyze_module_detailed`, `lazy_parameter_analysis`, `get_module_by_path`, `ModuleInfo`; aside,
while other things go on, `analyze_model_async`.
To keep: `export_model_summary`, `generate_text_summary`, `generate_json_summary`,
`generate_html_summary`, `generate_model_summary`, `extract_model_graph`,
`generate_architecture_diagram`. To record runs: `record_torch_module_forward_stats`,
`get_forward_stats`, `display_timing_in_explorer`. To build on: `tree_of_module`,
`tree_of_checkpoint`, `Tree`, `ModuleNode`, `TensorEntry`, `Sums`, `compare_trees`,
`ExplorerConfig`, and the formats `format_shape`, `format_param_count`, `format_time`,
`format_memory`.
"""

from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for true

_HOMES = {
    "compat.explorer_async": ("analyze_model_async",),
    "explorer.checkpoint": ("tree_of_checkpoint",),
    "explorer.compare": ("compare_trees",),
    "explorer.config": ("ExplorerConfig",),
    "explorer.formats": ("format_memory", "format_param_count", "format_shape", "format_time"),
    "explorer.live": ("tree_of_module",),
    "report.tree.overlay": ("display_timing_in_explorer",),
    "explorer.recording": (
        "get_forward_stats",
        "record_torch_module_forward_stats",
    ),
    "compat.explorer": (
        "EMA",
        "ModuleInfo",
        "analyze_memory_usage",
        "analyze_module",
        "analyze_module_detailed",
        "explore_model",
        "explore_module",
        "explore_torch_module",
        "explore_torch_module_with_stats",
        "export_model_summary",
        "extract_model_graph",
        "generate_architecture_diagram",
        "generate_html_summary",
        "generate_json_summary",
        "generate_model_summary",
        "generate_text_summary",
        "get_module_by_path",
        "get_parameter_statistics",
        "lazy_parameter_analysis",
    ),
    "explorer.tree": ("ModuleNode", "Sums", "TensorEntry", "Tree"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "EMA",
    "ExplorerConfig",
    "ModuleInfo",
    "ModuleNode",
    "Sums",
    "TensorEntry",
    "Tree",
    "analyze_memory_usage",
    "analyze_model_async",
    "analyze_module",
    "analyze_module_detailed",
    "compare_trees",
    "display_timing_in_explorer",
    "explore_model",
    "explore_module",
    "explore_torch_module",
    "explore_torch_module_with_stats",
    "export_model_summary",
    "extract_model_graph",
    "format_memory",
    "format_param_count",
    "format_shape",
    "format_time",
    "generate_architecture_diagram",
    "generate_html_summary",
    "generate_json_summary",
    "generate_model_summary",
    "generate_text_summary",
    "get_forward_stats",
    "get_module_by_path",
    "get_parameter_statistics",
    "lazy_parameter_analysis",
    "record_torch_module_forward_stats",
    "tree_of_checkpoint",
    "tree_of_module",
]

# A type checker sees the names themselves, so that it finds the wrong ones.
if TYPE_CHECKING:
    from snapviewer.compat.explorer import (
        EMA,
        ModuleInfo,
        analyze_memory_usage,
        analyze_module,
        analyze_module_detailed,
        explore_model,
        explore_module,
        explore_torch_module,
        explore_torch_module_with_stats,
        export_model_summary,
        extract_model_graph,
        generate_architecture_diagram,
        generate_html_summary,
        generate_json_summary,
        generate_model_summary,
        generate_text_summary,
        get_module_by_path,
        get_parameter_statistics,
        lazy_parameter_analysis,
    )
    from snapviewer.compat.explorer_async import analyze_model_async
    from snapviewer.explorer.checkpoint import tree_of_checkpoint
    from snapviewer.explorer.compare import compare_trees
    from snapviewer.explorer.config import ExplorerConfig
    from snapviewer.explorer.formats import (
        format_memory,
        format_param_count,
        format_shape,
        format_time,
    )
    from snapviewer.explorer.live import tree_of_module
    from snapviewer.explorer.recording import get_forward_stats, record_torch_module_forward_stats
    from snapviewer.explorer.tree import ModuleNode, Sums, TensorEntry, Tree
    from snapviewer.report.tree.overlay import display_timing_in_explorer
else:

    def __getattr__(name: str) -> object:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = import_module(f"snapviewer.{_HOME_OF[name]}")
        value = globals()[name] = getattr(home, name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
