"""`report`: what holds the memory, and that it adds up."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snapviewer
from snapviewer.snapshot.frames import line_of
from support import hostile
from support.program import run


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.pickle"
    assert run("demo", "-o", path, "--events", "4000").code == 0
    return path


def _document(*arguments: str | Path) -> dict[str, Any]:
    ran = run("report", *arguments, "--json")
    assert ran.code == 0, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    return document


def test_its_lines_are_what_is_alive_at_the_peak_grouped_by_code(demo: Path) -> None:
    document = _document(demo, "--top", "1000")

    snap = snapviewer.load(demo)
    (dev,) = snap.devices
    a = dev.allocations
    alive = (a.alloc_event <= dev.peak_event) & (a.free_event > dev.peak_event)
    held: dict[str, list[int]] = {}
    for which in np.flatnonzero(alive).tolist():
        group = held.setdefault(line_of(snap, int(a.stack[which])), [0, 0])
        group[0] += int(a.size[which])
        group[1] += 1
    assert document["bytes"] == dev.peak_bytes
    assert document["is_peak"]
    lines = {one["line"]: [one["bytes"], one["allocations"]] for one in document["lines"]}
    assert lines == held
    assert document["others"] == {"bytes": 0, "allocations": 0}


def test_what_has_no_line_is_the_rest_and_everything_adds_up(demo: Path) -> None:
    document = _document(demo, "--top", "2")

    assert len(document["lines"]) == 2
    shown = sum(one["bytes"] for one in document["lines"])
    assert shown + document["others"]["bytes"] == document["bytes"]
    assert document["lines"][0]["bytes"] >= document["lines"][1]["bytes"]
    text = run("report", demo, "--top", "2").out
    assert "at the peak" in text
    assert "… the rest" in text


def test_another_moment_can_be_asked_for(demo: Path) -> None:
    document = _document(demo, "--event", "100")

    (dev,) = snapviewer.load(demo).devices
    assert document["bytes"] == dev.totals[100]
    assert not document["is_peak"]
    assert " alive, before the first event\n" in run("report", demo, "--event", "-1").out


def test_a_state_without_events_has_one_moment(tmp_path: Path) -> None:
    path = tmp_path / "state.pickle"
    path.write_bytes(pickle.dumps(hostile.small_snapshot()["segments"]))

    document = _document(path)

    (dev,) = snapviewer.load(path).devices
    assert document["event"] == -1
    assert document["bytes"] == dev.peak_bytes
    assert " alive\n" in run("report", path).out
    assert "peak" not in run("report", path).out + run("info", path).out


@pytest.mark.parametrize("event", ["4000", "-2"])
def test_an_event_that_is_not_there_is_refused(demo: Path, event: str) -> None:
    ran = run("report", demo, f"--event={event}")

    assert ran.code == 1
    assert "events are 0 to 3,999" in ran.err


def test_a_device_that_is_not_there_is_refused(demo: Path) -> None:
    ran = run("report", demo, "-d", "7")

    assert ran.code == 1
    assert "there is no device 7" in ran.err


def test_the_state_before_the_first_event_can_be_the_peak(tmp_path: Path) -> None:
    path, bundle = tmp_path / "freed.pickle", tmp_path / "freed.zip"
    event = {"stream": 0, "time_us": 1, "frames": []}
    freed = {**event, "action": "free_completed", "addr": 0x1000, "size": 5000}
    made = {**event, "action": "alloc", "addr": 0x2000, "size": 100}
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [[freed, made]]}))
    snapviewer.convert(path, bundle)

    for one in (path, bundle):
        (device,) = snapviewer.load(one).devices
        timeline = device.timeline()
        document = _document(one)

        assert (device.peak_event, device.peak_bytes) == (-1, 5000)
        assert (timeline.peak_event, timeline.peak_bytes, timeline.initial_bytes) == (
            -1,
            5000,
            5000,
        )
        assert (document["event"], document["bytes"], document["is_peak"]) == (-1, 5000, True)
        assert "peak        4.88 KiB   before the first event" in run("info", one).out
