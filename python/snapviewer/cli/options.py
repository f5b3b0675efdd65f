"""Options that several commands share, and numbers as people type them.

An option is written once, here, so that it means the same in every command.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from snapviewer._lazy import TYPE_CHECKING
from snapviewer.snapshot.moments import device_of, event_of
from snapviewer.text.units import parse_bytes

from .errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snapviewer._core import Device, Snapshot

SNAPSHOT = "a snapshot, or a bundle's zip or directory"
LOG_LEVELS = {"trace": 5, "debug": 10, "info": 20, "warning": 30, "error": 40}
THEMES = ("light", "dark")
_EVENTS = ("peak", "oom", "end")


def add_file(
    parser: argparse.ArgumentParser, about: str = SNAPSHOT, *, is_optional: bool = False
) -> None:
    """Add the file that the command reads."""
    nargs = "?" if is_optional else None
    parser.add_argument("file", type=Path, nargs=nargs, metavar="FILE", help=about)


def add_output(
    parser: argparse.ArgumentParser,
    about: str,
    *,
    is_required: bool = False,
    is_single: bool = False,
    metavar: str = "FILE",
    has_force: bool = True,
) -> None:
    """Add `-o`, which may be repeated, and `--force`, unless outputs are always replaced.

    If `is_single`, the command itself refuses a repeated `-o`.
    """
    parser.add_argument(
        "-o",
        "--output",
        dest="outputs",
        action="append",
        type=Path,
        default=None if is_required else [],
        required=is_required,
        metavar=metavar,
        help=about if is_single else f"{about}; may be repeated",
    )
    if has_force:
        parser.add_argument("--force", action="store_true", help="replace outputs that exist")


def add_results(parser: argparse.ArgumentParser, about: str) -> None:
    """Add `--json`, `-o` for text or JSON, and the options of verbosity."""
    add_json(parser)
    add_output(parser, f"{about}: .txt or .json")
    add_verbosity(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_device(
    parser: argparse.ArgumentParser, about: str = "device to show (default: the largest peak)"
) -> None:
    """Add `-d`."""
    parser.add_argument(
        "-d", "--device", type=device_index, metavar="N", help=f"{about}; -1 is pinned host memory"
    )


def add_event(parser: argparse.ArgumentParser) -> None:
    """Add `--event`; `picked_event` returns what it stands for."""
    parser.add_argument(
        "--event",
        type=_event,
        default="peak",
        metavar="N|peak|oom|end",
        help="show the memory after this event (default: peak); -1 is before the first, "
        "oom the first that ran out of memory",
    )


def add_filter(parser: argparse.ArgumentParser) -> None:
    """Add `--filter`, which may be repeated."""
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="TEXT",
        help="show only matching allocations, such as 'attention|mlp size>=1MiB'; may be repeated",
    )


def add_top(parser: argparse.ArgumentParser, what: str, *, default: int | None = None) -> None:
    """Add `--top`; 0 becomes a number larger than any count."""
    parser.add_argument("--top", type=_top, default=default, metavar="N", help=f"{what}; 0 for all")


def add_depth(parser: argparse.ArgumentParser, about: str) -> None:
    """Add `--depth`."""
    parser.add_argument("--depth", type=positive, metavar="N", help=about)


def add_sort(
    parser: argparse.ArgumentParser,
    choices: Sequence[str],
    *,
    default: str | None = None,
    about: str = "order of the rows (default: %(default)s)",
    aliases: Mapping[str, str] | None = None,
) -> None:
    """Add `--sort`; `aliases` are older words for some of the choices."""

    def choice(text: str) -> str:
        return (aliases or {}).get(text, text)

    parser.add_argument("--sort", type=choice, choices=choices, default=default, help=about)


def add_compare(parser: argparse.ArgumentParser, *aliases: str) -> None:
    """Add `--compare` and `--baseline`; `compared` returns what they stand for."""
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--compare", *aliases, metavar="OTHER", help="show what changes from FILE to OTHER"
    )
    either.add_argument("--baseline", metavar="OTHER", help="show what changed from OTHER to FILE")


def compared(options: argparse.Namespace) -> tuple[str, str] | None:
    """Return the files to compare, the older one first; None if there is only one."""
    if options.compare is not None:
        return options.file, options.compare
    return None if options.baseline is None else (options.baseline, options.file)


def add_theme(parser: argparse.ArgumentParser, *, default: str | None = None) -> None:
    """Add `--theme`."""
    usual = default or "last used"
    parser.add_argument(
        "--theme", choices=THEMES, default=default, help=f"colours (default: {usual})"
    )


def add_verbosity(parser: argparse.ArgumentParser) -> None:
    """Add `-q` and `--log`."""
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print results and errors only, no progress"
    )
    add_log(parser)


def add_log(parser: argparse.ArgumentParser) -> None:
    """Add `--log`."""
    parser.add_argument(
        "--log",
        dest="log_level",
        choices=tuple(LOG_LEVELS),
        metavar="LEVEL",
        help="messages to print: trace, debug, info, warning (default) or error; debug "
        "and trace add a traceback to errors",
    )


def whole(text: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be a whole number, such as 1000") from None


def positive(text: str) -> int:
    """Read a whole number from 1 on."""
    number = whole(text)
    if not 1 <= number < 2**63:
        raise argparse.ArgumentTypeError("must be 1 or more" if number < 1 else "is too large")
    return number


def device_index(text: str) -> int:
    """Read the number of a device."""
    number = whole(text)
    if not -1 <= number < 2**31:
        raise argparse.ArgumentTypeError("must be 0 or more, or -1 for pinned host memory")
    return number


def byte_count(text: str) -> int:
    """Read a number of bytes, such as 512MiB."""
    try:
        number = parse_bytes(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError("must be a number of bytes, such as 512MiB") from None
    if not 0 <= number < 2**64:
        raise argparse.ArgumentTypeError("must be 0 or more" if number < 0 else "is too large")
    return number


def percent(text: str) -> float:
    """Read a percentage, such as 2%."""
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1e6:  # nor is NaN
        raise argparse.ArgumentTypeError("must be a percentage, such as 2%")
    return number


def seconds(text: str) -> float:
    """Read a number of seconds."""
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be a number of seconds") from None
    if not number > 0:  # nor is NaN
        raise argparse.ArgumentTypeError("must be more than 0")
    return number


def _top(text: str) -> int:
    number = whole(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return number or sys.maxsize


def _event(text: str) -> int | str:
    if text in _EVENTS:
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be an event's number, peak, oom or end") from None


def load_snapshot(file: Path, *, rules: Sequence[tuple[str, str]] = ()) -> Snapshot:
    """Read a snapshot, with a progress bar."""
    from snapviewer import _core
    from snapviewer.text.progress import progress_bar

    with progress_bar("reading") as progress:
        return _core.load(file, rules=rules, progress=progress)


def picked_device(snapshot: Snapshot, index: int | None) -> Device:
    """Return the device that was asked for; if none was, the one with the largest peak."""
    try:
        return device_of(snapshot, index)
    except ValueError as error:
        raise CommandError(str(error)) from None


def picked_event(device: Device, event: int | str) -> int:
    """Return the event that `--event` stands for on a device; -1 is before the first."""
    try:
        return event_of(device, event)
    except ValueError as error:
        raise CommandError(str(error)) from None
