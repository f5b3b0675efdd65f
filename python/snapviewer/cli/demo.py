"""`demo`: a snapshot to try things on."""

from __future__ import annotations

import argparse
from pathlib import Path

from snapviewer import demo as demos
from snapviewer.text.progress import progress_bar

from .arguments import positive, print_json, refuse_to_replace, size_of, whole

_DEMO_FLAGS = {
    "expandable": "expandable segments, with map and unmap",
    "private_pools": "private pools, as CUDA graphs have",
    "oom": "an allocation that fails, and retries",
    "ring": "a full ring buffer: the oldest events are lost",
    "host": "pinned host memory",
    "leak": "a tensor that each step keeps for ever",
    "compiled": "deep and varied stacks, as torch.compile's",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
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
        kind = whole if name == "seed" else positive
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
    refuse_to_replace(options)
    with progress_bar("making") as progress:
        demos.write_demo(options.output, chosen, protocol=options.protocol, progress=progress)
    size = size_of(options.output)
    if options.json:
        print_json({"output": str(options.output), "bytes": size, "events": options.events})
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
