"""Errors in one sentence."""

from __future__ import annotations

from snapviewer.text.sanitize import replace_unprintable


def sentence(error: BaseException) -> str:
    """Say what went wrong in one line."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        return _on_one_line(named)
    return _on_one_line(str(error))


def _on_one_line(text: str) -> str:
    """Leave out what a terminal would obey; bytes of names that are no text stay to be told."""
    return replace_unprintable(" ".join(text.split()), keep_undecoded=True)
