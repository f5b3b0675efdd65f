"""Statistics of tensors on demand: of one, or of all in a module.

The core reads every element. Tensors of a file are streamed; live ones are measured in place, and
those of another device are copied one at a time.

# Invariants

A tensor with several names is measured once. The summary is that of all finite elements of the
parameters together.

# Cost

About that of reading the bytes once or twice. The quality of smaller formats takes a few times
longer, and is only computed for a single tensor of up to `MAX_QUALITY_ELEMENTS`.
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

from .explored_model import ExploredModel, Item, tensors_once
from .safe_call import CallFailure, safe_call
from .tree import TensorEntry

if TYPE_CHECKING:
    from snapviewer._core import Quality, Stats

    Progress = Callable[[int, int], object]

MAX_QUALITY_ELEMENTS = 1 << 25


@dataclass(frozen=True, slots=True)
class MeasuredTensor:
    """A tensor and its statistics; if there are none, `reason` says why."""

    entry: TensorEntry
    stats: Stats | None
    quality: Quality | None
    reason: str


@dataclass(frozen=True, slots=True)
class StatsSummary:
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
    """The tensors of the measured item, each once.

    The summary covers the parameters, if there are any: counters and running means among the
    buffers would distort it.
    """

    path: str
    tensors: tuple[MeasuredTensor, ...]
    summary: StatsSummary
    is_of_parameters: bool


def measure(
    explored: ExploredModel,
    item: Item,
    *,
    progress: Progress | None = None,
    cancel: Event | None = None,
) -> Measurement:
    """Measure a tensor, or all tensors of a module and of those below it.

    Args:
        explored: The model.
        item: The tensor or module to measure.
        progress: Called with (done, total) in bytes now and then.
        cancel: Stops the measurement when set.

    Raises:
        CancelledError: `cancel` was set.
    """
    entries = (
        [item] if isinstance(item, TensorEntry) else list(tensors_once(explored.node_of(item)))
    )
    total = sum(entry.size_bytes for entry in entries)
    done, found = 0, []
    for entry in entries:
        if cancel is not None and cancel.is_set():
            raise CancelledError("measuring was cancelled")
        report = part_of(progress, done, entry.size_bytes, total)
        found.append(_measured(explored, entry, report, cancel, has_quality=len(entries) == 1))
        done += entry.size_bytes
        if progress is not None:
            progress(done, total)
    learned = [each for each in found if not each.entry.is_buffer]
    summary = summary_of(each.stats for each in learned or found)
    return Measurement(item.path, tuple(found), summary, is_of_parameters=bool(learned))


def _measured(
    explored: ExploredModel,
    entry: TensorEntry,
    progress: Progress | None,
    cancel: Event | None,
    *,
    has_quality: bool,
) -> MeasuredTensor:
    has_quality &= is_float(entry.dtype) and entry.elements <= MAX_QUALITY_ELEMENTS
    try:
        kept = explored.file_tensor_of(entry)
        if kept is not None and explored.checkpoint is not None:
            index, _ = kept
            stats = explored.checkpoint.stats(index, progress=progress, cancel=cancel)
            quality = None
            if has_quality:
                quality = explored.checkpoint.quality(index, spectrum=False, cancel=cancel)
            return MeasuredTensor(entry, stats, quality, "")
        return _measured_live(entry, explored.tensor_of(entry), progress, cancel, has_quality)
    except CancelledError:
        raise
    except (SnapshotError, OSError) as error:
        return MeasuredTensor(entry, None, None, str(error))


def _measured_live(
    entry: TensorEntry,
    live: Any,
    progress: Progress | None,
    cancel: Event | None,
    has_quality: bool,
) -> MeasuredTensor:
    if live is None:
        return MeasuredTensor(entry, None, None, "there is no live tensor")
    reason = live.reason if type(live) is CallFailure else _reason_against(live)
    data: Any = b""
    if not reason:
        data = safe_call(lambda: bytes_of(live, is_any_order=True))
        reason = data.reason if isinstance(data, CallFailure) else ""
    if reason:
        return MeasuredTensor(entry, None, None, reason)
    try:
        stats = _core.tensor_stats(data, entry.dtype, entry.shape, progress=progress, cancel=cancel)
        quality = None
        # Channels are slices along the first dimension: here the order of elements matters.
        ordered = safe_call(bytes_of, live) if has_quality else None
        if ordered is not None and not isinstance(ordered, CallFailure):
            quality = _core.tensor_quality(
                ordered, entry.dtype, entry.shape, spectrum=False, cancel=cancel
            )
    except ValueError as error:
        return MeasuredTensor(entry, None, None, str(error))
    return MeasuredTensor(entry, stats, quality, "")


def _reason_against(live: Any) -> str:
    """Return why a tensor's elements cannot be read; empty if they can."""
    kind = type_name(live)
    if kind.startswith("Uninitialized"):
        return "it is lazy and gets its elements in the first run"
    if kind == "FakeTensor":
        return "it is a fake tensor without elements"
    device = safe_call(lambda: str(live.device.type))
    if device == "meta":
        return "it has no elements (device meta)"
    layout = safe_call(lambda: str(live.layout).removeprefix("torch."))
    if layout != "strided":
        return f"its elements are not in one place (layout {layout})"
    stored = safe_call(lambda: int(live.untyped_storage().nbytes()))
    needed = safe_call(lambda: int(live.numel() * live.element_size()))
    if isinstance(stored, int) and isinstance(needed, int) and stored < needed:
        # Expanded, a few bytes may exceed the memory.
        return "its elements are repeated (an expanded view)"
    return ""


def summary_of(measured: Iterable[Stats | None]) -> StatsSummary:
    """Combine statistics as if all tensors were one."""
    known = [stats for stats in measured if stats is not None]
    means = [(_finite(stats), stats) for stats in known]
    finite = sum(count for count, _ in means)
    mean = std = None
    if finite:
        mean = math.fsum(count * (stats.mean or 0.0) for count, stats in means) / finite
    if finite > 1 and mean is not None:
        # The squares within each tensor, and of each mean's distance.
        squares = math.fsum(
            (count - 1) * (stats.std or 0.0) ** 2 + count * ((stats.mean or 0.0) - mean) ** 2
            for count, stats in means
            if count
        )
        std = math.sqrt(squares / (finite - 1))
    return StatsSummary(
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
