"""A model as a tree of modules with their tensors, which the explorer shows, exports and compares.

Trees are built from live modules (`live.py`) and checkpoints (`checkpoint.py`), and know neither.

# Invariants

A module's sums are those of all tensors in its subtree, each once: a tensor that two of its modules
share (tied weights) is counted once there, as `sum(p.numel() for p in module.parameters())` does.
So the sums of children may be more than their parent's, by what they share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar


class HasChildren(Protocol):
    """A node of any tree."""

    @property
    def children(self) -> Sequence[Any]: ...


Node = TypeVar("Node", bound=HasChildren)


def walk(root: Node) -> Iterator[Node]:
    """Yield a node and everything below it, parents first, in order."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """A parameter or buffer of a module."""

    name: str
    path: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    elements: int
    size_bytes: int
    is_buffer: bool
    is_trainable: bool
    tied_to: str | None = None
    """The path of the first tensor with the same elements, if this is not the first."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over a subtree, each tensor once. Parameters and buffers are counted in elements."""

    modules: int
    parameters: int
    trainable: int
    buffers: int
    parameter_bytes: int
    buffer_bytes: int

    @property
    def total_bytes(self) -> int:
        """The bytes of parameters and buffers."""
        return self.parameter_bytes + self.buffer_bytes


@dataclass(frozen=True, slots=True)
class ModuleNode:
    """A module.

    `type_name` is its class without its module, empty if unknown; `is_type_guessed` if it was
    inferred from the names and shapes of its tensors. `arguments` is the part of the label in
    parentheses, such as `3→64, 7×7`.
    """

    name: str
    path: str
    type_name: str
    arguments: str
    tensors: tuple[TensorEntry, ...]
    children: tuple[ModuleNode, ...]
    sums: Sums
    is_type_guessed: bool = False
    shared_with: str | None = None
    """The first path of the same module; its children are shown there, too."""

    def walk(self) -> Iterator[ModuleNode]:
        """Yield this module and everything below it, parents first, in order."""
        return walk(self)


@dataclass(frozen=True, slots=True)
class Tree:
    """A model: its name, its source, its root, and notes about anything unusual."""

    name: str
    source: str
    root: ModuleNode
    notes: tuple[str, ...] = ()
