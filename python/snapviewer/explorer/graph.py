"""A model as a graph: modules, what they are in, and what flowed between them in a recorded run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .labels import label
from .timing import ForwardStats
from .tree import Tree


def graph_of(tree: Tree, stats: ForwardStats | None = None) -> dict[str, Any]:
    """Return a model as a graph of plain values; see `extract_model_graph`."""
    nodes = [
        {
            "id": node.path,
            "name": node.name,
            "type": node.type_name,
            "label": label(node),
            "parameters": node.sums.parameters,
            "bytes": node.sums.parameter_bytes + node.sums.buffer_bytes,
        }
        for node in tree.root.walk()
    ]
    edges = [
        {"source": node.path, "target": child.path, "kind": "contains"}
        for node in tree.root.walk()
        for child in node.children
    ]
    data = [{"source": source, "target": target, "kind": "data"} for source, target in flows(stats)]
    return {"nodes": nodes, "edges": edges + data}


def flows(stats: ForwardStats | None) -> Iterator[tuple[str, str]]:
    """Yield, each once, from which module to which one something flowed in the last run."""
    if stats is not None:
        pairs = ((source, step.path) for step in stats.flow for source in step.sources)
        yield from dict.fromkeys(pairs)
