"""`render`: draw a picture."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from snapviewer._lazy import TYPE_CHECKING
from snapviewer.report.picture import options as pictures
from snapviewer.text.units import parse_duration_us

from .errors import CommandError, UsageError
from .options import (
    add_device,
    add_file,
    add_filter,
    add_json,
    add_output,
    add_theme,
    add_verbosity,
    byte_count,
    load_snapshot,
    picked_device,
    positive,
)
from .outputs import check_outputs, print_json, print_written, write_file, written

if TYPE_CHECKING:
    from snapviewer import Device, Snapshot


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    defaults = pictures.PictureOptions()
    add_file(parser)
    add_output(
        parser,
        "the PNG to write, or a trace for Perfetto: .perfetto-trace or .json",
        is_required=True,
        metavar="PICTURE.png",
    )
    parser.add_argument(
        "--res",
        type=positive,
        nargs=2,
        default=defaults.size,
        metavar=("W", "H"),
        help="width and height of the picture (default: {} {})".format(*defaults.size),
    )
    parser.add_argument(
        "--scale",
        type=int,
        choices=(1, 2),
        default=defaults.scale,
        help="2 doubles the pixels, for prints and sharp screens (default: %(default)s)",
    )
    add_device(parser)
    parser.add_argument(
        "--axis",
        choices=get_args(pictures.Axis),
        default=defaults.axis,
        help="horizontal axis (default: %(default)s)",
    )
    parser.add_argument(
        "--compress-idle", action="store_true", help="with --axis time: shorten idle times"
    )
    parser.add_argument(
        "--range",
        nargs=2,
        metavar=("FROM", "TO"),
        help="part to show: events, or with --axis time durations such as 200ms 1.5s",
    )
    parser.add_argument(
        "--bytes",
        nargs=2,
        type=byte_count,
        metavar=("LOW", "HIGH"),
        help="bytes to show, such as 1GiB 2GiB",
    )
    choices = {
        "color": (pictures.Coloring, "colour by (default: %(default)s)"),
        "order": (pictures.Order, "stacking order (default: %(default)s)"),
    }
    for name, (kind, text) in choices.items():
        default = getattr(defaults, name)
        parser.add_argument(
            f"--{name}", type=_not_age, choices=get_args(kind), default=default, help=text
        )
    parser.add_argument(
        "--lines",
        action="store_true",
        help="draw lines of requested, allocated, active and reserved memory",
    )
    add_theme(parser, default=defaults.theme)
    add_filter(parser)
    parser.add_argument(
        "--dim", action="store_true", help="with --filter: dim the others instead of hiding them"
    )
    parser.add_argument("--title", metavar="TEXT", help="title (default: the file's name)")
    add_json(parser)
    add_verbosity(parser)
    parser.set_defaults(run=_render)


def _not_age(text: str) -> str:
    """Return the newer name of a choice."""
    return "lifetime" if text == "age" else text


def _render(options: argparse.Namespace) -> None:
    # NumPy would start a thread per core to multiply matrices; here there are none.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from snapviewer.report.picture import drawing  # with NumPy and Pillow
    from snapviewer.report.picture.words import NO_MATCH

    try:
        chosen = _chosen_picture(options)
    except ValueError as error:
        raise UsageError(str(error)) from None
    check_outputs(options, inputs=[options.file])
    snapshot = load_snapshot(options.file)
    device = picked_device(snapshot, options.device)
    if traces := [path for path in options.outputs if path.suffix.lower() in _TRACES]:
        _write_traces(snapshot, device, traces)
        if len(traces) == len(options.outputs):
            print_json(written(options)) if options.json else print_written(options)
            return
    try:
        picture = drawing.draw(snapshot, device, chosen, file=options.file.resolve().name)
    except ValueError as error:  # the filter is not understood, or the time is too long
        kind = UsageError if str(error).startswith("filter: ") else CommandError
        raise kind(str(error)) from None
    first, *others = (path for path in options.outputs if path not in traces)
    drawing.write(picture, first)
    for output in others:
        write_file(output, first.read_bytes())
    is_empty = picture.view.timeline.shown == 0 < len(device.allocations)
    if is_empty and not options.quiet:
        print(f"snapviewer: {NO_MATCH}; the picture is empty", file=sys.stderr)
    if options.json:
        print_json({**written(options), **drawing.to_json(picture)})
    else:
        print_written(options, "{} × {} pixels, ".format(*chosen.size_px))


def _write_traces(snapshot: Snapshot, device: Device, outputs: Sequence[Path]) -> None:
    """Write the curves as traces for Perfetto."""
    from snapviewer.report.snapshot import perfetto

    memory = perfetto.memory_of(snapshot, device)
    for output in outputs:
        is_json = output.suffix.lower() == ".json"
        write_file(output, perfetto.as_json(memory) if is_json else perfetto.as_perfetto(memory))


def _chosen_picture(options: argparse.Namespace) -> pictures.PictureOptions:
    """Return what to draw.

    Raises:
        ValueError: The options contradict each other; the message says why.
    """
    if any(output.suffix.lower() in _OTHER_IMAGES for output in options.outputs):
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
        lines=options.lines,
        title=options.title,
    )


_TRACES = (".perfetto-trace", ".json")
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
