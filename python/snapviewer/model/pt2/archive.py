"""Finds and unpacks the description of the program in a `.pt2` archive.

# Cost

The weights are not read. Reading the description takes about four times its length in memory, and
at most a gigabyte, whatever stands in it.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from os import PathLike
from typing import Any

from snapviewer._core import SnapshotError, read_checkpoint
from snapviewer.checkpoint.members import members_of, unpacked

# A thousand operations take 2 to 3 MB with some 100,000 values. What has far more values for its
# length was made to take memory: each takes up to a hundred bytes.
MOST_BYTES = 128 << 20
MOST_VALUES = 8_000_000

_OLDER = "serialized_exported_program.json"


def read_description(path: str | PathLike[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the JSON of the program, and notes.

    Raises:
        SnapshotError: The file is no such archive, or its description cannot be read.
        OSError: The file cannot be read.
    """
    # The native reader bounds what a directory may hold; the standard library does not.
    if read_checkpoint(path).format != "pt2":
        raise SnapshotError(f"the file was not written by torch.export: {os.fspath(path)}")
    members = members_of(path)
    found = _programs(members)
    if not found and any("data/aotinductor/" in member.filename for member in members):
        raise SnapshotError(f"the archive holds compiled code and no graph: {os.fspath(path)}")
    if not found:
        raise SnapshotError(f"the archive has no program: {os.fspath(path)}")
    name, member = found[0]
    notes = []
    if len(found) > 1:
        others = ", ".join(other[:100] for other, _ in found[1:6])
        notes.append(f"of {len(found)} programs in the archive {name[:100]} is shown, not {others}")
    text = unpacked(os.fspath(path), member, MOST_BYTES)
    if sum(text.count(mark) for mark in (b"{", b"[", b",")) > MOST_VALUES:
        raise SnapshotError(f"the program's description has more than {MOST_VALUES:,} values")
    try:
        program = json.loads(text)
    except (ValueError, RecursionError):
        raise SnapshotError(f"the program is no JSON: {name[:200]}") from None
    if not isinstance(program, dict):
        raise SnapshotError(f"the program is no JSON object: {name[:200]}")
    return program, notes


def _programs(members: Sequence[zipfile.ZipInfo]) -> list[tuple[str, zipfile.ZipInfo]]:
    """Return the descriptions of programs, the one with the usual name first."""
    found = []
    for member in members:
        # Whatever the archive is called, all is in a folder of this name.
        _, _, inside = member.filename.rpartition("models/")
        is_program = "models/" in member.filename and inside.endswith(".json") and "/" not in inside
        if is_program or member.filename.rpartition("/")[2] == _OLDER:
            found.append((member.filename, member))
    return sorted(found, key=lambda one: (not one[0].endswith(("/model.json", _OLDER)), one[0]))
