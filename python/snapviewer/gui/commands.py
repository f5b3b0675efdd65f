"""Every command of the window, once: its menu, its words, its keys, what it does.

Menus, key bindings and the help window are made from this list, so that they cannot disagree.
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
    """One thing that a person can do.

    Args:
        menu: Where it is: "View", or "View/Move" for a submenu.
        label: What the menu says.
        keys: Tk's names of its keys, such as "<Control-o>"; the first is shown in the menu.
        shown: The keys as people write them.
        run: What it does.
        hold: For keys that move while they are held: where to.
        in_text: Whether its keys work while somebody types text.
    """

    menu: str
    label: str
    keys: tuple[str, ...]
    shown: str
    run: Callable[[], object]
    hold: Direction | None = None
    in_text: bool = False


class Actions(Protocol):
    """What commands need of the window itself."""

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
    def show_filter_help(self) -> None: ...
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
        Command("Help", "What a filter can say", ("<F2>",), "F2", window.show_filter_help),
        Command("Help", "About snapviewer", ("<Control-F1>",), "Ctrl+F1", window.show_about),
    )


def _file_and_edit(window: Actions) -> tuple[Command, ...]:
    return (
        Command("File", "Open…", ("<Control-o>",), "Ctrl+O", window.open_file, in_text=True),
        Command(
            "File",
            "Open a directory…",
            ("<Control-Shift-O>", "<Control-Shift-o>"),
            "Ctrl+Shift+O",
            window.open_directory,
            in_text=True,
        ),
        Command(
            "File",
            "Save the picture…",
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
        Command("Edit", "Clear the selection", ("<Escape>",), "Esc", window.escape, in_text=True),
    )


def _view(state: State, window: Actions) -> tuple[Command, ...]:
    def held(label: str, keys: tuple[str, ...], shown: str, way: Direction) -> Command:
        step = 60
        return Command(
            "View/Move",
            label,
            keys,
            shown,
            lambda: state.pan_px(way[0] * step, way[1] * step),
            hold=way,
        )

    return (
        Command("View", "Fit all", ("<Home>",), "Home", state.fit_all),
        Command("View", "Fit the height", ("<End>",), "End", state.fit_height),
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
            "Zoom in, along the trace only",
            ("<Control-plus>", "<Control-equal>"),
            "Ctrl++",
            lambda: window.zoom(1, y=False),
        ),
        Command(
            "View/Zoom",
            "Zoom out, along the trace only",
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
        held("Move left", ("<a>", "<Left>"), "A or ←", (-1, 0)),
        held("Move right", ("<d>", "<Right>"), "D or →", (1, 0)),
        held("Move up", ("<w>", "<Up>"), "W or ↑", (0, 1)),
        held("Move down", ("<s>", "<Down>"), "S or ↓", (0, -1)),
    )


def _looks(state: State) -> tuple[Command, ...]:
    look = "View/Show"
    return (
        Command(
            look,
            "Next x axis",
            ("<x>",),
            "X",
            lambda: state.set_look(
                axis=_next(state.trace.axes() if state.trace else ("event",), state.look.axis)
            ),
        ),
        Command(
            look,
            "Next colouring",
            ("<c>",),
            "C",
            lambda: state.set_look(color=_next(get_args(Coloring), state.look.color)),
        ),
        Command(
            look,
            "Next stacking order",
            ("<v>",),
            "V",
            lambda: state.set_look(order=_next(get_args(Order), state.look.order)),
        ),
        Command(
            look,
            "Light or dark",
            ("<t>",),
            "T",
            lambda: state.set_look(theme="light" if state.look.theme == "dark" else "dark"),
        ),
    )


def _panes(state: State, window: Actions) -> tuple[Command, ...]:
    def toggle(pane: str) -> Callable[[], None]:
        name = f"show_{pane}"
        return lambda: state.set_pane(pane, is_shown=not getattr(state.settings, name))  # type: ignore[arg-type]

    words = {
        "details": "Show details",
        "cursor": "Show what is alive at the cursor",
        "sql": "Show SQL",
        "events": "Show events",
    }
    tabs = (
        Command(
            "View/Panes",
            words[tab],
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
            "View/Panes", "Side pane on or off", ("<F9>",), "F9", window.toggle_side, in_text=True
        ),
        Command(
            "View/Panes", "Overview on or off", ("<F7>",), "F7", toggle("minimap"), in_text=True
        ),
        Command(
            "View/Panes", "Annotations on or off", ("<F8>",), "F8", toggle("lanes"), in_text=True
        ),
    )


def _go(state: State) -> tuple[Command, ...]:
    return (
        Command("Go", "To the peak", ("<p>",), "P", state.go_to_peak),
        Command("Go", "To the selection, all of it", ("<f>",), "F", state.fit_selection),
        Command(
            "Go",
            "To the previous allocation of the same stack",
            ("<bracketleft>",),
            "[",
            lambda: state.step_same_stack(-1),
        ),
        Command(
            "Go",
            "To the next allocation of the same stack",
            ("<bracketright>",),
            "]",
            lambda: state.step_same_stack(1),
        ),
        Command("Go", "To the next out-of-memory", ("<o>",), "O", lambda: state.go_to_oom(1)),
        Command(
            "Go",
            "To the previous out-of-memory",
            ("<O>",),
            "Shift+O",
            lambda: state.go_to_oom(-1),
        ),
        Command("Go", "To the next device", ("<g>",), "G", state.next_device),
    )


def _analyze(state: State, window: Actions) -> tuple[Command, ...]:
    return (
        Command(
            "Analyze", "Write a query", ("<Control-l>",), "Ctrl+L", window.focus_query, in_text=True
        ),
        Command(
            "Analyze",
            "Run the query",
            ("<Control-Return>",),
            "Ctrl+Return",
            window.run_query,
            in_text=True,
        ),
        Command(
            "Analyze",
            "Highlight matches, or show only them",
            ("<m>",),
            "M",
            state.switch_filter_mode,
        ),
        Command(
            "Analyze",
            "Show only what the selection's stack made",
            ("<k>",),
            "K",
            state.filter_same_stack,
        ),
        Command(
            "Analyze",
            "Show only what is alive at the cursor",
            ("<l>",),
            "L",
            state.filter_alive_at_cursor,
        ),
        Command(
            "Analyze",
            "Clear the filter",
            ("<Control-BackSpace>",),
            "Ctrl+Backspace",
            state.clear_filter,
            in_text=True,
        ),
    )


def _next(values: Sequence[T], now: T) -> T:
    """Return the value after this one, and the first after the last.

    >>> _next("abc", "a"), _next("abc", "c")
    ('b', 'a')
    """
    return values[(list(values).index(now) + 1) % len(values)]
