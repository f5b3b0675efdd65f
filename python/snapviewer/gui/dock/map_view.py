"""The rows of the memory map: pixels by the core, addresses beside them, headings over them.

Only the rows in view are drawn, when Tk is idle: of many moves of the cursor, the newest is drawn.
"""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable
from tkinter import font as tkfont
from tkinter import ttk

from snapviewer import Block, Domain, Image, MemoryMap
from snapviewer import State as Memory
from snapviewer.gui.labels import lifetime_label
from snapviewer.gui.plot.axes import Axis, LabelWidth
from snapviewer.gui.plot.surface import make_surface
from snapviewer.gui.replay import RowSizes
from snapviewer.gui.state import State
from snapviewer.gui.theme import BOLD, SMALL, TEXT, palette_of, px
from snapviewer.gui.tips import Tip
from snapviewer.report.picture.options import core_color
from snapviewer.report.snapshot.domains import domain_name
from snapviewer.text.units import count_of, format_bytes

_WHEEL_ROWS = 3
_WAITING = "replaying the allocator …"


class MapView(ttk.Frame):
    """The map at the cursor. `show_scale` is called with the bytes of a row after each frame."""

    def __init__(
        self, parent: tk.Misc, state: State, show_scale: Callable[[int | None], None]
    ) -> None:
        super().__init__(parent, style="Plot.TFrame")
        self._state, self._show_scale = state, show_scale
        self.top = 0
        self.map: MemoryMap | None = None
        self.image: Image | None = None
        self._due: str | None = None
        self._labels = _Addresses(self, state, LabelWidth(self))
        self.surface = make_surface(self)
        self._bar = ttk.Scrollbar(self, orient="vertical", command=self._scrolled)
        self._labels.grid(row=0, column=0, sticky="ns")
        self.surface.widget.grid(row=0, column=1, sticky="nsew")
        self._bar.grid(row=0, column=2, sticky="ns")
        self.columnconfigure(1, weight=1)
        self.rowconfigure(0, weight=1)
        self._headings: list[_Heading] = []
        self._empty = tk.Label(self, font=TEXT, borderwidth=0)
        self._tip = Tip(self.surface.widget)
        self._bind()
        state.on(self._reveal, "selection")
        state.on(
            self.redraw_soon,
            *(
                "cursor",
                "replay",
                "map",
                "look",
                "selection",
                "filter",
                "marked",
                "device",
                "panes",
            ),
        )

    def _bind(self) -> None:
        widget = self.surface.widget
        widget.bind("<Configure>", lambda _: self.redraw_soon(), add=True)
        tag = f"mouse of {self}"
        for part in (widget, *self.surface.parts):
            part.bindtags((tag, *part.bindtags()))
        for other in (self._tip.label, self._labels):
            other.bindtags((tag,))
        self._tag = tag
        widget.bind_class(tag, "<Motion>", self._hover)
        widget.bind_class(tag, "<Leave>", lambda _: self._tip.hide())
        widget.bind_class(tag, "<Button-1>", self._click)
        widget.bind_class(tag, "<Button-4>", lambda event: self._wheel(event, 1))
        widget.bind_class(tag, "<Button-5>", lambda event: self._wheel(event, -1))
        widget.bind_class(tag, "<MouseWheel>", lambda event: self._wheel(event, event.delta))

    # Drawing

    @property
    def sizes(self) -> RowSizes:
        """The measures of the rows on this screen."""
        line = tkfont.nametofont(SMALL, self).metrics("linespace")
        return RowSizes(max(line - px(self, 2), px(self, 12)), px(self, 3), line + px(self, 8))

    @property
    def _size(self) -> tuple[int, int]:
        widget = self.surface.widget
        return widget.winfo_width(), widget.winfo_height()

    def redraw_soon(self) -> None:
        if self._due is None:
            self._due = self.after_idle(self._redraw_now)

    def _redraw_now(self) -> None:
        self._due = None
        self.redraw()

    def redraw(self) -> None:
        """Draw the rows in view."""
        state, size = self._state, self._size
        if not state.is_docked("map") or min(size) < 2:
            return
        self.map = state.replayed.layout(size, self.sizes)
        self._explain()
        self._show_scale(state.replayed.row_bytes_of(size, self.sizes))
        if self.map is None:
            self._labels.show([])
            self._place_headings([])
            self._bar.set(0, 1)
            return
        height = size[1]
        self.top = max(min(self.top, self.map.height - height), 0)
        self.image = self.map.image(
            top=self.top,
            height=height,
            color=core_color(state.look.color),
            theme=state.look.theme,
            dim=state.dimmed(),
            selected=state.selection,
            previous=self.image,
        )
        self.surface.show(self.image, ())
        self._place_labels(height)
        whole = max(self.map.height, height)
        self._bar.set(self.top / whole, (self.top + height) / whole)

    def _explain(self) -> None:
        """Cover the picture with a word where there is no map."""
        replayed, colors = self._state.replayed, palette_of(self._state.look.theme)
        if self.map is not None or self._state.trace is None:
            self._empty.place_forget()
            return
        text = "" if replayed.note() else _WAITING
        self._empty.configure(text=text, background=colors.background, foreground=colors.secondary)
        self._empty.place(x=0, y=0, relwidth=1.0, relheight=1.0)
        self._empty.lift()

    def _place_labels(self, height: int) -> None:
        memory = self._state.replayed.memory()
        assert memory is not None
        assert self.map is not None
        labels, headings = [], []
        middle = self.sizes.row // 2
        scale = self._state.replayed.row_bytes_of(self._size, self.sizes) or 0
        addresses, sizes = memory.segment_address, memory.segment_size
        for top, kind, place, part in self.map.rows(self.top, self.top + height):
            y = top - self.top
            if kind == "domain":
                headings.append((y, memory.domains[place]))
            elif part == 0:
                size = format_bytes(int(sizes[place]))
                labels.append((y + middle, f"0x{int(addresses[place]):x}", size))
            else:
                labels.append((y + middle, "", f"+{format_bytes(part * scale)}"))
        self._labels.show(labels)
        self._place_headings(headings)

    def _place_headings(self, headings: list[tuple[int, Domain]]) -> None:
        while len(self._headings) < len(headings):
            self._headings.append(_Heading(self, self._tag))
        colors = palette_of(self._state.look.theme)
        right = self._bar.winfo_width()
        for heading, (y, domain) in zip(self._headings, headings, strict=False):
            heading.configure(background=colors.background)
            heading.show(domain, colors.text, colors.secondary, colors.background)
            heading.place(
                x=0, y=y, relwidth=1.0, width=-right, height=self.sizes.heading - px(self, 2)
            )
        for heading in self._headings[len(headings) :]:
            heading.place_forget()

    # Scrolling and zooming

    def scroll_to(self, top: int) -> None:
        """Show what is below a height of the map."""
        if self.map is not None:
            top = max(min(top, self.map.height - self._size[1]), 0)
            if top != self.top:
                self.top = top
                self.redraw_soon()

    def _scrolled(self, what: str, amount: str, unit: str = "") -> None:
        """Handle the scroll bar, as Tk calls it."""
        height, sizes = self._size[1], self.sizes
        if self.map is None:
            return
        if what == "moveto":
            self.scroll_to(round(float(amount) * self.map.height))
        else:
            step = height if unit == "pages" else sizes.row + sizes.gap
            self.scroll_to(self.top + int(amount) * step)

    def _wheel(self, event: tk.Event[tk.Misc], step: int) -> None:
        step = 1 if step > 0 else -1
        if int(event.state) & 0x4:  # Control
            self.zoom(step)
        else:
            self._tip.hide()
            sizes = self.sizes
            self.scroll_to(self.top - step * _WHEEL_ROWS * (sizes.row + sizes.gap))

    def zoom(self, step: int) -> None:
        """Show half or twice as many bytes per row, and keep what is at the top in view."""
        replayed, height = self._state.replayed, self.map.height if self.map else 0
        replayed.zoom(step, self._size, self.sizes)
        after = replayed.layout(self._size, self.sizes)
        if height and after is not None:
            self.top = round(self.top * after.height / height)
            self.redraw_soon()

    def _reveal(self) -> None:
        """Scroll to the selection, if it has a block here and is not in view."""
        selection = self._state.selection
        if self.map is None or selection is None or not self._state.is_docked("map"):
            return
        top, height = self.map.top_of(selection), self._size[1]
        if top is not None and not self.top <= top <= self.top + height - self.sizes.row:
            self.scroll_to(top - height // 3)

    # The mouse

    def block_at(self, x: int, y: int) -> Block | None:
        """Return the block at a pixel of the map."""
        if self.map is None or x < 0 or y < 0:
            return None
        return self.map.at(x, self.top + y)

    def _at(self, event: tk.Event[tk.Misc]) -> tuple[int, int]:
        widget = self.surface.widget
        return event.x_root - widget.winfo_rootx(), event.y_root - widget.winfo_rooty()

    def _hover(self, event: tk.Event[tk.Misc]) -> None:
        x, y = self._at(event)
        block, memory = self.block_at(x, y), self._state.replayed.memory()
        if block is None or memory is None:
            self._tip.hide()
        else:
            self._tip.show(self.tip_of(block, memory), x, y, palette_of(self._state.look.theme))

    def tip_of(self, block: Block, memory: Memory) -> str:
        """Describe a block: its size and use, its line of code, and where it is."""
        state, segment = self._state, format_bytes(int(memory.segment_size[block.segment]))
        where = f"0x{block.address:x}, in a segment of {segment}"
        size = format_bytes(block.size)
        trace, document = state.trace, state.document
        if block.allocation is None or trace is None or document is None:
            return f"{size} free\n{where}"
        if block.size > block.requested:
            slack = format_bytes(block.size - block.requested)
            size = f"{format_bytes(block.requested)} requested + {slack} slack"
        if block.state == "pending":
            size += "  ·  freed, waiting for another stream"
        line = document.line_of(int(trace.device.allocations.stack[block.allocation]))
        return f"{size}  ·  {lifetime_label(trace, block.allocation)}\n{line}\n{where}"

    def _click(self, event: tk.Event[tk.Misc]) -> None:
        block = self.block_at(*self._at(event))
        if block is None:
            return
        self._state.select(block.allocation, reveal=True)
        if block.allocation is not None:
            self._state.show_tab("details")


class _Addresses(Axis):
    """The address and the size of each row."""

    def __init__(self, parent: tk.Misc, state: State, width_of: LabelWidth) -> None:
        super().__init__(parent, state, width_of)
        room = width_of("0x7f0000000000") + width_of("1,023 MiB")
        self.configure(width=round(room) + px(self, 30))

    def show(self, rows: list[tuple[int, str, str]]) -> None:
        """Show addresses on the left and sizes on the right of these heights."""
        left, right = px(self, 8), self.winfo_width() - px(self, 8)
        items = [(text, left, y, "w") for y, text, _ in rows if text]
        items += [(text, right, y, "e") for y, _, text in rows]
        self._draw((tuple(rows), right), items, [])


class _Heading(tk.Frame):
    """The name of a domain, and how much of it is in use."""

    def __init__(self, parent: tk.Misc, tag: str) -> None:
        super().__init__(parent, borderwidth=0)
        self._name = tk.Label(self, font=BOLD, borderwidth=0, pady=0)
        self._name.pack(side="left", padx=(px(parent, 8), 0), fill="y")
        self._use = tk.Label(self, font=SMALL, borderwidth=0, pady=0)
        self._use.pack(side="right", padx=(0, px(parent, 8)), fill="y")
        for widget in (self, self._name, self._use):
            widget.bindtags((tag,))
        self._shown: object = None

    def show(self, domain: Domain, color: str, secondary: str, background: str) -> None:
        used = domain.allocated_bytes + domain.pending_bytes
        name, use = domain_name(domain, " · "), use_text(used, domain)
        if (name, use, color) != self._shown:
            self._shown = name, use, color
            self._name.configure(text=name, foreground=color, background=background)
            self._use.configure(text=use, foreground=secondary, background=background)


def use_text(used: int, domain: Domain) -> str:
    """Return how much of a domain is in use."""
    reserved, now = format_bytes(domain.reserved_bytes), format_bytes(used)
    number, _, unit = now.partition(" ")
    now = number if reserved.endswith(f" {unit}") else now
    segments = count_of(domain.segments, "segment")
    return f"{segments}  ·  {now} of {reserved} in use"
