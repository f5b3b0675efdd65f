"""Every command of the window: its menu, label, keys and action.

Menus, key bindings and the list of keys are made from this list, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from .keys import Direction
from .state import State
from .values import DOCK_TABS, TABS, LookPart, Pane, Tab

MENUS = ("File", "Edit", "View", "Go", "Analyze", "Help")


@dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Args:
        menu: Its menu: "View", or "View/Pan" for a submenu.
        label: Its menu entry.
        shown: Its keys as the menu shows them, such as "Ctrl+F or /".
        run: What it does.
        hold: The direction of a key that pans while it is held.
        in_text: Whether its keys work while a text is being typed.
    """

    menu: str
    label: str
    shown: str
    run: Callable[[], object]
    hold: Direction | None = None
    in_text: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """Tk's names of the keys."""
        return tuple(key for shown in self.shown.split(" or ") for key in _tk_keys(shown))


_KEY_NAMES = {"Ctrl": "Control", "Backspace": "BackSpace", "Esc": "Escape"}
_KEY_NAMES |= {"←": "Left", "→": "Right", "↑": "Up", "↓": "Down", "+": "plus", "−": "minus"}
_KEY_NAMES |= {"[": "bracketleft", "]": "bracketright", "/": "slash", "?": "question"}
_KEY_NAMES |= {",": "comma", ".": "period"}
# Other keys for the same: without Shift, or on the keypad.
_ALSO = {"<plus>": ("<equal>", "<KP_Add>"), "<minus>": ("<KP_Subtract>",)}
_ALSO |= {f"<{key}-plus>": (f"<{key}-equal>",) for key in ("Control", "Alt")}


def _tk_keys(shown: str) -> tuple[str, ...]:
    """Return Tk's names of a key; a letter with Shift has two.

    >>> _tk_keys("Ctrl+O"), _tk_keys("Shift+O"), _tk_keys("Ctrl+1"), _tk_keys("+")
    (('<Control-o>',), ('<O>',), ('<Control-Key-1>',), ('<plus>', '<equal>', '<KP_Add>'))
    """
    *held, key = shown.replace("++", "+plus").split("+") if len(shown) > 1 else [shown]
    key = _KEY_NAMES.get(key, f"Key-{key}" if key.isdecimal() else key)
    if len(key) == 1 and "Shift" not in held:
        key = key.lower()
    elif held == ["Shift"]:
        held = []
    name = "-".join([*(_KEY_NAMES.get(each, each) for each in held), key])
    if held and "Shift" in held:
        return f"<{name}>", f"<{name[:-1]}{key.lower()}>"
    return f"<{name}>", *_ALSO.get(f"<{name}>", ())


class Actions(Protocol):
    """The methods of the window that commands call."""

    def open_file(self) -> None: ...
    def open_directory(self) -> None: ...
    def save_picture(self) -> None: ...
    def close(self) -> None: ...
    def copy_details(self) -> None: ...
    def focus_filter(self) -> None: ...
    def focus_query(self) -> None: ...
    def run_query(self) -> None: ...
    def escape(self) -> None: ...
    def zoom(self, step: int, *, x: bool = True, y: bool = True) -> None: ...
    def toggle_side(self) -> None: ...
    def zoom_map(self, step: int) -> None: ...
    def show_keys(self) -> None: ...
    def show_filter_syntax(self) -> None: ...
    def show_completeness(self) -> None: ...
    def show_about(self) -> None: ...


def commands_of(state: State, window: Actions) -> tuple[Command, ...]:
    """List the commands, in the order of the menus."""
    return (
        Command("File", "Open…", "Ctrl+O", window.open_file, in_text=True),
        Command("File", "Open directory…", "Ctrl+Shift+O", window.open_directory, in_text=True),
        Command("File", "Save picture…", "Ctrl+S", window.save_picture, in_text=True),
        Command("File", "Quit", "Ctrl+Q", window.close, in_text=True),
        Command("Edit", "Copy details", "Ctrl+Shift+C", window.copy_details),
        Command("Edit", "Filter", "Ctrl+F or /", window.focus_filter, in_text=True),
        Command("Edit", "Undo one step", "Esc", window.escape, in_text=True),
        *_view(state, window),
        *_looks(state),
        *_panes(state, window),
        *_memory_map(state, window),
        *_call_tree(state),
        *_go(state),
        *_analyze(state, window),
        Command("Help", "Keys and mouse", "F1 or ?", window.show_keys),
        Command("Help", "Is this picture complete?", "I", window.show_completeness),
        Command("Help", "Filter syntax", "F2", window.show_filter_syntax),
        Command("Help", "About snapviewer", "Ctrl+F1", window.show_about),
    )


def _view(state: State, window: Actions) -> tuple[Command, ...]:
    def held(label: str, shown: str, way: Direction) -> Command:
        step = 60
        run = partial(state.pan_px, way[0] * step, way[1] * step)
        return Command("View/Pan", label, shown, run, hold=way)

    def zoom(label: str, shown: str, step: int, **axes: bool) -> Command:
        return Command("View/Zoom", label, shown, partial(window.zoom, step, **axes))

    return (
        Command("View", "Fit all", "Home", state.fit_all),
        Command("View", "Fit height", "End", state.fit_height),
        Command("View", "Back", "Backspace", state.back),
        zoom("Zoom in", "+", 1),
        zoom("Zoom out", "−", -1),
        zoom("Zoom in, x axis only", "Ctrl++", 1, y=False),
        zoom("Zoom out, x axis only", "Ctrl+−", -1, y=False),
        zoom("Zoom in, bytes only", "Alt++", 1, x=False),
        zoom("Zoom out, bytes only", "Alt+−", -1, x=False),
        held("Pan left", "A or ←", (-1, 0)),
        held("Pan right", "D or →", (1, 0)),
        held("Pan up", "W or ↑", (0, 1)),
        held("Pan down", "S or ↓", (0, -1)),
    )


def _looks(state: State) -> tuple[Command, ...]:
    def change(label: str, shown: str, part: LookPart) -> Command:
        return Command("View/Show", label, shown, partial(state.choose_next, part))

    return (
        change("Change x axis", "X", "axis"),
        change("Change colour by", "C", "color"),
        change("Change stacking order", "V", "order"),
        change("Switch between light and dark", "T", "theme"),
    )


def _panes(state: State, window: Actions) -> tuple[Command, ...]:
    def pane(label: str, shown: str, run: Callable[[], object]) -> Command:
        return Command("View/Panes", label, shown, run, in_text=True)

    def toggle(name: Pane) -> Callable[[], None]:
        return lambda: state.set_pane(name, is_shown=not getattr(state.settings, f"show_{name}"))

    labels: dict[Tab, str] = {
        "details": "Details",
        "cursor": "Live allocations at the cursor",
        "sql": "SQL",
        "events": "Events",
    }
    return (
        *(
            pane(labels[tab], f"Ctrl+{number}", partial(state.show_tab, tab))
            for number, tab in enumerate(TABS, 1)
        ),
        pane("Show or hide side pane", "F9", window.toggle_side),
        pane("Show or hide legend", "F6", toggle("legend")),
        pane("Show or hide overview", "F7", toggle("minimap")),
        pane("Show or hide annotations", "F8", toggle("lanes")),
        *(
            pane(f"Show or hide {title.lower()}", key, partial(state.toggle_dock, tab))
            for tab, (title, key) in DOCK_TABS.items()
        ),
        Command("View/Panes", "Show or hide lines of reserved memory", "R", toggle("lines")),
    )


def _memory_map(state: State, window: Actions) -> tuple[Command, ...]:
    def command(label: str, shown: str, run: Callable[[], object]) -> Command:
        return Command("View/Memory map", label, shown, run)

    return (
        command("Zoom in on the map", "Z", partial(window.zoom_map, 1)),
        command("Zoom out of the map", "Shift+Z", partial(window.zoom_map, -1)),
        command("Fit the map", "Y", state.replayed.fit),
        command("Change order of segments", "U", state.replayed.next_order),
    )


def _call_tree(state: State) -> tuple[Command, ...]:
    def command(label: str, shown: str, run: Callable[[], object]) -> Command:
        return Command("View/Call tree", label, shown, run)

    tree = state.call_tree
    return (
        command("Fold torch, only my code, or all frames", "J", tree.next_frames),
        command("Start with callers or with allocations", "Shift+J", tree.turn),
        command("Show as table or boxes", "Q", tree.toggle_table),
        command("Leave the node in focus", "B", tree.leave_focus),
    )


def _go(state: State) -> tuple[Command, ...]:
    same, oom = state.step_same_stack, state.go_to_oom
    return (
        Command("Go", "Go to peak", "P", state.go_to_peak),
        Command("Go", "Zoom to selection", "F", state.fit_selection),
        Command("Go", "Previous with the same stack", "[", partial(same, -1)),
        Command("Go", "Next with the same stack", "]", partial(same, 1)),
        Command("Go", "Next out-of-memory event", "O", partial(oom, 1)),
        Command("Go", "Previous out-of-memory event", "Shift+O", partial(oom, -1)),
        Command("Go", "Next event", ".", partial(state.replayed.step, 1)),
        Command("Go", "Previous event", ",", partial(state.replayed.step, -1)),
        Command("Go", "Next segment event", "N", partial(state.replayed.step_segment, 1)),
        Command(
            "Go", "Previous segment event", "Shift+N", partial(state.replayed.step_segment, -1)
        ),
        Command("Go", "Next step", "E", partial(state.answers.next_step, 1)),
        Command("Go", "Previous step", "Shift+E", partial(state.answers.next_step, -1)),
        Command("Go", "Next device", "G", state.next_device),
    )


def _analyze(state: State, window: Actions) -> tuple[Command, ...]:
    def filtering(label: str, shown: str, run: Callable[[], object]) -> Command:
        return Command("Analyze", label, shown, run)

    return (
        Command("Analyze", "Edit query", "Ctrl+L", window.focus_query, in_text=True),
        Command("Analyze", "Run query", "Ctrl+Return", window.run_query, in_text=True),
        filtering("Highlight or show only matches", "M", state.switch_filter_mode),
        filtering("Show only the selection's call stack", "K", state.filter_same_stack),
        filtering("Show only live allocations at the cursor", "L", state.filter_alive_at_cursor),
        filtering("Hide or show older allocations", "H", state.toggle_recorded_only),
        Command("Analyze", "Clear filter", "Ctrl+Backspace", state.clear_filter, in_text=True),
    )
