"""`tree`: who holds the memory, through which callers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from snapviewer.report.call_tree import picture, profiles
from snapviewer.report.call_tree import text as tree_text

from .errors import CommandError, UsageError
from .options import (
    add_device,
    add_event,
    add_file,
    add_filter,
    add_json,
    add_output,
    add_theme,
    add_top,
    add_verbosity,
    load_snapshot,
    picked_device,
    picked_event,
    whole,
)
from .outputs import FORMATS, answer, check_outputs, output_width

_FORMATS = (*FORMATS, ".html", ".svg", ".folded", ".speedscope.json", ".pb.gz")
_TOP = 40


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_file(parser)
    add_device(parser)
    add_event(parser)
    parser.add_argument(
        "--events",
        type=whole,
        nargs=2,
        metavar=("FIRST", "LAST"),
        help="with --measure allocated or time: count these events (default: all)",
    )
    parser.add_argument(
        "--measure",
        choices=("alive", "allocated", "time"),
        default="alive",
        help="what a node weighs: bytes alive after the event, bytes allocated by some events, "
        "or bytes × time (default: %(default)s)",
    )
    parser.add_argument(
        "--by",
        choices=("line", "function", "file"),
        default="line",
        help="what a node is (default: %(default)s)",
    )
    parser.add_argument(
        "--frames",
        choices=("folded", "own", "all"),
        default="folded",
        help="folded: PyTorch's frames between others are one node; own: only your code; "
        "all: every frame (default: %(default)s)",
    )
    parser.add_argument(
        "--callers", action="store_true", help="start with the allocating lines, then their callers"
    )
    add_filter(parser)
    add_top(parser, f"nodes to list (default: {_TOP}; JSON: all)")
    add_theme(parser, default="light")
    add_json(parser)
    add_output(
        parser,
        "write the tree: .txt, .json, .html, .svg, .folded (flamegraph.pl), .speedscope.json or "
        ".pb.gz (pprof)",
    )
    add_verbosity(parser)
    parser.set_defaults(run=_tree)


def _tree(options: argparse.Namespace) -> None:
    check_outputs(options, inputs=[options.file], suffixes=_FORMATS)
    snapshot = load_snapshot(options.file)
    device = picked_device(snapshot, options.device)
    where = " ".join(options.filter).strip() or None
    if options.events is not None and options.measure == "alive":
        raise UsageError("--events needs --measure allocated or --measure time")
    tree = _made(options, device, where)
    title = f"{Path(options.file).name}: call tree of {tree_text.heading(device, tree)}"
    note = "" if where is None else f", of those that match `{where}`"
    how: dict[str, Any] = {"title": title, "theme": options.theme}
    answer(
        options,
        text=lambda: tree_text.as_text(
            device,
            tree,
            file=str(options.file),
            top=options.top or _TOP,
            width=output_width(options),
            note=note,
        ),
        document=lambda: tree_text.to_json(device, tree, file=str(options.file), limit=options.top),
        others={
            ".html": lambda: picture.as_html(device, tree, **how),
            ".svg": lambda: picture.as_svg(device, tree, **how),
            ".folded": lambda: profiles.as_folded(tree, callers=options.callers),
            ".speedscope.json": lambda: profiles.as_speedscope(
                tree, name=title, callers=options.callers
            ),
            ".pb.gz": lambda: profiles.as_pprof(tree, callers=options.callers),
        },
    )


def _made(options: argparse.Namespace, device: Any, where: str | None) -> Any:
    event = picked_event(device, options.event)
    first, last = options.events or (0, int(device.events) - 1)
    if options.events is not None and not -1 <= first <= last < max(int(device.events), 1):
        raise CommandError(
            f"there are no events {first:,} to {last:,}; the trace has {int(device.events):,}"
        )
    try:
        return device.tree(
            event,
            events=(first, last + 1),
            measure=options.measure,
            by=options.by,
            frames=options.frames,
            callers=options.callers,
            where=where,
        )
    except ValueError as error:  # the filter is not understood
        raise UsageError(str(error)) from None
