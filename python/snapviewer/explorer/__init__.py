"""Browse a model in the terminal: a live module, or any checkpoint.

>>> from snapviewer.explorer import explore_model, export_model_summary
>>> explore_model(model)                                      # doctest: +SKIP
>>> explore_model("model.safetensors")                        # doctest: +SKIP
>>> print(export_model_summary(model, format="text"))         # doctest: +SKIP
ResNet(
├── 25.6M parameters
…

torch and Textual are imported only when a function needs them; checkpoints never need torch.

- Open: `explore_model` (also as `explore_torch_module` and `explore_module`),
  `explore_torch_module_with_stats`, and `EMA()` in Python's prompt, for the last result.
- Count: `analyze_memory_usage`, `get_parameter_statistics`, `analyze_module`,
  `analyze_module_detailed`, `lazy_parameter_analysis`, `get_module_by_path`, `ModuleInfo`; in an
  event loop, `analyze_model_async`.
- Export: `export_model_summary`, `generate_text_summary`, `generate_json_summary`,
  `generate_html_summary`, `generate_model_summary`, `extract_model_graph`,
  `generate_architecture_diagram`.
- Record runs: `record_torch_module_forward_stats`, `get_forward_stats`,
  `display_timing_in_explorer`.
- Build on: `tree_of_module`, `tree_of_checkpoint`, `Tree`, `ModuleNode`, `TensorEntry`, `Sums`,
  `compare_trees`, `ExplorerConfig`, `format_shape`, `format_param_count`, `format_time`,
  `format_memory`.
"""

from snapviewer._lazy import TYPE_CHECKING, lazy_names

__all__: list[str]

if TYPE_CHECKING:
    from snapviewer.compat.explorer import EMA as EMA
    from snapviewer.compat.explorer import analyze_memory_usage as analyze_memory_usage
    from snapviewer.compat.explorer import analyze_module as analyze_module
    from snapviewer.compat.explorer import analyze_module_detailed as analyze_module_detailed
    from snapviewer.compat.explorer import explore_model as explore_model
    from snapviewer.compat.explorer import explore_module as explore_module
    from snapviewer.compat.explorer import explore_torch_module as explore_torch_module
    from snapviewer.compat.explorer import (
        explore_torch_module_with_stats as explore_torch_module_with_stats,
    )
    from snapviewer.compat.explorer import export_model_summary as export_model_summary
    from snapviewer.compat.explorer import extract_model_graph as extract_model_graph
    from snapviewer.compat.explorer import (
        generate_architecture_diagram as generate_architecture_diagram,
    )
    from snapviewer.compat.explorer import generate_html_summary as generate_html_summary
    from snapviewer.compat.explorer import generate_json_summary as generate_json_summary
    from snapviewer.compat.explorer import generate_model_summary as generate_model_summary
    from snapviewer.compat.explorer import generate_text_summary as generate_text_summary
    from snapviewer.compat.explorer import get_module_by_path as get_module_by_path
    from snapviewer.compat.explorer import get_parameter_statistics as get_parameter_statistics
    from snapviewer.compat.explorer import lazy_parameter_analysis as lazy_parameter_analysis
    from snapviewer.explorer.app.settings import ExplorerConfig as ExplorerConfig
    from snapviewer.explorer.checkpoint import tree_of_checkpoint as tree_of_checkpoint
    from snapviewer.explorer.compare import compare_trees as compare_trees
    from snapviewer.explorer.formats import format_memory as format_memory
    from snapviewer.explorer.formats import format_param_count as format_param_count
    from snapviewer.explorer.formats import format_shape as format_shape
    from snapviewer.explorer.formats import format_time as format_time
    from snapviewer.explorer.live import tree_of_module as tree_of_module
    from snapviewer.explorer.module_info import ModuleInfo as ModuleInfo
    from snapviewer.explorer.module_info import analyze_model_async as analyze_model_async
    from snapviewer.explorer.recording import get_forward_stats as get_forward_stats
    from snapviewer.explorer.recording import (
        record_torch_module_forward_stats as record_torch_module_forward_stats,
    )
    from snapviewer.explorer.tree import ModuleNode as ModuleNode
    from snapviewer.explorer.tree import Sums as Sums
    from snapviewer.explorer.tree import TensorEntry as TensorEntry
    from snapviewer.explorer.tree import Tree as Tree
    from snapviewer.report.tree.overlay import (
        display_timing_in_explorer as display_timing_in_explorer,
    )
else:
    __all__, __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "compat.explorer": "EMA analyze_memory_usage analyze_module "
            "analyze_module_detailed explore_model explore_module explore_torch_module "
            "explore_torch_module_with_stats export_model_summary extract_model_graph "
            "generate_architecture_diagram generate_html_summary generate_json_summary "
            "generate_model_summary generate_text_summary get_module_by_path "
            "get_parameter_statistics lazy_parameter_analysis",
            "explorer.app.settings": "ExplorerConfig",
            "explorer.checkpoint": "tree_of_checkpoint",
            "explorer.compare": "compare_trees",
            "explorer.formats": "format_memory format_param_count format_shape format_time",
            "explorer.live": "tree_of_module",
            "explorer.module_info": "ModuleInfo analyze_model_async",
            "explorer.recording": "get_forward_stats record_torch_module_forward_stats",
            "explorer.tree": "ModuleNode Sums TensorEntry Tree",
            "report.tree.overlay": "display_timing_in_explorer",
        },
    )
