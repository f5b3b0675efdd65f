"""The description of the program in a `.pt2` archive.

# Cost

The weights are not read. Reading the description takes about four times its length in memory, and
at most a gigabyte, whatever it contains.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from snapviewer._core import Checkpoint, SnapshotError

# A thousand operations take 2 to 3 MB with some 100,000 values. A file with far more values for its
# length is hostile: each value takes up to a hundred bytes.
MAX_BYTES = 128 << 20
MAX_VALUES = 8_000_000

_OLDER = "serialized_exported_program.json"


def read_description(checkpoint: Checkpoint) -> tuple[dict[str, Any], list[str]]:
    """Return the JSON of the program, and notes.

    Raises:
        SnapshotError: The file is not such an archive, or its description cannot be read.
        OSError: The file cannot be read.
    """
    if checkpoint.format != "pt2":
        raise SnapshotError(f"the file was not written by torch.export: {checkpoint.path}")
    members = checkpoint.members
    found = _programs(members)
    if not found and any(name.startswith("data/aotinductor/") for name in members):
        raise SnapshotError(f"the archive contains compiled code and no graph: {checkpoint.path}")
    if not found:
        raise SnapshotError(f"the archive has no program: {checkpoint.path}")
    name = found[0]
    notes = []
    if len(found) > 1:
        others = ", ".join(other[:100] for other in found[1:6])
        notes.append(f"of {len(found)} programs in the archive {name[:100]} is shown, not {others}")
    text = checkpoint.member(name, MAX_BYTES)
    if sum(text.count(mark) for mark in (b"{", b"[", b",")) > MAX_VALUES:
        raise SnapshotError(f"the program's description has more than {MAX_VALUES:,} values")
    try:
        program = json.loads(text)
    except (ValueError, RecursionError):
        raise SnapshotError(f"the program is no JSON: {name[:200]}") from None
    if not isinstance(program, dict):
        raise SnapshotError(f"the program is no JSON object: {name[:200]}")
    return program, notes


def _programs(members: Iterable[str]) -> list[str]:
    """Return the descriptions of programs, the one with the usual name first.

    >>> _programs(["data/x.json", "models/b.json", "models/model.json", "models/a/b.json"])
    ['models/model.json', 'models/b.json']
    """
    usual = ("models/model.json", _OLDER)
    found = [
        name
        for name in members
        if name == _OLDER
        or (name.startswith("models/") and name.endswith(".json") and name.count("/") == 1)
    ]
    return sorted(found, key=lambda name: (name not in usual, name))
