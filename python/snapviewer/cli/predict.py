"""`predict`: run a script on the null device, and print whether it fits a GPU."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from snapviewer._lazy import TYPE_CHECKING

from .capture import Parser, add_run, add_script, capture_options, checked_command
from .errors import CommandError, UsageError
from .options import add_json, byte_count, load_snapshot, positive
from .outputs import print_json

if TYPE_CHECKING:
    from snapviewer.capture.gpus import Gpu
    from snapviewer.capture.null_device import NullDevice
    from snapviewer.capture.options import CaptureOptions
    from snapviewer.capture.verdict import Case
    from snapviewer.snapshot.alive import Group

__all__ = ["Parser", "add_options"]

_GROUPS = 8
_STEPS = 3


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_script(parser)
    parser.add_argument(
        "--gpu",
        default="a100-80gb",
        metavar="NAME|FILE",
        help="GPU to predict for, or a .toml file of one (default: %(default)s)",
    )
    parser.add_argument(
        "--capacity", type=byte_count, metavar="SIZE", help="usable memory, such as 24GiB"
    )
    parser.add_argument(
        "--gpus", type=_gpu_count, metavar="N", help="GPUs of the machine (default: 1)"
    )
    parser.add_argument(
        "--rank",
        type=_rank,
        metavar="R/N",
        help="predict rank R of N, as torchrun would start it, with a fake process group",
    )
    parser.add_argument(
        "--workspace",
        type=byte_count,
        metavar="SIZE",
        help="upper end of what a call of cuDNN takes as its workspace, which only a real GPU "
        "knows (default: 129MiB; the lower end is 0)",
    )
    parser.add_argument(
        "--value",
        action="append",
        default=[],
        type=_value,
        metavar="EXPR=NUMBER",
        help="what an expression that reads from the device returns, such as "
        "'mask.sum().item()=7' (7.0 for a tensor of floats); may be repeated",
    )
    parser.add_argument(
        "--sweep",
        type=_sweep,
        metavar="NAME=LOW..HIGH",
        help="find the largest value that fits; {NAME} in the script's arguments stands for it, "
        "else the environment variable NAME",
    )
    add_run(parser, steps=_STEPS)
    add_json(parser)
    parser.set_defaults(run=_predict)


def _gpu_count(text: str) -> int:
    number = positive(text)
    if number > 16:
        raise argparse.ArgumentTypeError("must be 16 or less")
    return number


def _rank(text: str) -> tuple[int, int]:
    rank, slash, ranks = text.partition("/")
    if slash and rank.isdecimal() and ranks.isdecimal() and int(rank) < int(ranks) <= 1 << 20:
        return int(rank), int(ranks)
    raise argparse.ArgumentTypeError("must be a rank and their number, such as 0/8")


def _value(text: str) -> tuple[str, float]:
    expression, equals, number = text.rpartition("=")
    try:
        if equals and expression.strip():
            is_whole = number.strip().lstrip("+-").isdecimal()
            return expression.strip(), int(number) if is_whole else float(number)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError("must be an expression and a number, such as 'n.item()=7'")


def _sweep(text: str) -> tuple[str, int, int]:
    name, _, limits = text.partition("=")
    low, dots, high = limits.partition("..")
    is_range = dots and low.isdecimal() and high.isdecimal() and 0 < int(low) <= int(high)
    if name.isidentifier() and is_range:
        return name, int(low), int(high)
    raise argparse.ArgumentTypeError("must be a name and two numbers, such as batch=1..512")


def _predict(options: argparse.Namespace) -> None:
    from snapviewer.capture.gpus import UnknownGpuError, find_gpu
    from snapviewer.capture.null_device import NoNullDeviceError, prepare
    from snapviewer.capture.verdict import ScriptFailedError

    command = checked_command(options)
    try:
        gpu = find_gpu(options.gpu)
        gpu = gpu if options.capacity is None else gpu.with_capacity(options.capacity)
        capture = replace(capture_options(options, command), values=tuple(options.value))
        device = prepare()
        if options.sweep:
            _print_sweep(options, command, capture, device, gpu)
        else:
            _print_verdict(options, command, capture, device, gpu)
    except UnknownGpuError as error:
        raise UsageError(str(error)) from None
    except (NoNullDeviceError, ScriptFailedError) as error:
        raise CommandError(str(error)) from None


def _print_verdict(
    options: argparse.Namespace,
    command: list[str],
    capture: CaptureOptions,
    device: NullDevice,
    gpu: Gpu,
) -> None:
    import tempfile

    from snapviewer.capture import verdict
    from snapviewer.report.snapshot import verdict as report

    variables, gpus = _place(options)
    case = verdict.predict(
        command,
        capture,
        device,
        gpu,
        devices=gpus,
        stdout=sys.stderr if options.json else None,
        variables=variables,
    )
    workspace_bytes = verdict.WORKSPACE_BYTES if options.workspace is None else options.workspace
    with tempfile.TemporaryDirectory(prefix="snapviewer-") as directory:

        def again(conf: str | None, workspace_bytes: int) -> Case:
            return verdict.predict(
                command,
                replace(capture, output=str(Path(directory) / "again.pickle")),
                device,
                gpu,
                conf=conf,
                devices=gpus,
                workspace_bytes=workspace_bytes,
                is_silent=True,
                variables=variables,
            )

        cases = report.Cases(
            case,
            expandable=again(verdict.with_expandable_segments(), 0),
            with_workspaces=again(None, workspace_bytes)
            if case.fits and workspace_bytes and verdict.has_workspaces(case)
            else None,
            workspace_bytes=workspace_bytes,
        )
    line, groups = _moment(case)
    if options.json:
        print_json(report.to_json(cases, gpu, line=line, groups=groups))
    else:
        sys.stdout.write(report.as_text(cases, gpu, line=line, groups=groups))


def _place(options: argparse.Namespace) -> tuple[dict[str, str], int]:
    """Return the variables of the rank to predict, and how many GPUs there are."""
    from snapviewer.capture.ranks import rank_environment

    if options.rank is None:
        return {}, options.gpus or 1
    rank, ranks = options.rank
    return rank_environment(rank, ranks, options.gpus)


def _moment(case: Case) -> tuple[str | None, tuple[Group, ...]]:
    """Return the line that ran out of memory, and what held it then, or at the peak."""
    from snapviewer.snapshot.alive import alive_at
    from snapviewer.snapshot.frames import line_of

    snapshot = load_snapshot(Path(case.snapshot))
    devices = {device.index: device for device in snapshot.devices}
    if case.oom and devices[case.oom["device"]].oom_at:
        device = devices[case.oom["device"]]
        event = device.oom_at[0]
        line = line_of(snapshot, device.event_rows(event, event + 1)[0].stack)
    else:
        device = max(devices.values(), key=lambda each: (each.index >= 0, each.peak_bytes))
        event, line = device.peak_event, None
    alive = alive_at(device, device.timeline(), event, lambda stack: line_of(snapshot, stack))
    return line, alive.groups[:_GROUPS]


def _print_sweep(
    options: argparse.Namespace,
    command: list[str],
    capture: CaptureOptions,
    device: NullDevice,
    gpu: Gpu,
) -> None:
    """Bisect: everything below a value that fits is taken to fit, too."""
    import tempfile

    from snapviewer.capture import verdict
    from snapviewer.report.snapshot.verdict import case_text

    name, low, high = options.sweep
    variables, gpus = _place(options)
    tried: list[dict[str, object]] = []

    def fits(value: int, output: str) -> bool:
        words = [word.replace("{" + name + "}", str(value)) for word in command]
        case = verdict.predict(
            words,
            replace(capture, output=output),
            device,
            gpu,
            devices=gpus,
            is_silent=True,
            variables=variables | ({name: str(value)} if words == command else {}),
        )
        tried.append(
            {"value": value, "fits": case.fits, "peak_reserved_bytes": case.peak_reserved_bytes}
        )
        if not options.json:
            print(f"{name}={value}: {case_text(case, gpu)}", flush=True)
        return case.fits

    with tempfile.TemporaryDirectory(prefix="snapviewer-") as directory:
        output = str(Path(directory) / "sweep.pickle")
        best = None
        while low <= high:
            middle = (low + high + 1) // 2
            if fits(middle, output):
                best, low = middle, middle + 1
            else:
                high = middle - 1
    if options.json:
        print_json({"gpu": gpu.key, "name": name, "largest": best, "tried": tried})
    elif best is None:
        print(f"No value of {name} fits {gpu.name}.")
    else:
        print(f"The largest {name} that fits {gpu.name}: {best}")
