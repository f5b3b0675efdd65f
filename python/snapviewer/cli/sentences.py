"""Errors in one sentence."""

from __future__ import annotations


def sentence(error: BaseException) -> str:
    """Say what went wrong in one line."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return " ".join(str(error).split())
