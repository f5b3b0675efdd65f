"""`segments`: the allocator's segments and blocks after an event."""

from __future__ import annotations

import argparse

from snapviewer.report.snapshot import segments as segments_report

from .options import (
    add_device,
    add_event,
    add_file,
    add_results,
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
    add_results(parser, "write the segments")
    parser.set_defaults(run=_segments)


def _segments(options: argparse.Namespace) -> None:
    check_outputs(options, inputs=[options.file], suffixes=FORMATS)
    snapshot = load_snapshot(options.file)
    device = picked_device(snapshot, options.device)
    state = device.allocator.state(picked_event(device, options.event))
    answer(
        options,
        text=lambda: segments_report.as_text(device, state, file=str(options.file)),
        document=lambda: segments_report.to_json(device, state),
    )
