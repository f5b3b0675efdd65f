"""`report`: what holds the memory, in words."""

from __future__ import annotations

import argparse
from pathlib import Path

from snapviewer import SnapshotError, _core
from snapviewer.report.snapshot import alive as holders_report
from snapviewer.snapshot.alive import alive_at
from snapviewer.snapshot.frames import line_of
from snapviewer.text.progress import progress_bar

from .arguments import device_index, picked_device, positive, print_json


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("file", type=Path, help="a snapshot, or a bundle's zip or directory")
    parser.add_argument(
        "-d",
        "--device",
        type=device_index,
        metavar="N",
        help="which one (the one with the largest peak)",
    )
    parser.add_argument(
        "--event", type=int, metavar="N", help="after this event, rather than at the peak"
    )
    parser.add_argument(
        "--top", type=positive, default=15, metavar="N", help="how many lines (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> None:
    with progress_bar("reading") as progress:
        snapshot = _core.load(options.file, progress=progress)
    device = picked_device(snapshot, options.device)
    event = device.peak_event if options.event is None else options.event
    if not -1 <= event < max(int(device.events), 0):
        raise SnapshotError(f"there is no event {event:,}; the trace has {int(device.events):,}")
    moment = alive_at(device, device.timeline(), event, lambda stack: line_of(snapshot, stack))
    if options.json:
        document = holders_report.to_json(device, moment, file=str(options.file), top=options.top)
        print_json(document)
    else:
        text = holders_report.as_text(device, moment, file=str(options.file), top=options.top)
        print(text, end="")
