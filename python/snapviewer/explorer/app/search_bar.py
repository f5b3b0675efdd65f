"""The search line."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from snapviewer.explorer.view.search import MAX_QUERY_CHARS, Query


class SearchInput(Input):
    """The input of the search line; up and down go to matches."""

    BINDINGS = [  # noqa: RUF012 (Textual's own type)
        Binding("enter", "submit", "keep the filter", key_display="Enter"),
        Binding("escape", "app.escape", "clear", key_display="Esc"),
        Binding("down", "app.next_match(1)", "matches", key_display="↑ ↓"),
        Binding("up", "app.next_match(-1)", show=False),
        Binding("ctrl+r,f2", "app.toggle_regex", "fuzzy or regex", key_display="Ctrl+R"),
    ]

    def on_mount(self) -> None:
        self.cursor_blink = False

    def check_consume_key(self, key: str, character: str | None) -> bool:
        # Textual does not know which letter this key types, and would show it in the footer.
        return key == "slash" or super().check_consume_key(key, character)


class SearchBar(Horizontal):
    """The query, the mode, and the number of matches."""

    DEFAULT_CSS = """
    SearchBar { height: 1; display: none; background: $background; }
    SearchBar.-open { display: block; }
    SearchBar > #slash { width: 3; color: $accent; text-style: bold; }
    SearchBar > Input { width: 1fr; background: $background; }
    SearchBar > #found { width: auto; color: $quiet; padding: 0 1; }
    SearchBar.-bad > #found { color: $error; }
    """

    class Typed(Message):
        """The query changed."""

        def __init__(self, query: Query) -> None:
            super().__init__()
            self.query = query

    class Kept(Message):
        """Enter: the filter stays."""

    def __init__(self, *, is_regex: bool = False, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.is_regex = is_regex

    def compose(self) -> ComposeResult:
        yield Static(" / ", id="slash")
        yield SearchInput(
            placeholder="name, class, or letters of a path",
            compact=True,
            max_length=MAX_QUERY_CHARS,
        )
        yield Static(id="found")

    @property
    def typed_query(self) -> Query:
        return Query(self.query_one(Input).value, self.is_regex)

    def open(self) -> None:
        """Show the line and focus it."""
        self.add_class("-open")
        self.query_one(Input).focus()
        self.show_result(0, "")

    def close(self) -> None:
        """Hide the line and clear it."""
        self.remove_class("-open")
        with self.prevent(Input.Changed):
            self.query_one(Input).value = ""

    def toggle_regex(self) -> None:
        """Switch between regex and fuzzy search."""
        self.is_regex = not self.is_regex
        self.post_message(self.Typed(self.typed_query))

    def show_result(self, matches: int, error: str) -> None:
        """Show the number of matches, or what is wrong."""
        self.set_class(bool(error), "-bad")
        mode = "regex" if self.is_regex else "fuzzy"
        other = "fuzzy" if self.is_regex else "regex"
        has_text = bool(self.typed_query.text.strip())
        count = "no match" if not matches else f"{matches:,} match{'es' * (matches > 1)}"
        result = error or (count if has_text else "")
        hint = f"{mode} · Ctrl+R {other}"
        self.query_one("#found", Static).update(Text(f"{result} · {hint}" if result else hint))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Typed(self.typed_query))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Kept())
