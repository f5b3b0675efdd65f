"""`whatif`: simulate other settings of the allocator, less memory, or other requests."""

from __future__ import annotations

import argparse
from fractions import Fraction

from snapviewer._lazy import TYPE_CHECKING
from snapviewer.report.snapshot import whatif as whatif_report
from snapviewer.snapshot.whatif import SENSIBLE, Changes, compare

from .errors import CommandError, UsageError
from .options import add_device, add_file, add_results, byte_count, load_snapshot, picked_device
from .outputs import FORMATS, answer, check_outputs

if TYPE_CHECKING:
    from snapviewer import Device, Snapshot


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_file(parser)
    add_device(parser)
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="SETTINGS|all",
        help="allocator settings as in $PYTORCH_ALLOC_CONF, such as expandable_segments:True; "
        "all tries a sensible set; may be repeated (default: as recorded)",
    )
    parser.add_argument("--gpu", metavar="NAME|FILE", help="simulate the memory of this GPU")
    parser.add_argument(
        "--capacity", type=byte_count, metavar="SIZE", help="usable memory, such as 40GiB"
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="FILTER",
        help="leave matching allocations out; may be repeated",
    )
    parser.add_argument(
        "--scale",
        action="append",
        nargs=2,
        default=[],
        metavar=("FILTER", "FACTOR"),
        help="scale the sizes of matching allocations, such as by 0.5 or 1/8; may be repeated",
    )
    parser.add_argument(
        "--free-early",
        action="append",
        nargs=2,
        default=[],
        metavar=("FILTER", "EVENT"),
        help="free matching allocations at this event at the latest, an event's number or the "
        "name of an annotation, at whose start they are freed; may be repeated",
    )
    add_results(parser, "write the answer")
    parser.set_defaults(run=_whatif)


def _whatif(options: argparse.Namespace) -> None:
    check_outputs(options, inputs=[options.file], suffixes=FORMATS)
    capacity, memory, gpu = _device_memory(options)
    scale = tuple((text, _factor(factor)) for text, factor in options.scale)
    snapshot = load_snapshot(options.file)
    device = picked_device(snapshot, options.device)
    changes = Changes(
        without=tuple(options.without),
        scale=scale,
        free_early=tuple(
            (text, _event(snapshot, device, event)) for text, event in options.free_early
        ),
        capacity_bytes=capacity,
        memory_bytes=memory,
        gpu=gpu,
    )
    try:
        comparison = compare(device, _confs(options.conf), changes)
    except ValueError as error:  # a setting or a filter is not understood
        raise UsageError(str(error)) from None
    empty = [
        text
        for text, count in zip(
            [*options.without, *(text for text, _ in options.scale + options.free_early)],
            comparison.cases[0].answer.matches,
            strict=True,
        )
        if not count
    ]
    if empty:
        raise CommandError(f"no allocation of device {device.index} matches: {empty[0]}")
    answer(
        options,
        text=lambda: whatif_report.as_text(device, comparison, file=str(options.file)),
        document=lambda: whatif_report.to_json(device, comparison),
    )


def _confs(given: list[str]) -> tuple[str | None, ...]:
    if not given:
        return (None,)
    listed = [one for conf in given for one in (SENSIBLE if conf == "all" else (conf,))]
    return tuple(dict.fromkeys(listed))


def _device_memory(options: argparse.Namespace) -> tuple[int | None, int | None, str | None]:
    """Return the usable and the whole memory, and the GPU's name."""
    if options.gpu is None:
        return options.capacity, None, None
    from snapviewer.capture.gpus import UnknownGpuError, find_gpu

    try:
        gpu = find_gpu(options.gpu)
    except UnknownGpuError as error:
        raise UsageError(str(error)) from None
    if options.capacity is not None:
        gpu = gpu.with_capacity(options.capacity)
    return gpu.usable_bytes, gpu.memory_bytes, gpu.name


def _factor(text: str) -> float:
    try:
        factor = float(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError):
        factor = -1.0
    if not 0 < factor <= 1e6:
        raise UsageError(f"--scale takes a factor above 0, such as 0.5 or 1/8, not {text}")
    return factor


def _event(snapshot: Snapshot, device: Device, text: str) -> int:
    from snapviewer.snapshot.annotations import spans_of

    try:
        return int(text)
    except ValueError:
        spans = spans_of(snapshot, device, device.clock())
    found = next((span for span in spans if span.name == text), None)
    if found is None:
        raise CommandError(f"there is no annotation of that name in this file: {text}")
    return found.start_event
