"""From the inert tree of a checkpoint to the nested dicts that the analyzer returns.

What is met again (a cycle, or an object that is in two places) is named with `same_as` and not
followed. The memory of a storage counts where its first tensor is. Levels below `max_depth`, and
items beyond a limit, are not dropped in silence: `truncated` and `hidden_items` tell of them.

# Invariants

`num_items` and `num_variables` are exact, whatever is hidden. The sizes of all variables add up to
the total.

# Cost

`O(entries)`, of which there are at most `MOST_ENTRIES`, plus one look at each variable, and at no
more than `MOST_HIDDEN` of the values that are hidden.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from .table import format_size

if TYPE_CHECKING:
    from snapviewer._core import Checkpoint, Tensor, Value

MOST_VARIABLES = 100_000
MOST_ITEMS = 10_000  # of a nested container: a model's state has thousands
MOST_ENTRIES = 200_000  # of a file
MOST_HIDDEN = 200_000
_CHUNK = 1024

_NO_TENSORS = ("ndarray", "storage")
_MOST_PLACE = 300  # labels of the way to a value

Entry = dict[str, Any]


class _Place(NamedTuple):
    """The way to a value. As text, the ways to values that nest deeply would fill the memory."""

    above: _Place | None
    label: str

    def __str__(self) -> str:
        labels: list[str] = []
        place: _Place | None = self
        while place is not None and len(labels) < _MOST_PLACE:
            labels.append(place.label)
            place = place.above
        if place is not None:
            labels.append("…")
        first, *others = reversed(labels)
        return first + "".join(label if label.startswith("[") else f".{label}" for label in others)


class Variables:
    """What `analyze_pth_file` tells of a checkpoint's tree."""

    def __init__(self, checkpoint: Checkpoint, max_depth: int) -> None:
        self.variables: OrderedDict[str, Entry] = OrderedDict()
        self.count = 0
        self.total_bytes = 0
        self._max_depth = max_depth
        self._entries = 0
        self._tensors: tuple[Tensor, ...] = checkpoint.tensors
        self._first_on_storage, self._tensor_bytes = _by_storage(checkpoint)
        self._looked_at = 0
        self._places: dict[Value, _Place] = {}  # of containers and tensors that were met
        self._read(checkpoint.root)

    @property
    def hidden(self) -> int:
        """How many variables are beyond the limit."""
        return self.count - len(self.variables)

    def _read(self, root: Value) -> None:
        is_one = not root.is_container or root.tensor is not None
        if not is_one:
            self._places[root] = _Place(None, "the file itself")
        for label, value in [("root", root)] if is_one else _items(root, None):
            self.count += 1
            if len(self.variables) < MOST_VARIABLES:
                self.total_bytes += self._add(self.variables, label, value)["size_bytes"]
            else:
                self.total_bytes += self._bytes_of(value)
                self._note(value, _Place(None, label))

    def _add(self, contents: OrderedDict[str, Entry], label: str, value: Value) -> Entry:
        """Add a variable, and below it what it holds; a stack instead of recursion."""
        place = _Place(None, label)
        top = self._entry(value, place)
        contents[_free(contents, label)] = top
        stack = [(top, value, place, self._inside(top, value, 1))]
        while stack:
            owner, container, place, items = stack[-1]
            item = next(items, None)
            if item is None:
                stack.pop()
                if "hidden_items" in owner:
                    self._note_inside(container, place, len(owner["contents"]))
                continue
            label, value = item
            below = _Place(place, label)
            entry = self._entry(value, below)
            owner["contents"][_free(owner["contents"], label)] = entry
            inside = self._inside(entry, value, len(stack) + 1)
            if "contents" in entry:
                stack.append((entry, value, below, inside))
        return top

    def _note(self, value: Value, place: _Place) -> None:
        """Remember that a hidden value was met, so that it is not counted again elsewhere."""
        if (value.is_container or value.tensor is not None) and value not in self._places:
            self._places[value] = place
            self._note_inside(value, place, 0)

    def _note_inside(self, container: Value, place: _Place, first: int) -> None:
        """Remember what a container hides, from one of its items on."""
        stack = [(place, _items(container, None, first))]
        while stack and self._looked_at < MOST_HIDDEN:
            place, items = stack[-1]
            item = next(items, None)
            if item is None:
                stack.pop()
                continue
            self._looked_at += 1
            label, value = item
            is_kept = value.is_container or value.tensor is not None
            if is_kept and value not in self._places:
                below = self._places[value] = _Place(place, label)
                stack.append((below, _items(value, None)))

    def _inside(self, entry: Entry, value: Value, level: int) -> Iterator[tuple[str, Value]]:
        """Return the items to show of a container, and note how many are hidden."""
        count = entry.get("num_items")
        if count is None or "same_as" in entry or not value.is_container:
            return iter(())
        room = max(MOST_ENTRIES - self._entries, 0)
        shown = min(count, MOST_ITEMS, room) if level < self._max_depth else 0
        # Room is taken at once: what comes later in the file cannot take it from this container.
        self._entries += shown
        entry["contents"] = OrderedDict()
        if shown < count:
            entry["truncated"] = True
            entry["hidden_items"] = count - shown
        return _items(value, shown)

    def _entry(self, value: Value, place: _Place) -> Entry:
        entry: Entry = {"type": value.type}
        is_kept = value.tensor is not None or value.is_container
        first = self._places.get(value) if is_kept else None
        if value.tensor is not None:
            entry |= self._tensor_entry(value.tensor, value.type)
        size = self._bytes_of(value)
        entry |= {"size_bytes": size, "size_formatted": format_size(size)}
        if value.preview is not None:
            entry |= {"value_preview": value.preview, "preview": value.preview}
        if value.count is not None:
            entry["num_items"] = value.count
        if first is not None:
            entry["same_as"] = str(first)
            entry.pop("shares_storage_with", None)
        elif is_kept:
            self._places[value] = place
        return entry

    def _bytes_of(self, value: Value) -> int:
        """Return what a value adds to the total when it is met."""
        index = value.tensor
        if index is None and not value.is_container:
            return value.size_bytes
        if value in self._places:
            return 0
        return (
            value.size_bytes if index is None else self._tensor_bytes.get(index, value.size_bytes)
        )

    def _tensor_entry(self, index: int, name: str) -> Entry:
        tensor = self._tensors[index]
        entry: Entry = {
            # A parameter is a tensor, too, and so is an object of a class made of tensors.
            "type": name if tensor.kind in _NO_TENSORS else "torch.Tensor",
            "class": name,
            "kind": tensor.kind,
            "shape": tuple(tensor.shape),
            "dtype": tensor.dtype,
            "device": tensor.device,
            "requires_grad": tensor.requires_grad,
            "logical_bytes": tensor.logical_bytes,
        }
        if (first := self._first_on_storage.get(index)) is not None:
            entry["shares_storage_with"] = self._tensors[first].name
        return entry


def _by_storage(checkpoint: Checkpoint) -> tuple[dict[int, int], dict[int, int]]:
    """Map tensors to the first one on their storage where that is another, and to their bytes.

    The first tensor on a storage counts all bytes of it that some tensor reaches, the others none.
    """
    first_of: dict[int, int] = {}
    bytes_of: dict[int, int] = {}
    for storage in checkpoint.storages:
        users = storage.tensors
        for index in users:
            bytes_of.setdefault(index, 0)
            if index != users[0]:
                first_of.setdefault(index, users[0])
        if users:
            bytes_of[users[0]] += storage.reached_bytes
    return first_of, bytes_of


def _items(value: Value, most: int | None, first: int = 0) -> Iterator[tuple[str, Value]]:
    """Yield the items of a container, in chunks: it may have millions."""
    count = value.count or 0
    end = count if most is None else min(count, most)
    for start in range(first, end, _CHUNK):
        yield from value.items(start, min(start + _CHUNK, end))


def _free(contents: OrderedDict[str, Entry], label: str) -> str:
    """Keep apart what is only alike as text, such as the keys 1 and "1"."""
    name, number = label, 2
    while name in contents:
        name = f"{label} ({number})"
        number += 1
    return name
