"""`report`: what holds the memory after an event, in which steps, and what grows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from snapviewer.report.snapshot import alive as alive_report
from snapviewer.report.snapshot.difference import failures_json
from snapviewer.report.snapshot.predicted import prediction_note
from snapviewer.snapshot.alive import alive_at
from snapviewer.snapshot.frames import line_of
from snapviewer.snapshot.gate import Failure, over

from .errors import CommandError, UsageError
from .gate import EPILOG, add_fail_over, gated_devices, raise_if_failed
from .options import (
    add_device,
    add_event,
    add_file,
    add_filter,
    add_results,
    add_top,
    byte_count,
    load_snapshot,
    picked_device,
    picked_event,
)
from .outputs import FORMATS, answer, check_outputs

GROUPINGS = [
    "line",
    "stack",
    "file",
    "function",
    "module",
    "category",
    "step",
    "stream",
    "pool",
    "compile",
    "size",
    "lifetime",
    "segment",
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.epilog = EPILOG
    add_file(parser)
    add_device(parser)
    add_event(parser)
    add_filter(parser)
    parser.add_argument(
        "--by", choices=GROUPINGS, default="line", help="what to group by (default: line)"
    )
    parser.add_argument(
        "--under",
        type=byte_count,
        metavar="BYTES",
        help="list what must go so that no moment holds more, such as 40GiB",
    )
    parser.add_argument(
        "--capacity",
        type=byte_count,
        metavar="BYTES",
        help="memory of the GPU, to tell when a leak fills it",
    )
    parser.add_argument(
        "--rules",
        type=Path,
        metavar="TOML",
        help="your own categories, which win over recorded and inferred ones",
    )
    add_fail_over(parser)
    add_top(parser, "groups to list (default: %(default)s)", default=15)
    add_results(parser, "write the report")
    parser.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> None:
    check_outputs(options, inputs=[options.file], suffixes=FORMATS)
    snapshot = load_snapshot(options.file, rules=_rules(options.rules))
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
    how |= {"by": options.by, "under": options.under, "is_oom": options.event == "oom"}
    failed: tuple[Failure, ...] = ()
    if options.fail_over is not None:
        failed = over(gated_devices(snapshot, options.device), options.fail_over)
    answer(
        options,
        text=lambda: alive_report.as_text(device, alive, capacity=options.capacity, **how),
        document=lambda: {
            **alive_report.to_json(device, alive, **how),
            "failed": failures_json(failed),
        },
    )
    raise_if_failed(failed)


def _rules(path: Path | None) -> tuple[tuple[str, str], ...]:
    if path is None:
        return ()
    from snapviewer.snapshot.rules import read_rules

    try:
        return read_rules(path)
    except (ValueError, OSError) as error:
        raise CommandError(f"{error}: {path}") from None
