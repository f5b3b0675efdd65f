"""Why a command fails: its sentence and its exit code."""

from __future__ import annotations

import errno
import os
import sys

from snapviewer.text.sanitize import replace_unprintable

_CORE = "snapviewer._core"


class CommandError(Exception):
    """A command cannot do what was asked; the message is the sentence to print."""


class UsageError(CommandError):
    """The arguments make no sense."""


class CheckFailed(CommandError):  # noqa: N818 - not an error of the command: its answer is no
    """A check that was asked for, such as `--fail-over`, failed."""


def exit_code(error: Exception) -> int | None:
    """Return the exit code for a failure; None for what is a bug."""
    if isinstance(error, UsageError):
        return 2
    if isinstance(error, CheckFailed):
        return 3
    if isinstance(error, ModuleNotFoundError) and error.name == _CORE:
        return 1
    core = sys.modules.get(_CORE)
    expected = (CommandError, OSError, MemoryError, *([core.SnapshotError] if core else []))
    return 1 if isinstance(error, expected) else None


def sentence(error: BaseException) -> str:
    """Return what went wrong, on one line."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    if isinstance(error, ModuleNotFoundError):
        return f"{error}: run `make run` once and use .venv/bin/python, or `pip install .`"
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    else:
        named = str(error)
    if isinstance(error, FileNotFoundError):
        named = named.replace(os.strerror(errno.ENOENT), "no such file", 1)
    return replace_unprintable(" ".join(named.split()), keep_undecoded=True)
