"""The pane with the details of the selected allocation.

It is one text that can be selected and copied. Parts of it are spots: a value, which a click
copies; a link; a frame of a call stack, which a double-click opens in the editor. Each spot has a
tag of its own, by which Tk finds it.
"""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from tkinter import font as tkfont
from tkinter import ttk
from typing import Literal

from snapviewer.gui.editor import EditorError, open_in_editor
from snapviewer.gui.state import State
from snapviewer.gui.theme import BOLD, CODE, CODE_BOLD, SMALL, TEXT, TITLE, palette_of, px
from snapviewer.gui.tips import Tip
from snapviewer.report.snapshot.allocation_details import (
    Row,
    Run,
    Value,
    as_text,
    forward_lines,
    full_text,
    rows_of,
    runs_of,
    same_stack_text,
    short_text,
    size_values,
)
from snapviewer.snapshot.allocation_details import AllocationDetails, FrameDetails
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import format_bytes

EMPTY = "Click an allocation to see its details."
_EMPTY_MORE = (
    "Its size, lifetime and call stack are shown here. Values can be copied, and frames opened in"
    " your editor."
)
_WAIT_MS = 150  # before the old page is cleared while the new one is being read
_MAX_CHARS = 400  # of untrusted text
_MAX_COPIED_CHARS = 60
_CLICK_PX = 4  # a press that moves further selects text
_SPOT = "spot"


@dataclass(frozen=True)
class _Spot:
    """A part of the text that can be clicked: what is copied, and what a click does."""

    plain: str = ""
    act: Callable[[], None] | None = None
    frame: FrameDetails | None = None
    tip: str = ""


class _Page:
    """A page: texts with their tags, inserted in one call."""

    def __init__(self) -> None:
        self.pieces: list[str | tuple[str, ...]] = []
        self.spots: list[_Spot] = []

    def add(self, text: str, *tags: str, spot: _Spot | None = None) -> None:
        if spot is not None:
            tags = (*tags, f"{_SPOT}{len(self.spots)}")
            self.spots.append(spot)
        self.pieces += [_cut(text, _MAX_CHARS), tags]

    def value(self, value: Value, *tags: str) -> None:
        self.add(value.text, *tags, spot=_Spot(value.plain))

    def link(self, text: str, act: Callable[[], None], *tags: str, tip: str = "") -> None:
        self.add(text, "link", *tags, spot=_Spot(act=act, tip=tip))

    def end(self, *tags: str) -> None:
        """End a line."""
        self.pieces += ["\n", tags]


class Details(ttk.Frame):
    """Shows `state.allocation_details`."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent)
        self._state = state
        self._spots: list[_Spot] = []
        self._shown: AllocationDetails | None = None
        self._unfolded: set[tuple[str, int]] = set()
        self._hovered: int | None = None
        self._pressed: tuple[int, int, _Spot] | None = None
        self._waiting: str | None = None
        self._text = tk.Text(
            self,
            wrap="word",
            width=1,
            height=1,
            state="disabled",
            font=TEXT,
            cursor="xterm",
            padx=px(self, 10),
            pady=px(self, 8),
            spacing1=px(self, 1),
            spacing3=px(self, 1),
            takefocus=True,
        )
        bar = ttk.Scrollbar(self, command=self._text.yview)
        self._text.configure(yscrollcommand=bar.set)
        bar.pack(side="right", fill="y")
        self._text.pack(side="left", fill="both", expand=True)
        self._menu = tk.Menu(self, tearoff=False)
        self._tip = Tip(self.winfo_toplevel())
        self._bind()
        self._recolor()
        state.on(self._details_changed, "details", "document")
        state.on(self._recolor, "look")
        self._details_changed()

    def copy_all(self) -> None:
        """Copy all details to the clipboard."""
        if self._shown is not None:
            self._to_clipboard(as_text(self._shown))
            self._state.notify("Copied the details.")

    # Contents

    def _details_changed(self) -> None:
        if self._waiting is not None:
            self.after_cancel(self._waiting)
            self._waiting = None
        details, selection = self._state.allocation_details, self._state.selection
        if details is None and selection is not None:
            # They come in a moment; clearing the page meanwhile would flicker.
            self._waiting = self.after(_WAIT_MS, self._show_wait)
            return
        is_same_stack = (
            details is not None and self._shown is not None and details.stack == self._shown.stack
        )
        if not is_same_stack:
            self._unfolded.clear()
        self._shown = details
        self._show(keep_place=is_same_stack)

    def _show(self, *, keep_place: bool) -> None:
        page = _Page()
        if self._shown is not None:
            self._fill(page, self._shown)
        elif self._state.device is not None:
            page.add(EMPTY)
            page.end()
            page.end("gap")
            page.add(_EMPTY_MORE, "quiet")
        self._put(page, keep_place=keep_place)

    def _show_wait(self) -> None:
        """Show the size while the rest is being read."""
        self._waiting = self._shown = None
        device, which = self._state.device, self._state.selection
        if device is None or which is None:
            return
        page = _Page()
        page.add(format_bytes(int(device.allocations.size[which])), "title")
        page.end()
        page.add("reading details …", "quiet")
        self._put(page, keep_place=False)

    def _put(self, page: _Page, *, keep_place: bool) -> None:
        text = self._text
        place = text.index("@0,0") if keep_place else "1.0"
        self._unhover()
        text.configure(state="normal")
        text.delete("1.0", "end")
        if self._spots:
            text.tag_delete(*(f"{_SPOT}{number}" for number in range(len(self._spots))))
        text.insert("end", "", (), *page.pieces)
        text.configure(state="disabled")
        text.yview(place)
        self._spots = page.spots

    # A page

    def _fill(self, page: _Page, details: AllocationDetails) -> None:
        page.value(Value(details.name, details.name), "name")
        page.end("name")
        size, *exact = size_values(details)
        page.value(size, "title")
        for value in exact:
            page.add("   ", "quiet")
            page.value(value, "quiet")
        page.end("title")
        main = next((frame for frame in details.frames if frame.is_main), None)
        if main is None:
            page.add("no stack recorded", "quiet")
            page.end()
        else:
            self._frame(page, main, "own")
        page.add(same_stack_text(details), spot=_Spot(same_stack_text(details)))
        page.end()
        self._links(page, details)
        page.end("gap")
        for row in rows_of(details):
            self._row(page, row)
        self._stack(page, "Call stack", "stack", details.frames)
        if details.forward_frames:
            self._lines(page, "Forward pass", "forward", forward_lines(details))
        if details.free_frames:
            self._stack(page, "Freed by", "free", details.free_frames, is_folded=True)

    def _links(self, page: _Page, details: AllocationDetails) -> None:
        state = self._state
        links: list[tuple[str, Callable[[], None], str]] = []
        if details.same_stack.allocations > 1:
            links = [
                ("‹ previous", lambda: state.step_same_stack(-1), "previous allocation"),
                ("next ›", lambda: state.step_same_stack(1), "next allocation"),
                ("show only these", state.filter_same_stack, "show only this call stack"),
            ]
        links.append(("zoom to", state.fit_selection, "zoom to the selection (F)"))
        links.append(("copy", self.copy_all, "copy all details (Ctrl+Shift+C)"))
        for number, (text, act, tip) in enumerate(links):
            if number:
                page.add("   ")
            page.link(text.replace(" ", "\u00a0"), act, tip=tip)
        page.end()

    def _row(self, page: _Page, row: Row) -> None:
        tag = "note" if row.label == "note" else "value"
        page.add(f"{row.label}\t", "row", "quiet")
        for number, value in enumerate(row.values):
            if number:
                page.add(row.joiner, "row", "quiet")
            page.value(value, "row", tag)
        page.end("row")

    def _stack(
        self,
        page: _Page,
        title: str,
        section: str,
        frames: Sequence[FrameDetails],
        *,
        is_folded: bool = False,
    ) -> None:
        if not frames:
            return
        runs = runs_of(frames)
        keys = [(section, number) for number, run in enumerate(runs) if run.is_folded]
        page.end("gap")
        page.add(title, "heading")
        whole = (section, -1)
        if is_folded and whole not in self._unfolded:
            page.add("   ")
            page.link(_count(len(frames)), lambda: self._unfold([whole]), "small")
            page.end()
            return
        if keys and self._unfolded.issuperset(keys):
            page.add("   ")
            page.link("fold", lambda: self._fold(keys), "small")
        elif keys:
            page.add("   ")
            page.link("show all frames", lambda: self._unfold(keys), "small")
        page.end()
        for number, run in enumerate(runs):
            self._run(page, run, (section, number))

    def _run(self, page: _Page, run: Run, key: tuple[str, int]) -> None:
        if run.is_folded and key not in self._unfolded:
            page.link(run.words, lambda: self._unfold([key]), "fold")
            page.end("fold")
            return
        for frame in run.frames:
            shade = (
                "own" if frame.is_own or frame.is_main else "code" if frame.is_library else "other"
            )
            self._frame(page, frame, shade)

    def _frame(self, page: _Page, frame: FrameDetails, shade: str) -> None:
        line = full_text(frame)
        hint = _cut(line, _MAX_CHARS)
        if frame.frame.line:
            hint += "\nDouble-click to open in the editor."
        page.add(short_text(frame), shade, "frame", spot=_Spot(line, frame=frame, tip=hint))
        page.end("frame")

    def _lines(self, page: _Page, title: str, section: str, lines: Sequence[str]) -> None:
        """Show a stack that is recorded as text, folded at first."""
        page.end("gap")
        page.add(f"{title}   ", "heading")
        key = (section, -1)
        if key not in self._unfolded:
            page.link(_count(len(lines)), lambda: self._unfold([key]), "small")
            page.end()
            return
        page.link("fold", lambda: self._fold([key]), "small")
        page.end()
        for line in lines:
            page.add(line, "code", "frame", spot=_Spot(line))
            page.end("frame")

    def _unfold(self, keys: Iterable[tuple[str, int]]) -> None:
        self._unfolded.update(keys)
        self._show(keep_place=True)

    def _fold(self, keys: Iterable[tuple[str, int]]) -> None:
        self._unfolded.difference_update(keys)
        self._show(keep_place=True)

    # The mouse

    def _bind(self) -> None:
        text = self._text
        text.bind("<Motion>", self._moved)
        text.bind("<Leave>", lambda _: self._unhover())
        for wheel in ("<MouseWheel>", "<Button-4>", "<Button-5>"):
            text.bind(wheel, lambda _: self._unhover())
        text.bind("<Button-1>", self._press)
        text.bind("<ButtonRelease-1>", self._release)
        text.bind("<Double-Button-1>", self._press_again)
        text.bind("<Triple-Button-1>", self._press_again)
        text.bind("<Control-Button-1>", self._press_with_control)
        text.bind("<Control-ButtonRelease-1>", lambda _: "break")
        text.bind("<Button-3>", self._popup)
        text.bind("<Control-a>", self._select_all)

    def _number_at(self, x: int, y: int) -> int | None:
        """Return the number of the spot at a pixel."""
        index = self._text.index(f"@{x},{y}")
        box = self._text.bbox(index)
        # Beyond the end of a line, Tk returns the nearest character.
        if box is None or not (box[0] <= x < box[0] + box[2] and box[1] <= y < box[1] + box[3]):
            return None
        for tag in self._text.tag_names(index):
            if tag.startswith(_SPOT):
                return int(tag[len(_SPOT) :])
        return None

    def _spot_at(self, event: tk.Event[tk.Text]) -> _Spot | None:
        number = self._number_at(event.x, event.y)
        return None if number is None else self._spots[number]

    def _moved(self, event: tk.Event[tk.Text]) -> None:
        number = self._number_at(event.x, event.y)
        if number == self._hovered:
            return
        self._unhover()
        if number is None:
            return
        self._hovered = number
        self._text.tag_add("hover", *self._text.tag_ranges(f"{_SPOT}{number}"))
        self._text.configure(cursor="hand2")
        if tip := self._spots[number].tip:
            top = self.winfo_toplevel()
            x, y = event.x_root - top.winfo_rootx(), event.y_root - top.winfo_rooty()
            self._tip.show(tip, x, y, palette_of(self._state.look.theme))

    def _unhover(self) -> None:
        if self._hovered is not None:
            self._hovered = None
            self._text.tag_remove("hover", "1.0", "end")
            self._text.configure(cursor="xterm")
            self._tip.hide()

    def _press(self, event: tk.Event[tk.Text]) -> None:
        spot = self._spot_at(event)
        self._pressed = None if spot is None else (event.x, event.y, spot)

    def _press_again(self, event: tk.Event[tk.Text]) -> Literal["break"] | None:
        self._press(event)
        if self._pressed is None:
            return None
        spot = self._pressed[2]
        if spot.frame is not None:
            self._pressed = None
            self._open(spot.frame)
            return "break"
        # A double-click on a link is two clicks; on a value, it selects a word.
        return "break" if spot.act is not None else None

    def _press_with_control(self, event: tk.Event[tk.Text]) -> Literal["break"]:
        spot = self._spot_at(event)
        self._pressed = None
        if spot is not None and spot.frame is not None:
            self._open(spot.frame)
        return "break"

    def _release(self, event: tk.Event[tk.Text]) -> None:
        pressed, self._pressed = self._pressed, None
        if self._text.tag_ranges("sel"):
            # A key will copy it. Otherwise the keyboard stays with the plot.
            self._text.focus_set()
            return
        if pressed is None:
            return
        x, y, spot = pressed
        if max(abs(event.x - x), abs(event.y - y)) > px(self, _CLICK_PX):
            return
        if spot.act is not None:
            spot.act()
        elif spot.frame is None:
            self._copy(spot.plain)

    def _popup(self, event: tk.Event[tk.Text]) -> None:
        spot = self._spot_at(event)
        self._fill_menu(spot)
        self._unhover()
        if self._menu.index("end") is not None:
            self._menu.tk_popup(event.x_root, event.y_root)

    def _fill_menu(self, spot: _Spot | None) -> None:
        menu = self._menu
        menu.delete(0, "end")
        if self._text.tag_ranges("sel"):
            selected = self._text.get("sel.first", "sel.last")
            menu.add_command(label="Copy selection", command=lambda: self._copy(selected))
        if spot is not None and spot.plain:
            plain = spot.plain
            menu.add_command(
                label=f"Copy {_cut(plain, _MAX_COPIED_CHARS)}", command=lambda: self._copy(plain)
            )
        if spot is not None and spot.frame is not None:
            frame = spot.frame
            menu.add_command(label="Open in editor", command=lambda: self._open(frame))
        if self._shown is not None:
            menu.add_command(label="Copy details", command=self.copy_all)

    def _select_all(self, _: tk.Event[tk.Text]) -> Literal["break"]:
        self._text.tag_add("sel", "1.0", "end-1c")
        return "break"

    # Actions

    def _copy(self, text: str) -> None:
        self._to_clipboard(text)
        self._state.notify(f"Copied {sanitize(text, _MAX_COPIED_CHARS)}")

    def _to_clipboard(self, text: str) -> None:
        self.clipboard_clear()
        self.clipboard_append(text)

    def _open(self, frame: FrameDetails) -> None:
        try:
            path = open_in_editor(frame.frame.filename, frame.frame.line)
        except EditorError as error:
            self._state.notify(str(error), is_error=True)
        else:
            self._state.notify(f"Opening {path.name}, line {frame.frame.line} …")

    def _recolor(self) -> None:
        """Set the tags for the theme; later tags have priority."""
        colors = palette_of(self._state.look.theme)
        column = tkfont.Font(self, name=TEXT, exists=True).measure("free requested") + px(self, 12)
        text, hanging = self._text, px(self, 14)
        text.configure(inactiveselectbackground=colors.marked)
        text.tag_configure("row", tabs=(column,), lmargin2=column)
        text.tag_configure("frame", lmargin2=hanging)
        text.tag_configure("gap", font=SMALL, spacing1=0, spacing3=0)
        text.tag_configure("value", foreground=colors.text)
        text.tag_configure("quiet", foreground=colors.secondary)
        text.tag_configure("note", foreground=colors.peak)
        text.tag_configure("name", font=CODE, foreground=colors.secondary)
        text.tag_configure("title", font=TITLE, foreground=colors.text)
        text.tag_configure("heading", font=BOLD, foreground=colors.text)
        text.tag_configure("own", font=CODE_BOLD, foreground=colors.text)
        text.tag_configure("code", font=CODE, foreground=colors.text)
        text.tag_configure("other", font=CODE, foreground=colors.secondary)
        text.tag_configure("link", foreground=colors.accent)
        text.tag_configure("fold", foreground=colors.secondary)
        text.tag_configure("small", font=SMALL)
        text.tag_configure("hover", underline=True)
        text.tag_raise("sel")


def _count(frames: int) -> str:
    return "1 frame" if frames == 1 else f"{frames:,} frames"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
