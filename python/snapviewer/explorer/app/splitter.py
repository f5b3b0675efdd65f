"""The border between the tree and the panel; it can be dragged."""

from __future__ import annotations

from rich.text import Text
from textual.app import RenderResult
from textual.events import MouseDown, MouseMove, MouseUp
from textual.message import Message
from textual.widget import Widget


class Splitter(Widget):
    """A line that says where it is dragged to."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Splitter { width: 1; height: 1fr; color: $grid; }
    Splitter.-lying { width: 1fr; height: 1; }
    Splitter:hover, Splitter.-dragged { color: $accent; }
    """

    class Moved(Message):
        """The border was dragged to a cell of the screen."""

        def __init__(self, x: int, y: int) -> None:
            super().__init__()
            self.x, self.y = x, y

    def lie(self, *, is_lying: bool) -> None:
        """Lie between what is above and below, or stand between left and right."""
        self.set_class(is_lying, "-lying")

    def render(self) -> RenderResult:
        if self.has_class("-lying"):
            return Text("─" * self.size.width, no_wrap=True)
        return Text("\n".join("│" * self.size.height))

    def on_mouse_down(self, event: MouseDown) -> None:
        event.stop()
        self.add_class("-dragged")
        self.capture_mouse()

    def on_mouse_up(self, _event: MouseUp) -> None:
        self.remove_class("-dragged")
        self.release_mouse()

    def on_mouse_move(self, event: MouseMove) -> None:
        if self.has_class("-dragged"):
            self.post_message(self.Moved(event.screen_x, event.screen_y))
