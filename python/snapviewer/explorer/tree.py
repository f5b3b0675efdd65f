"""A model as a tree of modules with their tensors: what the explorer shows, exports and compares.

Trees are made of live modules (`live.py`) and of checkpoints (`checkpoint.py`), and know neither.

# Invariants

A module's sums are those of all tensors in its subtree, each once: a tensor that two of its modules
share (tied weights) is counted once there, as `sum(p.numel() for p in module.parameters())` does.
So the sums of children may be more than their parent's, by what they share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


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
    """What a subtree holds, each tensor once. Parameters and buffers are counted in elements."""

    modules: int
    parameters: int
    trainable: int
    buffers: int
    parameter_bytes: int
    buffer_bytes: int


@dataclass(frozen=True, slots=True)
class ModuleNode:
    """A module.

    `type_name` is its class without its module, empty if nothing tells it; `is_type_guessed` where
    only the names and shapes of its tensors do. `arguments` is what the label has in parentheses,
    such as `3→64, 7×7`.
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
    """The path under which the same module was met before; its children are shown there, too."""

    def walk(self) -> Iterator[ModuleNode]:
        """Yield this module and all below it, parents first, in order."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


@dataclass(frozen=True, slots=True)
class Tree:
    """A model: its name, where it comes from, its root, and what is odd about it, in sentences."""

    name: str
    source: str
    root: ModuleNode
    notes: tuple[str, ...] = ()
