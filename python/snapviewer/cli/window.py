"""`open`: the window."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from snapviewer.report.picture import options as pictures

from .arguments import positive
from .errors import CommandError

_ELSEWHERE = (
    "without a window, `snapviewer render FILE -o picture.png` draws the same picture and "
    "`snapviewer report FILE` says what holds the memory"
)


class NoWindowError(CommandError):
    """No window can be opened here."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "files",
        type=Path,
        nargs="*",
        metavar="FILE",
        help="a snapshot, or a bundle's zip or directory; further ones are put in the menu",
    )
    parser.add_argument(
        "-d", "--directory", type=Path, metavar="BUNDLE", help="the same as FILE, as it used to be"
    )
    parser.add_argument(
        "--res",
        type=positive,
        nargs=2,
        metavar=("W", "H"),
        help="width and height of the timeline at first, in pixels",
    )
    parser.add_argument("--theme", choices=get_args(pictures.ThemeName), help="the one used last")
    parser.add_argument(
        "--log", choices=tuple(_LOG_LEVELS), default="warning", help="(%(default)s)"
    )
    parser.set_defaults(run=_open)


_LOG_LEVELS = {"trace": 5, "debug": 10, "info": 20, "warning": 30, "error": 40}


def _open(options: argparse.Namespace) -> None:

    import logging

    logging.basicConfig(
        level=_LOG_LEVELS[options.log], format="%(relativeCreated)7d ms  %(name)s  %(message)s"
    )
    files = [*([options.directory] if options.directory else []), *options.files]
    open_window(files, size=options.res, theme=options.theme)


def open_window(
    files: Sequence[Path] = (), *, size: Sequence[int] | None = None, theme: str | None = None
) -> None:
    """Open the window on files, or on its welcome page, and return when it is closed.

    Raises:
        NoWindowError: There is no Tk, or no display.
    """
    try:
        from snapviewer.gui import app
    except ImportError as error:
        raise NoWindowError(
            f"this Python has no Tk ({error}); install it (such as python3-tk); {_ELSEWHERE}"
        ) from None
    try:
        app.run(files, plot_size=(size[0], size[1]) if size else None, theme=theme or "")
    except app.NoDisplayError:
        raise NoWindowError(f"there is no display to open a window on; {_ELSEWHERE}") from None
