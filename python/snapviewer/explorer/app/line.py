"""One row of the tree as it is drawn.

Names are strangers' words: they are never read as markup, and wide characters take two cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from snapviewer.explorer.tree import ModuleNode
from snapviewer.explorer.view.browsing import Browsing
from snapviewer.explorer.view.marks import Mark
from snapviewer.explorer.view.outline import shown
from snapviewer.explorer.view.pieces import PIECES, Facts, notes_on, words_of
from snapviewer.explorer.view.rows import can_unfold, shown_children
from snapviewer.explorer.view.search import highlights

BAR_CELLS = 8
PERCENT_CELLS = 8  # " 100.0 %"
NARROWEST_WITH_PERCENT, NARROWEST_WITH_BARS = 44, 66
MOST_ALIGNED = 300  # siblings that are looked at for the widths of columns
STYLES = (
    *(
        "cursor",
        "same",
        "guide",
        "arrow",
        "name",
        "tensor",
        "type",
        "guess",
        "arguments",
        "piece",
        "note",
    ),
    *("match", "bar", "rest", "share", "added", "removed", "changed"),
)
MARKS = {"+": "added", "-": "removed", "~": "changed"}
_NO_MARK = Mark(" ")


@dataclass(frozen=True, slots=True)
class Labels:
    """Which pieces rows have, in order; whether siblings' are aligned; whether shares are shown."""

    pieces: tuple[str, ...] = ()
    is_aligned: bool = False
    has_bars: bool = True


class Painter:
    """Draws rows of one view; made anew when the view, the labels or the colours change."""

    def __init__(
        self,
        browsing: Browsing,
        labels: Labels,
        facts: Facts,
        styles: Mapping[str, Style],
        marks: Mapping[int, Mark] | None = None,
    ) -> None:
        self._browsing = browsing
        self._labels = labels
        self._facts = facts
        self._styles = styles
        self._marks = marks
        self._matches = browsing.view.filter.matches if browsing.view.filter else frozenset()
        chosen = browsing.item
        self._type = chosen.type_name if isinstance(chosen, ModuleNode) else ""
        self._widths: dict[int, Sequence[int]] = {}

    def line(self, row: int, width: int) -> Text:
        """Draw a row, as wide as asked."""
        browsing, styles = self._browsing, self._styles
        place = browsing.rows.places[row]
        is_cursor = row == browsing.row
        text = Text("▌" if is_cursor else " ", styles["arrow"], no_wrap=True, end="")
        if self._marks is not None:
            mark = self._marks.get(place, _NO_MARK)
            is_own = mark.sign in MARKS and not mark.is_inside
            text.append(f"{mark.sign} ", styles[MARKS[mark.sign] if is_own else "guide"])
        text.append_text(self._label(row, place))
        share = self._share(place, width) if self._labels.has_bars else Text()
        text.truncate(width - share.cell_len, overflow="ellipsis", pad=True)
        text.append_text(share)
        text.truncate(width, pad=True)
        if is_cursor:
            # Before the rest: what was found keeps its own background.
            text.stylize_before(styles["cursor"])
        elif self._is_same(place):
            text.stylize_before(styles["same"])
        return text

    def _is_same(self, place: int) -> bool:
        """Tell whether a row is a module of the class of the one under the cursor."""
        item = self._browsing.outline.items[place]
        return isinstance(item, ModuleNode) and item.type_name == self._type != ""

    def arrow_cell(self, row: int) -> int:
        """Tell in which cell of a row its arrow is."""
        before = 1 if self._marks is None else 3
        return before + len(self._browsing.rows.guides[row])

    def _label(self, row: int, place: int) -> Text:
        browsing, styles = self._browsing, self._styles
        text = Text(browsing.rows.guides[row], styles["guide"])
        if can_unfold(browsing.outline, browsing.view, place):
            text.append("▾ " if browsing.view.is_unfolded(place) else "▸ ", styles["arrow"])
        else:
            text.append("─ " if place else "  ", styles["guide"])
        title = self._title(place)
        text.append_text(title)
        if self._marks is not None and place in self._marks:
            mark = self._marks[place]
            text.append(f"  {shown(mark.words)}" if mark.words else "", styles[MARKS[mark.sign]])
        pieces = self._pieces(place)
        parent = browsing.outline.parents[place]
        if self._labels.is_aligned and parent >= 0:
            widths = self._aligned(parent)
            gap = widths[0] - cell_len(title.plain)
            for piece, column in zip(pieces, widths[1:], strict=True):
                if piece:
                    text.append(" " * (max(gap, 0) + 2))
                    text.append(piece, styles["piece"])
                    gap = column - cell_len(piece)
                elif column:
                    gap += column + 2
            text.append_text(self._notes(place))
        else:
            # What is special comes early, where there is room for it.
            said = [piece for piece in pieces if piece]
            for piece in said[:1]:
                text.append(f" {piece}" if piece[0] == "[" else f"  {piece}", styles["piece"])
            text.append_text(self._notes(place))
            for piece in said[1:]:
                text.append(f"  {piece}", styles["piece"])
        return text

    def _title(self, place: int) -> Text:
        item, styles = self._browsing.outline.items[place], self._styles
        name, type_name, arguments = words_of(item, self._browsing.outline.tree.name)
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
            in_name, in_type = highlights(self._browsing.found.query, item)
            for low, high in in_name:
                text.stylize(styles["match"], low, high)
            for low, high in in_type:
                text.stylize(styles["match"], begin + low, begin + high)
        return text

    def _notes(self, place: int) -> Text:
        notes = notes_on(self._browsing.outline.items[place])
        return Text("".join(f"  {shown(note)}" for note in notes), self._styles["note"])

    def _pieces(self, place: int) -> list[str]:
        item = self._browsing.outline.items[place]
        return [PIECES[name].text(item, place, self._facts) for name in self._labels.pieces]

    def _aligned(self, parent: int) -> Sequence[int]:
        """Return how wide the title and each piece is among siblings."""
        if parent not in self._widths:
            browsing = self._browsing
            siblings = shown_children(browsing.outline, browsing.view, parent)[:MOST_ALIGNED]
            rows = [[self._title(place).plain, *self._pieces(place)] for place in siblings]
            self._widths[parent] = [
                max(map(cell_len, column)) for column in zip(*rows, strict=True)
            ]
        return self._widths[parent]

    def _share(self, place: int, width: int) -> Text:
        """Say which part of the whole a row is, as far as there is room for it."""
        share, styles = self._browsing.share(place) or 0.0, self._styles
        text = Text()
        if width >= NARROWEST_WITH_BARS:
            halves = round(2 * BAR_CELLS * min(share, 1.0))
            filled = "━" * (halves // 2) + "╸" * (halves % 2)
            rest = BAR_CELLS - len(filled)
            text.append(" ").append(filled, styles["bar"])
            text.append(("─" if share else " ") * rest, styles["rest"])
        if width >= NARROWEST_WITH_PERCENT:
            said = "< 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"
            text.append(f"{said if share else '':>{PERCENT_CELLS}}", styles["share"])
        return text
