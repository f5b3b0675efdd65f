"""From the inert tree of a checkpoint to the nested dicts that the analyzer returns.

Each thing is told with its own size. What is met again (a cycle, an object in two places) is
named with `same_as` and not followed, and a tensor on another one's storage says so; the total and
the sizes of collections count such memory once. Levels below `max_depth`, and items beyond a limit,
are not dropped in silence: `truncated` and `hidden_items` tell of them.

# Invariants

`num_items`, `num_variables` and the total are exact, whatever is hidden.

# Cost

`O(entries)`, of which there are at most `MOST_ENTRIES`; the core adds up the sizes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from snapviewer.text.units import format_size

if TYPE_CHECKING:
    from snapviewer._core import Checkpoint, Tensor, Value

MOST_VARIABLES = 100_000
MOST_ITEMS = 10_000  # of a nested container: a model's state has thousands
MOST_ENTRIES = 200_000  # of a file
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
        self.total_bytes = checkpoint.value_bytes
        self._max_depth = max_depth
        self._entries = 0
        self._tensors: tuple[Tensor, ...] = checkpoint.tensors
        self._first_on_storage = _first_on_storage(checkpoint)
        self._places: dict[Value, _Place] = {}  # of containers and tensors that were met
        root = checkpoint.root
        if root.is_container:
            self._places[root] = _Place(None, "the file itself")
            self.count = root.count or 0
        else:
            self.count = 1
        for label, value in _items(root, MOST_VARIABLES) if root.is_container else [("root", root)]:
            self._add(self.variables, label, value)

    @property
    def hidden(self) -> int:
        """How many variables are beyond the limit."""
        return self.count - len(self.variables)

    def _add(self, contents: OrderedDict[str, Entry], label: str, value: Value) -> None:
        """Add a variable, and below it what it holds; a stack instead of recursion."""
        place = _Place(None, label)
        top = self._entry(value, place)
        contents[_free(contents, label)] = top
        stack = [(top, place, self._inside(top, value, 1))]
        while stack:
            owner, place, items = stack[-1]
            item = next(items, None)
            if item is None:
                stack.pop()
                continue
            label, value = item
            below = _Place(place, label)
            entry = self._entry(value, below)
            owner["contents"][_free(owner["contents"], label)] = entry
            inside = self._inside(entry, value, len(stack) + 1)
            if "contents" in entry:
                stack.append((entry, below, inside))

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
        size = value.size_bytes
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


def _first_on_storage(checkpoint: Checkpoint) -> dict[int, int]:
    """Map tensors to the first one on their storage where that is another."""
    return {
        index: storage.tensors[0]
        for storage in checkpoint.storages
        for index in storage.tensors
        if index != storage.tensors[0]
    }


def _items(value: Value, most: int) -> Iterator[tuple[str, Value]]:
    """Yield the items of a container, in chunks: it may have millions."""
    end = min(value.count or 0, most)
    for start in range(0, end, _CHUNK):
        yield from value.items(start, min(start + _CHUNK, end))


def _free(contents: OrderedDict[str, Entry], label: str) -> str:
    """Keep apart what is only alike as text, such as the keys 1 and "1"."""
    name, number = label, 2
    while name in contents:
        name = f"{label} ({number})"
        number += 1
    return name
