"""Draws one row of the tree.

Names are untrusted: they are never parsed as markup, and wide characters take two cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from snapviewer.explorer.tree import ModuleNode
from snapviewer.explorer.view.browser import TreeBrowser
from snapviewer.explorer.view.outline import DiffMark, display_name
from snapviewer.explorer.view.row_labels import (
    ROW_LABELS,
    RowData,
    notes_on,
    sort_value,
    title_parts,
)
from snapviewer.explorer.view.rows import can_unfold, shown_children
from snapviewer.explorer.view.search import highlights
from snapviewer.text.units import format_share

BAR_CELLS = 8
PERCENT_CELLS = 8  # " 100.0 %"
SORT_VALUE_CELLS = 10  # " 935.24ms", " 1,023 KiB"
MIN_WIDTH_WITH_PERCENT, MIN_WIDTH_WITH_BARS = 44, 66
MAX_ALIGNED = 300  # siblings that are measured for the widths of columns
STYLES = tuple(
    "cursor same guide arrow name tensor type guess arguments label note "  # noqa: SIM905 (short)
    "match bar rest share added removed changed".split()
)
_DIFF_STYLES = {"+": "added", "-": "removed", "~": "changed"}
_NO_MARK = DiffMark(" ")


@dataclass(frozen=True, slots=True)
class RowOptions:
    """The labels of rows in order; whether siblings are aligned; whether shares are shown."""

    labels: tuple[str, ...] = ()
    is_aligned: bool = False
    has_bars: bool = True


class Painter:
    """Draws rows of one view; replaced when the view, the labels or the colours change."""

    def __init__(
        self,
        browser: TreeBrowser,
        options: RowOptions,
        data: RowData,
        styles: Mapping[str, Style],
    ) -> None:
        self._browser = browser
        self._options = options
        self._data = data
        self._styles = styles
        self._marks = browser.outline.diff_marks
        self._matches = browser.view.filter.matches if browser.view.filter else frozenset()
        chosen = browser.item
        self._type = chosen.type_name if isinstance(chosen, ModuleNode) else ""
        self._widths: dict[int, Sequence[int]] = {}

    def line(self, row: int, width: int) -> Text:
        """Draw a row of a width in cells."""
        browser, styles = self._browser, self._styles
        place = browser.rows.places[row]
        is_cursor = row == browser.row
        text = Text("▌" if is_cursor else " ", styles["arrow"], no_wrap=True, end="")
        if self._marks is not None:
            mark = self._marks.get(place, _NO_MARK)
            is_own = mark.sign in _DIFF_STYLES and not mark.is_inside
            text.append(f"{mark.sign} ", styles[_DIFF_STYLES[mark.sign] if is_own else "guide"])
        text.append_text(self._row(row, place))
        right = self._sort_value(place, width)
        if self._options.has_bars:
            right.append_text(self._share(place, width))
        text.truncate(width - right.cell_len, overflow="ellipsis", pad=True)
        text.append_text(right)
        text.truncate(width, pad=True)
        if is_cursor:
            # Below the other styles: matches keep their own background.
            text.stylize_before(styles["cursor"])
        elif self._is_same(place):
            text.stylize_before(styles["same"])
        return text

    def _is_same(self, place: int) -> bool:
        """Return whether a row has the class of the module under the cursor."""
        item = self._browser.outline.items[place]
        return isinstance(item, ModuleNode) and item.type_name == self._type != ""

    def arrow_cell(self, row: int) -> int:
        """Return the cell of a row's arrow."""
        before = 1 if self._marks is None else 3
        return before + len(self._browser.rows.guides[row])

    def _row(self, row: int, place: int) -> Text:
        browser, styles = self._browser, self._styles
        text = Text(browser.rows.guides[row], styles["guide"])
        if can_unfold(browser.outline, browser.view, place):
            text.append("▾ " if browser.view.is_unfolded(place) else "▸ ", styles["arrow"])
        else:
            text.append("─ " if place else "  ", styles["guide"])
        title = self._title(place)
        text.append_text(title)
        if self._marks is not None and place in self._marks:
            mark = self._marks[place]
            text.append(
                f"  {display_name(mark.words)}" if mark.words else "",
                styles[_DIFF_STYLES[mark.sign]],
            )
        labels = self._labels(place)
        parent = browser.outline.parents[place]
        if self._options.is_aligned and parent >= 0:
            widths = self._aligned(parent)
            gap = widths[0] - cell_len(title.plain)
            for label, column in zip(labels, widths[1:], strict=True):
                if label:
                    text.append(" " * (max(gap, 0) + 2))
                    text.append(label, styles["label"])
                    gap = column - cell_len(label)
                elif column:
                    gap += column + 2
            text.append_text(self._notes(place))
        else:
            # Notes come early, where they are not cut off.
            texts = [label for label in labels if label]
            for label in texts[:1]:
                text.append(f" {label}" if label[0] == "[" else f"  {label}", styles["label"])
            text.append_text(self._notes(place))
            for label in texts[1:]:
                text.append(f"  {label}", styles["label"])
        return text

    def _title(self, place: int) -> Text:
        item, styles = self._browser.outline.items[place], self._styles
        name, type_name, arguments = title_parts(item, self._browser.outline.tree.name)
        is_module = isinstance(item, ModuleNode)
        text = Text(name, styles["name" if is_module else "tensor"])
        begin = len(text)
        if type_name:
            text.append(": " if name else "", styles["guide"])
            begin = len(text)
            is_guessed = isinstance(item, ModuleNode) and item.is_type_guessed
            text.append(type_name, styles["guess" if is_guessed else "type"])
            if arguments:
                text.append(f"({arguments})", styles["arguments"])
        if place in self._matches:
            in_name, in_type = highlights(self._browser.found.query, item)
            for low, high in in_name:
                text.stylize(styles["match"], low, high)
            for low, high in in_type:
                text.stylize(styles["match"], begin + low, begin + high)
        return text

    def _notes(self, place: int) -> Text:
        notes = notes_on(self._browser.outline.items[place])
        return Text("".join(f"  {display_name(note)}" for note in notes), self._styles["note"])

    def _labels(self, place: int) -> list[str]:
        item = self._browser.outline.items[place]
        return [ROW_LABELS[name].text(item, place, self._data) for name in self._options.labels]

    def _aligned(self, parent: int) -> Sequence[int]:
        """Return the widths of the titles and of each label among siblings."""
        if parent not in self._widths:
            browser = self._browser
            siblings = shown_children(browser.outline, browser.view, parent)[:MAX_ALIGNED]
            rows = [[self._title(place).plain, *self._labels(place)] for place in siblings]
            self._widths[parent] = [
                max(map(cell_len, column)) for column in zip(*rows, strict=True)
            ]
        return self._widths[parent]

    def _sort_value(self, place: int, width: int) -> Text:
        """Return the time or memory that rows are sorted by, in a column that is never cut off."""
        browser = self._browser
        item = browser.outline.items[place]
        value = sort_value(item, browser.view.order, browser.seconds)
        if value is None or width < MIN_WIDTH_WITH_PERCENT:
            return Text()
        return Text(f"{value:>{SORT_VALUE_CELLS}}", self._styles["label"])

    def _share(self, place: int, width: int) -> Text:
        """Return a row's share of the model as a bar and in percent, as far as they fit."""
        share, styles = self._browser.share(place) or 0.0, self._styles
        text = Text()
        if width >= MIN_WIDTH_WITH_BARS:
            halves = round(2 * BAR_CELLS * min(share, 1.0))
            filled = "━" * (halves // 2) + "╸" * (halves % 2)
            rest = BAR_CELLS - len(filled)
            text.append(" ").append(filled, styles["bar"])
            text.append(("─" if share else " ") * rest, styles["rest"])
        if width >= MIN_WIDTH_WITH_PERCENT:
            percent = format_share(share, 1.0) if share else ""
            text.append(f"{percent:>{PERCENT_CELLS}}", styles["share"])
        return text
