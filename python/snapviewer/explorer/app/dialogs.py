"""Dialogs over the tree: the keys, and the choice of labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.events import Click
from textual.screen import ModalScreen
from textual.widgets import Static

from snapviewer.explorer.app.keys import GROUPS, MOUSE
from snapviewer.explorer.view.row_labels import ROW_LABELS

DIALOG_CSS = """
{name} {{ align: center middle; background: $background 60%; }}
{name} > * {{ width: auto; max-width: 96%; height: auto; max-height: 94%; padding: 1 2;
    background: $background; border: round $accent; border-title-color: $foreground;
    border-subtitle-color: $quiet; scrollbar-size-vertical: 1; }}
{name} Static {{ width: auto; height: auto; }}
"""


def hidden_bindings(keys: str) -> list[BindingType]:
    """Return bindings that the footer does not show, from `keys|action` pairs."""
    pairs = (pair.split("|") for pair in keys.split())
    return [Binding(key, action, show=False) for key, action in pairs]


class HelpScreen(ModalScreen[None]):
    """Lists every key and what it does."""

    DEFAULT_CSS = (
        DIALOG_CSS.format(name="HelpScreen")
        + """
    HelpScreen > VerticalScroll { width: 96%; max-width: 130; padding: 0 1; }
    HelpScreen Static { width: 1fr; margin: 1 1 0 0; }
    HelpScreen #groups { layout: horizontal; height: auto; width: 100%; }
    HelpScreen #groups > Vertical { width: 1fr; height: auto; }
    HelpScreen.-slim #groups { layout: vertical; }
    """
    )
    BINDINGS = hidden_bindings(
        "escape,q,question_mark,enter|dismiss  down,j|scroll(1)  up,k|scroll(-1)"
        "  pagedown,space|scroll(10)  pageup|scroll(-10)"
    )

    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=False) as box:
            box.border_title = "Keys"
            box.border_subtitle = "↑ ↓ scroll · Esc closes"
            tables = [
                _table(title, [(key.shown, key.words) for key in keys])
                for title, keys in GROUPS.items()
            ]
            half = len(tables) // 2
            with Container(id="groups"):
                with Vertical():
                    yield from map(Static, tables[:half])
                with Vertical():
                    yield from map(Static, [*tables[half:], _table("Mouse", MOUSE)])

    def on_resize(self) -> None:
        self.set_class(self.app.size.width < 110, "-slim")

    def action_scroll(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def on_click(self, event: Click) -> None:
        if event.widget is self:
            self.dismiss()


def _table(title: str, lines: Sequence[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=9, justify="right", no_wrap=True)
    table.add_column()
    table.add_row("", Text(title, "bold"))
    for key, words in lines:
        table.add_row(Text(key, "bold cyan"), Text(words))
    return table


class LabelScreen(ModalScreen[None]):
    """Chooses the labels of rows and their order."""

    DEFAULT_CSS = DIALOG_CSS.format(name="LabelScreen")
    BINDINGS = hidden_bindings(
        "escape,q,L|dismiss  down,j|move(1)  up,k|move(-1)  space,enter|switch"
        "  J,shift+down|shift(1)  K,shift+up|shift(-1)"
    )

    def __init__(
        self,
        labels: Sequence[str],
        switched_on: Sequence[str],
        on_change: Callable[[tuple[str, ...], tuple[str, ...]], None],
    ) -> None:
        super().__init__()
        self._on_change = on_change
        self._labels = list(labels)
        self._on = set(switched_on)
        self._row = 0

    def compose(self) -> ComposeResult:
        box = Static(id="labels")
        box.border_title = "Labels"
        box.border_subtitle = "Space on/off · J K reorder · Esc closes"
        yield box

    def on_mount(self) -> None:
        self._show()

    def action_move(self, by: int) -> None:
        self._row = (self._row + by) % len(self._labels)
        self._show()

    def action_switch(self) -> None:
        self._on ^= {self._labels[self._row]}
        self._changed()

    def action_shift(self, by: int) -> None:
        other = self._row + by
        if 0 <= other < len(self._labels):
            labels = self._labels
            labels[self._row], labels[other] = labels[other], labels[self._row]
            self._row = other
            self._changed()

    def on_click(self, event: Click) -> None:
        if event.widget is self:
            self.dismiss()
            return
        row = event.y - 2
        if 0 <= row < len(self._labels):
            self._row = row
            self.action_switch()

    def _changed(self) -> None:
        self._show()
        on = tuple(name for name in self._labels if name in self._on)
        self._on_change(tuple(self._labels), on)

    def _show(self) -> None:
        text = Text()
        for row, name in enumerate(self._labels):
            mark = "✓" if name in self._on else " "
            line = f" {mark} {ROW_LABELS[name].title:<34}{ROW_LABELS[name].letter} "
            text.append(line, "bold reverse" if row == self._row else "")
            text.append("\n" if row < len(self._labels) - 1 else "")
        self.query_one("#labels", Static).update(text)
