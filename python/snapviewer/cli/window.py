"""`open`: the window."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import get_args

from snapviewer import SnapshotError
from snapviewer.report.picture import options as pictures

from .arguments import positive

ABOUT = "explore a snapshot in a window"
_ELSEWHERE = (
    "without a window, `snapviewer render FILE -o picture.png` draws the same picture and "
    "`snapviewer report FILE` says what holds the memory"
)


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
    logging.basicConfig(
        level=_LOG_LEVELS[options.log], format="%(relativeCreated)7d ms  %(name)s  %(message)s"
    )
    files = [*([options.directory] if options.directory else []), *options.files]
    try:
        from snapviewer.gui import app
    except ImportError as error:
        raise SnapshotError(
            f"this Python has no Tk ({error}); install it (such as python3-tk); {_ELSEWHERE}"
        ) from None
    size = None if options.res is None else (options.res[0], options.res[1])
    try:
        app.run(files, plot_size=size, theme=options.theme or "")
    except app.NoDisplayError:
        raise SnapshotError(f"there is no display to open a window on; {_ELSEWHERE}") from None
