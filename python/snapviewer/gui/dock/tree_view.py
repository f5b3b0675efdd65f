"""The call tree as an icicle: boxes and letters drawn by the core, a tip beside the pointer.

Only the rows in view are drawn, when Tk is idle: of many moves of the cursor, the newest is drawn.
"""

from __future__ import annotations

import tkinter as tk
from tkinter import font as tkfont
from tkinter import ttk

from snapviewer import Icicle, Image, Tree
from snapviewer.gui.plot.surface import make_surface
from snapviewer.gui.state import State
from snapviewer.gui.theme import SMALL, TEXT, palette_of, px
from snapviewer.gui.tips import Tip
from snapviewer.report.call_tree.names import format_weight, node_text
from snapviewer.report.call_tree.text import tooltip
from snapviewer.report.picture.canvas import text_coverage
from snapviewer.report.picture.options import core_color

_WHEEL_ROWS = 3
_NO_FILE = "Open a file to see its call tree."
_WAITING = "making the call tree …"
_NOTHING = "Nothing is alive here."


class TreeView(ttk.Frame):
    """The icicle of the state's call tree."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent, style="Plot.TFrame")
        self._state = state
        self.top = 0
        self.icicle: Icicle | None = None
        self.image: Image | None = None
        self._tree: Tree | None = None
        self._due: str | None = None
        self.surface = make_surface(self)
        self._bar = ttk.Scrollbar(self, orient="vertical", command=self._scrolled)
        self.surface.widget.grid(row=0, column=0, sticky="nsew")
        self._bar.grid(row=0, column=1, sticky="ns")
        self.columnconfigure(0, weight=1)
        self.rowconfigure(0, weight=1)
        self._empty = tk.Label(self, font=TEXT, borderwidth=0)
        self._tip = Tip(self.surface.widget)
        self._bind()
        state.on(self._reveal, "selection")
        state.on(
            self.redraw_soon,
            *("cursor", "tree", "look", "selection", "filter", "timeline", "device", "panes"),
        )
        state.on(self._view_changed, "view")

    def _bind(self) -> None:
        widget = self.surface.widget
        widget.bind("<Configure>", lambda _: self.redraw_soon(), add=True)
        tag = f"mouse of {self}"
        for part in (widget, *self.surface.parts):
            part.bindtags((tag, *part.bindtags()))
        self._tip.label.bindtags((tag,))
        widget.bind_class(tag, "<Motion>", self._hover)
        widget.bind_class(tag, "<Leave>", lambda _: self._tip.hide())
        widget.bind_class(tag, "<Button-1>", self._click)
        widget.bind_class(tag, "<Double-Button-1>", self._focus)
        widget.bind_class(tag, "<Button-3>", lambda _: self._state.call_tree.leave_focus())
        widget.bind_class(tag, "<Button-4>", lambda event: self._wheel(1))
        widget.bind_class(tag, "<Button-5>", lambda event: self._wheel(-1))
        widget.bind_class(tag, "<MouseWheel>", lambda event: self._wheel(event.delta))

    # Drawing

    @property
    def row(self) -> int:
        """The height of a row on this screen."""
        return tkfont.nametofont(SMALL, self).metrics("linespace") + px(self, 5)

    @property
    def _size(self) -> tuple[int, int]:
        widget = self.surface.widget
        return widget.winfo_width(), widget.winfo_height()

    def _view_changed(self) -> None:
        if self._state.call_tree.measure != "alive":
            self.redraw_soon()

    def redraw_soon(self) -> None:
        if self._due is None:
            self._due = self.after_idle(self._redraw_now)

    def _redraw_now(self) -> None:
        self._due = None
        self.redraw()

    def redraw(self) -> None:
        """Draw the rows in view."""
        state, (width, height) = self._state, self._size
        if not state.is_docked("tree") or min(width, height) < 2:
            return
        shown = state.call_tree
        tree = self._tree = shown.tree()
        self._explain()
        if tree is None:
            self.icicle = None
            self._bar.set(0, 1)
            return
        self.icicle = tree.icicle(width=width, row=self.row, focus=shown.focus)
        self.top = max(min(self.top, self.icicle.height - height), 0)
        found = shown.found()
        self.image = self.icicle.image(
            top=self.top,
            height=height,
            color=core_color(state.look.color),
            theme=state.look.theme,
            dim=state.filter_mask(),
            selected=shown.selected,
            found=None if found is None else found[0],
            letters=self._letters(tree, self.icicle, height),
            previous=self.image,
        )
        self.surface.show(self.image, ())
        whole = max(self.icicle.height, height)
        self._bar.set(self.top / whole, (self.top + height) / whole)

    def _letters(
        self, tree: Tree, icicle: Icicle, height: int
    ) -> list[tuple[int, int, int, bytes]]:
        """Return the names of the boxes that have room for some letters."""
        gap, size = px(self, 4), px(self, 12)
        letters = []
        for index, x, y, width in icicle.boxes(least=px(self, 34), top=self.top, height=height):
            node = tree.node(index)
            text = f"{node_text(node)} · {format_weight(tree, node.weight)}"
            wide, tall, coverage = text_coverage(text, size, width - 2 * gap)
            if wide:
                letters.append((x + gap, y - self.top + (self.row - tall) // 2, wide, coverage))
        return letters

    def _explain(self) -> None:
        """Cover the picture with a word where there is no tree."""
        state, colors = self._state, palette_of(self._state.look.theme)
        text = ""
        if state.trace is None:
            text = _NO_FILE
        elif self._tree is None:
            text = state.call_tree.error or _WAITING
        elif not self._tree.count:
            text = _NOTHING
        if not text:
            self._empty.place_forget()
            return
        self._empty.configure(text=text, background=colors.background, foreground=colors.secondary)
        self._empty.place(x=0, y=0, relwidth=1.0, relheight=1.0)
        self._empty.lift()

    # Scrolling

    def scroll_to(self, top: int) -> None:
        """Show what is below a height of the icicle."""
        if self.icicle is not None:
            top = max(min(top, self.icicle.height - self._size[1]), 0)
            if top != self.top:
                self.top = top
                self.redraw_soon()

    def _scrolled(self, what: str, amount: str, unit: str = "") -> None:
        """Handle the scroll bar, as Tk calls it."""
        if self.icicle is None:
            return
        if what == "moveto":
            self.scroll_to(round(float(amount) * self.icicle.height))
        else:
            step = self._size[1] if unit == "pages" else self.row
            self.scroll_to(self.top + int(amount) * step)

    def _wheel(self, step: int) -> None:
        self._tip.hide()
        self.scroll_to(self.top - (1 if step > 0 else -1) * _WHEEL_ROWS * self.row)

    def _reveal(self) -> None:
        """Scroll to the selected node if it is not in view."""
        tree, node = self._tree, self._state.call_tree.selected
        if tree is None or node is None or not self._state.is_docked("tree"):
            return
        top, height = tree.node(node).depth * self.row, self._size[1]
        if not self.top <= top <= self.top + height - self.row:
            self.scroll_to(top - height // 2)

    # The mouse

    def node_at(self, x: int, y: int) -> int | None:
        """Return the node at a pixel."""
        if self.icicle is None or x < 0 or y < 0:
            return None
        return self.icicle.at(x, self.top + y)

    def _at(self, event: tk.Event[tk.Misc]) -> tuple[int, int]:
        widget = self.surface.widget
        return event.x_root - widget.winfo_rootx(), event.y_root - widget.winfo_rooty()

    def _hover(self, event: tk.Event[tk.Misc]) -> None:
        x, y = self._at(event)
        node = self.node_at(x, y)
        if node is None or self._tree is None:
            self._tip.hide()
        else:
            text = "\n".join(tooltip(self._tree, self._tree.node(node)))
            self._tip.show(text, x, y, palette_of(self._state.look.theme))

    def _click(self, event: tk.Event[tk.Misc]) -> None:
        node = self.node_at(*self._at(event))
        if node is not None:
            self._state.call_tree.select(node)

    def _focus(self, event: tk.Event[tk.Misc]) -> None:
        node = self.node_at(*self._at(event))
        if node is not None:
            self._state.call_tree.set_focus(node)
