"""Runs the product as a process of its own, within limits.

`python tests/support/program.py KIND DIR LISTING` loads the listed files of a directory, as
snapshots or as checkpoints, and prints one JSON line before and one after each, so that the parent
knows which file ended a process.
"""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pytest

Kind = Literal["snapshot", "checkpoint"]

MEMORY_LIMIT_BYTES = 3 * 2**30
SECONDS_PER_FILE = 30


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run of the program ended."""

    code: int
    out: str
    err: str


def run_here(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Ran:
    """A run in this process, for the many cases that differ in their words only."""
    from snapviewer.cli import main

    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else -1
    captured = capsys.readouterr()
    return Ran(code, captured.out, captured.err)


def run(
    *arguments: str | Path,
    program: Sequence[str] = ("-m", "snapviewer"),
    directory: Path | None = None,
    timeout: float = 120,
) -> Ran:
    """Run Python with the product, under a limit on memory and time."""
    done = subprocess.run(
        [sys.executable, *program, *map(str, arguments)],
        cwd=directory,
        capture_output=True,
        timeout=timeout,
        check=False,
        preexec_fn=limit_memory,
    )
    out, err = (stream.decode(errors="replace") for stream in (done.stdout, done.stderr))
    return Ran(done.returncode, out, err)


def output_of(code: str) -> str:
    """Run some Python that has to succeed, and return what it prints."""
    ran = run(textwrap.dedent(code), program=("-c",))
    assert ran.code == 0, ran.err
    return ran.out


def limit_memory() -> None:
    """Let the process have no more address space than any snapshot of this size deserves."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of loading one file: `accepted`, `refused` or what went wrong, and the message."""

    outcome: str
    message: str


def load_all(directory: Path, work: Path, kind: Kind = "snapshot") -> dict[str, Loaded]:
    """Load every file of a directory in as few processes as it takes.

    A process that dies at a file is replaced by one that goes on after it.
    """
    loaded: dict[str, Loaded] = {}
    waiting = sorted(path.name for path in directory.iterdir())
    while waiting:
        listing = work / "listing.json"
        listing.write_text(json.dumps(waiting))
        ran = run(
            kind,
            directory,
            listing,
            program=(str(Path(__file__).resolve()),),
            directory=work,
            timeout=600,
        )
        lines = [json.loads(line) for line in ran.out.splitlines() if line.startswith("{")]
        loaded |= {line["name"]: Loaded(line["outcome"], line["message"]) for line in lines}
        done = {name for name in waiting if loaded.get(name, _STARTED) != _STARTED}
        rest = [name for name in waiting if name not in done]
        if rest:
            how = "took too long" if ran.code == -signal.SIGALRM else f"ended with {ran.code}"
            loaded[rest[0]] = Loaded(f"the process {how}", ran.err[-500:])
            rest = rest[1:]
        waiting = rest
    return loaded


_STARTED = Loaded("started", "")


def _load(load: Callable[[Path], Any], refusal: type[Exception], path: Path) -> Loaded:
    try:
        load(path)
    except refusal as error:
        return Loaded("refused", str(error))
    except BaseException as error:
        return Loaded(f"raised {type(error).__name__}", str(error)[:500])
    return Loaded("accepted", "")


def _snapshot(path: Path) -> None:
    import snapviewer

    snapshot = snapviewer.load(path)
    for device in snapshot.devices:
        _look_at(snapshot, device)


def _checkpoint(path: Path) -> None:
    """Read a checkpoint and ask for some of everything in it."""
    from snapviewer import _core

    checkpoint = _core.read_checkpoint(path)
    ledger = checkpoint.ledger
    parts = (ledger.tensors, ledger.unreferenced, ledger.pickle, ledger.padding, ledger.archive)
    assert sum(parts) == checkpoint.file_bytes, f"{parts} are not {checkpoint.file_bytes} bytes"
    str([checkpoint.metadata, checkpoint.warnings, checkpoint.flagged_imports])
    for storage in checkpoint.storages[:1000]:
        assert 0 <= storage.reached_bytes <= storage.bytes, storage.key
    measured = 0
    for number, tensor in enumerate(checkpoint.tensors[:1000]):
        str([getattr(tensor, name) for name in dir(tensor) if not name.startswith("_")])
        if tensor.logical_bytes < 2**20 and measured < 50:
            measured += 1
            with contextlib.suppress(_core.SnapshotError):  # with the reason
                checkpoint.stats(number)
    values, place = [checkpoint.root], 0
    while place < len(values) < 10_000:
        values += [inner for _, inner in values[place].items(0, 100)]
        str([values[place].type, values[place].preview, values[place].size_bytes])
        place += 1


def _look_at(snapshot: Any, device: Any) -> None:
    """Ask for everything that a window would show of a device."""
    columns = device.allocations
    for column in (columns.size, columns.address, columns.alloc_event, columns.free_event):
        column.tolist()
    for stack in sorted(set(columns.stack.tolist()))[:1000]:
        if stack != 2**32 - 1:
            str(snapshot.frames(stack))
    str(device.warnings)
    str([snapshot.annotations, device.event_rows(0, 1000), device.events_of("oom")])
    str([device.rounded_size(number) for number in range(min(len(columns), 1000))])
    events, top = max(int(device.events), 1), device.peak_bytes + 1
    for order in ("allocation", "stack", "lifetime", "pool"):
        timeline = device.timeline(order)
        for color in ("stack", "age", "pool", "category"):
            timeline.image(events=(0, events), bytes=(0, top), size=(64, 48), color=color)
        timeline.at(events // 2 - 1, top // 2)
        timeline.stack(device.peak_event)
    if clock := device.clock(compress=True):
        span = (0, clock.length_us + 1)
        device.timeline().image(time=span, clock=clock, bytes=(0, top), size=(64, 48))


def main(kind: str, directory: Path, listing: Path) -> None:
    """Load the listed files of a directory, printing before and after each what happens."""
    import snapviewer

    load = {"snapshot": _snapshot, "checkpoint": _checkpoint}[kind]
    # The default action ends the process even where the native code never looks up.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for name in json.loads(listing.read_text()):
        print(json.dumps({"name": name, "outcome": "started", "message": ""}), flush=True)
        signal.alarm(SECONDS_PER_FILE)
        loaded = _load(load, snapviewer.SnapshotError, directory / name)
        signal.alarm(0)
        line = {"name": name, "outcome": loaded.outcome, "message": loaded.message}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
