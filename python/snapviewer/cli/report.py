"""`report`: what holds the memory after an event, by line of code."""

from __future__ import annotations

import argparse
from typing import Any

from snapviewer.report.snapshot import alive as alive_report
from snapviewer.report.snapshot.predicted import prediction_note
from snapviewer.snapshot.alive import alive_at
from snapviewer.snapshot.frames import line_of

from .errors import UsageError
from .options import (
    add_device,
    add_event,
    add_file,
    add_filter,
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
    add_filter(parser)
    add_top(parser, "lines to list (default: %(default)s)", default=15)
    add_results(parser, "write the report")
    parser.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> None:
    check_outputs(options, inputs=[options.file], suffixes=FORMATS)
    snapshot = load_snapshot(options.file)
    device = picked_device(snapshot, options.device)
    where = " ".join(options.filter).strip() or None
    try:
        timeline = device.timeline(where=where)
    except ValueError as error:  # the filter is not understood
        raise UsageError(str(error)) from None
    event = picked_event(device, options.event)
    alive = alive_at(device, timeline, event, lambda stack: line_of(snapshot, stack))
    matching = None
    if where is not None:
        all_bytes = sum(size for _, size, *_ in device.timeline().alive_by_stack(event))
        matching = alive_report.Matching(where, all_bytes)
    how: dict[str, Any] = {"file": str(options.file), "top": options.top, "matching": matching}
    how["prediction"] = prediction_note(snapshot)
    how["is_oom"] = options.event == "oom"
    answer(
        options,
        text=lambda: alive_report.as_text(device, alive, **how),
        document=lambda: alive_report.to_json(device, alive, **how),
    )
