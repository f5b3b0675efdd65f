"""A model as the explorer knows it: its tree, and the live modules or the file behind it.

Trees are plain data. The live modules and the file are read only when a panel needs them.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from threading import Event
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from snapviewer import Checkpoint, read_checkpoint
from snapviewer.text.sanitize import type_name

from .compare import ModuleComparison, TreeComparison, compare_trees
from .live import is_module, modules_in, tree_of_module
from .safe_call import CallFailure, safe_call
from .state_dict import tensors_in, tree_of_tensors
from .timing import ForwardStats, ModuleTiming
from .tree import ModuleNode, TensorEntry, Tree, walk

if TYPE_CHECKING:
    from snapviewer._core import Tensor

Item: TypeAlias = ModuleNode | TensorEntry
Progress: TypeAlias = Callable[[int, int], object]


@dataclass(frozen=True, eq=False)
class ExploredModel:
    """A tree with everything known beside it.

    Attributes:
        tree: The model.
        find_module: Returns the live module at a path; None for a file.
        live_tensors: The tensors of a state dict in memory by path.
        stats: The recorded runs.
        checkpoint: The file, if the tree was read from one.
        other: The tree that this one is compared with.
        other_checkpoint: The file of the other tree, if it was read from one.
        value_changes: How the elements of both files differ, once they were compared.
    """

    tree: Tree
    find_module: Callable[[str], Any] | None = None
    live_tensors: Mapping[str, Any] | None = None
    stats: ForwardStats | None = None
    checkpoint: Checkpoint | None = None
    other: Tree | None = None
    other_checkpoint: Checkpoint | None = None
    value_changes: Mapping[str, str] | None = None

    @cached_property
    def index(self) -> TreeIndex:
        """Modules and tensors of the tree by path."""
        return index_tree(self.tree)

    @cached_property
    def other_index(self) -> TreeIndex:
        """Modules and tensors of the other tree by path; empty if there is none."""
        return TreeIndex({}, {}, {}, {}) if self.other is None else index_tree(self.other)

    @cached_property
    def file_tensors(self) -> Mapping[str, tuple[int, Tensor]]:
        """The tensors of the file by name, each with its index.

        Names that occur several times are left out: no numbers are better than another tensor's.
        """
        tensors = self.checkpoint.tensors if self.checkpoint else ()
        counts = Counter(tensor.name for tensor in tensors)
        indexed = ((index, tensor) for index, tensor in enumerate(tensors))
        return {pair[1].name: pair for pair in indexed if counts[pair[1].name] == 1}

    @cached_property
    def comparison(self) -> TreeComparison | None:
        """The comparison with the other tree, which counts as after; None if there is none."""
        if self.other is None:
            return None
        return compare_trees(self.tree, self.other, self.value_changes)

    @cached_property
    def compared(self) -> Mapping[str, ModuleComparison]:
        """The compared modules of both trees by path."""
        modules = walk(self.comparison.root) if self.comparison else ()
        return {module.node.path: module for module in modules}

    def module_of(self, node: ModuleNode) -> Any:
        """Return the live module; a `CallFailure` if finding it raised, None if there is none."""
        find = self.find_module
        return safe_call(find, node.path) if find is not None and self.has(node) else None

    def tensor_of(self, entry: TensorEntry) -> Any:
        """Return the live tensor; a `CallFailure` if finding it raised, None if there is none."""
        if self.live_tensors is not None:
            return self.live_tensors.get(entry.path)
        find, owner = self.find_module, self.index.owners.get(entry.path)
        if find is None or owner is None:
            return None
        table = "_buffers" if entry.is_buffer else "_parameters"
        return safe_call(lambda: vars(find(owner.path))[table][entry.name])

    def file_tensor_of(self, entry: TensorEntry) -> tuple[int, Tensor] | None:
        """Return the tensor of the file with its index; None if there is none."""
        found = self.file_tensors.get(entry.path)
        # A module that is shown in several places has its tensors in the first.
        return self.file_tensors.get(entry.tied_to) if found is None and entry.tied_to else found

    def has(self, node: ModuleNode) -> bool:
        """Return whether a module is in this tree, and not only in the other one."""
        return node.path in self.index.nodes

    def is_root(self, node: ModuleNode) -> bool:
        """Return whether a module is the whole model."""
        return node.path == self.tree.root.path

    def node_of(self, item: Item) -> ModuleNode:
        """Return a module as it is in this tree, or the module of a tensor.

        Modules that are only in the other tree are returned as they are there.
        """
        if isinstance(item, ModuleNode):
            return self.index.nodes.get(item.path, item)
        owner = self.index.owners.get(item.path)
        if owner is None:
            owner = self.other_index.owners.get(item.path)
        return owner or self.tree.root

    def timing_of(self, node: ModuleNode) -> ModuleTiming | None:
        """Return the recorded times of a module, under any of its paths."""
        return None if self.stats is None else self.stats.timing_of(node)


@dataclass(frozen=True, slots=True)
class TreeIndex:
    """Modules by path, parents by a child's path, owners and ties by a tensor's path.

    `ties` maps the first of several tensors with the same elements to the paths of the others.
    """

    nodes: Mapping[str, ModuleNode]
    parents: Mapping[str, ModuleNode]
    owners: Mapping[str, ModuleNode]
    ties: Mapping[str, tuple[str, ...]]


def index_tree(tree: Tree) -> TreeIndex:
    """Index a tree in one walk."""
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
    return TreeIndex(nodes, parents, owners, {first: tuple(rest) for first, rest in ties.items()})


def load_model(
    model: Any, progress: Progress | None = None, cancel: Event | None = None
) -> ExploredModel:
    """Read a model of any kind.

    Args:
        model: A live module or an object that holds some; a state dict, or any mapping of tensors;
            a checkpoint or its path; a tree, or a model that was loaded before.
        progress: Called with (done, total) now and then.
        cancel: Stops the reading when set.

    Raises:
        SnapshotError: It cannot be read, or is no model; the message says why.
        OSError: The file cannot be read.
        CancelledError: `cancel` was set.
    """
    # Not `isinstance`, which reads `__class__` of the model itself; a module may raise anything.
    if issubclass(type(model), ExploredModel):
        return cast("ExploredModel", model)
    if issubclass(type(model), Tree):
        return ExploredModel(model)
    if issubclass(type(model), str | os.PathLike):
        model = read_checkpoint(model, progress=progress, cancel=cancel)
    if issubclass(type(model), Checkpoint):
        from .checkpoint import tree_of_checkpoint

        tree = tree_of_checkpoint(model, progress=progress, cancel=cancel)
        return ExploredModel(tree, checkpoint=model)
    tensors = tensors_in(model)
    if tensors:
        return ExploredModel(tree_of_tensors(type_name(model), tensors), live_tensors=tensors)
    tree = tree_of_module(model, progress=progress, cancel=cancel)
    return ExploredModel(tree, find_module=module_finder(model), stats=_recorded(model))


def _recorded(model: Any) -> ForwardStats | None:
    """Return what was recorded of a model's runs; None if nothing was, or nothing records."""
    try:
        from .recording import recorded_stats
    except ImportError:
        return None
    stats = safe_call(recorded_stats, model)
    return None if isinstance(stats, CallFailure) or not stats.timings else stats


def tensors_once(node: ModuleNode) -> Iterator[TensorEntry]:
    """Yield all tensors of a module and of those below it; of tied ones the first."""
    met: set[str] = set()
    for entry in (entry for below in node.walk() for entry in below.tensors):
        first = entry.tied_to or entry.path
        if first not in met:
            met.add(first)
            yield entry


def module_finder(root: Any) -> Callable[[str], Any]:
    """Return a function that finds the modules below a live one by their paths in its tree.

    Not `get_submodule`, which scripted modules and objects that only hold modules do not have.
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
    return dict(owner.named_children() if is_module(owner) else modules_in(owner))[name]


def is_missing(live: Any) -> bool:
    """Return whether there is no live module or tensor."""
    # Not `isinstance`, which reads `__class__` of a live module.
    return live is None or type(live) is CallFailure
