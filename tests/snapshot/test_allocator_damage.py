"""Real traces replay exactly wherever they are cut, and any damage to them is noticed."""

from __future__ import annotations

import pickle
import random
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import snapviewer
from support import oracle
from support.oracle import SNAPSHOTS

CUT = (
    "t211-train-small",
    "t211-expandable-steady",
    "t26-4.2MB-train",
    "t28-ring-full-annot",
    "t29-inference",
)
DAMAGED = ("t26-tiny-97", "t23-py38-before-train", "t211-train-small", "t211-expandable-steady")


@lru_cache(maxsize=2)
def _plain(name: str) -> Any:
    path = SNAPSHOTS / f"{name}.pickle"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    return oracle.load_plain(path)


def _replayed(name: str, folder: Path, traces: list[Any]) -> list[snapviewer.Device]:
    path = folder / "a.pickle"
    path.write_bytes(pickle.dumps({**_plain(name), "device_traces": traces}))
    return list(snapviewer.load(path).devices)


@pytest.mark.parametrize("name", CUT)
def test_a_real_trace_replays_exactly_wherever_it_is_cut(name: str, tmp_path: Path) -> None:
    traces = _plain(name)["device_traces"]
    order = random.Random(name)
    for _ in range(20):
        part = order.random()

        cut = [trace[int(len(trace) * part) :] for trace in traces]

        for device in _replayed(name, tmp_path, cut):
            assert device.allocator.contradictions == {}, (device.index, part)
            assert device.allocator.as_recorded == device.allocator.placements


# A lost `alloc` or `segment_alloc` is like memory older than the trace: that may well be possible.
@pytest.mark.parametrize(
    ("damage", "action"),
    [
        ("dropped", "free_completed"),
        ("doubled", "alloc"),
        ("doubled", "free_completed"),
        ("doubled", "segment_alloc"),
        ("moved", "alloc"),
        ("moved", "free_completed"),
        ("moved", "segment_alloc"),
    ],
)
@pytest.mark.parametrize("name", DAMAGED)
def test_one_damaged_event_is_noticed(name: str, damage: str, action: str, tmp_path: Path) -> None:
    traces = _plain(name)["device_traces"]
    which = max(range(len(traces)), key=lambda at: len(traces[at]))
    trace = traces[which]
    places = [at for at, event in enumerate(trace) if event["action"] == action]
    for place in random.Random(name).sample(places, min(len(places), 5)):
        event = trace[place]
        moved = {**event, "addr": event["addr"] + 512}
        new = {"dropped": [], "doubled": [event, event], "moved": [moved]}[damage]

        spoiled = [*trace[:place], *new, *trace[place + 1 :]]
        devices = _replayed(name, tmp_path, [*traces[:which], spoiled, *traces[which + 1 :]])

        allocator = devices[which].allocator
        assert not allocator.exact, place
        first = allocator.first_contradiction
        assert first is not None
        if damage == "dropped":
            assert first >= place - 1, "found when its memory is needed, or at the end"
        elif action != "segment_alloc":
            # A block at the end that no event made was there from the start, in no segment.
            is_at_end = damage == "moved" and action == "alloc" and first == 0
            assert is_at_end or first in (place, place + 1)
        # The file opens, and every state can be asked for.
        for at in (-1, place - 1, len(spoiled) - 1):
            assert allocator.state(at).event == at
