"""The replayed allocator at the cursor: the memory map, the four amounts, failed requests. No Tk.

The replay is made by a job when a pane first needs it. A state at an event then takes a few
milliseconds, so it is found where it is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from snapviewer import Allocator, Curves, Device, MemoryMap
from snapviewer import State as Memory
from snapviewer.report.snapshot.replay import oom_sentence

from .jobs import Job

if TYPE_CHECKING:
    from .state import State

MapOrder = Literal["address", "size", "waste", "age"]
MAP_ORDERS: tuple[MapOrder, ...] = ("address", "size", "waste", "age")
_SEGMENT_ACTIONS = ("segment_alloc", "segment_free", "segment_map", "segment_unmap")
_MIN_ROW_BYTES = 1 << 16
NO_REPLAY = "This bundle does not contain the segments: open the original snapshot instead."
NO_TRACE = "No trace recorded: this is the memory when the snapshot was taken."
NO_SEGMENTS = "The file does not contain the segments of its allocations."


@dataclass(frozen=True, slots=True)
class RowSizes:
    """The measures of the map's rows in pixels."""

    row: int = 14
    gap: int = 3
    heading: int = 22


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """What a job finds: the replay of a device, its curves, and its segment events."""

    allocator: Allocator
    curves: Curves
    peak_reserved_bytes: int
    segment_events: npt.NDArray[np.int64]
    oom_sentences: dict[int, str]


def replay_of(device: Device) -> Replay:
    """Replay the allocator of a device.

    Raises:
        SnapshotError: The file does not contain what it takes.
    """
    allocator, curves = device.allocator, device.curves
    events = np.concatenate([device.events_of(action) for action in _SEGMENT_ACTIONS])
    sentences = {oom.event: oom_sentence(oom) for oom in device.ooms}
    allocator.state(-1)  # makes what later states begin with
    return Replay(allocator, curves, curves.peaks["reserved"], np.unique(events), sentences)


class Replayed:
    """The replay of the device that is shown, and how its map is shown."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._device: Device | None = None
        self._replay: Replay | None = None
        self.error = ""
        self.order: MapOrder = "address"
        self.row_bytes: int | None = None
        """How much a row of the map shows; None fits it to the height."""
        self._memory: Memory | None = None
        self._map: tuple[object, MemoryMap] | None = None
        state.on(self._device_changed, "device")
        state.on(self._start, "panes", "cursor")

    # The replay

    @property
    def replay(self) -> Replay | None:
        """The replay of the device that is shown; None while it is not known."""
        # Another file's cursor may be set before its device is announced.
        return self._replay if self._state.device is self._device else None

    @property
    def is_needed(self) -> bool:
        """Whether something shows it."""
        settings, trace, cursor = self._state.settings, self._state.trace, self._state.cursor
        is_at_oom = trace is not None and cursor in trace.oom_events.tolist()
        return self._state.is_docked("map") or settings.show_lines or is_at_oom

    def _device_changed(self) -> None:
        # The same device again if its times have been read.
        if self._state.device is not self._device:
            self._state.jobs.stop("replay")
            self._device, self._replay, self.error = self._state.device, None, ""
            self._memory = self._map = None
            self._state.changed("replay")
        self._start()

    def _start(self) -> None:
        state, device = self._state, self._state.device
        is_running = any(job.name == "replay" for job in state.jobs.running())
        if device is None or self.replay is not None or self.error or is_running:
            return
        if device is self._device and self.is_needed:
            job = Job("replay", "replaying the allocator")
            state.start(job, lambda _: replay_of(device), self._done, self._failed)

    def _done(self, replay: Replay) -> None:
        state = self._state
        was_whole = state.view.height >= 0.999 * state.world.high
        self._replay = replay
        state.changed("replay")
        if was_whole:
            state.refit_height()

    def _failed(self, error: Exception) -> None:
        document = self._state.document
        is_bundle = document is not None and document.bundle is document.snapshot
        self.error = NO_REPLAY if is_bundle else f"Could not replay the allocator: {error}"
        self._state.changed("replay")

    # At the cursor

    def memory(self) -> Memory | None:
        """Return the segments and blocks at the cursor; None if they are not known yet."""
        event, trace = self._state.cursor, self._state.trace
        if self.replay is None or event is None or trace is None:
            return None
        event = max(min(event, trace.events - 1), -1)
        if self._memory is None or self._memory.event != event:
            self._memory = self.replay.allocator.state(event)
        return self._memory

    def note(self) -> str:
        """Return what the map cannot show, in a sentence; empty if it is exact and complete."""
        trace, memory = self._state.trace, self.memory()
        if self.error or trace is None:
            return self.error
        if memory is None or self.replay is None:
            return ""
        allocator = self.replay.allocator
        if not len(memory.segment_size):
            return NO_SEGMENTS if len(memory.unplaced) else "No memory is reserved at this event."
        first, count = allocator.first_contradiction, sum(allocator.contradictions.values())
        if count and first is not None and memory.event >= first:
            worst = max(allocator.contradictions.items(), key=lambda item: item[1])
            return f"Uncertain since event {first:,}: the file has {worst[1]:,} {worst[0]}."
        if trace.events == 0:
            return NO_TRACE
        if len(memory.unplaced):
            return f"{len(memory.unplaced):,} live allocations are in no segment of the file."
        return ""

    def amounts(self, event: int | None) -> dict[str, int] | None:
        """Return the requested, allocated, active and reserved bytes after an event."""
        trace = self._state.trace
        if self.replay is None or trace is None or event is None:
            return None
        return self.replay.curves.at(max(min(event, trace.events - 1), -1))

    def oom_at_cursor(self) -> str:
        """Return why the request at the cursor failed; empty if none did, or it is not known."""
        trace, cursor = self._state.trace, self._state.cursor
        if trace is None or cursor is None or cursor not in trace.oom_events:
            return ""
        if self.error:
            return f"Out of memory. {self.error}"
        if self.replay is None:
            return "Out of memory."
        sentence = self.replay.oom_sentences.get(cursor)
        return f"Out of memory: {sentence}." if sentence else "Out of memory."

    # Stepping

    def step(self, by: Literal[-1, 1]) -> None:
        """Move the cursor to the next or the previous event."""
        state, trace = self._state, self._state.trace
        if trace is None or state.cursor is None or trace.events == 0:
            return
        self._go(min(max(state.cursor + by, -1), trace.events - 1))

    def step_segment(self, by: Literal[-1, 1]) -> None:
        """Move the cursor to the next or the previous event that changed the segments."""
        if self.replay is None or self._state.cursor is None:
            self._state.notify("Show the memory map first (F5).")
            return
        events = self.replay.segment_events
        side: Literal["left", "right"] = "right" if by > 0 else "left"
        place = int(np.searchsorted(events, self._state.cursor, side=side)) - (by < 0)
        if 0 <= place < len(events):
            self._go(int(events[place]))
        else:
            where = "after" if by > 0 else "before"
            self._state.notify(f"No segment event {where} the cursor.")

    def _go(self, event: int) -> None:
        self._state.set_cursor(event)
        self._state.show_event(event)

    # The map

    def layout(self, size: tuple[int, int], rows: RowSizes) -> MemoryMap | None:
        """Lay out the map at the cursor for a size in pixels; None if there is none."""
        memory = self.memory()
        if memory is None or not len(memory.segment_size):
            return None
        width = size[0]
        row_bytes = self.row_bytes or self._fitted(memory, size, rows)
        key = (memory, width, row_bytes, rows, self.order)
        if self._map is None or self._map[0] != key:
            self._map = key, self._laid_out(memory, width, row_bytes, rows)
        return self._map[1]

    def _laid_out(self, memory: Memory, width: int, row_bytes: int, rows: RowSizes) -> MemoryMap:
        return memory.map(
            width=width,
            row_bytes=row_bytes,
            row=rows.row,
            gap=rows.gap,
            heading=rows.heading,
            sort=self.order,
        )

    def _fitted(self, memory: Memory, size: tuple[int, int], rows: RowSizes) -> int:
        """Return the bytes of a row with which the map fills the height, but one a segment."""
        sizes = memory.segment_size
        row_bytes = 1 << int(sizes.max() - 1).bit_length()
        room = size[1] - len(memory.domains) * rows.heading
        most = room // (rows.row + rows.gap)
        while row_bytes > _MIN_ROW_BYTES:
            half = np.uint64(row_bytes // 2)
            if _rows(sizes, half) > most:
                break
            row_bytes //= 2
        return row_bytes

    def row_bytes_of(self, size: tuple[int, int], rows: RowSizes) -> int | None:
        """Return how many bytes a row shows; None if there is no map."""
        memory = self.memory()
        if memory is None or not len(memory.segment_size):
            return None
        return self.row_bytes or self._fitted(memory, size, rows)

    def zoom(self, step: int, size: tuple[int, int], rows: RowSizes) -> None:
        """Show half or twice as many bytes per row."""
        memory, now = self.memory(), self.row_bytes_of(size, rows)
        if memory is None or now is None:
            return
        largest = 1 << int(memory.segment_size.max() - 1).bit_length()
        wanted = now // 2 if step > 0 else now * 2
        self._set_row_bytes(min(max(wanted, _MIN_ROW_BYTES), max(largest, _MIN_ROW_BYTES)))

    def fit(self) -> None:
        """Fit the rows to the height again."""
        self._set_row_bytes(None)

    def _set_row_bytes(self, row_bytes: int | None) -> None:
        if row_bytes != self.row_bytes:
            self.row_bytes = row_bytes
            self._state.changed("map")

    def set_order(self, order: MapOrder) -> None:
        """Sort the segments of each domain."""
        if order != self.order:
            self.order = order
            self._state.changed("map")

    def next_order(self) -> None:
        place = MAP_ORDERS.index(self.order)
        self.set_order(MAP_ORDERS[(place + 1) % len(MAP_ORDERS)])


def _rows(sizes: npt.NDArray[np.uint64], row_bytes: np.uint64) -> int:
    """Return how many rows the segments take.

    >>> _rows(np.array([1, 4, 5], np.uint64), np.uint64(4))
    4
    """
    return int((sizes // row_bytes + (sizes % row_bytes > 0)).sum())
