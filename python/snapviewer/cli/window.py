"""`open`: the window."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from .errors import CommandError
from .options import SNAPSHOT, add_log, add_theme, positive

_ELSEWHERE = (
    "without a window, `snapviewer render FILE -o picture.png` draws the same picture and "
    "`snapviewer report FILE` lists what holds the memory"
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
        help=f"{SNAPSHOT}; only the first is opened, the others are added to the recent files",
    )
    # As `gui.py` had it; -d is the device in all other commands.
    parser.add_argument(
        "-d",
        "--directory",
        type=Path,
        metavar="BUNDLE",
        help="the same as FILE" if parser.prog == "gui.py" else argparse.SUPPRESS,
    )
    parser.add_argument(
        "--res",
        type=positive,
        nargs=2,
        metavar=("W", "H"),
        help="width and height of the timeline at first, in pixels",
    )
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="TRACE.json.gz",
        help="PyTorch profiler's trace of the same run, shown below the timeline",
    )
    add_theme(parser)
    add_log(parser)
    parser.set_defaults(run=_open)


def _open(options: argparse.Namespace) -> None:
    files = [*([options.directory] if options.directory else []), *options.files]
    try:
        open_window(files, size=options.res, theme=options.theme, profile=options.trace)
    except NoWindowError:
        if files and not files[0].exists():  # no other command would find it
            raise CommandError(f"no such file: {files[0]}") from None
        raise


def open_window(
    files: Sequence[Path] = (),
    *,
    size: Sequence[int] | None = None,
    theme: str | None = None,
    profile: Path | None = None,
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
        plot_size = (size[0], size[1]) if size else None
        app.run(files, plot_size=plot_size, theme=theme or "", profile=profile)
    except app.NoDisplayError:
        raise NoWindowError(f"there is no display to open a window on; {_ELSEWHERE}") from None
