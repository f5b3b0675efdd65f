"""What a ScriptModule runs past torch's dispatcher, so that nobody can listen.

`torch.jit.optimize_for_inference` puts operations into a graph that the interpreter runs by
itself. They are in the graph of the module, so that they can at least be named.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from snapviewer.model.graph import Node, Unknown
from snapviewer.model.work import kind_of

_WHY = "TorchScript runs it unseen; the graph of the saved file has its shapes"


def unseen_nodes(module: Any, first_number: int) -> tuple[Node, ...]:
    """Return the operations of a ScriptModule's graph that a run does not show.

    Args:
        module: A ScriptModule.
        first_number: The number of the first of them.
    """
    try:
        graph = module.inlined_graph
    except (AttributeError, RuntimeError):
        # A module with several methods and no forward has no one graph.
        return ()
    kinds = [node.kind() for node in _all_nodes(graph) if _is_unseen(node.kind())]
    return tuple(
        Node(first_number + index, kind, "", "", (Unknown(_WHY),), (), (Unknown(_WHY),), ())
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
