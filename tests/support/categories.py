"""Recordings of `category_programs`, in several forms, with the truth about each allocation."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import snapviewer
from snapviewer._core import CATEGORIES
from support import recorded

PROGRAMS_FILE = Path(__file__).with_name("category_programs.py")
_KEPT = Path(__file__).resolve().parents[2] / "build" / "recorded"

STACKS = ("all", "python", "cpp", "none")
"""Which frames are kept: both languages, one of them, or none."""

STARTS = ("beginning", "model", "training")
"""Where the recording begins: with the program, after the model was made, or after two steps."""

STATE = ("parameter", "gradient", "optimizer_state")


@dataclass(frozen=True, slots=True)
class Known:
    """A snapshot, and what its allocations at the peak are: "" is none of `STATE`."""

    snapshot: snapviewer.Snapshot
    alive: list[int]
    truth: list[str]

    def score(self) -> tuple[float, dict[tuple[str, str], int]]:
        """Return the share of the bytes at the peak in the right category, and what is wrong."""
        device = self.snapshot.devices[0]
        sizes, found = device.allocations.size, device.categories.category
        right, total = 0, 0
        wrong: dict[tuple[str, str], int] = {}
        for which, truth in zip(self.alive, self.truth, strict=True):
            size, name = int(sizes[which]), CATEGORIES[found[which] - 1]
            is_right = name == truth if truth else name not in (*STATE, "unknown")
            total += size
            right += size if is_right else 0
            if not is_right:
                wrong[truth, name] = wrong.get((truth, name), 0) + size
        return right / max(total, 1), wrong


def run(program: str) -> dict[str, Any]:
    """Run a program, unless its recording is kept; return the snapshot and the truth."""
    key = PROGRAMS_FILE.read_text() + program + recorded._implementation()
    path = _KEPT / hashlib.sha256(key.encode()).hexdigest()[:24] / "known.pickle"
    if not path.exists():
        from snapviewer.capture.gpus import find_gpu

        path.parent.mkdir(parents=True, exist_ok=True)
        environment = recorded._null_device().environment(find_gpu("a100-40gb"))
        part = path.with_suffix(f".{os.getpid()}")
        subprocess.run(
            [sys.executable, str(PROGRAMS_FILE), program, str(part)],
            env={**os.environ, **environment},
            check=True,
        )
        part.replace(path)
    with path.open("rb") as file:
        document: dict[str, Any] = pickle.load(file)
    return document


def known(program: str, stacks: str, start: str, directory: Path) -> Known:
    """Return a program's recording as it would be with other stacks, begun at another time."""
    document = run(program)
    snapshot, truth = document["snapshot"], document["truth"]
    cut_us = {
        "beginning": 0,
        "model": truth["model_us"],
        "training": truth["steps_us"][1] if len(truth["steps_us"]) > 1 else truth["model_us"],
    }[start]
    _begin_at(snapshot, cut_us)
    _strip(snapshot, stacks)
    path = directory / f"{program}-{stacks}-{start}.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    loaded = snapviewer.load(path)
    device = loaded.devices[0]
    a, peak = device.allocations, device.peak_event
    alive = np.flatnonzero((a.alloc_event <= peak) & (a.free_event > peak))
    return Known(loaded, alive.tolist(), _truth(snapshot, device, alive.tolist(), truth["seen"]))


def _begin_at(snapshot: dict[str, Any], cut_us: int) -> None:
    """Leave out what happened before a time; blocks of that time have no frames."""
    trace = snapshot["device_traces"][0]
    kept = [event for event in trace if event["time_us"] >= cut_us]
    made = {event["addr"] for event in kept if event["action"] == "alloc"}
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["address"] not in made:
                block["frames"] = []
    snapshot["device_traces"][0] = kept


def _strip(snapshot: dict[str, Any], stacks: str) -> None:
    def is_python(frame: dict[str, Any]) -> bool:
        return str(frame["filename"]).endswith(".py") or str(frame["filename"]).startswith("<")

    def is_kept(frame: dict[str, Any]) -> bool:
        return stacks == "all" or (stacks == ("python" if is_python(frame) else "cpp"))

    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    for one in (*snapshot["device_traces"][0], *blocks):
        one["frames"] = [frame for frame in one.get("frames", ()) if is_kept(frame)]


def _truth(
    snapshot: dict[str, Any],
    device: snapviewer.Device,
    alive: list[int],
    seen: list[tuple[int, int, str]],
) -> list[str]:
    """What each allocation was seen to be; the first that is noted counts."""
    times = [event["time_us"] for event in snapshot["device_traces"][0]]
    a = device.allocations
    at: dict[int, list[tuple[int, str]]] = {}
    for time_us, address, what in seen:
        at.setdefault(address, []).append((time_us, what))
    found = []
    for which in alive:
        made, freed = int(a.alloc_event[which]), int(a.free_event[which])
        from_us = times[made] if made >= 0 else 0
        to_us = times[freed] if freed < len(times) else 2**63
        notes = at.get(int(a.address[which]), [])
        whats = [what for time_us, what in notes if from_us <= time_us <= to_us]
        found.append(whats[0] if whats else "")
    return found
