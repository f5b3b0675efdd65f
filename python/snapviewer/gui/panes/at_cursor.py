"""The live allocations at the cursor: by line of code, and the largest ones.

The bars have the colours of the timeline.
"""

from __future__ import annotations

import tkinter as tk
from collections.abc import Iterable
from tkinter import ttk

from snapviewer import Device
from snapviewer.gui.labels import event_label
from snapviewer.gui.state import State
from snapviewer.gui.theme import hex_of, px
from snapviewer.gui.tips import Tooltip
from snapviewer.snapshot.alive import Alive, Group, LiveAllocation
from snapviewer.snapshot.frames import NO_STACK
from snapviewer.text.units import count_of, format_bytes

from .sorted_table import SortedTable, Sorting
from .virtual_table import Bar, Column, RowHooks

_GROUP_COLUMNS = (
    Column("Bytes", "1,023 MiB", is_number=True),
    Column("Count", "100,000", is_number=True),
    Column("Group", "model.py:77 attention", grows=True),
)
_LARGEST_COLUMNS = (
    Column("Size", "1,023 MiB", is_number=True),
    Column("Line", "model.py:77 attention", grows=True),
    Column("Lifetime", "123,456 – 123,456"),
)
GROUP_NAMES = {
    "line": "line of code",
    "stack": "call stack",
    "function": "function",
    "file": "file",
    "module": "module",
    "category": "category",
    "step": "step",
    "stream": "stream",
    "pool": "pool",
    "compile": "compiled region",
    "size": "size",
    "lifetime": "lifetime",
    "segment": "segment",
}
_NO_FILE = "Open a file to list its live allocations."
_NO_CURSOR = "Click the background of the timeline, or right-click anywhere, to move the cursor."


class AtCursor(ttk.Frame):
    """A heading with the event and the total, and two tables."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent)
        self._state = state
        self._alive: Alive | None = None
        self._groups: tuple[Group, ...] = ()
        self._largest: tuple[LiveAllocation, ...] = ()
        gap = px(self, 8)
        self.title = ttk.Label(self, style="Bold.TLabel")
        self.title.pack(fill="x", padx=gap, pady=(gap, 0))
        self.subtitle = ttk.Label(self, style="Small.TLabel")
        self.subtitle.pack(fill="x", padx=gap, pady=(0, gap))
        self.oom = ttk.Label(self, style="Error.TLabel")
        self._panes = ttk.PanedWindow(self, orient="vertical")
        most_first = Sorting(0, is_down=True)
        self.groups = SortedTable(
            self._grouped_part(),
            _GROUP_COLUMNS,
            self._group_texts,
            RowHooks(
                on_select=self._select,
                on_open=self._filter_to,
                bar_of=self._group_bar,
                bar_heading="Share",
                tip_of=self._group_tip,
            ),
            sorting=most_first,
        )
        self.largest = SortedTable(
            self._part("Largest allocations"),
            _LARGEST_COLUMNS,
            self._living_texts,
            RowHooks(
                on_select=lambda place: state.select(self._largest[place].index, reveal=True),
                on_open=lambda _: state.show_tab("details"),
                bar_of=self._living_bar,
                tip_of=self._living_tip,
            ),
            sorting=most_first,
        )
        for table in (self.groups, self.largest):
            table.pack(fill="both", expand=True)
        self.bind("<Configure>", self._wrap)
        state.on(self._show, "alive")
        state.on(self._show_title, "cursor", "device")
        state.on(self._show_oom, "cursor", "device", "replay")
        state.on(self._mark, "selection")
        state.on(self._recolor, "look")
        self._show()

    def _part(self, title: str) -> ttk.Frame:
        part = ttk.Frame(self._panes)
        label = ttk.Label(part, text=title, style="Secondary.TLabel")
        label.pack(fill="x", padx=px(self, 8), pady=(px(self, 4), px(self, 2)))
        self._panes.add(part, weight=1)
        return part

    def _grouped_part(self) -> ttk.Frame:
        """Return a part whose title is a menu of what to group by."""
        part = ttk.Frame(self._panes)
        line = ttk.Frame(part)
        line.pack(fill="x", padx=px(self, 8), pady=(px(self, 4), px(self, 2)))
        ttk.Label(line, text="By", style="Secondary.TLabel").pack(side="left")
        values = list(GROUP_NAMES.values())
        width = max(map(len, values))
        self.by = ttk.Combobox(line, values=values, state="readonly", width=width, takefocus=False)
        self.by.pack(side="left", padx=px(self, 4))
        self.by.bind("<<ComboboxSelected>>", self._choose_grouping)
        Tooltip(self.by, "What live allocations are grouped by; remembered")
        self._panes.add(part, weight=1)
        return part

    def _choose_grouping(self, _: tk.Event[tk.Misc]) -> None:
        self.by.selection_clear()
        chosen = self.by.get()
        self._state.group_by(next(by for by, name in GROUP_NAMES.items() if name == chosen))

    def _select(self, place: int) -> None:
        """Select the largest of a group; a group that is no line is highlighted as a whole."""
        group = self._groups[place]
        self._state.select(group.largest)
        self._state.mark_group(group)

    def _wrap(self, event: tk.Event[tk.Misc]) -> None:
        for label in (self.title, self.subtitle, self.oom):
            label.configure(wraplength=max(event.width - px(self, 16), 1))

    # Contents

    def _show(self) -> None:
        alive = self._alive = self._state.alive
        self._groups, self._largest = (), ()
        if alive is not None:
            self._groups = (*alive.groups, *([alive.rest] if alive.rest else []))
            self._largest = alive.largest
        self._show_title()
        self.by.set(GROUP_NAMES[self._state.grouping])
        groups = [(one.size_bytes, one.count, one.line) for one in self._groups]
        is_cut = alive is not None and alive.rest is not None
        self.groups.set_rows(groups, tail=int(is_cut))
        self.largest.set_rows(
            [(one.size_bytes, one.line, one.alloc_event) for one in self._largest]
        )
        for table in (self.groups, self.largest):
            table.to_top()
        self._mark()

    def _show_title(self) -> None:
        """Show the event, the total, and what is left out."""
        alive, trace, device = self._alive, self._state.trace, self._state.device
        if alive is None or trace is None or device is None:
            self._panes.pack_forget()
            self.title.configure(text="")
            self.subtitle.configure(text=_NO_FILE if trace is None else _NO_CURSOR)
            return
        self._panes.pack(fill="both", expand=True)
        held = f"{format_bytes(alive.total_bytes)} in {count_of(alive.count, 'allocation')}"
        self.title.configure(text=f"{self._which(alive.event)} · {held}")
        lines = [event_label(trace, alive.event)]
        hidden = self._state.filter
        if hidden.mode == "only" and hidden.matches is not None:
            lines.append("Only allocations that match the filter.")
        if hidden.recorded_only:
            lines.append("Without allocations older than the recording (H shows them).")
        elif any(one.line == NO_STACK for one in alive.groups[:3]) and trace.events:
            lines.append(f"“{NO_STACK}”: mostly older than the recording, such as weights.")
        self.subtitle.configure(text="\n".join(lines))

    def _show_oom(self) -> None:
        """Show why the request at the cursor failed, above what held the memory then."""
        text = self._state.replayed.oom_at_cursor()
        self.oom.configure(text=text)
        if text:
            self.oom.pack(fill="x", padx=px(self, 8), pady=(0, px(self, 8)), after=self.subtitle)
        else:
            self.oom.pack_forget()

    def _which(self, event: int) -> str:
        trace, timeline = self._state.trace, self._state.timeline
        assert trace is not None
        if trace.events == 0:
            return "In the snapshot"
        if event == trace.device.peak_event:
            return "At the peak"
        if timeline is not None and event == timeline.peak_event:
            return "At the peak shown"
        return "Before the first event" if event < 0 else f"After event {event:,}"

    def _group_texts(self, place: int) -> tuple[str, ...]:
        group = self._groups[place]
        return format_bytes(group.size_bytes), f"{group.count:,}", group.line

    def _living_texts(self, place: int) -> tuple[str, ...]:
        living = self._largest[place]
        return format_bytes(living.size_bytes), living.line, self._life(living)

    def _life(self, living: LiveAllocation) -> str:
        trace = self._state.trace
        start = "start" if living.alloc_event < 0 else f"{living.alloc_event:,}"
        is_freed = trace is not None and living.free_event < trace.events
        return f"{start} – {f'{living.free_event:,}' if is_freed else 'end'}"

    def _group_tip(self, place: int, column: int) -> str:
        group = self._groups[place]
        if column == 0:
            return f"{group.size_bytes:,} bytes"
        if column == 1:
            return ""
        stacks = f" ({count_of(len(group.stacks), 'stack')})" if group.stacks else ""
        return f"{group.line}{stacks}\nClick: select the largest. Double-click: highlight all."

    def _living_tip(self, place: int, column: int) -> str:
        living = self._largest[place]
        return (f"{living.size_bytes:,} bytes", living.line, "first and last event")[column]

    # Bars

    def _group_bar(self, place: int) -> Bar:
        """Return a bar with the group's share of the total."""
        group, total = self._groups[place], self._alive.total_bytes if self._alive else 0
        share = group.size_bytes / max(total, 1)
        text = "< 0.1%" if share < 0.0005 else f"{share:.{int(share < 0.0995)}%}"
        return Bar(share, self._color_of(group.largest), text)

    def _living_bar(self, place: int) -> Bar:
        """Return a bar with the allocation's size relative to the largest."""
        living, largest = self._largest[place], self._largest[0]
        share = living.size_bytes / max(largest.size_bytes, 1)
        return Bar(share, self._color_of(living.index))

    def _color_of(self, allocation: int) -> str:
        """Return the colour of an allocation in the timeline."""
        return hex_of(self._state.color_of(allocation))

    def _recolor(self) -> None:
        self.groups.refresh()
        self.largest.refresh()

    # Selection

    def _mark(self) -> None:
        """Mark the rows of the selected allocation."""
        selection, device = self._state.selection, self._state.device
        group = living = None
        if selection is not None and device is not None and self._alive is not None:
            a, event = device.allocations, self._alive.event
            if int(a.alloc_event[selection]) <= event < int(a.free_event[selection]):
                group = self._group_of(device, selection)
            living = _first(one.index == selection for one in self._largest)
        self.groups.mark_place(group)
        self.largest.mark_place(living)

    def _group_of(self, device: Device, allocation: int) -> int | None:
        """Return the place of an allocation's group."""
        by = self._state.grouping
        if by == "line":
            stack = int(device.allocations.stack[allocation])
            return _first(stack in one.stacks for one in self._groups)
        group = int(device.keys(by).ids[allocation])
        return _first(one.id == group for one in self._groups)

    def _filter_to(self, place: int) -> None:
        if self._groups[place].id is not None:
            self._state.mark_group(self._groups[place])
            return
        text = self._state.filter_of(self._groups[place].stacks, same_line=True)
        if text is None:
            self._state.notify("No filter can describe these allocations.")
        else:
            self._state.set_filter(text, "highlight")


def _first(is_it: Iterable[bool]) -> int | None:
    """Return the place of the first True."""
    return next((place for place, one in enumerate(is_it) if one), None)
