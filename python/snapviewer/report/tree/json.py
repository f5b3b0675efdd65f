"""The tree as a JSON document.

The format:

```text
{"format": "snapviewer-model-summary", "version": 1, "name", "source", "notes": [text, …],
 "totals": SUMS, "modules": [MODULE, …]}
SUMS    {"modules", "parameters", "trainable_parameters", "frozen_parameters", "buffer_elements",
         "parameter_bytes", "buffer_bytes"}
MODULE  {"path", "name", "depth", "type", "is_type_guessed", "arguments", "label", "shared_with",
         "hidden_children", "tensors": [TENSOR, …], "sums": SUMS}
TENSOR  {"name", "path", "shape": [number, …], "dtype", "device", "elements", "bytes", "is_buffer",
         "is_trainable", "tied_to"}
```

Modules are in the order of the selection, parents first: a module's parent is the last one before
it of a smaller depth. (Nested, a deep model would exceed what JSON parsers accept.)
Sums count each tensor of a subtree once. `shared_with` and `tied_to` are paths, or null.
"""

from __future__ import annotations

from typing import Any

from snapviewer.explorer.labels import label
from snapviewer.explorer.timing import ForwardStats
from snapviewer.explorer.tree import ModuleNode, Sums, TensorEntry, Tree
from snapviewer.report.tree.selection import WHOLE_TREE, HiddenRows, TreeSelection, rows_of

FORMAT, VERSION = "snapviewer-model-summary", 1


def to_json(tree: Tree, selection: TreeSelection = WHOLE_TREE) -> dict[str, Any]:
    """Return the selected part of a tree as plain values."""
    modules: list[dict[str, Any]] = []
    at_depth: dict[int, dict[str, Any]] = {}
    for row in rows_of(tree.root, selection):
        if isinstance(row, HiddenRows):
            at_depth[len(row.guides) - 1]["hidden_children"] = row.count
        else:
            module = _module(row.node, len(row.guides), selection)
            at_depth[len(row.guides)] = module
            modules.append(module)
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": tree.name,
        "source": tree.source,
        "notes": list(tree.notes),
        "totals": _sums(tree.root.sums),
        "modules": modules,
    }


def _module(node: ModuleNode, depth: int, selection: TreeSelection) -> dict[str, Any]:
    return {
        "path": node.path,
        "name": node.name,
        "depth": depth,
        "type": node.type_name,
        "is_type_guessed": node.is_type_guessed,
        "arguments": node.arguments,
        "label": selection.line(node),
        "shared_with": node.shared_with,
        "hidden_children": 0,
        "tensors": [_tensor(entry) for entry in node.tensors],
        "sums": _sums(node.sums),
    }


def _sums(sums: Sums) -> dict[str, int]:
    return {
        "modules": sums.modules,
        "parameters": sums.parameters,
        "trainable_parameters": sums.trainable,
        "frozen_parameters": sums.parameters - sums.trainable,
        "buffer_elements": sums.buffers,
        "parameter_bytes": sums.parameter_bytes,
        "buffer_bytes": sums.buffer_bytes,
    }


def _tensor(entry: TensorEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "path": entry.path,
        "shape": list(entry.shape),
        "dtype": entry.dtype,
        "device": entry.device,
        "elements": entry.elements,
        "bytes": entry.size_bytes,
        "is_buffer": entry.is_buffer,
        "is_trainable": entry.is_trainable,
        "tied_to": entry.tied_to,
    }


def graph_to_json(tree: Tree, stats: ForwardStats | None = None) -> dict[str, Any]:
    """Return a model as a graph of plain values; see `extract_model_graph`."""
    modules = list(tree.root.walk())
    contains = [(node.path, child.path) for node in modules for child in node.children]
    return {
        "nodes": [
            {
                "id": node.path,
                "name": node.name,
                "type": node.type_name,
                "label": label(node),
                "parameters": node.sums.parameters,
                "bytes": node.sums.total_bytes,
            }
            for node in modules
        ],
        "edges": [
            {"source": source, "target": target, "kind": kind}
            for kind, pairs in (("contains", contains), ("data", stats.edges() if stats else ()))
            for source, target in pairs
        ],
    }
