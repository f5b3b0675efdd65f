"""The panel beside the tree: its tabs, its content, and the border that resizes it.

Content is made in a worker thread, as it may take long; if the cursor has moved on by then, it is
dropped. The modules that make it are imported there, too: that takes as long as the rest of the
start.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group
from rich.text import Text
from textual import work
from textual.app import ComposeResult, RenderResult
from textual.containers import Vertical, VerticalScroll
from textual.events import Click, MouseDown, MouseMove, MouseUp, Resize
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from snapviewer.explorer.explored_model import ExploredModel, Item
from snapviewer.explorer.safe_call import describe_error
from snapviewer.explorer.view.outline import display_name

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer.explorer.measuring import Measurement

# Longer than a held key repeats, shorter than anyone notices.
SECONDS_BEFORE = 0.04
SECONDS_BETWEEN = 0.1
_MEASURING = "Measuring every element"
_PROGRESS_CELLS = 30


class Tab(NamedTuple):
    """A panel's name, and shorter ones for narrow screens."""

    name: str
    short: str
    shortest: str


COMPARISON = "Comparison"
TABS = (
    Tab("Module Details", "Details", "Details"),
    Tab("Performance Stats", "Performance", "Perf"),
    Tab("Source Code", "Source", "Source"),
    Tab("Tensor Flow", "Flow", "Flow"),
    Tab("Attributes", "Attributes", "Attrs"),
    Tab(COMPARISON, "Compare", "Compare"),
)


def progress_text(words: str, done: int, total: int, *, is_centred: bool = False) -> Text:
    """Return a progress bar with a caption; without a total, the caption and an empty bar."""
    share = min(done / total, 1.0) if total else 0.0
    filled = round(_PROGRESS_CELLS * share)
    text = Text(f"{words} …\n\n", justify="center" if is_centred else "left")
    text.append("━" * filled, "blue").append("─" * (_PROGRESS_CELLS - filled), "dim")
    text.append(f" {share:4.0%}" if total else "     ")
    return text.append("\n\nEsc cancels", "dim")


class TabLine(Widget):
    """The titles of the tabs, on one line."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"tabs--on", "tabs--off"}  # noqa: RUF012 (Textual's type)
    DEFAULT_CSS = """
    TabLine { height: 1; color: $quiet; }
    TabLine > .tabs--on { color: $accent; text-style: bold underline; }
    TabLine > .tabs--off { color: $quiet; }
    """

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self) -> None:
        super().__init__()
        self._chosen = 0

    def choose(self, number: int) -> None:
        self._chosen = number
        self.refresh()

    def render(self) -> RenderResult:
        text = Text(no_wrap=True, overflow="ellipsis")
        for number, _, title in self._places():
            style = "tabs--on" if number == self._chosen else "tabs--off"
            text.append(" ")
            text.append(title, self.get_component_rich_style(style, partial=True))
            text.append(" ")
        return text

    def on_click(self, event: Click) -> None:
        for number, start, title in self._places():
            if start <= event.x < start + len(title) + 2:
                self.post_message(self.Chosen(number))

    def _places(self) -> list[tuple[int, int, str]]:
        """Return the tabs that fit: number, first cell, title.

        Titles are as long as possible; the first tabs are dropped if the chosen one does not fit.
        """
        room = self.size.width
        for titles in zip(*TABS, strict=True):
            if _cells(titles) <= room:
                break
        first = 0
        while first < self._chosen and _cells(titles[first : self._chosen + 1]) > room:
            first += 1
        return [
            (number, _cells(titles[first:number]), titles[number])
            for number in range(first, len(titles))
        ]


def _cells(titles: Sequence[str]) -> int:
    return sum(len(title) + 2 for title in titles)


class Splitter(Widget):
    """The border between the tree and the panel; it can be dragged."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Splitter { width: 1; height: 1fr; color: $grid; }
    Splitter.-horizontal { width: 1fr; height: 1; }
    Splitter:hover, Splitter.-dragged { color: $accent; }
    """

    class Moved(Message):
        """The border was dragged to a cell of the screen."""

        def __init__(self, x: int, y: int) -> None:
            super().__init__()
            self.x, self.y = x, y

    def set_horizontal(self, *, is_horizontal: bool) -> None:
        """Separate top from bottom instead of left from right, or back."""
        self.set_class(is_horizontal, "-horizontal")

    def render(self) -> RenderResult:
        if self.has_class("-horizontal"):
            return Text("─" * self.size.width, no_wrap=True)
        return Text("\n".join("│" * self.size.height))

    def on_mouse_down(self, event: MouseDown) -> None:
        event.stop()
        self.add_class("-dragged")
        self.capture_mouse()

    def on_mouse_up(self, _event: MouseUp) -> None:
        self.remove_class("-dragged")
        self.release_mouse()

    def on_mouse_move(self, event: MouseMove) -> None:
        if self.has_class("-dragged"):
            self.post_message(self.Moved(event.screen_x, event.screen_y))


class SidePanel(Vertical):
    """The tabs and the content of the chosen one."""

    DEFAULT_CSS = """
    SidePanel { background: $background; }
    SidePanel > #pinned { height: 1; display: none; color: $warning; padding: 0 1; }
    SidePanel.-pinned > #pinned { display: block; }
    SidePanel > VerticalScroll {
        scrollbar-size-vertical: 1; scrollbar-gutter: stable; padding: 1 1 0 1;
    }
    SidePanel > VerticalScroll > Static { width: 100%; height: auto; }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 (Textual's name for it)
        super().__init__(id=id)
        self.number = 0
        self._subject: ExploredModel | None = None
        self._item: Item | None = None
        self._timer: Timer | None = None
        self._measuring: Event | None = None
        self._measured: dict[int, Measurement] = {}

    def compose(self) -> ComposeResult:
        yield TabLine()
        yield Static("pinned · Space unpins", id="pinned")
        with VerticalScroll(can_focus=False):
            yield Static(id="content")

    @property
    def title(self) -> str:
        """The chosen tab's title."""
        return TABS[self.number].name

    def choose(self, number: int) -> None:
        """Show another tab."""
        self.number = number % len(TABS)
        self.query_one(TabLine).choose(self.number)
        self._fill_soon()

    def choose_by_title(self, title: str) -> bool:
        """Show the tab of a title; return whether there is one."""
        for number, tab in enumerate(TABS):
            if tab.name == title:
                self.choose(number)
                return True
        return False

    def show(self, explored: ExploredModel, item: Item, *, is_pinned: bool = False) -> None:
        """Show a module or a tensor, unless another one follows at once."""
        self.set_class(is_pinned, "-pinned")
        if self._item is item and self._subject is explored:
            return
        self.query_one(VerticalScroll).scroll_home(animate=False)
        self._subject, self._item = explored, item
        self._fill_soon()

    def scroll_lines(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def on_resize(self, _event: Resize) -> None:
        self._fill_soon()

    def measure(self) -> None:
        """Measure the shown item in a thread; moving on, or `cancel`, stops that."""
        if self._subject is not None and self._item is not None:
            if self._timer is not None:
                self._timer.stop()
            self._measure(self._subject, self._item)

    def cancel(self) -> bool:
        """Stop measuring; return whether something was being measured."""
        if self._measuring is None:
            return False
        self._fill_soon()
        return True

    @work(exclusive=True, group="panel")
    async def _measure(self, explored: ExploredModel, item: Item) -> None:
        loop, cancel = asyncio.get_running_loop(), Event()
        self._measuring = cancel
        body = self.query_one("#content", Static)
        body.update(progress_text(_MEASURING, 0, 0))
        due = time.monotonic() + SECONDS_BETWEEN

        def report(done: int, total: int) -> None:
            nonlocal due
            if time.monotonic() >= due and not cancel.is_set():
                due = time.monotonic() + SECONDS_BETWEEN
                loop.call_soon_threadsafe(show, done, total)

        def show(done: int, total: int) -> None:
            if self._measuring is cancel:
                body.update(progress_text(_MEASURING, done, total))

        try:
            found = await asyncio.to_thread(measure, explored, item, progress=report, cancel=cancel)
            self._measured[id(item)] = found
        except Exception as error:  # noqa: BLE001 (any failure is shown in the panel)
            body.update(Text(f"Not measured: {display_name(str(error))}"))
        else:
            self._fill_soon()
        finally:
            # If the next worker of the group cancels this one, the thread must stop, too.
            cancel.set()
            self._measuring = None

    def _fill_soon(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(SECONDS_BEFORE, self._fill)

    @work(exclusive=True, group="panel")
    async def _fill(self) -> None:
        explored, item, name = self._subject, self._item, TABS[self.number].name
        body = self.query_one("#content", Static)
        width = self.query_one(VerticalScroll).scrollable_content_region.width
        if explored is None or item is None or not self.display or width < 1:
            return
        content = await asyncio.to_thread(_content, name, explored, item, width)
        measured = self._measured.get(id(item))
        if measured is not None and self.number == 0:
            from snapviewer.explorer.app.panels import statistics

            content = Group(statistics.content(measured, width), Text(), content)
        # An exclusive worker is cancelled before the next begins: this is the newest.
        body.update(content)


def measure(
    explored: ExploredModel, item: Item, *, progress: Callable[[int, int], object], cancel: Event
) -> Measurement:
    """Measure; the imports that this needs happen in the worker thread."""
    from snapviewer.explorer import measuring

    return measuring.measure(explored, item, progress=progress, cancel=cancel)


def _content(name: str, explored: ExploredModel, item: Item, width: int) -> RenderableType:
    from snapviewer.explorer.app.panels import PANELS

    try:
        return PANELS[name](explored, item, width)
    # A module's own code may raise anything.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return Text(f"{name} cannot be shown: {describe_error(error)}")
