"""Chooses a checkpoint from those in a directory and below it, with a search."""

from __future__ import annotations

import asyncio
import os

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.events import Resize
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from snapviewer.checkpoint.paths import below
from snapviewer.explorer.app.settings import ExplorerConfig, load_settings, settings_from
from snapviewer.explorer.app.theme import PREFIX, textual_theme, variables
from snapviewer.explorer.view.outline import display_name
from snapviewer.text.sanitize import shorten_middle
from snapviewer.text.units import count_of, format_bytes

_SIZE_COLUMNS = 14


def file_size(path: str) -> str:
    """Return the size of a file in words; empty if it is gone."""
    try:
        return format_bytes(os.path.getsize(path))
    except OSError:
        return ""


def matches(path: str, query: str) -> bool:
    """Return whether a path contains every word of a query, in any case.

    >>> matches("runs/Llama/model.safetensors", "llama safe"), matches("a.pth", "b")
    (True, False)
    """
    return all(word in path.lower() for word in query.lower().split())


class ChooserApp(App[str | None]):
    """Lists files; ends with the path of the one that was chosen, or None."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #title { height: 1; color: $quiet; padding: 0 1; }
    Input { height: 1; background: $background; margin: 0 1; }
    OptionList { height: 1fr; background: $background; border: none; padding: 0; }
    """
    BINDINGS = [  # noqa: RUF012 (Textual's own type)
        Binding("enter", "choose", "open", key_display="Enter", priority=True),
        Binding("down", "move(1)", "files", key_display="↑ ↓", priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("escape,ctrl+c,ctrl+q", "quit", "quit", key_display="Esc", priority=True),
    ]

    def __init__(self, directory: str, *, config: ExplorerConfig | None = None) -> None:
        super().__init__()
        self._directory = directory
        self._files: list[tuple[str, str]] = []  # path, size
        self.shown: list[str] = []
        for theme in ("dark", "light"):
            self.register_theme(textual_theme(theme))
        settings = load_settings() if config is None else settings_from(config)
        self.theme = f"{PREFIX}{settings.theme}"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables("dark")

    def compose(self) -> ComposeResult:
        yield Static("Looking for checkpoints …", id="title")
        yield Input(placeholder="Search: words of the path", compact=True, max_length=200)
        yield OptionList()
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.title = "snapviewer explore"
        files = self.query_one(OptionList)
        files.can_focus = False
        self.query_one(Input).focus()
        self._look()

    @work(exclusive=True)
    async def _look(self) -> None:
        found = await asyncio.to_thread(below, self._directory)
        self._files = [(path, file_size(path)) for path in found]
        self._show()

    def on_input_changed(self) -> None:
        if self._files:
            self._show()

    def on_resize(self, event: Resize) -> None:
        if self._files:
            self._show()

    def _show(self) -> None:
        query = self.query_one(Input).value
        rows = [(path, size) for path, size in self._files if matches(path, query)]
        self.shown = [path for path, _ in rows]
        width = max(self.size.width - _SIZE_COLUMNS - 3, 16)
        files = self.query_one(OptionList)
        files.clear_options()
        files.add_options([Option(_line(path, size, width)) for path, size in rows])
        files.highlighted = 0 if rows else None
        where = display_name(os.path.abspath(self._directory))
        count = count_of(len(self._files), "checkpoint")
        found = f"{len(rows):,} of {count}" if query.strip() else count
        self.query_one("#title", Static).update(Text(f"{found} in {where} and below"))

    def action_move(self, by: int) -> None:
        files = self.query_one(OptionList)
        (files.action_cursor_down if by > 0 else files.action_cursor_up)()

    def action_choose(self) -> None:
        place = self.query_one(OptionList).highlighted
        if place is not None:
            self.exit(self.shown[place])

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.exit(self.shown[event.option_index])


def _line(path: str, size: str, width: int) -> Text:
    name = shorten_middle(display_name(path), width)
    return Text(f" {size:>{_SIZE_COLUMNS - 3}}  {name}", no_wrap=True)
