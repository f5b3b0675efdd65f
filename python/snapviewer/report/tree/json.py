"""The tree as a document of plain values, for JSON.

The contract:

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

Modules are in the order in which they are seen, parents first: a module's parent is the last one
before it of a smaller depth. (Nested, a deep model would be more than readers of JSON bear.)
Sums count each tensor of a subtree once. `shared_with` and `tied_to` are paths, or null.
"""

from __future__ import annotations

from typing import Any

from snapviewer.explorer.tree import ModuleNode, Sums, TensorEntry, Tree
from snapviewer.report.tree.selection import EVERYTHING, More, Seen, rows_of
from snapviewer.text.sanitize import json_text

FORMAT, VERSION = "snapviewer-model-summary", 1


def as_json(tree: Tree, seen: Seen = EVERYTHING) -> str:
    """Render what is seen of a tree as JSON."""
    return json_text(as_dict(tree, seen))


def as_dict(tree: Tree, seen: Seen = EVERYTHING) -> dict[str, Any]:
    """Return what is seen of a tree as plain values."""
    modules: list[dict[str, Any]] = []
    at_depth: dict[int, dict[str, Any]] = {}
    for row in rows_of(tree.root, seen):
        if isinstance(row, More):
            at_depth[len(row.guides) - 1]["hidden_children"] = row.count
        else:
            module = _module(row.node, len(row.guides), seen)
            at_depth[len(row.guides)] = module
            modules.append(module)
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": tree.name,
        "source": tree.source,
        "notes": list(tree.notes),
        "totals": sums_dict(tree.root.sums),
        "modules": modules,
    }


def _module(node: ModuleNode, depth: int, seen: Seen) -> dict[str, Any]:
    return {
        "path": node.path,
        "name": node.name,
        "depth": depth,
        "type": node.type_name,
        "is_type_guessed": node.is_type_guessed,
        "arguments": node.arguments,
        "label": seen.line(node),
        "shared_with": node.shared_with,
        "hidden_children": 0,
        "tensors": [tensor_dict(entry) for entry in node.tensors],
        "sums": sums_dict(node.sums),
    }


def sums_dict(sums: Sums) -> dict[str, int]:
    """Return sums as plain values."""
    return {
        "modules": sums.modules,
        "parameters": sums.parameters,
        "trainable_parameters": sums.trainable,
        "frozen_parameters": sums.parameters - sums.trainable,
        "buffer_elements": sums.buffers,
        "parameter_bytes": sums.parameter_bytes,
        "buffer_bytes": sums.buffer_bytes,
    }


def tensor_dict(entry: TensorEntry) -> dict[str, Any]:
    """Return a tensor as plain values."""
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
