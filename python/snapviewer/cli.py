"""The command line: one function a command, and the one place that prints errors.

Exit code 0 is success, 1 a failed operation with one sentence on stderr, 2 wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import errno
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

from snapviewer import Device, Snapshot, SnapshotError, __version__, _core
from snapviewer import demo as demos
from snapviewer.cache import cached_bundle
from snapviewer.progress import progress_bar
from snapviewer.report import info as info_report
from snapviewer.report import table as table_report
from snapviewer.report.picture import options as pictures
from snapviewer.units import parse_bytes, parse_duration_us

Run = Callable[[argparse.Namespace], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    return _run(_parser(), arguments)


def convert_main(arguments: Sequence[str] | None = None) -> int:
    """Run `convert` alone, as `python convert_snap.py` does."""
    parser = argparse.ArgumentParser(prog="convert_snap.py", description=_sentence_of(_CONVERT))
    _convert_options(parser)
    return _run(parser, arguments)


def gui_main(arguments: Sequence[str] | None = None) -> int:
    """Run `open` alone, as `python gui.py` does."""
    parser = argparse.ArgumentParser(prog="gui.py", description=_sentence_of(_OPEN))
    _open_options(parser)
    return _run(parser, arguments)


def _run(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> int:
    _ready_streams()
    options = parser.parse_args(arguments)
    run: Run = options.run
    try:
        run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:
        # Whoever read our output has had enough (`| head`). Nothing more may be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (SnapshotError, OSError) as error:
        return _fail(_sentence(error), 1)
    except MemoryError:
        return _fail("there is not enough memory for this", 1)
    return 0


def _ready_streams() -> None:
    """Let nothing that we print fail for how it is written or because nobody listens."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            # In JSON, that is also how a file name that is no text is written.
            stream.reconfigure(errors="backslashreplace")


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return " ".join(str(error).split())


def _fail(sentence: str, code: int) -> int:
    print(f"snapviewer: {sentence}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="snapviewer", description="Look into PyTorch CUDA memory snapshots."
    )
    parser.add_argument("--version", action="version", version=f"snapviewer {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    opens = commands.add_parser("open", help=_OPEN, description=_sentence_of(_OPEN))
    _open_options(opens)

    convert = commands.add_parser("convert", help=_CONVERT, description=_sentence_of(_CONVERT))
    _convert_options(convert)

    text = "tell what is in a snapshot: devices, peaks, whether it adds up"
    info = commands.add_parser("info", help=text, description=_sentence_of(text))
    info.add_argument("file", type=Path, help="a snapshot, or a bundle's zip or directory")
    info.add_argument("--json", action="store_true", help="print one JSON document")
    info.set_defaults(run=_info)

    text = "ask a snapshot something in SQL"
    query = commands.add_parser(
        "query",
        help=text,
        description=f"{_sentence_of(text)} Tables: {_TABLES}. ARCHITECTURE tells their columns.",
        epilog=f"What holds the memory at the peak: {_EXAMPLE}",
    )
    query.add_argument("file", type=Path, help="a bundle, or a snapshot (converted and cached)")
    query.add_argument("sql", help="one SELECT statement")
    query.add_argument("--json", action="store_true", help="print one JSON document")
    query.add_argument("--max-rows", type=_positive, default=1000, metavar="N", help="default 1000")
    query.add_argument(
        "--max-seconds", type=_seconds, default=30.0, metavar="S", help="give up after this (30)"
    )
    query.set_defaults(run=_query)

    text = "draw a picture of the memory over time, as a PNG"
    render = commands.add_parser("render", help=text, description=_sentence_of(text))
    _render_options(render)

    text = "make a realistic snapshot to try things on"
    demo = commands.add_parser("demo", help=text, description=_sentence_of(text))
    _demo_options(demo)
    return parser


_OPEN = "explore a snapshot in a window"
_CONVERT = "convert a snapshot into a bundle that opens at once"
_TABLES = (
    "allocs, allocations, at_peak, events, frames, stacks, callstacks, identities, segments, "
    "blocks, history, devices, annotations, settings, source_code, metadata"
)
_EXAMPLE = (
    "select sum(size) as bytes, count(*) as n, stack from at_peak group by device, stack "
    "order by bytes desc limit 5"
)


def _sentence_of(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _open_options(parser: argparse.ArgumentParser) -> None:
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
        type=_positive,
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
    elsewhere = (
        "without a window, `snapviewer render FILE -o picture.png` draws the same picture and "
        "`snapviewer report FILE` says what holds the memory"
    )
    try:
        import tkinter

        from snapviewer.gui import app
    except ImportError as error:
        raise SnapshotError(
            f"this Python has no Tk ({error}); install it (such as python3-tk); {elsewhere}"
        ) from None
    try:
        app.run(files, plot_size=options.res and tuple(options.res), theme=options.theme or "")
    except tkinter.TclError as error:
        if "display" not in str(error):
            raise
        raise SnapshotError(f"there is no display to open a window on; {elsewhere}") from None


def _convert_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-i",
        "--input",
        type=Path,
        required=True,
        metavar="SNAPSHOT",
        help="a pickle, JSON, gzip of these, or a memory_viz page",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="BUNDLE",
        help="a zip if the name ends in .zip, otherwise a directory",
    )
    parser.add_argument("-d", "--device", type=_device, metavar="N", help="only this device")
    parser.add_argument("--force", action="store_true", help="replace an output that exists")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=_convert)


def _convert(options: argparse.Namespace) -> None:
    with progress_bar("converting") as progress:
        _core.convert(
            options.input,
            options.output,
            device=options.device,
            force=options.force,
            progress=progress,
        )
    size = _size(options.output)
    if options.json:
        _print_json({"input": str(options.input), "output": str(options.output), "bytes": size})
    else:
        print(f"{options.output}: {size:,} bytes")


def _size(path: Path) -> int:
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def _info(options: argparse.Namespace) -> None:
    with progress_bar("reading") as progress:
        snapshot = _core.load(options.file, progress=progress)
    if options.json:
        _print_json(info_report.as_dict(snapshot, str(options.file)))
    else:
        print(info_report.as_text(snapshot, str(options.file)), end="")


def _query(options: argparse.Namespace) -> None:
    path = options.file
    if not _core.is_bundle(path):
        with progress_bar("converting") as progress:
            path = cached_bundle(path, progress=progress)
    columns, rows, is_truncated = _core.query(
        path, options.sql, max_rows=options.max_rows, max_seconds=options.max_seconds
    )
    if options.json:
        _print_json(table_report.as_dict(columns, rows, is_truncated=is_truncated))
    else:
        is_terminal = sys.stdout.isatty()
        print(table_report.as_text(columns, rows, is_terminal=is_terminal), end="")
        if is_truncated:
            print(
                f"snapviewer: more than {options.max_rows} rows; --max-rows shows more",
                file=sys.stderr,
            )


def _render_options(parser: argparse.ArgumentParser) -> None:
    defaults = pictures.PictureOptions()
    parser.add_argument("file", type=Path, help="a snapshot, or a bundle's zip or directory")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="PICTURE.png")
    parser.add_argument(
        "--res",
        type=_positive,
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
        type=_device,
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
        "--bytes", nargs=2, type=_bytes, metavar=("LOW", "HIGH"), help="such as 1GiB 2GiB"
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
    _refuse_to_replace(options)
    if options.output.exists() and options.output.samefile(options.file):
        raise OSError(errno.EINVAL, "the output is the snapshot itself", str(options.output))
    with progress_bar("reading") as progress:
        snapshot = _core.load(options.file, progress=progress)
    device = _picked_device(snapshot, options.device)
    try:
        picture = drawing.draw(snapshot, device, chosen, file=options.file.resolve().name)
    except ValueError as error:  # a filter that is not understood
        raise SnapshotError(str(error)) from None
    drawing.write(picture, options.output)
    if picture.view.timeline.shown == 0 < len(device.allocations):
        print(f"snapviewer: {NO_MATCH}; the picture is empty", file=sys.stderr)
    if options.json:
        _print_json({"output": str(options.output), **picture.as_dict()})
    else:
        size = "{} × {}".format(*chosen.size_px)
        print(f"{options.output}: {size} pixels, {_size(options.output):,} bytes")


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


def _picked_device(snapshot: Snapshot, index: int | None) -> Device:
    devices = snapshot.devices
    if not devices:
        raise SnapshotError("there is no device in this file")
    if index is None:
        return max(devices, key=lambda device: device.peak_bytes)
    found = [device for device in devices if device.index == index]
    if not found:
        there = ", ".join(str(device.index) for device in devices)
        raise SnapshotError(f"there is no device {index} in this file; there is {there}")
    return found[0]


_DEMO_FLAGS = {
    "expandable": "expandable segments, with map and unmap",
    "private_pools": "private pools, as CUDA graphs have",
    "oom": "an allocation that fails, and retries",
    "ring": "a full ring buffer: the oldest events are lost",
    "host": "pinned host memory",
    "leak": "a tensor that each step keeps for ever",
    "compiled": "deep and varied stacks, as torch.compile's",
}


def _demo_options(parser: argparse.ArgumentParser) -> None:
    defaults = demos.DemoOptions()
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="SNAPSHOT")
    numbers = {
        "events": "how long each device's trace is (%(default)s)",
        "seed": "another one makes other sizes and times (%(default)s)",
        "devices": "how many devices train (%(default)s)",
        "streams": "above 1, frees are deferred now and then (%(default)s)",
        "live": "about how many allocations are alive at a time (600)",
    }
    for name, text in numbers.items():
        kind = _whole if name == "seed" else _positive
        default = getattr(defaults, name)
        parser.add_argument(f"--{name}", type=kind, default=default, metavar="N", help=text)
    parser.add_argument(
        "--protocol", type=int, choices=(2, 4, 5), default=4, help="of the pickle (%(default)s)"
    )
    parser.add_argument(
        "--context",
        choices=("alloc", "all"),
        default=defaults.context,
        help="whether frees have stacks of their own (all) or repeat the allocation's",
    )
    parser.add_argument(
        "--from-the-start",
        action="store_true",
        help="record from an empty device on, rather than after the model was loaded",
    )
    for name, text in _DEMO_FLAGS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=text)
    parser.add_argument("--force", action="store_true", help="replace an output that exists")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=_demo, parser=parser)


def _demo(options: argparse.Namespace) -> None:
    try:
        chosen = _chosen_demo(options)
    except ValueError as error:
        options.parser.error(str(error))
    _refuse_to_replace(options)
    with progress_bar("making") as progress:
        demos.write_demo(options.output, chosen, protocol=options.protocol, progress=progress)
    size = _size(options.output)
    if options.json:
        _print_json({"output": str(options.output), "bytes": size, "events": options.events})
    else:
        print(f"{options.output}: {size:,} bytes")


def _refuse_to_replace(options: argparse.Namespace) -> None:
    output = options.output
    if output.is_dir() or not os.path.lexists(output):
        return
    if output.exists() and not output.is_file():
        raise OSError(errno.EINVAL, "the output is not a regular file", str(output))
    if not options.force:
        raise FileExistsError(
            errno.EEXIST,
            "the output exists already; choose another name, or replace it with --force",
            str(output),
        )


def _chosen_demo(options: argparse.Namespace) -> demos.DemoOptions:
    return demos.DemoOptions(
        events=options.events,
        seed=options.seed,
        devices=options.devices,
        streams=options.streams,
        live=options.live,
        context=options.context,
        before_recording=not options.from_the_start,
        **{name: getattr(options, name) for name in _DEMO_FLAGS},
    )


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be a whole number, such as 1000") from None


def _positive(text: str) -> int:
    number = _whole(text)
    if not 1 <= number < 2**63:
        raise argparse.ArgumentTypeError("must be 1 or more" if number < 1 else "is too large")
    return number


def _device(text: str) -> int:
    number = _whole(text)
    if not -1 <= number < 2**31:
        raise argparse.ArgumentTypeError("must be 0 or more, or -1 for pinned host memory")
    return number


def _bytes(text: str) -> int:
    try:
        number = parse_bytes(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError("must be a number of bytes, such as 512MiB") from None
    if not 0 <= number < 2**64:
        raise argparse.ArgumentTypeError("must be 0 or more" if number < 0 else "is too large")
    return number


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be a number of seconds") from None
    if not number > 0:  # nor is NaN
        raise argparse.ArgumentTypeError("must be more than 0")
    return number


def _print_json(document: object) -> None:
    is_ascii = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    json.dump(document, sys.stdout, indent=2, ensure_ascii=is_ascii, default=bytes.hex)
    sys.stdout.write("\n")
