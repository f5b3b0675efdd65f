"""A table of any number of rows that creates only those on the screen.

The tree has as many items as fit into its height. Scrolling writes the texts of other rows into
them, so five million rows cost as much as fifty. A row is identified by its index. The marked rows
are one range, which Shift extends.
"""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from tkinter import font as tkfont
from tkinter import ttk
from typing import Literal

from snapviewer.gui.theme import TEXT, px
from snapviewer.gui.tips import Bubble

Rows = list[tuple[str, ...]]
_TIP_MS = 500
_WHEEL_ROWS = 3
_MAX_BARS = 500  # images that are kept
_BAR_WIDTH, _MIN_BAR_WIDTH = 56, 20  # pixels of a 96 dpi screen
_SHIFT, _CONTROL = 0x1, 0x4
_STEPS = {"Up": -1, "Down": 1}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, and a text that it is wide enough for.

    A column that `grows` takes the room that is left.
    """

    heading: str
    sample: str
    is_number: bool = False
    grows: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """The bar of a row: its length as a share of the column, its colour, and a text beside it."""

    share: float
    color: str
    text: str = ""


def do_nothing(_: int) -> None:
    """Do nothing with a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowHooks:
    """What a table calls with rows.

    Attributes:
        on_select: Called with the row that was selected.
        on_open: Called with the row that was double-clicked, or on which Return was pressed.
        on_heading: Called with the column whose heading was clicked.
        tag_of: Returns the tag of a row, given its texts; `set_tag` colours it.
        bar_of: Returns the bar of a row, which is drawn in a column before the others.
        bar_heading: The heading of that column; without one, bars have no text.
        tip_of: Returns the tip for a row and a column.
    """

    on_select: Callable[[int], None] = do_nothing
    on_open: Callable[[int], None] = do_nothing
    on_heading: Callable[[int], None] = do_nothing
    tag_of: Callable[[tuple[str, ...]], str] | None = None
    bar_of: Callable[[int], Bar] | None = None
    bar_heading: str = ""
    tip_of: Callable[[int, int], str] | None = None


class VirtualTable(ttk.Frame):
    """A table; `rows_of` returns the texts of the rows from one index up to another."""

    def __init__(
        self,
        parent: tk.Misc,
        columns: Sequence[Column],
        rows_of: Callable[[int, int], Rows],
        hooks: RowHooks,
    ) -> None:
        super().__init__(parent)
        self._rows_of = rows_of
        self._hooks = hooks
        self.count = 0
        self.first = 0
        self.row: int | None = None
        self._anchor: int | None = None
        self._is_due = False
        self._to_see: int | None = None
        # The row that was last brought into view and the first row before that, until one scrolls.
        self._saw: tuple[int, int] | None = None
        self._bars: dict[tuple[int, int, str], str] = {}
        self._tip = Bubble(self)
        self._tip_due = ""
        self._tip_at = (-1, -1)

        style = "Bars.Treeview" if hooks.bar_of else "Treeview"
        _style_cells(self)
        show: Literal["tree headings", "headings"] = "tree headings" if hooks.bar_of else "headings"
        self.tree = ttk.Treeview(self, show=show, selectmode="none", style=style, height=1)
        self._down = ttk.Scrollbar(self, orient="vertical", command=self._scroll)
        self._across = ttk.Scrollbar(self, orient="horizontal", command=self.tree.xview)
        self.tree.configure(xscrollcommand=self._show_across)
        self.tree.grid(row=0, column=0, sticky="nsew")
        self._down.grid(row=0, column=1, sticky="ns")
        self.columnconfigure(0, weight=1)
        self.rowconfigure(0, weight=1)
        self._bind()
        self.set_columns(columns)

    # Contents

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Replace the columns."""
        font, room = tkfont.nametofont(TEXT, self), px(self, 14)
        self.tree.configure(columns=[str(place) for place in range(len(columns))])
        if self._hooks.bar_of is not None:
            beside = self._beside_bar()
            width, least = (beside + px(self, bar) for bar in (_BAR_WIDTH, _MIN_BAR_WIDTH))
            self.tree.column("#0", width=width, minwidth=least, stretch=False)
            self.tree.heading("#0", text=self._hooks.bar_heading, anchor="w")
        for place, column in enumerate(columns):
            width = max(font.measure(column.sample), font.measure(column.heading)) + room
            anchor: Literal["e", "w"] = "e" if column.is_number else "w"
            least = width if column.grows else min(width, px(self, 40))
            self.tree.column(
                str(place), width=width, minwidth=least, anchor=anchor, stretch=column.grows
            )
            self.tree.heading(
                str(place), text=column.heading, anchor=anchor, command=self._headed(place)
            )

    def set_heading(self, place: int, text: str) -> None:
        self.tree.heading(str(place), text=text)

    def set_tag(self, tag: str, color: str) -> None:
        """Colour the text of rows with a tag."""
        self.tree.tag_configure(tag, foreground=color)

    def set_count(self, count: int) -> None:
        """Set the number of rows, and mark none."""
        self.count, self.row, self._anchor = count, None, None
        self.refresh()

    def to_top(self) -> None:
        """Show the first rows."""
        self.first, self._saw, self._to_see = 0, None, None
        self.refresh()

    def refresh(self) -> None:
        """Fill the rows again when idle, once for many calls."""
        self._hide_tip()
        if not self._is_due:
            self._is_due = True
            self.after_idle(self._fill)

    def mark(self, row: int | None) -> None:
        """Mark a row and bring it into view, or none; `on_select` is not called."""
        if row is not None and not 0 <= row < self.count:
            row = None
        if (row, row) != (self.row, self._anchor):
            self.row = self._anchor = row
            self._to_see = row
            self.refresh()

    def see(self, row: int) -> None:
        """Scroll as little as needed to show a row; one that is far away comes to the middle."""
        self._to_see = row
        self.refresh()

    @property
    def page(self) -> int:
        """The number of whole rows that fit."""
        return max(self._room() // self._row_height(), 1)

    @property
    def marked(self) -> range:
        """The marked rows."""
        if self.row is None or self._anchor is None:
            return range(0)
        return range(min(self.row, self._anchor), max(self.row, self._anchor) + 1)

    def mark_all(self) -> None:
        if self.count:
            self._anchor, self.row = 0, self.count - 1
            self.refresh()

    # Filling

    def _row_height(self) -> int:
        return max(int(ttk.Style(self).lookup("Treeview", "rowheight") or 20), 1)

    def _room(self) -> int:
        """Return the height of the area below the heading."""
        # Only the tree knows where the heading ends.
        regions = enumerate(self.tree.identify_region(1, y) for y in range(px(self, 60)))
        heading = next((y for y, one in regions if one not in ("heading", "separator")), 0)
        return max(self.tree.winfo_height() - heading, 0)

    def _fill(self) -> None:
        self._is_due = False
        if not self.winfo_exists():
            return
        page, fitting = self.page, -(-self._room() // self._row_height())
        if self._to_see is not None and fitting > 0:
            self._saw = self._to_see, self.first
            self.first = _first_to_see(self._to_see, self.first, page)
            self._to_see = None
        self.first = min(max(self.first, 0), max(self.count - page, 0))
        last = min(self.first + fitting, self.count)
        rows = self._rows_of(self.first, last) if last > self.first else []
        self._have_items(len(rows))
        if len(self._bars) > _MAX_BARS:
            self._drop_bars()
        marked = self.marked
        chosen = []
        for place, values in enumerate(rows):
            iid, row = str(place), self.first + place
            tag = self._hooks.tag_of(values) if self._hooks.tag_of is not None else ""
            self.tree.item(iid, values=values, tags=(tag,) if tag else ())
            if self._hooks.bar_of is not None:
                self._draw_bar(iid, self._hooks.bar_of(row))
            if row in marked:
                chosen.append(iid)
        self.tree.selection_set(chosen)
        self.tree.yview_moveto(0)
        self._show_down(last)

    def _have_items(self, count: int) -> None:
        """Create or delete items of the tree, which are named by their places."""
        items = len(self.tree.get_children())
        for place in range(items, count):
            self.tree.insert("", "end", iid=str(place))
        if items > count:
            self.tree.delete(*(str(place) for place in range(count, items)))

    def _draw_bar(self, iid: str, bar: Bar) -> None:
        # The longest bar fills the column, beside its text.
        room = max(int(self.tree.column("#0", "width")) - self._beside_bar(), px(self, 2))
        length, height = max(round(bar.share * room), px(self, 2)), px(self, 9)
        image = self._bars.get((length, room, bar.color))
        if image is None:
            # Not a PhotoImage: Tk fails if Python drops one on another thread.
            size = ("-width", room + px(self, 6), "-height", height)
            image = self.tk.call("image", "create", "photo", *size)
            self.tk.call(image, "put", bar.color, "-to", 0, 0, length, height)
            self._bars[length, room, bar.color] = image
        self.tree.item(iid, image=image, text=bar.text)

    def _beside_bar(self) -> int:
        """Return the width of the first column that is not the bar's: text and gaps."""
        if not self._hooks.bar_heading:
            return px(self, 8)
        return tkfont.nametofont(TEXT, self).measure("< 0.1%") + px(self, 16)

    def _drop_bars(self) -> None:
        if self._bars:
            self.tk.call("image", "delete", *self._bars.values())
            self._bars.clear()

    def _show_down(self, last: int) -> None:
        if self.count > self.page:
            end = min(self.first + self.page, last)
            self._down.set(self.first / self.count, end / self.count)
            self._down.grid()
        else:
            self._down.grid_remove()

    def _show_across(self, first: float, last: float) -> None:
        """Show the horizontal scroll bar only if there is something to scroll."""
        self._across.set(first, last)
        if float(first) <= 0 and float(last) >= 1:
            self._across.grid_remove()
        else:
            self._across.grid(row=1, column=0, sticky="ew")

    # Mouse and keys

    def _bind(self) -> None:
        tree = self.tree
        tree.bind("<Configure>", self._resize)
        tree.bind("<Destroy>", lambda _: self._drop_bars())
        tree.bind("<Button-1>", self._press)
        tree.bind("<ButtonRelease-1>", self._resize_column)
        tree.bind("<B1-Motion>", self._drag)
        tree.bind("<Double-Button-1>", self._open_at)
        tree.bind("<Return>", self._open_marked)
        # Home and End alone are for the timeline, whichever widget has the keyboard.
        for key in ("Up", "Down", "Prior", "Next", "Control-Home", "Control-End"):
            tree.bind(f"<{key}>", self._key)
        for key in ("Home", "End"):
            tree.bind(f"<{key}>", lambda _: None)
        # In a tree these keys fold and unfold; a table has nothing to fold.
        for key in ("Left", "Right"):
            tree.bind(f"<{key}>", self._sideways)
        for event, step in (("<Button-4>", -1), ("<Button-5>", 1)):
            tree.bind(event, self._wheel(step))
        tree.bind("<MouseWheel>", lambda event: self._wheel(-1 if event.delta > 0 else 1)(event))
        tree.bind("<Control-a>", self._mark_all)
        tree.bind("<Motion>", self._move)
        tree.bind("<Leave>", lambda _: self._hide_tip())

    def _resize(self, _: tk.Event[tk.Misc]) -> None:
        """Show as many rows as fit, and keep the row in view that was brought into view."""
        if self._saw is not None:
            self._to_see, self.first = self._saw
        self.refresh()

    def _resize_column(self, _: tk.Event[tk.Misc]) -> None:
        """Redraw the bars after their column may have been resized."""
        if self._hooks.bar_of is not None:
            self.refresh()

    def _row_at(self, y: int) -> int | None:
        iid = self.tree.identify_row(y)
        return self.first + int(iid) if iid else None

    def _is_cell(self, event: tk.Event[tk.Misc]) -> bool:
        return self.tree.identify_region(event.x, event.y) in ("cell", "tree", "nothing")

    def _press(self, event: tk.Event[tk.Misc]) -> str | None:
        self._hide_tip()
        if not self._is_cell(event):
            return None
        self.tree.focus_set()
        if (row := self._row_at(event.y)) is not None:
            self._choose(row, extends=bool(int(event.state) & _SHIFT))
        return "break"

    def _drag(self, event: tk.Event[tk.Misc]) -> None:
        """Mark the rows from the press to the pointer."""
        if self._anchor is None or not self._is_cell(event):
            return
        row = self._row_at(event.y)
        if row is not None and row != self.row:
            self.row = row
            self.refresh()

    def _open_at(self, event: tk.Event[tk.Misc]) -> str | None:
        if not self._is_cell(event):
            return None
        if (row := self._row_at(event.y)) is not None:
            self._hooks.on_open(row)
        return "break"

    def _open_marked(self, _: tk.Event[tk.Misc]) -> str:
        if self.row is not None:
            self._hooks.on_open(self.row)
        return "break"

    def _key(self, event: tk.Event[tk.Misc]) -> str:
        if not self.count:
            return "break"
        extends = bool(int(event.state) & _SHIFT)
        pages = {"Prior": -self.page, "Next": self.page}
        if event.keysym in ("Home", "End"):
            row = 0 if event.keysym == "Home" else self.count - 1
        elif self.row is None:
            row = self.first
        else:
            row = self.row + (_STEPS | pages)[event.keysym]
        self._choose(min(max(row, 0), self.count - 1), extends=extends)
        return "break"

    def _sideways(self, event: tk.Event[tk.Misc]) -> str:
        self.tree.xview_scroll(-1 if event.keysym == "Left" else 1, "units")
        return "break"

    def _wheel(self, step: int) -> Callable[[tk.Event[tk.Misc]], str]:
        def scroll(event: tk.Event[tk.Misc]) -> str:
            if int(event.state) & _SHIFT:
                self.tree.xview_scroll(step * _WHEEL_ROWS, "units")
            else:
                self._go_to(self.first + step * _WHEEL_ROWS)
            return "break"

        return scroll

    def _mark_all(self, _: tk.Event[tk.Misc]) -> str:
        self.mark_all()
        return "break"

    def _scroll(self, how: str, amount: str, unit: str = "") -> None:
        """Handle the scroll bar."""
        if how == "moveto":
            self._go_to(round(float(amount) * self.count))
        else:
            self._go_to(self.first + int(amount) * (self.page if unit == "pages" else 1))

    def _go_to(self, first: int) -> None:
        self._to_see = self._saw = None
        self.first = min(max(first, 0), max(self.count - self.page, 0))
        self.refresh()

    def _choose(self, row: int, *, extends: bool) -> None:
        self.row = row
        if not extends or self._anchor is None:
            self._anchor = row
        self.see(row)
        self._hooks.on_select(row)

    def _headed(self, place: int) -> Callable[[], None]:
        return lambda: self._hooks.on_heading(place)

    # Tips

    def _move(self, event: tk.Event[tk.Misc]) -> None:
        if self._hooks.tip_of is None:
            return
        row = self._row_at(event.y)
        name = self.tree.identify_column(event.x)
        at = (-1 if row is None else row, int(name[1:] or 0) - 1)
        if at == self._tip_at:
            return
        self._hide_tip()
        self._tip_at = at
        if min(at) >= 0:
            self._tip_due = self.after(_TIP_MS, self._show_tip, *at)

    def _show_tip(self, row: int, column: int) -> None:
        self._tip_due = ""
        if (
            self._hooks.tip_of is not None
            and row < self.count
            and (text := self._hooks.tip_of(row, column))
        ):
            x, y = self.winfo_pointerxy()
            self._tip.show(text, x + px(self, 12), y + px(self, 16), above=y - px(self, 8))

    def _hide_tip(self) -> None:
        if self._tip_due:
            self.after_cancel(self._tip_due)
        self._tip_due, self._tip_at = "", (-1, -1)
        self._tip.hide()


def _first_to_see(row: int, first: int, page: int) -> int:
    """Return the first row to show so that `row` is on the page.

    >>> [_first_to_see(row, 100, 10) for row in (105, 99, 110, 7, 500)]
    [100, 99, 101, 2, 495]
    """
    if first <= row < first + page:
        return first
    if first - 2 <= row <= first + page + 1:
        return row if row < first else row - page + 1
    return row - page // 2


def _style_cells(widget: tk.Misc) -> None:
    """Align cells with headings, and leave no room for folding before bars."""
    style = ttk.Style(widget)
    for name in ("Treeview.Cell", "Bars.Treeview.Cell"):
        # Tk adds four pixels, whatever the screen's density.
        style.configure(name, padding=(max(px(widget, 4) - 4, 0), 0))
    style.layout(
        "Bars.Treeview.Item",
        [
            (
                "Treeitem.padding",
                {
                    "sticky": "nswe",
                    "children": [
                        ("Treeitem.image", {"side": "left", "sticky": ""}),
                        ("Treeitem.text", {"side": "left", "sticky": ""}),
                    ],
                },
            )
        ],
    )
    style.configure("Bars.Treeview.Item", padding=(px(widget, 4), 0, 0, 0))
