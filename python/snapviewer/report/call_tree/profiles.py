"""The call tree in the formats of other viewers: flamegraph.pl, speedscope and pprof."""

from __future__ import annotations

import gzip

from snapviewer import Tree
from snapviewer.report.writers.protobuf import message, number, packed
from snapviewer.text.sanitize import MAX_NAME_CHARS, json_text, sanitize

from .names import node_text, own_paths

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"  # what speedscope recognizes
_MOST = 2**63 - 1  # of a number in pprof


def as_folded(tree: Tree, *, callers: bool = False) -> str:
    """Return a line for each path: its nodes from the outermost on, and its weight."""
    lines = []
    for path, node in own_paths(tree, callers=callers):
        names = (node_text(one).replace(";", ",") for one in path)
        lines.append(f"{';'.join(names)} {node.own}\n")
    return "".join(lines)


def as_speedscope(tree: Tree, *, name: str, callers: bool = False) -> str:
    """Return a profile for speedscope."""
    frames: dict[tuple[str, str, int], int] = {}
    samples, weights = [], []
    for path, node in own_paths(tree, callers=callers):
        keys = [(node_text(one), one.filename, one.line) for one in path]
        samples.append([frames.setdefault(key, len(frames)) for key in keys])
        weights.append(node.own)
    document = {
        "$schema": _SCHEMA,
        "exporter": "snapviewer",
        "name": sanitize(name, MAX_NAME_CHARS),
        "activeProfileIndex": 0,
        "shared": {"frames": [_speedscope_frame(*key) for key in frames]},
        "profiles": [
            {
                "type": "sampled",
                "name": sanitize(name, MAX_NAME_CHARS),
                "unit": "bytes" if tree.unit == "bytes" else "none",
                "startValue": 0,
                "endValue": tree.total,
                "samples": samples,
                "weights": weights,
            }
        ],
    }
    return json_text(document, indent=None) + "\n"


def _speedscope_frame(text: str, file: str, line: int) -> dict[str, str | int]:
    frame: dict[str, str | int] = {"name": text}
    if file:
        frame["file"] = sanitize(file, MAX_NAME_CHARS)
    if line:
        frame["line"] = line
    return frame


def as_pprof(tree: Tree, *, callers: bool = False) -> bytes:
    """Return a profile for pprof: a gzipped message of `profile.proto`."""
    strings: dict[str, int] = {"": 0}
    functions: dict[tuple[str, str], int] = {}
    locations: dict[tuple[int, int], int] = {}

    def string(text: str) -> int:
        return strings.setdefault(text, len(strings))

    kinds = {"bytes": ("inuse" if tree.event is not None else "alloc")}
    unit, divisor = tree.unit, 1
    while tree.total // divisor > _MOST:
        unit, divisor = f"1000 {unit}", divisor * 1000
    kind = kinds.get(tree.unit, "held")
    types = ((f"{kind}_objects", "count"), (f"{kind}_space", unit))
    samples = []
    for path, node in own_paths(tree, callers=callers):
        ids = []
        for one in reversed(path):
            file = sanitize(one.filename, MAX_NAME_CHARS)
            function = functions.setdefault((node_text(one), file), len(functions) + 1)
            line = min(one.line, _MOST)
            ids.append(locations.setdefault((function, line), len(locations) + 1))
        count = node.count - sum(tree.node(child).count for child in node.children)
        values = (count, node.own // divisor)
        samples.append(message(2, packed(1, ids) + packed(2, values)))
    body = [
        *(message(1, number(1, string(what)) + number(2, string(of))) for what, of in types),
        *samples,
        *(
            message(4, number(1, id_) + message(4, number(1, function) + number(2, line)))
            for (function, line), id_ in locations.items()
        ),
        *(
            message(
                5,
                number(1, id_)
                + number(2, string(text))
                + number(3, string(text))
                + number(4, string(file)),
            )
            for (text, file), id_ in functions.items()
        ),
        number(14, string(types[1][0])),
    ]
    table = [message(6, text.encode()) for text in strings]
    return gzip.compress(b"".join(body + table), mtime=0)
