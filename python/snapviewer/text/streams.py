"""Standard output and standard error, as programs find them: encoded somehow, or closed."""

from __future__ import annotations

import io
import os
import sys


def ready_streams() -> None:
    """Let nothing that we print fail for how it is written or because nobody listens."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            # In JSON, that is also how a file name that is no text is written.
            stream.reconfigure(errors="backslashreplace")


def close_output() -> None:
    """Write nothing more: whoever read our output has had enough (`| head`)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
