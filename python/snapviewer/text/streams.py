"""Standard output and standard error, which may have any encoding, or be closed.

With `make_streams_harmless`, whatever is printed only shows letters: the last line of defence
against text of a file that nobody sanitized.
"""

from __future__ import annotations

import io
import os
import sys

from snapviewer._lazy import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TextIO


class _HarmlessStream:
    """A text stream that replaces what a terminal would interpret."""

    def __init__(self, stream: TextIO) -> None:
        self.wrapped = stream

    def write(self, text: str) -> int:
        return self.wrapped.write(_without_controls(text))

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)


def make_streams_harmless() -> tuple[TextIO, TextIO]:
    """Make printing safe: no control characters, no encoding errors, no closed stream.

    Returns:
        Standard output and standard error as they were, to be put back.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_harmless, before)
    return before


def _harmless(stream: TextIO | None) -> Any:
    if stream is None:
        stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    elif isinstance(stream, io.TextIOWrapper):
        # Also how file names that are not text are written in JSON.
        stream.reconfigure(errors="backslashreplace")
    return _HarmlessStream(stream)


def _without_controls(text: str) -> str:
    if text.replace("\n", "").isprintable():
        return text  # most text, for which nothing more is imported
    from snapviewer.text.sanitize import replace_controls

    return replace_controls(text)


def unfiltered(stream: TextIO) -> TextIO:
    """Return the stream below a harmless one, for what the program itself moves on a terminal."""
    while isinstance(stream, _HarmlessStream):
        stream = stream.wrapped
    return stream


def print_text(text: str) -> None:
    """Print a text as a library, which leaves the streams as they are."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    text = _without_controls(text)
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def close_output() -> None:
    """Discard further output, after the reader has closed the pipe (`| head`)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
