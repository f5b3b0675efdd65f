"""The panel beside the tree: tabs, and what they tell of the module that is looked at.

What a tab tells is made aside, as it may take long; if the cursor has moved on by then, it is
dropped.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from threading import Event
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text
from textual import work
from textual.app import ComposeResult, RenderResult
from textual.containers import Vertical, VerticalScroll
from textual.events import Click, Resize
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from snapviewer.explorer.app.tabs import TABS, content_of
from snapviewer.explorer.app.waiting import waiting
from snapviewer.explorer.guarded import told
from snapviewer.explorer.subject import Subject
from snapviewer.explorer.view.outline import Item, shown

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer.explorer.measuring import Measurement

# Longer than a held key repeats, shorter than anyone notices.
SECONDS_BEFORE = 0.04
SECONDS_BETWEEN = 0.1
MEASURING = "Measuring every element"


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
        """Return the tabs that there is room for: number, first cell, title.

        Titles are as long as they may be; the first tabs give way if the chosen one is far behind.
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


class SidePanel(Vertical):
    """The tabs and what the chosen one tells."""

    DEFAULT_CSS = """
    SidePanel { background: $background; }
    SidePanel > #kept { height: 1; display: none; color: $warning; padding: 0 1; }
    SidePanel.-kept > #kept { display: block; }
    SidePanel > VerticalScroll {
        scrollbar-size-vertical: 1; scrollbar-gutter: stable; padding: 1 1 0 1;
    }
    SidePanel > VerticalScroll > Static { width: 100%; height: auto; }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 (Textual's name for it)
        super().__init__(id=id)
        self.number = 0
        self._subject: Subject | None = None
        self._item: Item | None = None
        self._timer: Timer | None = None
        self._measuring: Event | None = None
        self._measured: dict[int, Measurement] = {}

    def compose(self) -> ComposeResult:
        yield TabLine()
        yield Static("kept here · Space lets go", id="kept")
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
        """Show the tab of a title; tell whether there is one."""
        for number, tab in enumerate(TABS):
            if tab.name == title:
                self.choose(number)
                return True
        return False

    def show(self, subject: Subject, item: Item, *, is_kept: bool = False) -> None:
        """Tell of a module or a tensor; soon, if it is still the one then."""
        self.set_class(is_kept, "-kept")
        if self._item is item and self._subject is subject:
            return
        self.query_one(VerticalScroll).scroll_home(animate=False)
        self._subject, self._item = subject, item
        self._fill_soon()

    def scroll_lines(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def on_resize(self, _event: Resize) -> None:
        self._fill_soon()

    def measure(self) -> None:
        """Find statistics of what is told of, aside; moving on, or `cancel`, ends that."""
        if self._subject is not None and self._item is not None:
            if self._timer is not None:
                self._timer.stop()
            self._measure(self._subject, self._item)

    def cancel(self) -> bool:
        """Stop measuring; tell whether something was being measured."""
        if self._measuring is None:
            return False
        self._fill_soon()
        return True

    @work(exclusive=True, group="panel")
    async def _measure(self, subject: Subject, item: Item) -> None:
        loop, cancel = asyncio.get_running_loop(), Event()
        self._measuring = cancel
        body = self.query_one("#content", Static)
        body.update(waiting(MEASURING, 0, 0))
        due = time.monotonic() + SECONDS_BETWEEN

        def tell(done: int, total: int) -> None:
            nonlocal due
            if time.monotonic() >= due and not cancel.is_set():
                due = time.monotonic() + SECONDS_BETWEEN
                loop.call_soon_threadsafe(show, done, total)

        def show(done: int, total: int) -> None:
            if self._measuring is cancel:
                body.update(waiting(MEASURING, done, total))

        try:
            found = await asyncio.to_thread(measure, subject, item, progress=tell, cancel=cancel)
            self._measured[id(item)] = found
        except Exception as error:  # noqa: BLE001 (whatever goes wrong is told where it concerns)
            body.update(Text(f"Not measured: {shown(str(error))}"))
        else:
            self._fill_soon()
        finally:
            # Cancelled by the next worker of the group: the thread is to stop, too.
            cancel.set()
            self._measuring = None

    def _fill_soon(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(SECONDS_BEFORE, self._fill)

    @work(exclusive=True, group="panel")
    async def _fill(self) -> None:
        subject, item, name = self._subject, self._item, TABS[self.number].name
        body = self.query_one("#content", Static)
        width = self.query_one(VerticalScroll).scrollable_content_region.width
        if subject is None or item is None or not self.display or width < 1:
            return
        content = await asyncio.to_thread(_content, name, subject, item, width)
        measured = self._measured.get(id(item))
        if measured is not None and self.number == 0:
            from snapviewer.explorer.app.panels import statistics

            content = Group(statistics.content(measured, width), Text(), content)
        # A worker that is exclusive is cancelled before the next begins: this is the newest.
        body.update(content)


def measure(
    subject: Subject, item: Item, *, progress: Callable[[int, int], object], cancel: Event
) -> Measurement:
    """Measure; what that needs is imported in the thread that does it."""
    from snapviewer.explorer import measuring

    return measuring.measure(subject, item, progress=progress, cancel=cancel)


def _content(name: str, subject: Subject, item: Item, width: int) -> RenderableType:
    try:
        return content_of(name)(subject, item, width)
    # Whatever goes wrong is told where it concerns; a module's own code may even leave.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return Text(f"{name} cannot be shown: {told(error).removeprefix('raised ')}")
