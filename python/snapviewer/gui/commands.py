"""Every command of the window: its menu, label, keys and action.

Menus, key bindings and the list of keys are made from this list, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, get_args

from snapviewer.report.picture.options import Coloring, Order

from .keys import Direction
from .state import State
from .values import TABS

T = TypeVar("T")

MENUS = ("File", "Edit", "View", "Go", "Analyze", "Help")


@dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Args:
        menu: Its menu: "View", or "View/Pan" for a submenu.
        label: Its menu entry.
        keys: Tk's names of its keys, such as "<Control-o>".
        shown: The keys as the menu shows them.
        run: What it does.
        hold: The direction of a key that pans while it is held.
        in_text: Whether its keys work while a text is being typed.
    """

    menu: str
    label: str
    keys: tuple[str, ...]
    shown: str
    run: Callable[[], object]
    hold: Direction | None = None
    in_text: bool = False


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
    def show_keys(self) -> None: ...
    def show_filter_syntax(self) -> None: ...
    def show_completeness(self) -> None: ...
    def show_about(self) -> None: ...


def commands_of(state: State, window: Actions) -> tuple[Command, ...]:
    """List the commands, in the order of the menus."""
    return (
        *_file_and_edit(window),
        *_view(state, window),
        *_looks(state),
        *_panes(state, window),
        *_go(state),
        *_analyze(state, window),
        Command("Help", "Keys and mouse", ("<F1>", "<question>"), "F1 or ?", window.show_keys),
        Command("Help", "Is this picture complete?", ("<i>",), "I", window.show_completeness),
        Command("Help", "Filter syntax", ("<F2>",), "F2", window.show_filter_syntax),
        Command("Help", "About snapviewer", ("<Control-F1>",), "Ctrl+F1", window.show_about),
    )


def _file_and_edit(window: Actions) -> tuple[Command, ...]:
    return (
        Command("File", "Open…", ("<Control-o>",), "Ctrl+O", window.open_file, in_text=True),
        Command(
            "File",
            "Open directory…",
            ("<Control-Shift-O>", "<Control-Shift-o>"),
            "Ctrl+Shift+O",
            window.open_directory,
            in_text=True,
        ),
        Command(
            "File",
            "Save picture…",
            ("<Control-s>",),
            "Ctrl+S",
            window.save_picture,
            in_text=True,
        ),
        Command("File", "Quit", ("<Control-q>",), "Ctrl+Q", window.close, in_text=True),
        Command(
            "Edit", "Copy details", ("<Control-Shift-C>",), "Ctrl+Shift+C", window.copy_details
        ),
        Command(
            "Edit",
            "Filter",
            ("<Control-f>", "<slash>"),
            "Ctrl+F or /",
            window.focus_filter,
            in_text=True,
        ),
        Command("Edit", "Undo one step", ("<Escape>",), "Esc", window.escape, in_text=True),
    )


def _view(state: State, window: Actions) -> tuple[Command, ...]:
    def held(label: str, keys: tuple[str, ...], shown: str, way: Direction) -> Command:
        step = 60
        return Command(
            "View/Pan",
            label,
            keys,
            shown,
            lambda: state.pan_px(way[0] * step, way[1] * step),
            hold=way,
        )

    return (
        Command("View", "Fit all", ("<Home>",), "Home", state.fit_all),
        Command("View", "Fit height", ("<End>",), "End", state.fit_height),
        Command("View", "Back", ("<BackSpace>",), "Backspace", state.back),
        Command(
            "View/Zoom",
            "Zoom in",
            ("<plus>", "<equal>", "<KP_Add>"),
            "+",
            lambda: window.zoom(1),
        ),
        Command(
            "View/Zoom", "Zoom out", ("<minus>", "<KP_Subtract>"), "−", lambda: window.zoom(-1)
        ),
        Command(
            "View/Zoom",
            "Zoom in, x axis only",
            ("<Control-plus>", "<Control-equal>"),
            "Ctrl++",
            lambda: window.zoom(1, y=False),
        ),
        Command(
            "View/Zoom",
            "Zoom out, x axis only",
            ("<Control-minus>",),
            "Ctrl+−",
            lambda: window.zoom(-1, y=False),
        ),
        Command(
            "View/Zoom",
            "Zoom in, bytes only",
            ("<Alt-plus>", "<Alt-equal>"),
            "Alt++",
            lambda: window.zoom(1, x=False),
        ),
        Command(
            "View/Zoom",
            "Zoom out, bytes only",
            ("<Alt-minus>",),
            "Alt+−",
            lambda: window.zoom(-1, x=False),
        ),
        held("Pan left", ("<a>", "<Left>"), "A or ←", (-1, 0)),
        held("Pan right", ("<d>", "<Right>"), "D or →", (1, 0)),
        held("Pan up", ("<w>", "<Up>"), "W or ↑", (0, 1)),
        held("Pan down", ("<s>", "<Down>"), "S or ↓", (0, -1)),
    )


def _looks(state: State) -> tuple[Command, ...]:
    look = "View/Show"
    return (
        Command(
            look,
            "Change x axis",
            ("<x>",),
            "X",
            lambda: state.set_look(
                axis=_next(state.trace.axes() if state.trace else ("event",), state.look.axis)
            ),
        ),
        Command(
            look,
            "Change colour by",
            ("<c>",),
            "C",
            lambda: state.set_look(color=_next(get_args(Coloring), state.look.color)),
        ),
        Command(
            look,
            "Change stacking order",
            ("<v>",),
            "V",
            lambda: state.set_look(order=_next(get_args(Order), state.look.order)),
        ),
        Command(
            look,
            "Switch between light and dark",
            ("<t>",),
            "T",
            lambda: state.set_look(theme="light" if state.look.theme == "dark" else "dark"),
        ),
    )


def _panes(state: State, window: Actions) -> tuple[Command, ...]:
    def toggle(pane: str) -> Callable[[], None]:
        name = f"show_{pane}"
        return lambda: state.set_pane(pane, is_shown=not getattr(state.settings, name))  # type: ignore[arg-type]

    labels = {
        "details": "Details",
        "cursor": "Live allocations at the cursor",
        "sql": "SQL",
        "events": "Events",
    }
    tabs = (
        Command(
            "View/Panes",
            labels[tab],
            (f"<Control-Key-{number}>",),
            f"Ctrl+{number}",
            lambda tab=tab: state.show_tab(tab),  # type: ignore[misc]
            in_text=True,
        )
        for number, tab in enumerate(TABS, 1)
    )
    return (
        *tabs,
        Command(
            "View/Panes",
            "Show or hide side pane",
            ("<F9>",),
            "F9",
            window.toggle_side,
            in_text=True,
        ),
        Command(
            "View/Panes", "Show or hide legend", ("<F6>",), "F6", toggle("legend"), in_text=True
        ),
        Command(
            "View/Panes", "Show or hide overview", ("<F7>",), "F7", toggle("minimap"), in_text=True
        ),
        Command(
            "View/Panes", "Show or hide annotations", ("<F8>",), "F8", toggle("lanes"), in_text=True
        ),
    )


def _go(state: State) -> tuple[Command, ...]:
    return (
        Command("Go", "Go to peak", ("<p>",), "P", state.go_to_peak),
        Command("Go", "Zoom to selection", ("<f>",), "F", state.fit_selection),
        Command(
            "Go",
            "Previous with the same stack",
            ("<bracketleft>",),
            "[",
            lambda: state.step_same_stack(-1),
        ),
        Command(
            "Go",
            "Next with the same stack",
            ("<bracketright>",),
            "]",
            lambda: state.step_same_stack(1),
        ),
        Command("Go", "Next out-of-memory event", ("<o>",), "O", lambda: state.go_to_oom(1)),
        Command(
            "Go",
            "Previous out-of-memory event",
            ("<O>",),
            "Shift+O",
            lambda: state.go_to_oom(-1),
        ),
        Command("Go", "Next device", ("<g>",), "G", state.next_device),
    )


def _analyze(state: State, window: Actions) -> tuple[Command, ...]:
    return (
        Command(
            "Analyze", "Edit query", ("<Control-l>",), "Ctrl+L", window.focus_query, in_text=True
        ),
        Command(
            "Analyze",
            "Run query",
            ("<Control-Return>",),
            "Ctrl+Return",
            window.run_query,
            in_text=True,
        ),
        Command(
            "Analyze",
            "Highlight or show only matches",
            ("<m>",),
            "M",
            state.switch_filter_mode,
        ),
        Command(
            "Analyze",
            "Show only the selection's call stack",
            ("<k>",),
            "K",
            state.filter_same_stack,
        ),
        Command(
            "Analyze",
            "Show only live allocations at the cursor",
            ("<l>",),
            "L",
            state.filter_alive_at_cursor,
        ),
        Command(
            "Analyze",
            "Hide or show older allocations",
            ("<h>",),
            "H",
            state.toggle_recorded_only,
        ),
        Command(
            "Analyze",
            "Clear filter",
            ("<Control-BackSpace>",),
            "Ctrl+Backspace",
            state.clear_filter,
            in_text=True,
        ),
    )


def _next(values: Sequence[T], now: T) -> T:
    """Return the value after this one; after the last, the first.

    >>> _next("abc", "a"), _next("abc", "c")
    ('b', 'a')
    """
    return values[(list(values).index(now) + 1) % len(values)]
