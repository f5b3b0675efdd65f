"""Statistics of tensors, on demand: those of one, or of all in a module.

Every element is read, by the core. Tensors of a file are streamed from it; live ones are measured
where they lie, and those of another device are brought over one at a time.

# Invariants

A tensor with several names is measured once. The summary is that of all finite elements of the
parameters together.

# Cost

About that of reading the bytes once or twice. What fewer bits would cost takes a few times longer,
and is only found for a single tensor of up to `MOST_OF_QUALITY` elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any

from snapviewer import CancelledError, SnapshotError, _core
from snapviewer.model.parameters import bytes_of, is_float
from snapviewer.text.progress import part_of
from snapviewer.text.sanitize import type_name

from .guarded import Refused, asked
from .subject import Item, Subject, tensors_once
from .tree import TensorEntry

if TYPE_CHECKING:
    from snapviewer._core import Quality, Stats

    Progress = Callable[[int, int], object]

MOST_OF_QUALITY = 1 << 25  # elements


@dataclass(frozen=True, slots=True)
class Measured:
    """A tensor and its statistics; where there are none, `reason` says why."""

    entry: TensorEntry
    stats: Stats | None
    quality: Quality | None
    reason: str


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of several tensors together; None as in `Stats`."""

    tensors: int
    count: int
    mean: float | None
    std: float | None
    min: float | None
    max: float | None
    zeros: int
    nan: int
    inf: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """The tensors of what was selected, each once.

    The summary is of the parameters, if there are any: counters and running means among the buffers
    would only blur it.
    """

    path: str
    tensors: tuple[Measured, ...]
    summary: Summary
    is_of_parameters: bool


def measure(
    subject: Subject,
    item: Item,
    *,
    progress: Progress | None = None,
    cancel: Event | None = None,
) -> Measurement:
    """Measure a tensor, or all tensors of a module and of those below it.

    Args:
        subject: Where the elements are found.
        item: What to measure.
        progress: Called with (done, total) in bytes now and then.
        cancel: Asked now and then whether to stop.

    Raises:
        CancelledError: `cancel` was set.
    """
    entries = [item] if isinstance(item, TensorEntry) else list(tensors_once(subject.node_of(item)))
    total = sum(entry.size_bytes for entry in entries)
    done, found = 0, []
    for entry in entries:
        if cancel is not None and cancel.is_set():
            raise CancelledError("measuring was cancelled")
        report = part_of(progress, done, entry.size_bytes, total)
        found.append(_measured(subject, entry, report, cancel, has_quality=len(entries) == 1))
        done += entry.size_bytes
        if progress is not None:
            progress(done, total)
    learned = [each for each in found if not each.entry.is_buffer]
    summary = summary_of(each.stats for each in learned or found)
    return Measurement(item.path, tuple(found), summary, is_of_parameters=bool(learned))


def _measured(
    subject: Subject,
    entry: TensorEntry,
    progress: Progress | None,
    cancel: Event | None,
    *,
    has_quality: bool,
) -> Measured:
    has_quality &= is_float(entry.dtype) and entry.elements <= MOST_OF_QUALITY
    try:
        kept = subject.file_tensor_of(entry)
        if kept is not None and subject.checkpoint is not None:
            index, _ = kept
            stats = subject.checkpoint.stats(index, progress=progress, cancel=cancel)
            quality = None
            if has_quality:
                quality = subject.checkpoint.quality(index, spectrum=False, cancel=cancel)
            return Measured(entry, stats, quality, "")
        return _measured_live(entry, subject.tensor_of(entry), progress, cancel, has_quality)
    except CancelledError:
        raise
    except (SnapshotError, OSError) as error:
        return Measured(entry, None, None, str(error))


def _measured_live(
    entry: TensorEntry,
    live: Any,
    progress: Progress | None,
    cancel: Event | None,
    has_quality: bool,
) -> Measured:
    if live is None:
        return Measured(entry, None, None, "there is no live tensor here")
    reason = live.reason if type(live) is Refused else _reason_against(live)
    data: Any = b""
    if not reason:
        data = asked(lambda: bytes_of(live, is_any_order=True))
        reason = data.reason if isinstance(data, Refused) else ""
    if reason:
        return Measured(entry, None, None, reason)
    try:
        stats = _core.tensor_stats(data, entry.dtype, entry.shape, progress=progress, cancel=cancel)
        quality = None
        # Slices along the first dimension: here the order of elements matters.
        ordered = asked(bytes_of, live) if has_quality else None
        if ordered is not None and not isinstance(ordered, Refused):
            quality = _core.tensor_quality(
                ordered, entry.dtype, entry.shape, spectrum=False, cancel=cancel
            )
    except ValueError as error:
        return Measured(entry, None, None, str(error))
    return Measured(entry, stats, quality, "")


def _reason_against(live: Any) -> str:
    """Return why a tensor has no elements that could be read; empty if it has."""
    kind = type_name(live)
    if kind.startswith("Uninitialized"):
        return "it is lazy, and gets its elements in the first run"
    if kind == "FakeTensor":
        return "it is a fake tensor, without elements"
    device = asked(lambda: str(live.device.type))
    if device == "meta":
        return "it has no elements (device meta)"
    layout = asked(lambda: str(live.layout).removeprefix("torch."))
    if layout != "strided":
        return f"its elements are not in one place (layout {layout})"
    stored = asked(lambda: int(live.untyped_storage().nbytes()))
    needed = asked(lambda: int(live.numel() * live.element_size()))
    if isinstance(stored, int) and isinstance(needed, int) and stored < needed:
        # Written out, a few bytes may become more than there is memory.
        return "its elements are repeated (an expanded view)"
    return ""


def summary_of(measured: Iterable[Stats | None]) -> Summary:
    """Put statistics together, as if all tensors were one."""
    known = [stats for stats in measured if stats is not None]
    means = [(_finite(stats), stats) for stats in known]
    finite = sum(count for count, _ in means)
    mean = std = None
    if finite:
        mean = math.fsum(count * (stats.mean or 0.0) for count, stats in means) / finite
    if finite > 1 and mean is not None:
        # Of each its own squares, and those of its mean's distance.
        squares = math.fsum(
            (count - 1) * (stats.std or 0.0) ** 2 + count * ((stats.mean or 0.0) - mean) ** 2
            for count, stats in means
            if count
        )
        std = math.sqrt(squares / (finite - 1))
    return Summary(
        tensors=len(known),
        count=sum(stats.count for stats in known),
        mean=mean,
        std=std,
        min=min((stats.min for stats in known if stats.min is not None), default=None),
        max=max((stats.max for stats in known if stats.max is not None), default=None),
        zeros=sum(stats.zeros for stats in known),
        nan=sum(stats.nan for stats in known),
        inf=sum(stats.inf for stats in known),
    )


def _finite(stats: Stats) -> int:
    return stats.count - stats.nan - stats.inf
