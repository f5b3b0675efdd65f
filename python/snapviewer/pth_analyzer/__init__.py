"""The variables of a .pth file and their memory, without loading it.

The file is read without torch, and no code in it is run. Sizes are those that the values would have
in memory; memory that is shared (tied weights, views of one storage, objects in two places) counts
once. `snapviewer pth` reports on the file itself: where its bytes are, and which are wasted.

>>> results = analyze_pth_file("sample.pth", max_depth=5, verbose=False)  # doctest: +SKIP
>>> results["total_size_formatted"], results["variables"]["video_latent"]["shape"]  # doctest: +SKIP
('161.85 MB', (81, 4, 60, 104))
"""

from __future__ import annotations

import os
from typing import Any

from snapviewer import _core
from snapviewer.checkpoint.live_size import get_size_bytes
from snapviewer.checkpoint.variables import (
    WANVIDEO,
    Field,
    Variables,
    check_structure,
    structure_of,
)
from snapviewer.report.checkpoint.variables import table_of
from snapviewer.text.streams import print_text
from snapviewer.text.units import format_size

__all__ = [
    "WANVIDEO",
    "Field",
    "analyze_pth_file",
    "check_structure",
    "format_size",
    "get_size_bytes",
    "table_of",
]


def analyze_pth_file(
    pth_file_path: str | os.PathLike[str], max_depth: int = 3, verbose: bool = True
) -> dict[str, Any]:
    """Analyze the variables of a checkpoint and their memory.

    Args:
        pth_file_path: The file, of any size: .pth, .pt, .safetensors, ….
        max_depth: The number of levels; the variables are the first.
        verbose: Whether to print the table.

    Returns:
        `file_path`, `total_size_bytes`, `total_size_formatted`, `num_variables` (on the top level),
        and `variables`, an OrderedDict in the file's order, by the keys of a dict (of other
        collections `[0]`, `[1]`, …). Each has `type`, `size_bytes` and
        `size_formatted`; tensors also `shape`, `dtype`, `device` (where it was saved) and
        `requires_grad`; plain values `value_preview`; collections `num_items` and, down to
        `max_depth`, `contents`. Items that are left out are counted in `hidden_items`; an object
        that occurs again has `same_as`, and the total counts it once. `structure` names a known
        layout of the file.

    Raises:
        SnapshotError: The file is not a checkpoint that can be read; the message says why.
        OSError: The file cannot be read.
    """
    found = Variables(_core.read_checkpoint(pth_file_path), max_depth)
    results: dict[str, Any] = {
        "file_path": pth_file_path,
        "total_size_bytes": found.total_bytes,
        "total_size_formatted": format_size(found.total_bytes),
        "num_variables": found.count,
        "variables": found.variables,
    }
    results["structure"] = structure_of(results)
    if found.hidden:
        results |= {"truncated": True, "hidden_items": found.hidden}
    if verbose:
        print_text(table_of(results))
    return results
