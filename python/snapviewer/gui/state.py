"""Everything in the window that can change, and the methods that change it. Without Tk.

Widgets read the state, call its methods, and subscribe to topics to redraw; they do not know each
other. Long work runs as `Jobs`, whose results arrive on the thread that owns the state.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from snapviewer import CancelledError, Clock, Device, Snapshot, Timeline, _core
from snapviewer._core import GROUPINGS
from snapviewer.files.cache import cached_bundle
from snapviewer.report.picture.options import Coloring, Order, ThemeName, core_color
from snapviewer.report.theme import Color
from snapviewer.snapshot.alive import Alive, Group, alive_at, regrouped
from snapviewer.snapshot.allocation_details import AllocationDetails, allocation_details
from snapviewer.snapshot.annotations import Span
from snapviewer.snapshot.profile import ProfilerTrace, open_trace
from snapviewer.snapshot.stack_filter import filter_of
from snapviewer.text.sanitize import sanitize

from .answers import Answers
from .call_tree import CallTree
from .document import Axis, Document, Opened, Picture, Times, Trace, open_document, times_of
from .jobs import Done, Failed, Job, Jobs, Work
from .queries import Queries
from .replay import Replayed
from .settings import WindowSettings
from .values import (
    DOCK_TABS,
    DockTab,
    Filter,
    FilterMode,
    Look,
    LookPart,
    Mask,
    Matches,
    Notice,
    Pane,
    Pointer,
    Tab,
    Topic,
)
from .viewport import Viewport, World

log = logging.getLogger(__name__)

T = TypeVar("T")

_MOTION_SECONDS = 0.8  # moves that follow each other this fast are undone together
_MAX_BACK = 100
_CONVERT_DELAY_SECONDS = 0.7  # the first pictures of a file have the machine to themselves
_CLOSE_UP = 20  # going to an event shows this part of the trace, and at least …
_MIN_CLOSE_UP = 200  # … this many events or microseconds
SELECT_FIRST = "Click an allocation to select it first."


class State:
    """What the window shows. `which` is the place of the device among those of the document."""

    def __init__(
        self, jobs: Jobs, settings: WindowSettings, *, now: Callable[[], float] = time.monotonic
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
        self.view = Viewport(0, 1, 0, 1)
        self.plot_px = (1, 1)
        self.selection: int | None = None
        self.allocation_details: AllocationDetails | None = None
        self.cursor: int | None = None
        self.alive: Alive | None = None
        self.pointer: Pointer | None = None
        self.filter = Filter()
        self.bundle_error = ""
        self.notice: Notice | None = None
        self.tab: Tab = "cursor"
        self.is_side_requested = False
        self._profile_path: Path | None = None
        self._colors: tuple[object, npt.NDArray[np.uint8]] | None = None
        self.queries = Queries(self)
        self.replayed = Replayed(self)
        self.marked: Mask | None = None
        """The allocations of a selected node, leak or group, which are not dimmed; None: all."""
        self.marks = 0
        """How often that has changed."""
        self.call_tree = CallTree(self)
        self.answers = Answers(self)
        self.ids_on_screen: Callable[[], npt.NDArray[np.int64]] | None = None
        self.drawn_ahead: Picture | None = None
        self._stacked: tuple[object, ...] = _stacking(self.look.order, self.filter)
        self._shown: Mask | None = None
        self._back: list[Viewport] = []
        self._moved_at = -np.inf

    # Listeners

    def on(self, listener: Callable[[], None], *topics: Topic) -> None:
        """Call `listener` whenever something of one of these topics has changed."""
        for topic in topics:
            self._listeners[topic].append(listener)

    def changed(self, *topics: Topic) -> None:
        """Call the listeners of some topics; one that fails does not keep the others from it."""
        first_error: Exception | None = None
        for topic in topics:
            for listener in tuple(self._listeners[topic]):
                try:
                    listener()
                except Exception as error:  # noqa: BLE001 - raised below
                    first_error = first_error or error
        if first_error is not None:
            raise first_error

    # What is shown

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
        """The clock of the x axis; None if it shows events."""
        return None if self.trace is None else self.trace.clock_of(self.look.axis)

    @property
    def world(self) -> World:
        if self.trace is None or self.timeline is None:
            return World(1.0, 0)
        highest = self.timeline.peak_bytes
        if self.settings.show_lines and self.replayed.replay is not None:
            highest = max(highest, self.replayed.replay.peak_reserved_bytes)
        return World(self.trace.end_of(self.look.axis), highest)

    def visible_events(self) -> tuple[int, int]:
        """Return the range of events in view, its end excluded."""
        trace = self.trace
        if trace is None or trace.events == 0:
            return 0, 0
        first = trace.event_at(self.look.axis, self.view.left)
        last = trace.event_at(self.look.axis, np.nextafter(self.view.right, 0.0))
        return first, last + 1

    def visible(self) -> npt.NDArray[np.int64]:
        """Return the allocations in view: those shown and alive at some event in view.

        Where only a part of the height is in view, those that have a pixel.
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
        if self._shown is not None:
            is_in &= self._shown
        return np.flatnonzero(is_in)

    # Opening

    def open(self, path: Path) -> None:
        """Read a file as a job, then show it; until then, the current one stays."""
        look, size = self.look, self.plot_px
        name = sanitize(path.name or str(path))
        self._set_notice(None)
        self.start(
            Job("open", f"reading {name}"),
            lambda job: open_document(
                path, job, axis=look.axis, color=look.color, theme=look.theme, size=size
            ),
            self._show_opened,
            lambda error: self._set_notice(Notice(f"Could not open {name}: {error}")),
        )

    def open_profile(self, path: Path) -> None:
        """Read a profiler's trace of the same run, as a job, and show it below the timeline."""
        document = self.document
        if document is None:
            self._profile_path = path  # follows the snapshot, which is being read
            return
        name = sanitize(path.name)

        def work(job: Job) -> ProfilerTrace:
            return open_trace(path, document.snapshot, progress=job.progress, cancel=job.cancel)

        def done(profile: ProfilerTrace) -> None:
            document.profile = profile
            self._place_profile()
            self.notify(f"{name}: {profile.fit.sentence()}.", is_error=profile.fit.is_far)

        def failed(error: Exception) -> None:
            self._set_notice(Notice(f"Could not open {name}: {error}"))

        self.start(Job("profile", f"reading {name}"), work, done, failed)

    def _place_profile(self) -> None:
        """Find where the profiler's spans are on the clock of the device."""
        document, trace = self.document, self.trace
        if document is None or trace is None or document.profile is None:
            return
        by_kind = document.profile.spans(trace.device, trace.clock)
        below, spans = 0, list[Span]()
        for of_kind in by_kind.values():
            spans += [replace(span, lane=span.lane + below) for span in of_kind]
            below += max(span.lane for span in of_kind) + 1
        trace.profiled = tuple(spans)
        self.changed("device")

    def cancel_opening(self) -> None:
        self.cancel("open")

    def cancel(self, job: str) -> None:
        """Stop a job."""
        self.jobs.stop(job)
        if job == "convert":
            self.bundle_error = "Preparing queries was cancelled. Run a query to start again."
            self.changed("bundle")
        self.changed("jobs")

    def _show_opened(self, opened: Opened) -> None:
        """Show a file: its picture first, then everything else."""
        for name in ("convert", "query"):
            self.jobs.stop(name)
        self.document, self.which, self.timeline = opened.document, opened.which, opened.timeline
        self.bundle_error = ""
        # A filter for another file would hide allocations of this one.
        self.filter = Filter()
        self.settings.add_recent(opened.document.path.absolute())
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
            self._set_notice(Notice("This file contains no devices."))
            return
        self._complete_device()
        if self._profile_path is not None:
            self.open_profile(self._profile_path)
            self._profile_path = None
        if opened.document.bundle is None:
            self.convert()

    def _begin_with_device(self) -> None:
        """Reset what belongs to another device, and show all of this one with its peak."""
        for name in ("times", "stack", "details", "alive", "find events", "legend"):
            self.jobs.stop(name)
        self._stacked, self._shown = _stacking("allocation", Filter()), None
        self.selection = self.allocation_details = self.cursor = self.alive = self.pointer = None
        self.marked = None
        self.filter = replace(self.filter, matches=None, error="")
        # Without a clock, there is no other axis yet.
        if self.look.axis not in (self.trace.axes() if self.trace else ("event",)):
            self.look = replace(self.look, axis="event")
        if self.trace is not None:
            self.cursor = self.trace.device.peak_event
        self.view = self.world.whole()
        self._back.clear()
        self.changed("picture")
        self.changed("view", "look", "selection", "details", "cursor", "alive", "pointer", "filter")

    def _complete_device(self) -> None:
        """Start the jobs that read what the first picture did not need."""
        document, trace = self.document, self.trace
        assert document is not None
        assert trace is not None
        self._find_alive()
        if self.filter.text or _stacking(self.look.order, self.filter) != self._stacked:
            self._stack()
        if trace.times is not None:
            return

        def done(times: Times) -> None:
            trace.times = times
            self._place_profile()
            self.changed("device", "look")

        def failed(error: Exception) -> None:
            self._set_notice(Notice(f"Could not read the times of this device: {error}"))

        self.start(Job("times"), lambda _: times_of(document.snapshot, trace.device), done, failed)

    def convert(self) -> None:
        """Convert the file for queries, as a job; may be called again after a failure."""
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
                self.bundle_error = "The file has changed since it was opened. Open it again."
            self.changed("bundle")

        def failed(error: Exception) -> None:
            self.bundle_error = f"Could not prepare the file for queries: {error}"
            self.changed("bundle")

        self.start(
            Job("convert", "preparing queries", after_seconds=_CONVERT_DELAY_SECONDS),
            work,
            done,
            failed,
        )

    def choose_device(self, which: int) -> None:
        """Show another device of the same file."""
        if self.document is None or which == self.which:
            return
        self.which = which
        assert self.trace is not None
        # Other stacking orders take longer, and follow as a job.
        self.timeline = self.trace.device.timeline()
        self._begin_with_device()
        self.changed("device", "timeline")
        self._complete_device()

    def next_device(self) -> None:
        """Show the next device of the file that has allocations."""
        traces = self.document.traces if self.document is not None else ()
        after = [*range(self.which + 1, len(traces)), *range(self.which)]
        for which in after:
            if len(traces[which].device.allocations):
                self.choose_device(which)
                return
        self.notify("No other device in this file has allocations.")

    # Appearance

    def set_look(
        self,
        *,
        axis: Axis | None = None,
        color: Coloring | None = None,
        order: Order | None = None,
        theme: ThemeName | None = None,
    ) -> None:
        """Change how the timeline is shown; what is not given stays."""
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
            self.view = self.world.clamp(Viewport(left, right, self.view.low, self.view.high))
        self.changed("look", "view")
        if new.order != old.order:
            self._stack()
        if new.color == "category" != old.color and self.device is not None:
            missing = self.device.categories.missing
            if missing is not None:
                self.notify(f"{missing[0].upper()}{missing[1:]}.")

    def color_of(self, allocation: int) -> Color:
        """Return the colour of an allocation of the device in the timeline."""
        device, look = self.device, self.look
        assert device is not None
        wanted = (device, look.color, look.theme)
        if self._colors is None or self._colors[0] != wanted:
            self._colors = wanted, device.colors(core_color(look.color), look.theme)
        red, green, blue = self._colors[1][allocation].tolist()
        return red, green, blue

    def choices(self, part: LookPart) -> tuple[str, ...]:
        """Return what a part of the look can be."""
        if part == "axis":
            return tuple(self.trace.axes()) if self.trace else ("event",)
        return get_args({"color": Coloring, "order": Order, "theme": ThemeName}[part])

    def choose(self, part: LookPart, value: str) -> None:
        """Change a part of the look to one of its `choices`."""
        given: dict[str, Any] = {part: value}
        self.set_look(**given)

    def choose_next(self, part: LookPart) -> None:
        """Change a part of the look to the next of its `choices`; after the last, the first."""
        choices = self.choices(part)
        now = choices.index(getattr(self.look, part))
        self.choose(part, choices[(now + 1) % len(choices)])

    def set_pane(self, pane: Pane, *, is_shown: bool) -> None:
        """Show or hide a pane."""
        was_whole = self.view.height >= 0.999 * self.world.high
        setattr(self.settings, f"show_{pane}", is_shown)
        if pane == "side":
            self.is_side_requested = is_shown
        self.changed("panes")
        if pane == "lines" and was_whole:
            self.refit_height()

    def refit_height(self) -> None:
        """Show the full height, which lines of reserved memory change."""
        self._set_view(Viewport(self.view.left, self.view.right, 0.0, self.world.high))

    def show_tab(self, tab: Tab) -> None:
        """Bring a tab of the side pane to the front, even in a narrow window."""
        self.tab = tab
        self.settings.show_side = self.is_side_requested = True
        self.changed("panes")

    @property
    def dock_tab(self) -> DockTab:
        """The tab of the dock that is in front, or would be."""
        wanted = self.settings.dock_tab
        return next((tab for tab in DOCK_TABS if tab == wanted), "map")

    def is_docked(self, tab: DockTab) -> bool:
        """Whether a tab of the dock is shown."""
        return self.settings.show_dock and self.dock_tab == tab

    def show_dock(self, tab: DockTab) -> None:
        """Bring a tab of the dock to the front."""
        self.settings.show_dock, self.settings.dock_tab = True, tab
        self.changed("panes")

    def toggle_dock(self, tab: DockTab) -> None:
        """Bring a tab of the dock to the front, or hide the dock if it is there already."""
        if self.is_docked(tab):
            self.set_pane("dock", is_shown=False)
        else:
            self.show_dock(tab)

    # Panning and zooming

    def pan_px(self, x_px: float, y_px: float) -> None:
        """Move the view by pixels of the plot, to the right and up.

        Panning may lead above the memory in view, where a hand that drags back finds it again.
        """
        width, height = self.plot_px
        view = self.view
        self._move(view.moved(x_px * view.width / width, y_px * view.height / height), is_pan=True)

    def zoom(self, x_factor: float, y_factor: float, *, x_px: float, y_px: float) -> None:
        """Zoom around the point under a pixel; a factor below 1 zooms in."""
        x, y = self.point_of(x_px, y_px)
        self._move(self.view.zoomed(x_factor, y_factor, x=x, y=y))

    def point_of(self, x_px: float, y_px: float) -> tuple[float, float]:
        """Return the x and the byte at a pixel of the plot."""
        width, height = self.plot_px
        view = self.view
        return view.left + x_px * view.width / width, view.high - y_px * view.height / height

    def pixel_of(self, x: float, byte: float) -> tuple[float, float]:
        """Return the pixel of the plot at an x and a byte."""
        width, height = self.plot_px
        view = self.view
        return (x - view.left) * width / view.width, (view.high - byte) * height / view.height

    def go(self, view: Viewport) -> None:
        """Show a part, as a step of its own that can be undone."""
        self._remember()
        self._moved_at = -np.inf
        self._set_view(self._filled(view))

    def move_to(self, view: Viewport) -> None:
        """Show a part, as part of a motion that is undone as a whole."""
        self._move(view)

    def zoom_to_box(self, box: tuple[int, int, int, int]) -> None:
        """Zoom to a box of the plot: x and y of two opposite corners in pixels."""
        (left, low), (right, high) = (self.point_of(*box[:2]), self.point_of(*box[2:]))
        self.go(Viewport(min(left, right), max(left, right), min(low, high), max(low, high)))

    def fit_all(self) -> None:
        self.go(self.world.whole())

    def fit_height(self) -> None:
        whole = self.world.whole()
        self.go(Viewport(self.view.left, self.view.right, whole.low, whole.high))

    def back(self) -> None:
        """Return to the previous view."""
        if self._back:
            self._moved_at = -np.inf
            self._set_view(self._back.pop())

    def go_to_peak(self) -> None:
        """Move the cursor to the peak and zoom in on it."""
        if self.timeline is not None and self.trace is not None and self.trace.events:
            self.set_cursor(self.timeline.peak_event)
            self._zoom_to_event(self.timeline.peak_event)

    def go_to_oom(self, step: Literal[-1, 1]) -> None:
        """Go to the next or the previous out-of-memory event."""
        trace = self.trace
        if trace is None or len(trace.oom_events) == 0:
            self.notify("This trace has no out-of-memory events.")
            return
        here = self.cursor if self.cursor is not None else -1
        side: Literal["left", "right"] = "right" if step > 0 else "left"
        place = int(np.searchsorted(trace.oom_events, here, side=side)) - (step < 0)
        event = int(trace.oom_events[place % len(trace.oom_events)])
        self.set_cursor(event)
        self._zoom_to_event(event)

    def show_event(self, event: int) -> None:
        """Pan so that an event is in view."""
        if self.trace is None:
            return
        x, view = self.trace.x_of(self.look.axis, event), self.view
        if not view.left <= x < view.right:
            self.go(view.moved(x - (view.left + view.right) / 2, 0))

    def _zoom_to_event(self, event: int) -> None:
        """Show an event in the middle, with a little of what is around it."""
        assert self.trace is not None
        x, whole = self.trace.x_of(self.look.axis, event), self.world.whole()
        width = min(self.view.width, max(whole.width / _CLOSE_UP, _MIN_CLOSE_UP))
        self.go(Viewport(x - width / 2, x + width / 2, whole.low, whole.high))

    def _move(self, view: Viewport, *, is_pan: bool = False) -> None:
        """Move as part of one motion: going back undoes all of it."""
        if self._now() - self._moved_at > _MOTION_SECONDS:
            self._remember()
        self._moved_at = self._now()
        self._set_view(view if is_pan else self._filled(view))

    def _filled(self, view: Viewport) -> Viewport:
        """Lower a view that would show nothing but the background above the memory."""
        if self.timeline is None or self.trace is None or self.trace.events == 0:
            return view
        view, clock = self.world.clamp(view), self.clock
        if clock is None:
            _, highest = self.timeline.overview(events=view.x_span, size=1)
        else:
            _, highest = self.timeline.overview(time=view.x_span, clock=clock, size=1)
        return view.lowered_to(float(highest[0]))

    def _remember(self) -> None:
        if not self._back or self._back[-1] != self.view:
            self._back = [*self._back[-_MAX_BACK:], self.view]

    def _set_view(self, view: Viewport) -> None:
        view = self.world.clamp(view)
        if view != self.view:
            self.view = view
            self.changed("view")

    # Selecting

    def select(self, allocation: int | None, *, reveal: bool = False) -> None:
        """Select an allocation, or none.

        Args:
            allocation: Its place among the device's.
            reveal: Whether to pan so that it is in view.
        """
        document, trace = self.document, self.trace
        if document is None or trace is None:
            return
        if allocation != self.selection:
            self.selection, self.allocation_details = allocation, None
            self.jobs.stop("details")
            if allocation is not None:
                self.start(
                    Job("details"),
                    lambda _: self._details_of(document, trace, allocation),
                    self._set_details,
                    self._fail_details,
                )
            self.changed("selection", "details")
        if reveal and allocation is not None:
            self._reveal()

    @staticmethod
    def _details_of(document: Document, trace: Trace, allocation: int) -> AllocationDetails:
        details = allocation_details(
            document.snapshot, trace.device, allocation, clock=trace.clock, spans=trace.spans
        )
        made = trace.unix_us_of(int(trace.device.allocations.alloc_event[allocation]))
        if document.profile is None or made is None:
            return details
        operator, kernel = document.profile.at(made)
        return replace(details, operator=operator, kernel=kernel)

    def _set_details(self, facts: AllocationDetails) -> None:
        self.allocation_details = facts
        self.changed("details")

    def _fail_details(self, error: Exception) -> None:
        self._set_notice(Notice(f"Could not read the details: {error}"))

    def clear(self) -> None:
        """Undo one step: close the notice, else clear the selection, else clear the filter."""
        if self.notice is not None:
            self._set_notice(None)
        elif self.selection is not None:
            self.select(None)
        elif self.marked is not None:
            self.mark(None)
        elif self.filter.text:
            self.clear_filter()

    def fit_selection(self) -> None:
        """Zoom to the selected allocation: its whole lifetime and all of its bytes."""
        if self.selection is None:
            self.notify(SELECT_FIRST)
        elif (rectangle := self._rectangle()) is not None:
            self.go(rectangle.padded())
        else:
            self.notify("The filter hides the selected allocation.")

    def step_same_stack(self, step: Literal[-1, 1]) -> None:
        """Select the next or the previous allocation with the same call stack."""
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
            self.notify(f"This is the {which} allocation with its call stack.")

    def _reveal(self) -> None:
        """Pan so that the selection is in view."""
        if (rectangle := self._rectangle()) is not None:
            view = self.view.revealing(rectangle)
            if view != self.view:
                self.go(view)

    def _rectangle(self) -> Viewport | None:
        """Return the area of the selection on the plot; None if it is not shown."""
        trace, timeline, which = self.trace, self.timeline, self.selection
        if trace is None or timeline is None or which is None:
            return None
        return trace.rectangle_of(timeline, self.look.axis, which)

    # The cursor and the pointer

    def set_cursor(self, event: int | None) -> None:
        """Move the cursor; -1 is before the first event."""
        if event == self.cursor and self.alive is not None:
            return
        self.cursor = event
        self.changed("cursor")
        self._find_alive()

    def _find_alive(self) -> None:
        document, timeline, device, event = self.document, self.timeline, self.device, self.cursor
        if document is None or timeline is None or device is None or event is None:
            return
        by, shown = self.grouping, self._shown

        def work(_: Job) -> Alive:
            alive = alive_at(device, timeline, event, document.line_of)
            return alive if by == "line" else regrouped(alive, device, by, shown)

        self.start(
            Job("alive"),
            work,
            self._set_alive,
            lambda error: self._set_notice(Notice(f"Could not read the live allocations: {error}")),
        )

    @property
    def grouping(self) -> str:
        """What live allocations are grouped by."""
        return self.settings.group_by if self.settings.group_by in GROUPINGS else "line"

    def group_by(self, by: str) -> None:
        """Group the live allocations at the cursor by something else."""
        if by != self.grouping:
            self.settings.group_by = by
            self.changed("panes")
            self._find_alive()

    def mark_group(self, group: Group) -> None:
        """Highlight the allocations of a group, whenever they are alive."""
        device = self.device
        if device is not None and group.id is not None:
            self.mark(device.keys(self.grouping).ids == group.id)

    def _set_alive(self, alive: Alive) -> None:
        self.alive = alive
        self.changed("alive")

    def point_at(self, pointer: Pointer | None) -> None:
        """Set what is under the mouse."""
        if pointer != self.pointer:
            self.pointer = pointer
            self.changed("pointer")

    # Filtering

    def set_filter(self, text: str, mode: FilterMode | None = None) -> None:
        """Search for a text, as a job; the newest text wins."""
        is_same = text.strip() == self.filter.text.strip()
        self.filter = replace(
            self.filter,
            text=text,
            mode=mode or self.filter.mode,
            matches=self.filter.matches if is_same else None,
            error="",
        )
        self.changed("filter")
        self._stack()

    def show_recorded_only(self, *, is_on: bool) -> None:
        """Hide or show the allocations that are older than the recording."""
        device = self.device
        if device is None or is_on == self.filter.recorded_only:
            return
        if is_on and not (device.allocations.alloc_event < 0).any():
            self.notify("No allocation of this device is older than the recording.")
            self.changed("filter")
            return
        self.filter = replace(self.filter, recorded_only=is_on, matches=None)
        self.changed("filter")
        self._stack()

    def toggle_recorded_only(self) -> None:
        self.show_recorded_only(is_on=not self.filter.recorded_only)

    def switch_filter_mode(self) -> None:
        self.set_filter(
            self.filter.text, "only" if self.filter.mode == "highlight" else "highlight"
        )

    def filter_same_stack(self) -> None:
        """Show only the allocations with the selection's call stack, or everything again."""
        if self.device is None or self.selection is None:
            self.notify(SELECT_FIRST)
            return
        text = self.filter_of([int(self.device.allocations.stack[self.selection])])
        if text is None or text == self.filter.text:
            self.clear_filter()
        else:
            self.set_filter(text, "only")

    def filter_of(self, stacks: Sequence[int], *, same_line: bool = False) -> str | None:
        """Return a filter for the allocations of some stacks; None if none describes them.

        With `same_line`, other stacks with the same own line of code may match, too.
        """
        if self.document is None or self.device is None:
            return None
        frames_of = self.document.snapshot.frames
        return filter_of(self.device, stacks, frames_of, same_line=same_line)

    def filter_alive_at_cursor(self) -> None:
        """Show only the live allocations at the cursor."""
        if self.cursor is not None:
            self.set_filter(f"alive={self.cursor}", "only")

    def clear_filter(self) -> None:
        self.set_filter("", "highlight")

    @property
    def shown_mask(self) -> Mask | None:
        """The allocations that are stacked; None if all are."""
        return self._shown

    def filter_mask(self) -> Mask | None:
        """Return the allocations that the filter does not dim; None if it dims none."""
        if self.filter.mode == "highlight" and self.filter.matches is not None:
            return self.filter.matches.mask
        return None

    def dimmed(self) -> Mask | None:
        """Return the allocations that are not dimmed; None if none are dimmed."""
        mask, marked = self.filter_mask(), self.marked
        return mask if marked is None else marked if mask is None else mask & marked

    def mark(self, mask: Mask | None) -> None:
        """Dim all other allocations in the plot; None dims none."""
        if mask is not self.marked:
            self.marked = mask
            self.marks += 1
            self.changed("marked")

    def _stack(self) -> None:
        """Find the matches of the filter and stack what is shown, in one job.

        One job does both, so that the picture is of the newest filter and the newest order.
        """
        device, order, now = self.device, self.look.order, self.filter
        if device is None:
            return
        wanted = _stacking(order, now)
        is_stacked = wanted == self._stacked

        def work(_: Job) -> tuple[Matches | None, Mask | None, Timeline | None]:
            recorded = device.allocations.alloc_event >= 0 if now.recorded_only else None
            matches = now.matches
            if matches is None and now.text.strip():
                matches = _matches_of(device, now.text, recorded)
            shown = matches.mask if matches is not None and now.mode == "only" else recorded
            return matches, shown, None if is_stacked else device.timeline(order, shown)

        def done(found: tuple[Matches | None, Mask | None, Timeline | None]) -> None:
            matches, shown, timeline = found
            self.filter = replace(now, matches=matches, error="")
            self.changed("filter")
            if timeline is not None:
                self._stacked, self._shown = wanted, shown
                self._set_timeline(timeline)

        def failed(error: Exception) -> None:
            self.filter = replace(now, matches=None, error=str(error))
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
        self._set_view(Viewport(self.view.left, self.view.right, low, high))
        if was_at_peak:
            self.changed("cursor")
        self._find_alive()

    # Notices and jobs

    def notify(self, text: str, *, is_error: bool = False) -> None:
        """Show a message to the user."""
        self._set_notice(Notice(text, is_error))

    def close_notice(self) -> None:
        self._set_notice(None)

    def _set_notice(self, notice: Notice | None) -> None:
        if notice != self.notice:
            self.notice = notice
            self.changed("notice")

    def start(self, job: Job, work: Work[T], done: Done[T], failed: Failed) -> None:
        """Start a job; a cancelled one has not failed."""
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
        """Drop all listeners and data."""
        self._listeners.clear()
        self.document = self.timeline = self.alive = self.allocation_details = None


def _stacking(order: Order, filter_: Filter) -> tuple[object, ...]:
    """Return what a timeline depends on; matches that are only highlighted do not change it."""
    return order, filter_.text if filter_.mode == "only" else "", filter_.recorded_only


def _matches_of(device: Device, text: str, recorded: Mask | None) -> Matches:
    mask = device.mask(text)
    if recorded is not None:
        mask = mask & recorded
    size = int(device.allocations.size[mask].sum())
    return Matches(mask, int(np.count_nonzero(mask)), size)


def _outline(snapshot: Snapshot) -> list[tuple[int, ...]]:
    """Return figures that identify a snapshot."""
    return [
        (one.index, int(one.events), len(one.allocations), one.peak_bytes, one.final_bytes)
        for one in snapshot.devices
    ]
