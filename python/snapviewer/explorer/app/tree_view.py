"""The tree: a widget that draws only the lines on the screen."""

from __future__ import annotations

from rich.style import Style
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from snapviewer.explorer.app.keys import FOCUSED
from snapviewer.explorer.app.line import STYLES, Painter, RowOptions
from snapviewer.explorer.view.browser import TreeBrowser
from snapviewer.explorer.view.row_labels import RowData


class TreeView(ScrollView, can_focus=True):
    """Shows a `TreeBrowser`, and reports clicks."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {f"tree--{name}" for name in STYLES}  # noqa: RUF012 (Textual's own type)
    BINDINGS = [key.binding("app.") for key in FOCUSED]  # noqa: RUF012 (as above)
    DEFAULT_CSS = """
    TreeView {
        background: $background;
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
    }
    TreeView > .tree--cursor { background: $cursor; text-style: bold; }
    TreeView > .tree--same { background: $same; }
    TreeView > .tree--guide { color: $guide; }
    TreeView > .tree--arrow { color: $accent; }
    TreeView > .tree--name { color: $foreground; }
    TreeView > .tree--tensor { color: $quiet; }
    TreeView > .tree--type { color: $accent; }
    TreeView > .tree--guess { color: $accent; text-style: italic; }
    TreeView > .tree--arguments { color: $quiet; }
    TreeView > .tree--label { color: $foreground; }
    TreeView > .tree--note { color: $warning; text-style: italic; }
    TreeView > .tree--match { color: $background; background: $warning; }
    TreeView > .tree--bar { color: $accent; }
    TreeView > .tree--rest { color: $grid; }
    TreeView > .tree--share { color: $quiet; }
    TreeView > .tree--added { color: $good; text-style: bold; }
    TreeView > .tree--removed { color: $error; text-style: bold; }
    TreeView > .tree--changed { color: $warning; text-style: bold; }
    """

    class Chosen(Message):
        """A row was clicked; `is_folding` if it is to be folded or unfolded."""

        def __init__(self, row: int, *, is_folding: bool) -> None:
            super().__init__()
            self.row = row
            self.is_folding = is_folding

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 (Textual's name for it)
        super().__init__(id=id)
        self._browser: TreeBrowser | None = None
        self._painter: Painter | None = None
        self._styles: dict[str, Style] | None = None
        self._options = RowOptions()
        self._data = RowData()

    def show(self, browser: TreeBrowser, options: RowOptions, data: RowData) -> None:
        """Draw the rows, with the cursor in sight."""
        self._browser, self._options, self._data = browser, options, data
        self._painter = None
        self._measure()
        self._scroll_to_cursor()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, base = self.scrollable_content_region.width, self.rich_style
        row = self.scroll_offset.y + y
        browser = self._browser
        if browser is None or row >= len(browser.rows.places):
            return Strip.blank(width, base)
        text = self.painter.line(row, width)
        strip = Strip(text.render(self.app.console), width)
        return strip.apply_style(base).adjust_cell_length(width, base)

    @property
    def painter(self) -> Painter:
        """Draws the rows of the current view."""
        if self._painter is None:
            assert self._browser is not None
            if self._styles is None:
                self._styles = {
                    name: self.get_component_rich_style(f"tree--{name}", partial=True)
                    for name in STYLES
                }
            self._painter = Painter(self._browser, self._options, self._data, self._styles)
        return self._painter

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles = self._painter = None

    def on_resize(self, _event: Resize) -> None:
        self._measure()
        self._scroll_to_cursor()

    def _scroll_to_cursor(self) -> None:
        if self._browser is not None:
            self.scroll_to_region(
                Region(0, self._browser.row, 1, 1), animate=False, force=True, x_axis=False
            )

    def _measure(self) -> None:
        if self._browser is not None:
            width = self.scrollable_content_region.width
            self.virtual_size = Size(width, len(self._browser.rows.places))

    def on_click(self, event: Click) -> None:
        if self._browser is None:
            return
        offset = event.get_content_offset(self)
        if offset is None:
            return
        row = self.scroll_offset.y + offset.y
        if row < len(self._browser.rows.places):
            is_arrow = abs(offset.x - self.painter.arrow_cell(row)) <= 1
            is_folding = event.chain == 2 if not is_arrow else event.chain <= 2
            self.post_message(self.Chosen(row, is_folding=is_folding))
