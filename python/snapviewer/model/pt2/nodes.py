"""The operations of a program, with its blocks inlined.

Of the blocks of a condition the larger one counts; a repeated block counts as often as is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from snapviewer.model.graph import MAX_NODES, Node, TensorSpec, Unknown, Value
from snapviewer.model.pt2.values import (
    Scope,
    Sizes,
    items_in,
    mapping_in,
    tensor_names,
    text_in,
)

_MAX_DEPTH = 64
_MAX_NOTES = 50
_POSITIONAL = 1

# Blocks that run once, in place.
_ONCE = {
    "wrap",
    "wrap_with_set_grad_enabled",
    "wrap_with_autocast",
    "invoke_subgraph",
    "tag_activation_checkpoint",
    "strict_mode",
    "hints_wrapper",
    "run_const_graph",
}
# The operations of `torch.vmap` in a graph: it adds a dimension that the shapes do not have.
_BATCHING = "torch::_functorch::predispatch::"
# Blocks that run for each row of tensors, and the index of these among their lists of tensors.
_FOR_EACH = {"map": 0, "map_impl": 0, "scan": 1}


@dataclass(frozen=True, slots=True)
class _Block:
    """A graph inside an operation."""

    name: str
    graph: Mapping[str, Any]


class NodeReader:
    """Converts the JSON of graphs into nodes.

    Args:
        sizes: Evaluates sizes.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._left = MAX_NODES
        self.notes: list[str] = []

    def nodes(
        self, graph: Any, names: Mapping[str, str], module: tuple[str, str], *, depth: int = 0
    ) -> list[Node]:
        """Return the operations of a graph, numbered from 0.

        Args:
            graph: Its JSON.
            names: The names of parameters and buffers by their names in the graph.
            module: The path and type of the module, for operations without one.
            depth: The number of enclosing blocks.
        """
        scope = Scope(graph, self._sizes)
        found: list[Node] = []
        batches: list[int] = []
        for entry in items_in(graph, "nodes"):
            here = _module(text_in(mapping_in(entry, "metadata"), "nn_module_stack")) or module
            op = _op(text_in(entry, "target"))
            if op.startswith(_BATCHING):
                # In between, shapes are those of one element of the batch.
                self._nest(op, entry, scope, batches, here)
                continue
            blocks = _blocks(entry)
            kind = op.partition("higher_order::")[2]
            if blocks and (kind in _ONCE or kind in _FOR_EACH or kind in ("cond", "while_loop")):
                inlined = self._inlined(kind, entry, blocks, scope, names, here, depth)
                times = prod(batches)
                found.extend(replace(node, times=node.times * times) for node in inlined)
                continue
            if self._left == 0:
                self._note(f"operations after the first {MAX_NODES:,} are omitted")
                break
            self._left -= 1
            node = replace(_node(op, entry, scope, names, here), times=prod(batches))
            if not _is_bookkeeping(node):
                found.append(node)
        return [replace(node, number=number) for number, node in enumerate(found)]

    def _inlined(
        self,
        kind: str,
        entry: Any,
        blocks: Sequence[_Block],
        scope: Scope,
        names: Mapping[str, str],
        module: tuple[str, str],
        depth: int,
    ) -> list[Node]:
        if depth >= _MAX_DEPTH:
            self._note(f"blocks nested deeper than {_MAX_DEPTH} are omitted")
            return []
        inside = [
            self.nodes(block.graph, _inner_names(entry, block, names), module, depth=depth + 1)
            for block in blocks
        ]
        if kind == "cond":
            larger = max(range(len(inside)), key=lambda index: _touched(inside[index]))
            self._note(
                "a condition is unknown before a run: the larger of its branches counts "
                f"({blocks[larger].name[:60]}{_in(module)})"
            )
            return inside[larger]
        together = [node for nodes in inside for node in nodes]
        if kind == "while_loop":
            self._note(
                "the number of iterations of a loop is unknown before a run: "
                f"its body counts once ({blocks[-1].name[:60]}{_in(module)})"
            )
        if kind in _FOR_EACH:
            times = _rows(entry, scope, _FOR_EACH[kind])
            if times is None:
                self._note(f"how often a block runs is unknown: it counts once{_in(module)}")
                times = 1
            return [replace(node, times=node.times * times) for node in together]
        return together

    def _nest(
        self, op: str, entry: Any, scope: Scope, batches: list[int], module: tuple[str, str]
    ) -> None:
        """Track the sizes of the batches of `torch.vmap`."""
        if op.endswith("_vmap_increment_nesting"):
            given = items_in(entry, "inputs")
            size = scope.value(mapping_in(given[0], "arg")) if given else None
            if not isinstance(size, int) or size < 0:
                self._note(f"the size of a batch of vmap is unknown: it counts as 1{_in(module)}")
                size = 1
            batches.append(size)
        elif op.endswith("_vmap_decrement_nesting") and batches:
            batches.pop()

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes and len(self.notes) < _MAX_NOTES:
            self.notes.append(sentence)


def flatten(values: Iterable[Value]) -> Iterator[Value]:
    """Yield values, with lists flattened."""
    for value in values:
        if isinstance(value, tuple):
            yield from flatten(value)
        else:
            yield value


def _node(
    op: str, entry: Any, scope: Scope, names: Mapping[str, str], module: tuple[str, str]
) -> Node:
    arguments: list[Value] = []
    keywords: list[tuple[str, Value]] = []
    parameters: dict[str, None] = {}
    for given in items_in(entry, "inputs"):
        argument = mapping_in(given, "arg")
        value = scope.value(argument)
        # Older versions do not mark positional arguments; the name is enough then.
        if isinstance(given, dict) and given.get("kind") == _POSITIONAL and not keywords:
            arguments.append(value)
        else:
            keywords.append((text_in(given, "name"), value))
        parameters.update((names[name], None) for name in tensor_names(argument) if name in names)
    outputs = tuple(scope.value(output) for output in items_in(entry, "outputs"))
    if len(outputs) == 1 and isinstance(outputs[0], tuple):
        outputs = outputs[0]  # the list of a split, for example
    return Node(0, op, *module, tuple(arguments), tuple(keywords), outputs, tuple(parameters))


def _is_bookkeeping(node: Node) -> bool:
    """Return whether a node only computes or checks sizes."""
    if node.op.startswith(("operator::", "math::")) or node.op.startswith("aten::sym_"):
        return True
    has_tensor = any(isinstance(value, TensorSpec | Unknown) for value in flatten(node.outputs))
    return node.op.startswith("aten::") and not has_tensor


def _op(target: str) -> str:
    """Return the name without its overload.

    >>> _op("torch.ops.aten.conv2d.default"), _op("_operator.mul")
    ('aten::conv2d', 'operator::mul')
    """
    if target.startswith("torch.ops."):
        space, _, name = target.removeprefix("torch.ops.").partition(".")
        return f"{space}::{name.partition('.')[0]}"[:200]
    space, _, name = target.rpartition(".")
    return f"{space.strip('_').replace('.', '::')}::{name}"[:200]


def _module(stack: str) -> tuple[str, str] | None:
    """Return the path and type of the innermost module, from `key,path,type;…`.

    >>> _module("L__self__,,__main__.M;L__self__a.0@1,a.0,torch.nn.modules.linear.Linear")
    ('a.0', 'Linear')
    """
    key_and_path, _, kind = stack.rpartition(";")[2].rpartition(",")
    if not key_and_path or "_empty_nn_module_stack" in kind:
        return None
    parts = key_and_path.split(",")
    paths = [",".join(parts[index:]) for index in range(1, len(parts))]
    # Names may contain commas; the key then has them as well.
    path = next((one for one in paths if _has_path(key_and_path, one)), paths[0] if paths else "")
    return path.removeprefix("L['self']").lstrip("."), kind.rpartition(".")[2]


def _has_path(key_and_path: str, path: str) -> bool:
    key = key_and_path[: -len(path) - 1] if path else key_and_path[:-1]
    return re.sub(r"@\d+$", "", key) == f"L__self__{path}"


def _blocks(entry: Any) -> list[_Block]:
    blocks = []
    for given in items_in(entry, "inputs"):
        held = mapping_in(mapping_in(given, "arg"), "as_graph")
        if held:
            blocks.append(_Block(text_in(held, "name"), mapping_in(held, "graph")))
    return blocks


def _inner_names(entry: Any, block: _Block, names: Mapping[str, str]) -> dict[str, str]:
    """Return the names of parameters inside a block, whose inputs are the tensors after it."""
    outside: list[str] = []
    for given in items_in(entry, "inputs"):
        argument = mapping_in(given, "arg")
        if "as_graph" in argument:
            outside.clear()
        outside.extend(tensor_names(argument))
    inside = [next(tensor_names(given), "") for given in items_in(block.graph, "inputs")]
    pairs = zip(inside, outside, strict=False)
    return {inner: names[outer] for inner, outer in pairs if outer in names}


def _rows(entry: Any, scope: Scope, which: int) -> int | None:
    """Return the number of rows of a list of tensors among the arguments."""
    lists = [
        scope.value(argument)
        for given in items_in(entry, "inputs")
        if "as_tensors" in (argument := mapping_in(given, "arg"))
    ]
    tensors = lists[which] if which < len(lists) else None
    first = tensors[0] if isinstance(tensors, tuple) and tensors else None
    return first.shape[0] if isinstance(first, TensorSpec) and first.shape else None


def _touched(nodes: Iterable[Node]) -> int:
    """Return the number of elements that operations read and write, to compare blocks."""
    elements = 0
    for node in nodes:
        given = (*node.arguments, *(value for _, value in node.keywords), *node.outputs)
        for value in flatten(given):
            if isinstance(value, TensorSpec):
                size = 1
                for side in value.shape:
                    size *= 1 if side is None else side
                elements += size * node.times
    return elements


def _in(module: tuple[str, str]) -> str:
    return f" in {module[0][:100]}" if module[0] else ""
