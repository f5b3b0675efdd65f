"""The variables of a checkpoint as the nested dicts that `pth_analyzer` returns.

An object that occurs again (a cycle, or in two places) has `same_as` and is not followed, and a
tensor on the storage of another one says so; the total and the sizes of collections count such
memory once. Levels below `max_depth` and items beyond a limit are counted in `hidden_items`, with
`truncated`.

# Invariants

`num_items`, `num_variables` and the total are exact, whatever is hidden.

# Cost

`O(entries)`, of which there are at most `MAX_ENTRIES`; the core adds up the sizes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from snapviewer.text.units import format_size

if TYPE_CHECKING:
    from snapviewer._core import Checkpoint, Tensor, Value

MAX_VARIABLES = 100_000
MAX_ITEMS = 10_000  # of a nested container: a model's state has thousands
MAX_ENTRIES = 200_000  # of a file
_CHUNK = 1024
_MAX_KEY = 16  # values of a tuple that is a key

_MAX_PLACE = 300  # labels of a path

Entry = dict[str, Any]
# Of a container: the key, its label, and the value.
_Item: TypeAlias = "tuple[Hashable, str, Value]"


class _Place(NamedTuple):
    """The path of a value. As text, the paths of deeply nested values would fill the memory."""

    above: _Place | None
    label: str

    def __str__(self) -> str:
        labels: list[str] = []
        place: _Place | None = self
        while place is not None and len(labels) < _MAX_PLACE:
            labels.append(place.label)
            place = place.above
        if place is not None:
            labels.append("…")
        first, *others = reversed(labels)
        return first + "".join(label if label.startswith("[") else f".{label}" for label in others)


class Variables:
    """The variables of a checkpoint and their total size."""

    def __init__(self, checkpoint: Checkpoint, max_depth: int) -> None:
        self.variables: OrderedDict[Hashable, Entry] = OrderedDict()
        self.total_bytes = checkpoint.value_bytes
        self._max_depth = max_depth
        self._entries = 0
        self._tensors: tuple[Tensor, ...] = checkpoint.tensors
        self._first_on_storage = _first_on_storage(checkpoint)
        self._places: dict[Value, _Place] = {}  # of containers and tensors so far
        root = checkpoint.root
        if root.is_container:
            self._places[root] = _Place(None, "the file itself")
            self.count = root.count or 0
        else:
            self.count = 1
        items = _items(root, MAX_VARIABLES) if root.is_container else [("root", "root", root)]
        for key, label, value in items:
            self._add(self.variables, key, label, value)

    @property
    def hidden(self) -> int:
        """The number of variables beyond the limit."""
        return self.count - len(self.variables)

    def _add(
        self, contents: OrderedDict[Hashable, Entry], key: Hashable, label: str, value: Value
    ) -> None:
        """Add a variable and what it holds, with a stack instead of recursion."""
        place = _Place(None, label)
        top = self._entry(value, place)
        contents[_free(contents, key)] = top
        stack = [(top, place, self._inside(top, value, 1))]
        while stack:
            owner, place, items = stack[-1]
            item = next(items, None)
            if item is None:
                stack.pop()
                continue
            key, label, value = item
            below = _Place(place, label)
            entry = self._entry(value, below)
            owner["contents"][_free(owner["contents"], key)] = entry
            inside = self._inside(entry, value, len(stack) + 1)
            if "contents" in entry:
                stack.append((entry, below, inside))

    def _inside(self, entry: Entry, value: Value, level: int) -> Iterator[_Item]:
        """Return the items of a container to show, and count the hidden ones."""
        count = entry.get("num_items")
        if count is None or "same_as" in entry or not value.is_container:
            return iter(())
        room = max(MAX_ENTRIES - self._entries, 0)
        shown = min(count, MAX_ITEMS, room) if level < self._max_depth else 0
        # Reserved at once, so that containers within do not use it up.
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
            entry |= {"class": value.type, **self._tensor_entry(value.tensor)}
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

    def _tensor_entry(self, index: int) -> Entry:
        tensor = self._tensors[index]
        entry: Entry = {
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
    """Map tensors to the first one on their storage, if that is another."""
    return {
        index: storage.tensors[0]
        for storage in checkpoint.storages
        for index in storage.tensors
        if index != storage.tensors[0]
    }


def _items(value: Value, max_items: int) -> Iterator[_Item]:
    """Yield keys, labels and values of a container in chunks: it may have millions."""
    end = min(value.count or 0, max_items)
    for start in range(0, end, _CHUNK):
        stop = min(start + _CHUNK, end)
        items, entries = value.items(start, stop), value.entries(start, stop)
        if len(entries) != len(items):  # it has no keys
            yield from ((label, label, item) for label, item in items)
            continue
        for (label, item), (key, _) in zip(items, entries, strict=True):
            yield _key_of(key, label), label, item


def _key_of(key: Value, label: str) -> Hashable:
    """Return the key of a dict itself if it is a plain value or a tuple, otherwise its label."""
    try:
        if key.type == "tuple" and (key.count or 0) <= _MAX_KEY:
            return tuple(item.value for _, item in key.items())
        return key.value
    except ValueError:
        return label


def _free(contents: OrderedDict[Hashable, Entry], key: Hashable) -> Hashable:
    """Number keys that a file contains twice, or that are equal only as text."""
    name, number = key, 2
    while name in contents:
        name = f"{key} ({number})"
        number += 1
    return name


class Field(NamedTuple):
    """The expected type of a variable."""

    type: str | None
    """Its type as in the results; None for any."""
    is_required: bool = True


# The variables that WanVideo's data processing saves; a file may have more.
WANVIDEO: Mapping[str, Field] = {
    "video_latent": Field("torch.Tensor"),
    "prompt": Field("str"),
    "video_id": Field("str"),
    "video": Field("torch.Tensor", is_required=False),
}


def check_structure(
    results: Mapping[str, Any], expected_keys: Mapping[str, Field] | Iterable[str] = WANVIDEO
) -> list[str]:
    """Compare the variables of a file with the expected ones.

    Args:
        results: The result of `analyze_pth_file`, or one of its entries that has contents.
        expected_keys: Names, or names with the expected types.

    Returns:
        A sentence for each difference.

    >>> check_structure({"variables": {"prompt": {"type": "int"}}}, {"prompt": Field("str")})
    ["'prompt' is of type int, not str"]
    >>> check_structure({"variables": {}}, ["prompt"])
    ["Missing expected key 'prompt'"]
    """
    if isinstance(expected_keys, Mapping):
        expected = dict(expected_keys)
    else:
        expected = {key: Field(None) for key in expected_keys}
    there = results.get("variables", results.get("contents", {}))
    complaints = []
    for key, field in expected.items():
        if key not in there:
            if field.is_required:
                complaints.append(f"Missing expected key {key!r}")
        elif field.type is not None and there[key]["type"] != field.type:
            complaints.append(f"{key!r} is of type {there[key]['type']}, not {field.type}")
    return complaints


def structure_of(results: Mapping[str, Any]) -> str | None:
    """Return the name of the known structure of a file or of one of its variables, or None."""
    owners = [results, *results["variables"].values()]
    is_wanvideo = any(not check_structure(owner) for owner in owners)
    return "WanVideo" if is_wanvideo else None
