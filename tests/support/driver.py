"""The program's window on the display of the tests, and a hand on it.

What a person would do goes through the X server (`display.py`); this is where to do it,
how to wait, and what to compare.
"""

from __future__ import annotations

import time
import tkinter as tk
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tkinter import ttk
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pytest

from snapviewer import Device, Image, Timeline
from snapviewer.gui.app import Window
from snapviewer.gui.document import Document, Opened, Trace
from snapviewer.gui.plot.amounts import amount_marks
from snapviewer.gui.plot.marks import marks_of, scales_of
from snapviewer.gui.theme import px
from snapviewer.gui.values import Filter
from snapviewer.gui.viewport import Viewport
from snapviewer.report.picture.options import core_color
from support.display import click, key, key_down, key_up, move, screenshot, write
from support.oracle import SNAPSHOTS

SIZE = "1300x800+0+0"
TIME_LIMIT_SECONDS = 30
BACKGROUND = 2**32 - 1

Pixels = npt.NDArray[np.uint8]
T = TypeVar("T")


def _some(value: T | None) -> T:
    assert value is not None
    return value


class Driver:
    """A window and ways to use it."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.root, self.state, self.plot = window.root, window.state, window.area.plot
        self.bugs: list[BaseException] = []
        self._opened: Opened | None = None
        report_bug = self.root.report_callback_exception

        def note(kind: type[BaseException], error: BaseException, trace: object) -> None:
            self.bugs.append(error)
            report_bug(kind, error, trace)  # type: ignore[arg-type]

        self.root.report_callback_exception = note

    def take_keyboard(self) -> None:
        """Have what is typed, as no window manager gives it to anybody here."""
        self.until(self.root.winfo_viewable)
        # If it has it only because the pointer is over it, Tk gives it up when the pointer leaves.
        move(self.root.winfo_screenwidth() - 1, self.root.winfo_screenheight() - 1)
        self.settle()
        while not self.root.tk.call("focus", "-displayof", "."):
            self.root.focus_force()
            self.settle()

    # Waiting

    def settle(self) -> None:
        """Let the window do what it has to do, and then a little more."""
        for _ in range(6):
            self.root.update()
            time.sleep(0.003)

    def until(self, is_so: Callable[[], object]) -> None:
        """Let the window work until something is so."""
        end = time.monotonic() + TIME_LIMIT_SECONDS
        while not is_so():
            assert time.monotonic() < end, f"it never came to that; {self.state.notice}"
            self.root.update()
            time.sleep(0.003)
        self.settle()

    def done(self) -> None:
        """Let the window work until nothing goes on aside, but for the preparing of queries."""
        self.settle()
        legend = self.window.area.legend
        self.until(
            lambda: (
                legend._due is None
                and all(job.name == "convert" for job in self.state.jobs.running())
            )
        )

    # Where it begins

    def reset(self, path: Path) -> None:
        """Show a file as it is shown at first."""
        state = self.state
        for child in self.root.winfo_children():
            if isinstance(child, tk.Toplevel) and child.winfo_viewable():
                child.destroy()
        if self.root.winfo_geometry() != SIZE:
            self.root.geometry(SIZE)
        state.settings.side_width = 0
        state.filter = Filter()
        state.changed("filter")
        state.mark(None)
        state.group_by("line")
        state.call_tree.set_way(measure="alive", by="line", frames="folded", is_callers=False)
        state.set_look(axis="event", color="stack", order="allocation", theme="light")
        for shown in ("minimap", "lanes", "side"):
            state.set_pane(shown, is_shown=True)
        for hidden in ("legend", "dock", "lines"):
            state.set_pane(hidden, is_shown=False)
        state.show_tab("cursor")
        self.window.side.sql.write("")
        self.bugs.clear()
        self.take_keyboard()
        self.away()
        self.plot.widget.focus_set()
        state.close_notice()
        if self._opened is None or self._opened.document.path != path:
            self.open(path)
            self._opened = Opened(self.document, state.which, self.timeline)
        else:
            state._show_opened(self._opened)
            self.done()
        assert state.notice is None

    def open(self, path: Path) -> None:
        """Open a file, and wait until it is there or it is said why not."""
        self.state.open(path)
        self.until(lambda: not any(job.name == "open" for job in self.state.jobs.running()))
        self.done()

    # What there is

    @property
    def document(self) -> Document:
        return _some(self.state.document)

    @property
    def trace(self) -> Trace:
        return _some(self.state.trace)

    @property
    def device(self) -> Device:
        return self.trace.device

    @property
    def timeline(self) -> Timeline:
        return _some(self.state.timeline)

    @property
    def notice(self) -> str:
        """The text of the notice, if there is one."""
        return self.state.notice.text if self.state.notice is not None else ""

    # Where things are

    def at(self, x: int, y: int) -> tuple[int, int]:
        """Where a pixel of the plot is on the screen."""
        return self.plot.widget.winfo_rootx() + x, self.plot.widget.winfo_rooty() + y

    def spot(self, x_share: float, y_share: float) -> tuple[int, int]:
        """A pixel of the plot, by shares of its width and height."""
        width, height = self.state.plot_px
        return round(x_share * (width - 1)), round(y_share * (height - 1))

    def away(self) -> None:
        """Move the pointer out of the plot."""
        move(self.root.winfo_rootx() + self.root.winfo_width() - 40, self.root.winfo_rooty() + 2)
        self.settle()

    def pixel_with(self, is_it: Callable[[int], bool]) -> tuple[int, int, int]:
        """A pixel well inside of an allocation that fits, and the allocation."""
        ids = self.image().ids
        inside = np.zeros(ids.shape, dtype=bool)
        core = ids[3:-3, 3:-3]
        same = core != BACKGROUND
        for y, x in ((0, 3), (6, 3), (3, 0), (3, 6)):
            same &= core == ids[y : y + core.shape[0], x : x + core.shape[1]]
        inside[3:-3, 3:-3] = same
        inside &= ~self._covered(self.window.area.legend)
        for allocation in np.unique(ids[inside]).tolist():
            if is_it(allocation):
                y, x = np.argwhere(inside & (ids == allocation))[0].tolist()
                return x, y, allocation
        raise AssertionError("there is no such allocation in view")

    @staticmethod
    def middle(widget: tk.Misc) -> tuple[int, int]:
        """The middle of a widget, on the screen."""
        return (
            widget.winfo_rootx() + widget.winfo_width() // 2,
            widget.winfo_rooty() + widget.winfo_height() // 2,
        )

    # What is seen

    def image(self) -> Image:
        """What the engine draws of the part in view."""
        state, clock = self.state, self.state.clock
        span = state.view.x_span
        where = {"events": span} if clock is None else {"time": span, "clock": clock}
        image: Image = self.timeline.image(
            **where,
            bytes=state.view.byte_span,
            size=state.plot_px,
            color=core_color(state.look.color),
            theme=state.look.theme,
            dim=state.dimmed(),
            selected=state.selection,
        )
        return image

    def expected(self) -> Pixels:
        """The engine's picture with its marks."""
        scales = scales_of(self.state, self.plot._width_of, px(self.root, 100) / 100)
        image, unit = self.image(), px(self.root, 1)
        marks = marks_of(self.state, scales, unit, None)
        lines = amount_marks(self.state, image.events, unit)
        return np.asarray(image.marked([*marks, *lines])[..., :3])

    def pixels(self) -> Pixels:
        """What the screen has where the plot is."""
        (left, top), (width, height) = self.at(0, 0), self.state.plot_px
        return np.asarray(screenshot())[top : top + height, left : left + width]

    def differing(self) -> int:
        """How many pixels of the plot are not the engine's, labels that lie on it left out."""
        is_other = (self.pixels() != self.expected()).any(axis=2)
        plot, area, notice = self.plot, self.window.area, self.window.overlay._notice
        covers = (plot._peak, plot._tip.label, plot._empty, notice, area.legend, area.amounts)
        return int(np.count_nonzero(is_other & ~self._covered(*covers)))

    def _covered(self, *widgets: tk.Misc) -> npt.NDArray[np.bool_]:
        """The pixels of the plot that have a widget over them."""
        width, height = self.state.plot_px
        is_covered = np.zeros((height, width), dtype=bool)
        for widget in widgets:
            if widget.winfo_ismapped():
                x = widget.winfo_rootx() - self.plot.widget.winfo_rootx()
                y = widget.winfo_rooty() - self.plot.widget.winfo_rooty()
                is_covered[
                    max(y, 0) : max(y + widget.winfo_height(), 0),
                    max(x, 0) : max(x + widget.winfo_width(), 0),
                ] = True
        return is_covered

    def assert_drawn(self) -> None:
        """The plot shows exactly what the engine draws, once the server has it."""
        self.done()
        self.until(lambda: self.differing() == 0)


@contextmanager
def holding(name: str) -> Iterator[None]:
    """A key that is down meanwhile."""
    key_down(name)
    try:
        yield
    finally:
        key_up(name)


def cut_off(part: tk.Misc, root: tk.Misc) -> list[str]:
    """The widgets of a part that are smaller than they need to be, or not wholly in the window."""
    found = []
    right = root.winfo_rootx() + root.winfo_width()
    bottom = root.winfo_rooty() + root.winfo_height()
    for widget in part.winfo_children():
        if isinstance(widget, tk.Menu | tk.Toplevel) or not widget.winfo_manager():
            continue
        is_in = (
            widget.winfo_ismapped()
            and widget.winfo_rootx() + widget.winfo_width() <= right
            and widget.winfo_rooty() + widget.winfo_height() <= bottom
        )
        has_room = (
            isinstance(widget, ttk.Entry | ttk.Frame)
            or widget.winfo_manager() == "place"
            or widget.winfo_width() >= widget.winfo_reqwidth()
        )
        if not (is_in and has_room):
            found.append(f"{widget}: {widget.winfo_width()} of {widget.winfo_reqwidth()}")
        found += cut_off(widget, root)
    return found


def real(name: str) -> Path:
    """A published snapshot; the test is skipped where there is none."""
    path = SNAPSHOTS / f"{name}.pickle"
    if not path.exists():
        pytest.skip(f"{SNAPSHOTS} is absent")
    return path


# What tests do again and again


def zoom_in(driver: Driver) -> Viewport:
    """The middle of the trace, so that there is room to go anywhere."""
    world = driver.state.world
    driver.state.go(
        Viewport(world.right * 0.4, world.right * 0.5, world.high * 0.2, world.high * 0.6)
    )
    driver.settle()
    return driver.state.view


def select_one(driver: Driver) -> None:
    x, y, _ = driver.pixel_with(lambda _: True)
    click(*driver.at(x, y))


def type_filter(text: str) -> None:
    key("slash")
    write(text)


def tab_of(driver: Driver) -> int:
    """Which tab is in front."""
    return int(driver.window.side._book.index("current"))  # type: ignore[no-untyped-call]
