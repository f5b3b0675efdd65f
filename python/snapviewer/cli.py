"""The command line: one function a command, and the one place that prints errors.

Exit code 0 is success, 1 a failed operation with one sentence on stderr, 2 wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from snapviewer import SnapshotError, __version__, _core
from snapviewer import demo as demos
from snapviewer.cache import cached_bundle
from snapviewer.progress import progress_bar
from snapviewer.report import info as info_report
from snapviewer.report import table as table_report

Run = Callable[[argparse.Namespace], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    return _run(_parser(), arguments)


def convert_main(arguments: Sequence[str] | None = None) -> int:
    """Run `convert` alone, as `python convert_snap.py` does."""
    parser = argparse.ArgumentParser(prog="convert_snap.py", description=_sentence_of(_CONVERT))
    _convert_options(parser)
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

    text = "make a realistic snapshot to try things on"
    demo = commands.add_parser("demo", help=text, description=_sentence_of(text))
    _demo_options(demo)
    return parser


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
    if options.output.exists() and not options.output.is_dir() and not options.force:
        raise FileExistsError(
            errno.EEXIST,
            "the output exists already; choose another name, or replace it with --force",
            str(options.output),
        )
    with progress_bar("making") as progress:
        demos.write_demo(options.output, chosen, protocol=options.protocol, progress=progress)
    size = _size(options.output)
    if options.json:
        _print_json({"output": str(options.output), "bytes": size, "events": options.events})
    else:
        print(f"{options.output}: {size:,} bytes")


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
