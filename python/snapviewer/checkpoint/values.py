"""The plain values of a checkpoint beside its tensors, such as an epoch or a prompt, and changes.

# Invariants

Cycles end, and the number of visited values is limited, whatever the file holds.

# Cost

`O(values)`, of which there are at most `MAX_VALUES`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from snapviewer.text.sanitize import shorten_middle

if TYPE_CHECKING:
    from snapviewer._core import Value

MAX_VALUES = 20_000
_MAX_ITEMS = 1_000_000  # visited in a file, tensors included
_MAX_LABEL = 100  # characters
_MAX_DEPTH = 32
_SHOWN_DEPTH = 2  # levels of containers with tensors in which plain values are shown
_SMALL = 200  # values of a container that is shown as one
_MAX_TEXT = 200  # characters
_CHUNK = 1024

_PLAIN = ("dict", "OrderedDict", "defaultdict", "list", "tuple")
_BRACKETS = {"list": "[]", "tuple": "()", "set": "{}", "frozenset": "{}"}


class PlainValue(NamedTuple):
    """A value that is not a tensor and holds none, and its path."""

    name: str
    type: str
    preview: str


class Leaf(NamedTuple):
    """The part of a value that is compared: of a container that is not empty, its type."""

    type: str
    preview: str | None
    size_bytes: int
    is_opened: bool

    @property
    def text(self) -> str:
        """A short text for the value."""
        return self.type if self.preview is None else self.preview


@dataclass(frozen=True, slots=True)
class ValuesDiff:
    """The plain values that changed, by their paths."""

    added: dict[str, Leaf]
    removed: dict[str, Leaf]
    changed: dict[str, tuple[Leaf, Leaf]]

    @property
    def is_equal(self) -> bool:
        """Whether no visited value changed."""
        return not (self.added or self.removed or self.changed)


def plain_values(root: Value) -> tuple[PlainValue, ...]:
    """Return the plain values near the top of a file, and small containers without tensors."""
    if not root.is_container:
        is_plain = root.tensor is None
        return (PlainValue("root", root.type, root.preview or ""),) if is_plain else ()
    found: list[PlainValue] = []
    names: Counter[str] = Counter()
    room = _MAX_ITEMS
    met = {root}
    queue = deque([("", root, 0)])
    while queue:
        place, owner, depth = queue.popleft()
        for label, value in _items(owner):
            room -= 1
            if room < 0 or len(found) >= MAX_VALUES:
                return tuple(found)
            if value.tensor is not None or value in met:
                continue
            name = _joined(place, label)
            if not value.is_container:
                found.append(PlainValue(_free(names, name), value.type, value.preview or ""))
                continue
            met.add(value)
            holds_tensors, count = _inside(value)
            room -= count
            if holds_tensors and depth < _SHOWN_DEPTH and value.type in _PLAIN:
                queue.append((name, value, depth + 1))
            elif not holds_tensors and 0 < count <= _SMALL:
                found.append(PlainValue(_free(names, name), value.type, _text(value)))
    return tuple(found)


def _inside(container: Value) -> tuple[bool, int]:
    """Return whether a small container holds tensors, and how many values."""
    met = {container}
    # Depth first: of a thousand samples, the first has a tensor.
    stack = [_items(container)]
    count = 0
    while stack:
        item = next(stack[-1], None)
        if item is None:
            stack.pop()
            continue
        value = item[1]
        count += 1
        if value.tensor is not None or count > _SMALL:
            return value.tensor is not None, count
        if value.is_container and value not in met:
            met.add(value)
            stack.append(_items(value))
    return False, count


def _text(value: Value, levels: int = 3) -> str:
    """Format a container as Python would, shortened."""
    if not value.is_container:
        return value.type if value.preview is None else value.preview
    brackets = _BRACKETS.get(value.type, "{}" if value.type in _PLAIN else "()")
    name = "" if value.type in _PLAIN or value.type in _BRACKETS else value.type
    parts: list[str] = []
    room = _MAX_TEXT
    for label, item in value.items(0, 8) if levels else []:
        if room < 0:
            break
        inner = _text(item, levels - 1)
        is_numbered = value.type in _BRACKETS and label.startswith("[")
        parts.append(inner if is_numbered else f"{_clipped(label)}: {inner}")
        room -= len(parts[-1])
    if len(parts) < (value.count or 0):
        parts.append("…")
    text = f"{name}{brackets[0]}{', '.join(parts)}{brackets[1]}"
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"


def values_diff(before: Value, after: Value) -> ValuesDiff:
    """Compare the plain values of two files.

    Where not all values of a file are visited, nothing is reported as added or removed.
    """
    (old, old_is_whole), (new, new_is_whole) = leaves_of(before), leaves_of(after)
    return ValuesDiff(
        added={n: leaf for n, leaf in new.items() if n not in old and not leaf.is_opened}
        if old_is_whole
        else {},
        removed={n: leaf for n, leaf in old.items() if n not in new and not leaf.is_opened}
        if new_is_whole
        else {},
        changed={n: (old[n], new[n]) for n in old if n in new and _differ(old[n], new[n])},
    )


def _differ(old: Leaf, new: Leaf) -> bool:
    if old.is_opened or new.is_opened:
        # The contents of containers are compared on their own.
        return old.type != new.type
    return old != new


def leaves_of(root: Value) -> tuple[dict[str, Leaf], bool]:
    """Return the leaves of a file by path, and whether these are all."""
    leaves: dict[str, Leaf] = {}
    names: Counter[str] = Counter()
    if root.tensor is not None:
        return leaves, True
    if not root.is_container:
        return {"root": _leaf(root)}, True
    is_whole = True
    room = _MAX_ITEMS
    queue: deque[tuple[str, tuple[Value, ...]]] = deque([("", (root,))])
    while queue:
        place, way = queue.popleft()
        for label, value in _items(way[-1]):
            room -= 1
            if room < 0 or len(leaves) >= MAX_VALUES:
                return leaves, False
            if value.tensor is not None:
                continue
            name = _free(names, _joined(place, label))
            leaves[name] = _leaf(value)
            if not leaves[name].is_opened or value in way:
                continue
            if len(way) < _MAX_DEPTH:
                queue.append((name, (*way, value)))
            else:
                is_whole = False
    return leaves, is_whole


def _leaf(value: Value) -> Leaf:
    if value.is_container:
        is_empty = not value.count
        return Leaf(value.type, f"empty {value.type}" if is_empty else None, 0, not is_empty)
    return Leaf(value.type, value.preview, value.size_bytes, is_opened=False)


def _items(container: Value) -> Iterator[tuple[str, Value]]:
    """Yield the items of a container in chunks: it may have millions."""
    for start in range(0, container.count or 0, _CHUNK):
        yield from container.items(start, start + _CHUNK)


def _clipped(label: str) -> str:
    return shorten_middle(label, _MAX_LABEL)


def _joined(place: str, label: str) -> str:
    label = _clipped(label)
    return f"{place}{label}" if not place or label.startswith("[") else f"{place}.{label}"


def _free(names: Counter[str], name: str) -> str:
    """Number names that are equal only as text, such as the keys 1 and "1"."""
    names[name] += 1
    return name if names[name] == 1 else f"{name} ({names[name]})"
