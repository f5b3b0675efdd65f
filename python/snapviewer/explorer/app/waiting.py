"""What is shown while something takes long: what it is, how far it is, and how to end it."""

from __future__ import annotations

from rich.text import Text

_CELLS = 30


def waiting(words: str, done: int, total: int, *, is_centred: bool = False) -> Text:
    """Say what is under way; without a total, that it is."""
    share = min(done / total, 1.0) if total else 0.0
    filled = round(_CELLS * share)
    text = Text(f"{words} …\n\n", justify="center" if is_centred else "left")
    text.append("━" * filled, "blue").append("─" * (_CELLS - filled), "dim")
    text.append(f" {share:4.0%}" if total else "     ")
    return text.append("\n\nEsc cancels", "dim")
