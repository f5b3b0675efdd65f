"""`demo`: write a snapshot to try things on."""

from __future__ import annotations

import argparse

from snapviewer import demo as demos
from snapviewer.text.progress import progress_bar

from .errors import UsageError
from .options import add_json, add_output, add_verbosity, positive, whole
from .outputs import check_outputs, print_json, print_written, write_file, written

_NUMBERS = {
    "events": "events in the trace of each device (default: %(default)s)",
    "seed": "seed of the random sizes and times (default: %(default)s)",
    "devices": "devices that train (default: %(default)s)",
    "streams": "streams; above 1, some frees are deferred (default: %(default)s)",
    "live": "allocations alive at a time, roughly (default: 600)",
}
_FLAGS = {
    "expandable": "use expandable segments, with map and unmap events",
    "private_pools": "use private pools, as CUDA graphs do",
    "oom": "run out of memory now and then, and retry with half the batch",
    "ring": "fill the ring buffer, so that the oldest events are lost",
    "host": "add pinned host memory",
    "leak": "leak one tensor per step",
    "compiled": "record deep and varied stacks, as with torch.compile",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    defaults = demos.DemoOptions()
    add_output(parser, "the pickle to write", is_required=True)
    for name, text in _NUMBERS.items():
        kind = whole if name == "seed" else positive
        default = getattr(defaults, name)
        parser.add_argument(f"--{name}", type=kind, default=default, metavar="N", help=text)
    parser.add_argument(
        "--protocol",
        type=int,
        choices=(2, 4, 5),
        default=4,
        help="pickle protocol (default: %(default)s)",
    )
    parser.add_argument(
        "--context",
        choices=("alloc", "all"),
        default=defaults.context,
        help="all: frees have their own stacks; alloc: they repeat the allocation's "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--from-the-start",
        action="store_true",
        help="record from an empty device on, not from after the model is loaded",
    )
    for name, text in _FLAGS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=text)
    add_json(parser)
    add_verbosity(parser)
    parser.set_defaults(run=_demo)


def _demo(options: argparse.Namespace) -> None:
    try:
        chosen = _chosen_demo(options)
    except ValueError as error:
        raise UsageError(str(error)) from None
    check_outputs(options)
    first, *others = options.outputs
    with progress_bar("making") as progress:
        demos.write_demo(first, chosen, protocol=options.protocol, progress=progress)
    for output in others:
        write_file(output, first.read_bytes())
    if options.json:
        print_json({**written(options), "events": options.events})
    else:
        print_written(options)


def _chosen_demo(options: argparse.Namespace) -> demos.DemoOptions:
    chosen = {name: getattr(options, name) for name in (*_NUMBERS, "context", *_FLAGS)}
    return demos.DemoOptions(before_recording=not options.from_the_start, **chosen)
