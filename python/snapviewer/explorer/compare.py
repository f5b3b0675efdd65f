"""Compare two trees: which modules and tensors were added, removed, changed, or are equal.

Modules and tensors are matched by path.

# Invariants

Every module of both trees is in exactly one comparison, and so is every tensor in that of its
module. If nothing was added, removed or changed, the trees are equal.

# Cost

`O(modules + tensors)`; no element of a tensor is read. Differences of values are passed in;
`value_changes` computes them for files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from snapviewer.text.sanitize import sanitize

from .formats import shape_or_scalar
from .tree import ModuleNode, TensorEntry, Tree, walk

if TYPE_CHECKING:
    from snapviewer._core import Checkpoint, Difference

Verdict: TypeAlias = Literal["added", "removed", "changed", "equal"]
DIFF_SIGNS: dict[Verdict, str] = {"added": "+", "removed": "-", "changed": "~", "equal": " "}

_Item = TypeVar("_Item", ModuleNode, TensorEntry)


@dataclass(frozen=True, slots=True)
class TensorComparison:
    """A tensor before and after; `changes` says what differs, in words."""

    verdict: Verdict
    before: TensorEntry | None
    after: TensorEntry | None
    changes: tuple[str, ...] = ()

    @property
    def entry(self) -> TensorEntry:
        """The tensor before, or after if it is new."""
        entry = self.before or self.after
        assert entry is not None, "one of both is there"
        return entry


@dataclass(frozen=True, slots=True)
class ModuleComparison:
    """A module before and after, with its children.

    `verdict` is about the module itself and its own tensors; `has_changes` is whether anything in
    its subtree differs. `changes` says what differs about the module itself, in words.
    """

    verdict: Verdict
    before: ModuleNode | None
    after: ModuleNode | None
    changes: tuple[str, ...]
    tensors: tuple[TensorComparison, ...]
    children: tuple[ModuleComparison, ...]
    has_changes: bool

    @property
    def node(self) -> ModuleNode:
        """The module before, or after if it is new."""
        node = self.before or self.after
        assert node is not None, "one of both is there"
        return node

    @property
    def more_parameters(self) -> int:
        """How many more parameters it has than before."""
        after = self.after.sums.parameters if self.after else 0
        return after - (self.before.sums.parameters if self.before else 0)

    @property
    def more_bytes(self) -> int:
        """How many more bytes its parameters and buffers take than before."""
        return _bytes_of(self.after) - _bytes_of(self.before)


@dataclass(frozen=True, slots=True)
class TreeComparison:
    """Two compared trees, and how many modules and tensors got each verdict."""

    before: Tree
    after: Tree
    root: ModuleComparison
    modules: dict[Verdict, int]
    tensors: dict[Verdict, int]
    has_values: bool = False
    """Whether elements were compared, too; otherwise "equal" means equal names and shapes."""

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs."""
        return not self.root.has_changes


def compare_trees(
    before: Tree, after: Tree, values: Mapping[str, str] | None = None
) -> TreeComparison:
    """Compare two trees; the roots are matched whatever their names are.

    Args:
        before: The first.
        after: The second.
        values: How the elements of tensors differ, in words, by path; None if unknown.
    """
    root = _compared(before.root, after.root, values or {})
    modules: dict[Verdict, int] = dict.fromkeys(DIFF_SIGNS, 0)
    tensors: dict[Verdict, int] = dict.fromkeys(DIFF_SIGNS, 0)
    for item in walk(root):
        modules[item.verdict] += 1
        for tensor in item.tensors:
            tensors[tensor.verdict] += 1
    return TreeComparison(before, after, root, modules, tensors, has_values=values is not None)


def value_changes(
    before: Checkpoint,
    after: Checkpoint,
    *,
    progress: Callable[[int, int], object] | None = None,
    cancel: Event | None = None,
) -> dict[str, str]:
    """Compare the elements of two checkpoints' tensors.

    Returns:
        What differs, in words, by the name of each tensor whose elements are not all equal.

    Raises:
        CancelledError: `cancel` was set.
        OSError: A file cannot be read.
    """
    from snapviewer.checkpoint.difference import diff_of

    diff = diff_of(before, after, progress=progress, cancel=cancel)
    words = {item.before.name: _values_text(item.difference) for item in diff.changed}
    for item in diff.uncompared:
        words[item.before.name] = f"values not compared: {_short(item.reason)}"
    return words


def _values_text(found: Difference) -> str:
    share = 100 * found.changed / found.count
    said = "all values" if found.changed == found.count else f"{share:.2g} % of values"
    if found.to_nonfinite:
        return f"{said}, {found.to_nonfinite:,} now NaN or Inf"
    most = "" if found.max_abs is None else f", max |Δ| {found.max_abs:.3g}"
    relative = "" if found.relative_l2 is None else f", {100 * found.relative_l2:.3g} % of the norm"
    return f"{said}{most}{relative}"


@dataclass(slots=True)
class _Frame:
    """Two modules whose children are being compared."""

    before: ModuleNode | None
    after: ModuleNode | None
    waiting: list[tuple[ModuleNode | None, ModuleNode | None]]
    children: list[ModuleComparison]


def _compared(before: ModuleNode, after: ModuleNode, values: Mapping[str, str]) -> ModuleComparison:
    """Compare subtrees, without recursion: they may be deeper than Python's stack."""
    frames = [_frame(before, after)]
    while True:
        frame = frames[-1]
        if frame.waiting:
            frames.append(_frame(*frame.waiting.pop()))
            continue
        done = _closed(frame, values)
        frames.pop()
        if not frames:
            return done
        frames[-1].children.append(done)


def _frame(before: ModuleNode | None, after: ModuleNode | None) -> _Frame:
    pairs = _paired(before.children if before else (), after.children if after else ())
    return _Frame(before, after, pairs[::-1], [])


def _closed(frame: _Frame, values: Mapping[str, str]) -> ModuleComparison:
    before, after = frame.before, frame.after
    tensors = tuple(
        _tensor(*pair, values)
        for pair in _paired(before.tensors if before else (), after.tensors if after else ())
    )
    changes = tuple(_module_changes(before, after)) if before and after else ()
    verdict: Verdict
    if before is None or after is None:
        verdict = "added" if before is None else "removed"
    else:
        is_same = not changes and all(tensor.verdict == "equal" for tensor in tensors)
        verdict = "equal" if is_same else "changed"
    has_changes = verdict != "equal" or any(child.has_changes for child in frame.children)
    return ModuleComparison(
        verdict, before, after, changes, tensors, tuple(frame.children), has_changes
    )


def _paired(
    before: Sequence[_Item], after: Sequence[_Item]
) -> list[tuple[_Item | None, _Item | None]]:
    """Pair items of the same name; removed items keep their position.

    Several items of the same name are paired in order.
    """
    waiting: dict[str, list[_Item]] = defaultdict(list)
    for item in reversed(after):
        waiting[item.name].append(item)
    pairs: list[tuple[_Item | None, _Item | None]] = []
    place_of: dict[int, int] = {}
    for item in before:
        found = waiting[item.name].pop() if waiting.get(item.name) else None
        if found is not None:
            place_of[id(found)] = len(pairs)
        pairs.append((item, found))
    # A new item follows the item that it comes after.
    behind: dict[int, list[_Item]] = defaultdict(list)
    place = -1
    for item in after:
        if id(item) in place_of:
            place = place_of[id(item)]
        else:
            behind[place].append(item)
    merged: list[tuple[_Item | None, _Item | None]] = [(None, item) for item in behind[-1]]
    for number, pair in enumerate(pairs):
        merged.append(pair)
        merged += ((None, item) for item in behind.get(number, ()))
    return merged


def _module_changes(before: ModuleNode, after: ModuleNode) -> Iterator[str]:
    if before.is_type_guessed != after.is_type_guessed:
        return  # one class is known, the other was guessed
    if before.type_name != after.type_name:
        # Unknown classes are not known to differ.
        if before.type_name and after.type_name:
            yield f"{_short(before.type_name)} → {_short(after.type_name)}"
    elif before.arguments != after.arguments and not before.is_type_guessed:
        yield f"({_short(before.arguments)}) → ({_short(after.arguments)})"


def _tensor(
    before: TensorEntry | None, after: TensorEntry | None, values: Mapping[str, str]
) -> TensorComparison:
    if before is None or after is None:
        return TensorComparison("added" if before is None else "removed", before, after)
    changes = []
    if before.shape != after.shape:
        changes.append(f"{shape_or_scalar(before.shape)} → {shape_or_scalar(after.shape)}")
    if before.dtype != after.dtype:
        changes.append(f"{_short(before.dtype)} → {_short(after.dtype)}")
    if before.is_buffer != after.is_buffer:
        changes.append("parameter → buffer" if after.is_buffer else "buffer → parameter")
    elif before.is_trainable != after.is_trainable:
        changes.append("frozen → trainable" if after.is_trainable else "trainable → frozen")
    if before.tied_to != after.tied_to:
        changes.append(f"{_tied(before)} → {_tied(after)}")
    if before.path in values:
        changes.append(values[before.path])
    return TensorComparison("changed" if changes else "equal", before, after, tuple(changes))


def _tied(entry: TensorEntry) -> str:
    return "not tied" if entry.tied_to is None else f"tied to {_short(entry.tied_to)}"


def _short(text: str) -> str:
    return sanitize(text, 80)


def _bytes_of(node: ModuleNode | None) -> int:
    return node.sums.total_bytes if node else 0
