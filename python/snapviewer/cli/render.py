"""`render`: a picture."""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from snapviewer import SnapshotError, _core
from snapviewer.report.picture import options as pictures
from snapviewer.text.progress import progress_bar
from snapviewer.text.units import parse_duration_us

from .arguments import (
    byte_count,
    device_index,
    picked_device,
    positive,
    print_json,
    refuse_to_replace,
    size_of,
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    defaults = pictures.PictureOptions()
    parser.add_argument("file", type=Path, help="a snapshot, or a bundle's zip or directory")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="PICTURE.png")
    parser.add_argument(
        "--res",
        type=positive,
        nargs=2,
        default=defaults.size,
        metavar=("W", "H"),
        help="width and height of the whole picture ({} {})".format(*defaults.size),
    )
    parser.add_argument(
        "--scale",
        type=int,
        choices=(1, 2),
        default=defaults.scale,
        help="2: twice as many pixels each way, for a sharp print or screen (%(default)s)",
    )
    parser.add_argument(
        "-d",
        "--device",
        type=device_index,
        metavar="N",
        help="which one (the one with the largest peak)",
    )
    parser.add_argument(
        "--axis",
        choices=get_args(pictures.Axis),
        default=defaults.axis,
        help="what goes from left to right (%(default)s)",
    )
    parser.add_argument(
        "--compress-idle", action="store_true", help="with --axis time: shorten long idle times"
    )
    parser.add_argument(
        "--range",
        nargs=2,
        metavar=("FROM", "TO"),
        help="show these events only; with --axis time this time, such as 1.5s 200ms 2min",
    )
    parser.add_argument(
        "--bytes", nargs=2, type=byte_count, metavar=("LOW", "HIGH"), help="such as 1GiB 2GiB"
    )
    choices = {
        "color": (pictures.Coloring, "what a colour tells (%(default)s)"),
        "order": (pictures.Order, "what lies on what (%(default)s)"),
        "theme": (pictures.ThemeName, "(%(default)s)"),
    }
    for name, (kind, text) in choices.items():
        default = getattr(defaults, name)
        parser.add_argument(f"--{name}", choices=get_args(kind), default=default, help=text)
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="TEXT",
        help="show only what this holds for, such as 'attention|mlp size>=1MiB'; may be repeated",
    )
    parser.add_argument(
        "--dim", action="store_true", help="with --filter: dim the others, do not leave them out"
    )
    parser.add_argument("--title", metavar="TEXT", help="instead of the file's name")
    parser.add_argument("--force", action="store_true", help="replace an output that exists")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=_render, parser=parser)


def _render(options: argparse.Namespace) -> None:
    from snapviewer.report.picture import drawing  # with Pillow, which other commands do not need
    from snapviewer.report.picture.words import NO_MATCH

    try:
        chosen = _chosen_picture(options)
    except ValueError as error:
        options.parser.error(str(error))
    refuse_to_replace(options)
    if options.output.exists() and options.output.samefile(options.file):
        raise OSError(errno.EINVAL, "the output is the snapshot itself", str(options.output))
    with progress_bar("reading") as progress:
        snapshot = _core.load(options.file, progress=progress)
    device = picked_device(snapshot, options.device)
    try:
        picture = drawing.draw(snapshot, device, chosen, file=options.file.resolve().name)
    except ValueError as error:  # a filter that is not understood
        raise SnapshotError(str(error)) from None
    drawing.write(picture, options.output)
    if picture.view.timeline.shown == 0 < len(device.allocations):
        print(f"snapviewer: {NO_MATCH}; the picture is empty", file=sys.stderr)
    if options.json:
        print_json({"output": str(options.output), **drawing.to_json(picture)})
    else:
        size = "{} × {}".format(*chosen.size_px)
        print(f"{options.output}: {size} pixels, {size_of(options.output):,} bytes")


def _chosen_picture(options: argparse.Namespace) -> pictures.PictureOptions:
    """Turn what was typed into what is asked for.

    Raises:
        ValueError: It makes no sense; the message says why.
    """
    if options.output.suffix.lower() in _OTHER_IMAGES:
        raise ValueError("argument -o: the picture is a PNG; choose a name that ends in .png")
    if options.compress_idle and options.axis != "time":
        raise ValueError("argument --compress-idle: needs --axis time")
    if options.dim and not options.filter:
        raise ValueError("argument --dim: needs --filter")
    span = options.range and _span(options.range, is_time=options.axis == "time")
    if options.bytes and options.bytes[0] >= options.bytes[1]:
        raise ValueError("argument --bytes: LOW must be less than HIGH")
    return pictures.PictureOptions(
        size=tuple(options.res),
        scale=options.scale,
        axis=options.axis,
        shorten_idle=options.compress_idle,
        span=span,
        byte_span=options.bytes and tuple(options.bytes),
        color=options.color,
        order=options.order,
        filters=tuple(text for text in options.filter if text.strip()),
        dim=options.dim,
        theme=options.theme,
        title=options.title,
    )


_OTHER_IMAGES = {".jpg", ".jpeg", ".gif", ".svg", ".pdf", ".webp", ".bmp", ".tif", ".tiff", ".html"}


def _span(texts: Sequence[str], *, is_time: bool) -> tuple[float, float]:
    try:
        low, high = (
            parse_duration_us(text) if is_time else int(text.replace(",", "")) for text in texts
        )
    except (ValueError, KeyError):
        what = "times, such as 1.5s 200ms 2min" if is_time else "events, such as 1000 2000"
        raise ValueError(f"argument --range: FROM and TO are {what}") from None
    if not 0 <= low < high < 2**63:
        raise ValueError("argument --range: FROM must be 0 or more, and less than TO")
    return low, high
