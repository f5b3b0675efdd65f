"""Many checkpoints: a line each, and their totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snapviewer.checkpoint.paths import FailedFile
from snapviewer.checkpoint.statistics import TensorStats
from snapviewer.text.sanitize import sanitize
from snapviewer.text.table import format_sections, format_table, join_labels, label
from snapviewer.text.units import count_of, format_bytes

if TYPE_CHECKING:
    from snapviewer._core import Checkpoint


@dataclass(frozen=True, slots=True)
class FileLine:
    """What is kept of one checkpoint among many."""

    file: str
    format: str
    file_bytes: int
    tensors: int
    wasted_bytes: int
    flagged: tuple[str, ...]
    bad_tensors: int
    """With NaN or Inf; 0 if nothing was measured."""
    warnings: int


def line_of(file: str, checkpoint: Checkpoint, measured: TensorStats | None) -> FileLine:
    """Return what the line of a checkpoint needs."""
    found = [stats for stats in (measured or {}).values() if not isinstance(stats, str)]
    return FileLine(
        file=file,
        format=checkpoint.format,
        file_bytes=checkpoint.file_bytes,
        tensors=len(checkpoint.tensors),
        wasted_bytes=checkpoint.wasted_bytes,
        flagged=tuple(checkpoint.flagged_imports[:20]),
        bad_tensors=sum(1 for stats in found if stats.nan or stats.inf),
        warnings=len(checkpoint.warnings),
    )


def as_text(
    files: Sequence[FileLine], failed: Sequence[FailedFile], *, width: int | None = None
) -> str:
    """Return the report on many checkpoints: a line each, their totals, and the failures."""
    sections = []
    if files:
        rows = [("file", "format", "size", "tensors", "wasted", "")]
        rows += [
            (
                label(line.file),
                line.format,
                format_bytes(line.file_bytes),
                f"{line.tensors:,}",
                format_bytes(line.wasted_bytes) if line.wasted_bytes else "–",
                ", ".join(_marks(line)),
            )
            for line in files
        ]
        sections.append(format_table(rows, right={2, 3, 4}, width=width, has_notes=True))
    size = format_bytes(sum(line.file_bytes for line in files))
    wasted = format_bytes(sum(line.wasted_bytes for line in files))
    tensors = count_of(sum(line.tensors for line in files), "tensor")
    total = f"{count_of(len(files), 'file')}: {size}, {tensors}, {wasted} wasted"
    sections.append([f"{total}; {len(failed):,} failed" if failed else total])
    if failed:
        lines = [f"  {label(item.file)}: {sanitize(item.reason, 600)}" for item in failed]
        sections.append(["failed", *lines])
    return format_sections(sections, width)


def _marks(line: FileLine) -> list[str]:
    marks = []
    if line.flagged:
        marks.append(f"! would import {join_labels(line.flagged, 2)}")
    if line.bad_tensors:
        marks.append(f"! NaN or Inf in {count_of(line.bad_tensors, 'tensor')}")
    if line.warnings:
        marks.append(count_of(line.warnings, "note"))
    return marks
