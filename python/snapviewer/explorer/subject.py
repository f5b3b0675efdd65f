"""What the panels tell of: a tree, and where more can be asked about what is in it.

Trees are plain. A live module behind one, or the file, is only asked when a panel is looked at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from .compare import ModuleComparison, TreeComparison, compare_trees
from .guarded import Refused, asked
from .live import held_modules, is_module
from .timing import ForwardStats, ModuleTiming
from .tree import ModuleNode, TensorEntry, Tree

if TYPE_CHECKING:
    from snapviewer._core import Checkpoint, Tensor

Item: TypeAlias = ModuleNode | TensorEntry


@dataclass(frozen=True, eq=False)
class Subject:
    """A tree with all that is known beside it.

    Attributes:
        tree: The model.
        find_module: Returns the live module at a path; None for a file.
        stats: What was recorded of its runs.
        checkpoint: The file, if the tree is of one.
        other: The tree that it is compared with.
        other_checkpoint: The file of that one, if it is of one.
        value_changes: How the elements of both files differ, once that was asked for.
    """

    tree: Tree
    find_module: Callable[[str], Any] | None = None
    stats: ForwardStats | None = None
    checkpoint: Checkpoint | None = None
    other: Tree | None = None
    other_checkpoint: Checkpoint | None = None
    value_changes: Mapping[str, str] | None = None

    @cached_property
    def places(self) -> Places:
        """Where everything is in the tree."""
        return places_in(self.tree)

    @cached_property
    def other_places(self) -> Places:
        """Where everything is in the other tree; nowhere if there is none."""
        return Places({}, {}, {}, {}) if self.other is None else places_in(self.other)

    @cached_property
    def file_tensors(self) -> Mapping[str, tuple[int, Tensor]]:
        """The tensors of the file by name, each with its index.

        Names that several have are left out: no numbers are better than another tensor's.
        """
        tensors = self.checkpoint.tensors if self.checkpoint else ()
        counts = Counter(tensor.name for tensor in tensors)
        found = ((index, tensor) for index, tensor in enumerate(tensors))
        return {one[1].name: one for one in found if counts[one[1].name] == 1}

    @cached_property
    def comparison(self) -> TreeComparison | None:
        """The tree beside the other one, which counts as after; None if there is none."""
        if self.other is None:
            return None
        return compare_trees(self.tree, self.other, self.value_changes)

    @cached_property
    def compared(self) -> Mapping[str, ModuleComparison]:
        """What the comparison says of the modules of both trees, by path."""
        whole = self.comparison.root.walk() if self.comparison else ()
        return {each.node.path: each for each in whole}

    def module_of(self, node: ModuleNode) -> Any:
        """Return the live module; a `Refused` if it cannot be had, None if there is none."""
        find = self.find_module
        return asked(find, node.path) if find is not None and self.has(node) else None

    def tensor_of(self, entry: TensorEntry) -> Any:
        """Return the live tensor; a `Refused` if it cannot be had, None if there is none."""
        find, owner = self.find_module, self.places.owners.get(entry.path)
        if find is None or owner is None:
            return None
        table = "_buffers" if entry.is_buffer else "_parameters"
        return asked(lambda: vars(find(owner.path))[table][entry.name])

    def file_tensor_of(self, entry: TensorEntry) -> tuple[int, Tensor] | None:
        """Return the tensor of the file with its index; None if there is none."""
        kept = self.file_tensors.get(entry.path)
        # A module that is shown in several places has its tensors in the first.
        return self.file_tensors.get(entry.tied_to) if kept is None and entry.tied_to else kept

    def has(self, node: ModuleNode) -> bool:
        """Tell whether a module is in this tree, and not only in the other one."""
        return node.path in self.places.nodes

    def is_root(self, node: ModuleNode) -> bool:
        """Tell whether a module is the whole model."""
        return node.path == self.tree.root.path

    def node_of(self, item: Item) -> ModuleNode:
        """Return a module as it is in this tree, or the one that has a tensor.

        What is only in the other tree is returned as it is there.
        """
        if isinstance(item, ModuleNode):
            return self.places.nodes.get(item.path, item)
        owner = self.places.owners.get(item.path)
        if owner is None:
            owner = self.other_places.owners.get(item.path)
        return owner or self.tree.root

    def timing_of(self, node: ModuleNode) -> ModuleTiming | None:
        """Return what was recorded of a module, under whichever of its paths."""
        if self.stats is None:
            return None
        timing = self.stats.timings.get(node.path)
        if timing is None and node.shared_with is not None:
            timing = self.stats.timings.get(node.shared_with)
        return timing


@dataclass(frozen=True, slots=True)
class Places:
    """Modules by their path, parents by the path of a child, owners and ties by that of a tensor.

    `ties` has, for the first of several tensors with the same elements, where the others are.
    """

    nodes: Mapping[str, ModuleNode]
    parents: Mapping[str, ModuleNode]
    owners: Mapping[str, ModuleNode]
    ties: Mapping[str, tuple[str, ...]]


def places_in(tree: Tree) -> Places:
    """Look once at everything in a tree."""
    nodes: dict[str, ModuleNode] = {}
    parents: dict[str, ModuleNode] = {}
    owners: dict[str, ModuleNode] = {}
    ties: dict[str, list[str]] = defaultdict(list)
    for node in tree.root.walk():
        nodes.setdefault(node.path, node)
        for child in node.children:
            parents.setdefault(child.path, node)
        for tensor in node.tensors:
            owners.setdefault(tensor.path, node)
            if tensor.tied_to is not None:
                ties[tensor.tied_to].append(tensor.path)
    return Places(nodes, parents, owners, {first: tuple(rest) for first, rest in ties.items()})


def tensors_once(node: ModuleNode) -> Iterator[TensorEntry]:
    """Yield all tensors of a module and of those below it; of tied ones the first."""
    met: set[str] = set()
    for entry in (entry for below in node.walk() for entry in below.tensors):
        first = entry.tied_to or entry.path
        if first not in met:
            met.add(first)
            yield entry


def finder_in(root: Any) -> Callable[[str], Any]:
    """Return what finds the modules below a live one by their paths in its tree.

    Not `get_submodule`, which scripted modules and what only holds modules do not have.
    """

    def find(path: str) -> Any:
        found = root
        for name in path.split(".") if path else ():
            found = _child(found, name)
        return found

    return find


def _child(owner: Any, name: str) -> Any:
    modules = getattr(owner, "__dict__", {}).get("_modules")
    if modules is not None:
        return modules[name]
    return dict(owner.named_children() if is_module(owner) else held_modules(owner))[name]


def is_missing(answer: Any) -> bool:
    """Tell whether there is no live module or tensor to ask."""
    # Not `isinstance`, which asks a live module itself for its class.
    return answer is None or type(answer) is Refused
