"""`segments`: the allocator's segments and blocks after an event, and why it grew."""

from __future__ import annotations

import argparse
from functools import partial

from snapviewer.report.snapshot import growth as growth_report
from snapviewer.report.snapshot import segments as segments_report
from snapviewer.snapshot.frames import line_of

from .options import (
    add_device,
    add_event,
    add_file,
    add_results,
    add_top,
    load_snapshot,
    picked_device,
    picked_event,
)
from .outputs import FORMATS, answer, check_outputs


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_file(parser)
    add_device(parser)
    add_event(parser)
    parser.add_argument(
        "--growth",
        action="store_true",
        help="show why memory was requested from the device, and what pins free memory",
    )
    add_top(parser, "lines to list with --growth (default: %(default)s)", default=10)
    add_results(parser, "write the segments")
    parser.set_defaults(run=_segments)


def _segments(options: argparse.Namespace) -> None:
    check_outputs(options, inputs=[options.file], suffixes=FORMATS)
    snapshot = load_snapshot(options.file)
    device = picked_device(snapshot, options.device)
    event = picked_event(device, options.event)
    if options.growth:
        name, top = partial(line_of, snapshot), options.top
        answer(
            options,
            text=lambda: growth_report.as_text(
                device, event, name, file=str(options.file), top=top
            ),
            document=lambda: growth_report.to_json(device, event, name, top=top),
        )
        return
    state = device.allocator.state(event)
    answer(
        options,
        text=lambda: segments_report.as_text(device, state, file=str(options.file)),
        document=lambda: segments_report.to_json(device, state),
    )
