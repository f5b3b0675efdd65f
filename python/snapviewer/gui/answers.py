"""Steps, leaks and the first answer of the device that is shown, found by a job. Without Tk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from snapviewer._core import Device, Leaks, Step, Steps
from snapviewer.report.snapshot.first_answer import Link, Part, first_answer
from snapviewer.snapshot.annotations import Span

from .jobs import Job
from .viewport import Viewport

if TYPE_CHECKING:
    from .document import Trace
    from .state import State

_DELAY_SECONDS = 0.2  # the first picture has the machine to itself
_ROOM = 0.02  # beside a step that is zoomed to
_FROM_ANNOTATIONS = ("annotation", "ProfilerStep")


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What the job finds."""

    steps: Steps
    leaks: Leaks
    parts: tuple[Part, ...]


class Answers:
    """The answers for the device that is shown; None until they are found."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._device: Device | None = None
        self.found: Found | None = None
        self.error = ""
        state.on(self._device_changed, "device")

    def _device_changed(self) -> None:
        state, device = self._state, self._state.device
        if device is self._device:  # only its times have been read
            return
        state.jobs.stop("answers")
        self._device, self.found, self.error = device, None, ""
        state.changed("answers")
        if device is None:
            return

        def work(_: Job) -> Found:
            return Found(device.steps, device.leaks, first_answer(device))

        job = Job("answers", "looking at steps and growth", after_seconds=_DELAY_SECONDS)
        state.start(job, work, self._done, self._failed)

    def _done(self, found: Found) -> None:
        self.found = found
        self._state.changed("answers")

    def _failed(self, error: Exception) -> None:
        self.error = f"Could not find steps and growth: {error}"
        self._state.changed("answers")

    # Steps

    def step_spans(self, trace: Trace) -> tuple[Span, ...]:
        """Return the steps as spans; none if annotations show them already."""
        if self.found is None or trace.device is not self._device:
            return ()
        steps = self.found.steps
        if any(word in steps.source for word in _FROM_ANNOTATIONS) and trace.spans:
            return ()
        clock = trace.clock

        def time_us(event: int) -> int:
            if clock is None:
                return 0
            return int(clock.at(event)) if event < trace.events else int(clock.length_us)

        return tuple(
            Span(
                name=step.name,
                lane=0,
                start_us=time_us(step.start),
                end_us=time_us(step.end),
                start_event=step.start,
                end_event=step.end,
                is_open_start=not step.is_whole and step is steps.steps[0],
                is_open_end=not step.is_whole and step is steps.steps[-1],
            )
            for step in steps.steps
        )

    def show_step(self, step: Step) -> None:
        """Zoom to a step, and move the cursor to its peak."""
        state, trace = self._state, self._state.trace
        if trace is None:
            return
        left, right = (trace.x_of(state.look.axis, event) for event in (step.start, step.end))
        room = (right - left) * _ROOM
        whole = state.world.whole()
        state.set_cursor(step.peak_event)
        state.go(Viewport(left - room, right + room, whole.low, whole.high))

    def step_at_cursor(self) -> int | None:
        """Return the place of the step that the cursor is in."""
        cursor = self._state.cursor
        if self.found is None or cursor is None:
            return None
        steps = self.found.steps.steps
        return next((n for n, one in enumerate(steps) if one.start <= cursor < one.end), None)

    def next_step(self, by: Literal[-1, 1]) -> None:
        """Go to the next or the previous step."""
        state = self._state
        steps = self.found.steps.steps if self.found is not None else ()
        if not steps or state.cursor is None:
            missing = self.found.steps.missing if self.found is not None else None
            state.notify(f"No steps: {missing}." if missing else "No steps found.")
            return
        starts = np.array([step.start for step in steps])
        here = int(np.searchsorted(starts, state.cursor, side="right")) - 1
        place = here + by
        if not 0 <= place < len(steps):
            state.notify(f"No step {'after' if by > 0 else 'before'} this one.")
            return
        self.show_step(steps[place])

    # Leaks and links

    def show_leak(self, place: int) -> None:
        """Highlight the allocations of a leak, and select the largest."""
        state, device = self._state, self._device
        if self.found is None or device is None:
            return
        allocations = self.found.leaks.leaks[place].allocations
        mask = np.zeros(len(device.allocations), dtype=np.bool_)
        mask[allocations] = True
        largest = allocations[int(np.argmax(device.allocations.size[allocations]))]
        state.select(int(largest))
        state.mark(mask)

    def follow(self, link: Link) -> None:
        """Show what a part of the first answer is about."""
        state = self._state
        if link == "oom":
            state.go_to_oom(1)
        elif link == "growth":
            state.show_dock("leaks")
        else:
            if state.timeline is not None:
                state.set_cursor(state.timeline.peak_event)
            if link == "peak":
                state.go_to_peak()
            elif link == "reserved":
                state.show_dock("map")
            else:
                state.group_by("category")
                state.show_tab("cursor")
