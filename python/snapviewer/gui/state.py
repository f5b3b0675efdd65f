"""Everything in the window that can change, and what changes it. Knows nothing of Tk.

Widgets read the state, call its methods, and are told by topic when something changed; they know
nothing of each other. Long work is given to `Jobs`, which report back on the thread that owns the
state.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from snapviewer import CancelledError, Clock, Device, Snapshot, Timeline, _core
from snapviewer.files.cache import cached_bundle
from snapviewer.report.picture.options import Coloring, Order, ThemeName
from snapviewer.snapshot.alive import Alive, alive_at
from snapviewer.snapshot.allocation_details import AllocationDetails, allocation_details

from .document import Axis, Document, Opened, Picture, Times, Trace, open_document, times_of
from .jobs import Job, Jobs
from .places import rectangle_of, revealing, with_room
from .queries import Queries
from .settings import Settings
from .values import Filter, FilterMode, Look, Mask, Matches, Notice, Pane, Pointer, Tab, Topic
from .views import View, World

log = logging.getLogger(__name__)

T = TypeVar("T")

_ONE_MOTION_SECONDS = 0.8  # moves that follow each other this fast are one step back
_MOST_BACK = 100
_CONVERT_AFTER = 0.7  # seconds: the first look at a file has the machine to itself
_CLOSE = 20  # going to an event shows this part of the trace, and at least …
_LEAST_CLOSE = 200
_SELECT_FIRST = "Select an allocation first: click it."


class State:
    """What the window shows."""

    def __init__(
        self, jobs: Jobs, settings: Settings, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.jobs = jobs
        self.settings = settings
        self._now = now
        self._listeners: defaultdict[Topic, list[Callable[[], None]]] = defaultdict(list)
        theme: ThemeName = "dark" if settings.theme == "dark" else "light"
        self.look = Look(theme=theme)
        self.document: Document | None = None
        self.which = 0
        self.timeline: Timeline | None = None
        self.view = View(0, 1, 0, 1)
        self.plot_px = (1, 1)
        self.selection: int | None = None
        self.facts: AllocationDetails | None = None
        self.cursor: int | None = None
        self.moment: Alive | None = None
        self.pointer: Pointer | None = None
        self.filter = Filter()
        self.bundle_error = ""
        self.notice: Notice | None = None
        self.tab: Tab = "cursor"
        self.is_side_asked_for = False
        self.queries = Queries(self)
        self.ids_on_screen: Callable[[], npt.NDArray[np.int64]] | None = None
        self.drawn_ahead: Picture | None = None
        self._stacked = ("allocation", "")
        self._back: list[View] = []
        self._moved_at = -np.inf

    # Who is told

    def on(self, topic: Topic, tell: Callable[[], None]) -> None:
        """Have `tell` called whenever something of this topic has changed."""
        self._listeners[topic].append(tell)

    def changed(self, *topics: Topic) -> None:
        """Tell everybody; what goes wrong with one does not keep it from the others."""
        wrong: Exception | None = None
        for topic in topics:
            for tell in tuple(self._listeners[topic]):
                try:
                    tell()
                except Exception as error:  # noqa: BLE001 - raised below
                    wrong = wrong or error
        if wrong is not None:
            raise wrong

    # What there is

    @property
    def trace(self) -> Trace | None:
        """The device that is shown."""
        if self.document is None or not self.document.traces:
            return None
        return self.document.traces[self.which]

    @property
    def device(self) -> Device | None:
        return None if self.trace is None else self.trace.device

    @property
    def clock(self) -> Clock | None:
        """The clock of the axis; None if that has events."""
        return None if self.trace is None else self.trace.clock_of(self.look.axis)

    @property
    def world(self) -> World:
        if self.trace is None or self.timeline is None:
            return World(1.0, 0)
        return World(self.trace.end_of(self.look.axis), self.timeline.peak_bytes)

    def visible_events(self) -> tuple[int, int]:
        """Return the events in view, the last excluded."""
        trace = self.trace
        if trace is None or trace.events == 0:
            return 0, 0
        first = trace.event_at(self.look.axis, self.view.left)
        last = trace.event_at(self.look.axis, np.nextafter(self.view.right, 0.0))
        return first, last + 1

    def visible(self) -> npt.NDArray[np.int64]:
        """Return the allocations in view: alive at some event of it, and shown.

        When only some of the bytes are in view, those that have a pixel.
        """
        device = self.device
        if device is None:
            return np.zeros(0, dtype=np.int64)
        view, world = self.view, self.world.whole()
        if self.ids_on_screen is not None and view.height < 0.999 * world.height:
            return self.ids_on_screen()
        first, last = self.visible_events()
        a = device.allocations
        is_in = (a.alloc_event < max(last, 1)) & (a.free_event > first)
        if self.filter.mode == "only" and self.filter.matches is not None:
            is_in &= self.filter.matches.mask
        return np.flatnonzero(is_in)

    # Opening

    def open(self, path: Path) -> None:
        """Read a file aside and show it; what is shown now stays until then."""
        look, size = self.look, self.plot_px
        self._tell(None)
        self.start(
            Job("open", f"reading {path.name or path}"),
            lambda job: open_document(
                path, job, axis=look.axis, color=look.color, theme=look.theme, size=size
            ),
            self._show_opened,
            lambda error: self._tell(Notice(f"{path.name or path} was not opened: {error}")),
        )

    def cancel_opening(self) -> None:
        self.cancel("open")

    def cancel(self, job: str) -> None:
        """Stop work that goes on aside."""
        self.jobs.stop(job)
        if job == "convert":
            self.bundle_error = "Preparing queries was cancelled; run a query to begin again."
            self.changed("bundle")
        self.changed("jobs")

    def _show_opened(self, opened: Opened) -> None:
        """Show a file: the picture first, then all that can be told of it."""
        for name in ("convert", "query"):
            self.jobs.stop(name)
        self.document, self.which, self.timeline = opened.document, opened.which, opened.timeline
        self.bundle_error = ""
        # What was looked for in another file would hide things of this one.
        self.filter = Filter()
        self.settings.opened(opened.document.path.absolute())
        self.drawn_ahead = opened.picture
        self._begin_with_device()
        self.drawn_ahead = None
        log.info(
            "opened %s: %s, %d devices",
            opened.document.path,
            opened.document.snapshot.format,
            len(opened.document.traces),
        )
        self.changed("document", "device", "timeline", "recent", "bundle")
        if self.trace is None:
            self._tell(Notice("There is no device in this file, so there is nothing to show."))
            return
        self._learn_of_device()
        if opened.document.bundle is None:
            self.convert()

    def _begin_with_device(self) -> None:
        """Forget what was of another device, and show all of this one with its peak."""
        for name in ("times", "stack", "facts", "moment", "find events"):
            self.jobs.stop(name)
        self._stacked = ("allocation", "")
        self.selection = self.facts = self.cursor = self.moment = self.pointer = None
        self.filter = Filter(self.filter.text, self.filter.mode)
        # Without a clock, nothing else can be shown yet.
        if self.look.axis not in (self.trace.axes() if self.trace else ("event",)):
            self.look = replace(self.look, axis="event")
        if self.trace is not None:
            self.cursor = self.trace.device.peak_event
        self.view = self.world.whole()
        self._back.clear()
        self.changed("picture")
        self.changed("view", "look", "selection", "facts", "cursor", "moment", "pointer", "filter")

    def _learn_of_device(self) -> None:
        """Find out what the first picture did not need."""
        document, trace = self.document, self.trace
        assert document is not None
        assert trace is not None
        self._make_moment()
        if self.filter.text or self.look.order != "allocation":
            self._stack()
        if trace.times is not None:
            return

        def done(times: Times) -> None:
            trace.times = times
            self.changed("device", "look")

        def failed(error: Exception) -> None:
            self._tell(Notice(f"The times of this device could not be read: {error}"))

        self.start(Job("times"), lambda _: times_of(document.snapshot, trace.device), done, failed)

    def convert(self) -> None:
        """Make a bundle aside, for queries; again if that failed."""
        document = self.document
        assert document is not None
        self.bundle_error = ""

        def work(job: Job) -> Snapshot:
            path = cached_bundle(document.path, progress=job.progress, cancel=job.cancel)
            return _core.load(path, cancel=job.cancel)

        def done(bundle: Snapshot) -> None:
            if _outline(bundle) == _outline(document.snapshot):
                document.bundle = bundle
            else:
                self.bundle_error = "The file has changed since it was opened; open it again."
            self.changed("bundle")

        def failed(error: Exception) -> None:
            self.bundle_error = f"The file could not be made ready for queries: {error}"
            self.changed("bundle")

        self.start(
            Job("convert", "preparing queries", after_seconds=_CONVERT_AFTER), work, done, failed
        )

    def choose_device(self, which: int) -> None:
        """Show another device of the same file."""
        if self.document is None or which == self.which:
            return
        self.which = which
        assert self.trace is not None
        # Other orders take longer, and come a moment later.
        self.timeline = self.trace.device.timeline()
        self._begin_with_device()
        self.changed("device", "timeline")
        self._learn_of_device()

    def next_device(self) -> None:
        """Show the next device of the file that has any memory."""
        traces = self.document.traces if self.document is not None else ()
        after = [*range(self.which + 1, len(traces)), *range(self.which)]
        for which in after:
            if len(traces[which].device.allocations):
                self.choose_device(which)
                return
        self.tell("There is no other device with memory in this file.")

    # Looks

    def set_look(
        self,
        *,
        axis: Axis | None = None,
        color: Coloring | None = None,
        order: Order | None = None,
        theme: ThemeName | None = None,
    ) -> None:
        """Change how things are shown; what is not given stays."""
        old = self.look
        new = Look(axis or old.axis, color or old.color, order or old.order, theme or old.theme)
        if new == old:
            return
        first, last = self.visible_events()
        was_whole = self.view.x_span == self.world.whole().x_span
        self.look = new
        self.settings.theme = new.theme
        if new.axis != old.axis and self.trace is not None:
            self._back.clear()
            left, right = (self.trace.x_of(new.axis, event) for event in (first, last))
            if was_whole:
                left, right = self.world.whole().x_span
            self.view = self.world.cut(View(left, right, self.view.low, self.view.high))
        self.changed("look", "view")
        if new.order != old.order:
            self._stack()
        if new.color == "category" != old.color and not self._has_categories():
            self.tell("This file does not say what allocations are for: all are grey.")

    def _has_categories(self) -> bool:
        return self.device is None or bool(self.device.allocations.category.any())

    def set_pane(self, pane: Pane, *, is_shown: bool) -> None:
        """Show a pane, or hide it."""
        setattr(self.settings, f"show_{pane}", is_shown)
        if pane == "side":
            self.is_side_asked_for = is_shown
        self.changed("panes")

    def show_tab(self, tab: Tab) -> None:
        """Bring a tab of the side pane to the front, also where the window has little room."""
        self.tab = tab
        self.settings.show_side = self.is_side_asked_for = True
        self.changed("panes")

    # Moving about

    def pan_px(self, x_px: float, y_px: float) -> None:
        """Move the view by pixels of the plot, to the right and up."""
        width, height = self.plot_px
        view = self.view
        self._move(view.moved(x_px * view.width / width, y_px * view.height / height))

    def zoom(self, x_factor: float, y_factor: float, *, x_px: float, y_px: float) -> None:
        """Zoom so that the point under a pixel stays there; a factor below 1 shows less."""
        x, y = self.point_of(x_px, y_px)
        self._move(self.view.zoomed(x_factor, y_factor, x=x, y=y))

    def point_of(self, x_px: float, y_px: float) -> tuple[float, float]:
        """Return the x and the byte at a pixel of the plot."""
        width, height = self.plot_px
        view = self.view
        return view.left + x_px * view.width / width, view.high - y_px * view.height / height

    def pixel_of(self, x: float, byte: float) -> tuple[float, float]:
        """Return where an x and a byte are in the plot."""
        width, height = self.plot_px
        view = self.view
        return (x - view.left) * width / view.width, (view.high - byte) * height / view.height

    def go(self, view: View) -> None:
        """Show a part, and remember where we were."""
        self._remember()
        self._moved_at = -np.inf
        self._set_view(view)

    def move_to(self, view: View) -> None:
        """Show a part, as one step of a motion."""
        self._move(view)

    def zoom_to_box(self, box: tuple[int, int, int, int]) -> None:
        """Show what two opposite corners in the plot, in pixels, have between them."""
        (left, low), (right, high) = (self.point_of(*box[:2]), self.point_of(*box[2:]))
        self.go(View(min(left, right), max(left, right), min(low, high), max(low, high)))

    def fit_all(self) -> None:
        self.go(self.world.whole())

    def fit_height(self) -> None:
        whole = self.world.whole()
        self.go(View(self.view.left, self.view.right, whole.low, whole.high))

    def back(self) -> None:
        """Show what was shown before."""
        if self._back:
            self._moved_at = -np.inf
            self._set_view(self._back.pop())

    def go_to_peak(self) -> None:
        """Show the peak of what is shown, closer than now if it is in view already."""
        if self.timeline is not None and self.timeline.peak_event >= 0:
            self.set_cursor(self.timeline.peak_event)
            self._show_event(self.timeline.peak_event)

    def go_to_oom(self, step: Literal[-1, 1]) -> None:
        """Go to the next or the previous event at which memory ran out."""
        trace = self.trace
        if trace is None or len(trace.oom_events) == 0:
            self._tell(Notice("Memory never ran out in this trace.", is_error=False))
            return
        here = self.cursor if self.cursor is not None else -1
        side: Literal["left", "right"] = "right" if step > 0 else "left"
        place = int(np.searchsorted(trace.oom_events, here, side=side)) - (step < 0)
        event = int(trace.oom_events[place % len(trace.oom_events)])
        self.set_cursor(event)
        self._show_event(event)

    def show_event(self, event: int) -> None:
        """Move so that an event is in view, if it is not; the scale stays."""
        if self.trace is None:
            return
        x, view = self.trace.x_of(self.look.axis, event), self.view
        if not view.left <= x < view.right:
            self.go(view.moved(x - (view.left + view.right) / 2, 0))

    def _show_event(self, event: int) -> None:
        """Show an event in the middle, with a little of what is around it."""
        assert self.trace is not None
        x, whole = self.trace.x_of(self.look.axis, event), self.world.whole()
        width = min(self.view.width, max(whole.width / _CLOSE, _LEAST_CLOSE))
        self.go(View(x - width / 2, x + width / 2, whole.low, whole.high))

    def _move(self, view: View) -> None:
        """Move as part of one motion: going back undoes all of it."""
        if self._now() - self._moved_at > _ONE_MOTION_SECONDS:
            self._remember()
        self._moved_at = self._now()
        self._set_view(view)

    def _remember(self) -> None:
        if not self._back or self._back[-1] != self.view:
            self._back = [*self._back[-_MOST_BACK:], self.view]

    def _set_view(self, view: View) -> None:
        view = self.world.cut(view)
        if view != self.view:
            self.view = view
            self.changed("view")

    # Selecting

    def select(self, allocation: int | None, *, reveal: bool = False) -> None:
        """Select an allocation, or none.

        Args:
            allocation: Its place among the device's.
            reveal: Move so that it is in view.
        """
        document, trace = self.document, self.trace
        if document is None or trace is None:
            return
        if allocation != self.selection:
            self.selection, self.facts = allocation, None
            self.jobs.stop("facts")
            if allocation is not None:
                self.start(
                    Job("facts"),
                    lambda _: allocation_details(
                        document.snapshot,
                        trace.device,
                        allocation,
                        clock=trace.clock,
                        spans=trace.spans,
                    ),
                    self._set_facts,
                    self._fail_facts,
                )
            self.changed("selection", "facts")
        if reveal and allocation is not None:
            self._reveal()

    def _set_facts(self, facts: AllocationDetails) -> None:
        self.facts = facts
        self.changed("facts")

    def _fail_facts(self, error: Exception) -> None:
        self._tell(Notice(f"The details could not be read: {error}"))

    def clear(self) -> None:
        """Take back one thing: what is told, then the selection, then the filter."""
        if self.notice is not None:
            self._tell(None)
        elif self.selection is not None:
            self.select(None)
        elif self.filter.text:
            self.clear_filter()

    def fit_selection(self) -> None:
        """Show all of the selected allocation's life, and its bytes, with some room around."""
        if self.selection is None:
            self.tell(_SELECT_FIRST)
        elif (rectangle := self._rectangle()) is not None:
            self.go(with_room(rectangle))
        else:
            self.tell("The filter hides the selection.")

    def step_same_stack(self, step: Literal[-1, 1]) -> None:
        """Select the next or the previous allocation that the same stack made."""
        device = self.device
        if device is None or self.selection is None:
            return
        a = device.allocations
        same = np.flatnonzero(a.stack == a.stack[self.selection])
        same = same[np.argsort(a.alloc_event[same], kind="stable")]
        place = int(np.flatnonzero(same == self.selection)[0]) + step
        if 0 <= place < len(same):
            self.select(int(same[place]), reveal=True)
        else:
            which = "first" if step < 0 else "last"
            self._tell(Notice(f"This is the {which} allocation of its stack.", is_error=False))

    def _reveal(self) -> None:
        """Move so that the selection is in view; the scale stays."""
        if (rectangle := self._rectangle()) is not None:
            view = revealing(rectangle, self.view)
            if view != self.view:
                self.go(view)

    def _rectangle(self) -> View | None:
        """Return what the selection takes on the plot; None if it is not shown."""
        trace, timeline, which = self.trace, self.timeline, self.selection
        if trace is None or timeline is None or which is None:
            return None
        return rectangle_of(trace, timeline, self.look.axis, which)

    # The cursor and the pointer

    def set_cursor(self, event: int | None) -> None:
        """Choose the event that the panes tell of."""
        if event == self.cursor and self.moment is not None:
            return
        self.cursor = event
        self.changed("cursor")
        self._make_moment()

    def _make_moment(self) -> None:
        document, timeline, device, event = self.document, self.timeline, self.device, self.cursor
        if document is None or timeline is None or device is None or event is None:
            return
        self.start(
            Job("moment"),
            lambda _: alive_at(device, timeline, event, document.line_of),
            self._set_moment,
            lambda error: self._tell(Notice(f"What is alive there could not be told: {error}")),
        )

    def _set_moment(self, moment: Alive) -> None:
        self.moment = moment
        self.changed("moment")

    def point_at(self, pointer: Pointer | None) -> None:
        """Note what is under the mouse."""
        if pointer != self.pointer:
            self.pointer = pointer
            self.changed("pointer")

    # Filtering

    def set_filter(self, text: str, mode: FilterMode | None = None) -> None:
        """Look for what matches, aside; the newest text wins."""
        mode = mode or self.filter.mode
        is_same = text.strip() == self.filter.text.strip()
        self.filter = Filter(text, mode, self.filter.matches if is_same else None)
        self.changed("filter")
        self._stack()

    def switch_filter_mode(self) -> None:
        self.set_filter(
            self.filter.text, "only" if self.filter.mode == "highlight" else "highlight"
        )

    def filter_same_stack(self) -> None:
        """Show only what the stack of the selection made, or everything again."""
        if self.device is not None and self.selection is not None:
            text = f"stack={self.device.allocations.stack[self.selection]}"
            if text == self.filter.text:
                self.clear_filter()
            else:
                self.set_filter(text, "only")
        else:
            self.tell(_SELECT_FIRST)

    def filter_alive_at_cursor(self) -> None:
        """Show only what is alive at the event that the panes tell of."""
        if self.cursor is not None:
            self.set_filter(f"alive={self.cursor}", "only")

    def clear_filter(self) -> None:
        self.set_filter("", "highlight")

    def dimmed(self) -> Mask | None:
        """Return what is to be drawn as it is while the rest is dimmed; None if all is."""
        if self.filter.mode == "highlight" and self.filter.matches is not None:
            return self.filter.matches.mask
        return None

    def _stack(self) -> None:
        """Find what the filter lets through and stack it in the order that is wanted, aside.

        One job does both, so that whichever changed last, the picture is of the two together.
        """
        device, order, now = self.device, self.look.order, self.filter
        if device is None:
            return
        # Matches that are only highlighted change nothing in the stack.
        wanted = (order, now.text if now.mode == "only" else "")
        is_stacked = wanted == self._stacked

        def work(_: Job) -> tuple[Matches | None, Timeline | None]:
            matches = now.matches
            if matches is None and now.text.strip():
                matches = _matches_of(device, now.text)
            mask = matches.mask if matches is not None and now.mode == "only" else None
            return matches, None if is_stacked else device.timeline(order, mask)

        def done(found: tuple[Matches | None, Timeline | None]) -> None:
            matches, timeline = found
            self.filter = Filter(now.text, now.mode, matches)
            self.changed("filter")
            if timeline is not None:
                self._stacked = wanted
                self._set_timeline(timeline)

        def failed(error: Exception) -> None:
            self.filter = Filter(now.text, now.mode, error=str(error))
            self.changed("filter")

        self.start(Job("stack"), work, done, failed)

    def _set_timeline(self, timeline: Timeline) -> None:
        was_whole = self.view.height >= 0.999 * self.world.high
        was_at_peak = self.timeline is not None and self.cursor == self.timeline.peak_event
        self.timeline = timeline
        if was_at_peak:
            self.cursor = timeline.peak_event
        self.changed("timeline")
        high = self.world.high if was_whole else self.view.high
        low = 0.0 if was_whole else self.view.low
        self._set_view(View(self.view.left, self.view.right, low, high))
        if was_at_peak:
            self.changed("cursor")
        self._make_moment()

    # Telling

    def tell(self, text: str, *, is_error: bool = False) -> None:
        """Tell a person something."""
        self._tell(Notice(text, is_error))

    def close_notice(self) -> None:
        self._tell(None)

    def _tell(self, notice: Notice | None) -> None:
        if notice != self.notice:
            self.notice = notice
            self.changed("notice")

    def start(
        self,
        job: Job,
        work: Callable[[Job], T],
        done: Callable[[T], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Run work aside; being cancelled is no failure."""
        began = self._now()

        def finish(result: T) -> None:
            log.info("%s took %.3f s", job.name, self._now() - began)
            self.changed("jobs")
            done(result)

        def fail(error: Exception) -> None:
            self.changed("jobs")
            if not isinstance(error, CancelledError):
                failed(error)

        self.jobs.start(job, work, finish, fail)
        self.changed("jobs")

    def close(self) -> None:
        """Forget everything and everybody."""
        self._listeners.clear()
        self.document = self.timeline = self.moment = self.facts = None


def _matches_of(device: Device, text: str) -> Matches:
    mask = device.mask(text)
    size = int(device.allocations.size[mask].sum())
    return Matches(mask, int(np.count_nonzero(mask)), size)


def _outline(snapshot: Snapshot) -> list[tuple[int, ...]]:
    """Return what tells a snapshot from another one."""
    return [
        (one.index, int(one.events), len(one.allocations), one.peak_bytes, one.final_bytes)
        for one in snapshot.devices
    ]
