"""Standard output and standard error, which may have any encoding, or be closed."""

from __future__ import annotations

import io
import os
import sys


def ready_streams() -> None:
    """Make printing safe: letters that a stream cannot encode are escaped, a closed one ignored."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            # Also how file names that are not text are written in JSON.
            stream.reconfigure(errors="backslashreplace")


def print_text(text: str) -> None:
    """Print a text as a library, which leaves the streams as they are: see `ready_streams`."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def close_output() -> None:
    """Discard further output, after the reader has closed the pipe (`| head`)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
