"""A call tree as dictionaries of dictionaries: the slow, obvious version."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from snapviewer.snapshot.frames import kind_of, own_frame

Key = tuple[str, str, str, int]  # kind, function, file, line
Path = tuple[Key, ...]

NODE = re.compile(r"torch::autograd::(generated::)?\w+::apply\(")  # of a backward pass
ROOT: Key = ("root", "", "", 0)
NO_STACK: Key = ("no stack", "", "", 0)
FOLDED: Key = ("folded", "", "", 0)


def path_of(frames: Any, *, by: str, shown: str, callers: bool) -> Path:
    """The path of a stack from the root on, without the root."""
    if not frames:
        return (NO_STACK,)
    own = own_frame(frames)
    path: list[Key] = []
    has_torch = is_own_taken = False
    # The stack's own frame is the innermost of those that are equal to it.
    places = [place for place, frame in enumerate(frames) if frame == own]
    for place in reversed(range(len(frames))):
        frame = frames[place]
        kind = kind_of(frame)
        is_node = NODE.match(frame.name) is not None
        is_own = place == places[0]
        kept = {
            "all": True,
            "own": kind == "own" or is_own,
            "folded": kind in ("own", "library") or is_own or (is_node and not _python(frame)),
        }[shown]
        if not kept:
            has_torch |= kind == "torch"
            continue
        if has_torch and is_own_taken and shown == "folded":
            path = _collapsed([*path, FOLDED])
        has_torch, is_own_taken = False, True
        path = _collapsed([*path, _key(frame, kind, by)])
    return tuple(reversed(path)) if callers else tuple(path)


def _python(frame: Any) -> bool:
    filename = str(frame.filename)
    return filename.endswith(".py") or filename.startswith(("<ipython-input", "<stdin"))


def _key(frame: Any, kind: str, by: str) -> Key:
    if by == "line":
        return kind, frame.name, frame.filename, frame.line
    if by == "function":
        return kind, frame.name, frame.filename, 0
    return (kind, "", frame.filename, 0) if _python(frame) else (kind, frame.name, "", 0)


def _collapsed(path: list[Key]) -> list[Key]:
    """Without the last frames if they repeat those before them."""
    for count in range(1, 9):
        if len(path) >= 2 * count and path[-count:] == path[-2 * count : -count]:
            return path[:-count]
    return path


def weight_of(
    device: Any,
    which: int,
    times: list[int] | None,
    *,
    measure: str,
    event: int,
    events: tuple[int, int],
) -> Any:
    """What an allocation weighs; None if it does not count."""
    a = device.allocations
    size, made, freed = int(a.size[which]), int(a.alloc_event[which]), int(a.free_event[which])
    if measure == "alive":
        return size if made <= event < freed else None
    if measure == "allocated":
        return size if events[0] <= made < events[1] else None
    first, last = max(made, events[0]), min(freed, events[1])
    if made >= events[1] or freed <= events[0]:
        return None
    if times is None:
        return size * max(last - first, 0)
    # An event lasts until the next one, the last one no time.
    lasting = [
        times[at + 1] - times[at] if 0 <= at < len(times) - 1 else 0 for at in range(first, last)
    ]
    return size * sum(lasting)


def tree_of(snapshot: Any, device: Any, mask: Any, **asked: Any) -> dict[Path, list[int]]:
    """For each path: the weight, the own weight, and the number of allocations."""
    way = {key: asked.pop(key) for key in ("by", "shown", "callers")}
    nodes: dict[Path, Counter[str]] = {(ROOT,): Counter()}
    paths: dict[int, Path] = {}
    clock = device.clock()
    times = None if clock is None else clock.times.tolist()
    for which in range(len(device.allocations)):
        weight = weight_of(device, which, times, **asked)
        if weight is None or (mask is not None and not mask[which]):
            continue
        stack = int(device.allocations.stack[which])
        if stack not in paths:
            paths[stack] = (ROOT, *path_of(snapshot.frames(stack), **way))
        path = paths[stack]
        for depth in range(1, len(path) + 1):
            node = nodes.setdefault(path[:depth], Counter())
            node["weight"] += weight
            node["count"] += 1
        nodes[path]["own"] += weight
    return {path: [one["weight"], one["own"], one["count"]] for path, one in nodes.items()}


def as_dictionary(tree: Any, by: str) -> dict[Path, list[int]]:
    """The product's tree in the same form; labels that differ only in their kind are one."""
    found: dict[Path, list[int]] = {}
    waiting: list[tuple[int, Path]] = [(0, ())]
    while waiting:
        index, above = waiting.pop()
        node = tree.node(index)
        path = (*above, (node.kind, node.name, node.filename, node.line))
        assert path not in found, "two children look the same"
        found[path] = [node.weight, node.own, node.count]
        waiting += [(child, path) for child in node.children]
    return found
