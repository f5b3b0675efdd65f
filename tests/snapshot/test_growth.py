"""Why the allocator grew, by line of code, and what pins free memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import snapviewer
from snapviewer.snapshot.frames import line_of
from snapviewer.snapshot.growth import CAUSES, growths_by_line, kept_apart, pins_by_line
from support import program
from support.allocator_model import MIB, Model, Settings
from support.allocator_programs import stack
from support.oracle import SNAPSHOTS

# ALLOCATOR's counts of demand, fragments and other domain, where the file is there.
_GROWTHS = {"t26-4.2MB-train": 678, "t29-inference": 30, "t29-python-stacks": 61}


def _written(model: Model, folder: Path) -> Path:
    path = folder / "grown.json"
    path.write_text(json.dumps(model.snapshot()))
    return path


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """Grows for each reason: need, pieces, and memory of another stream."""
    model = Model(Settings())
    model.free(model.malloc(1, stack("warm_up")), stack("free"))
    # 20 MiB: 8 in use by `wall`, 6 free on each side of 2 MiB of `fence`, at the end 0.
    first = model.malloc(6 * MIB, stack("first", 1))
    model.malloc(2 * MIB, stack("fence", 2))
    second = model.malloc(6 * MIB, stack("second", 3))
    model.malloc(6 * MIB, stack("wall", 4))
    model.free(first, stack("free"))
    model.free(second, stack("free"))
    model.malloc(9 * MIB, stack("pieces", 5))
    model.malloc(9 * MIB, stack("elsewhere", 6), stream=7)
    model.malloc(100 * MIB, stack("need", 7))
    return _written(model, tmp_path)


def test_each_growth_has_its_cause_and_line(grown: Path) -> None:
    snapshot = snapviewer.load(grown)
    allocator = snapshot.devices[0].allocator

    found = {
        line_of(snapshot, growth.stack): (growth.cause, growth.free_bytes, growth.largest_bytes)
        for growth in allocator.growths
    }

    assert found["train.py:5 pieces"] == ("fragments", 12 * MIB, 6 * MIB)
    assert found["train.py:6 elsewhere"][0] == "other domain"
    assert found["train.py:7 need"][0] == "demand"


def test_lines_are_ranked_by_what_they_grew(grown: Path) -> None:
    snapshot = snapviewer.load(grown)
    allocator = snapshot.devices[0].allocator

    ranked = growths_by_line(allocator, lambda of: line_of(snapshot, of))

    assert ranked[0].line == "train.py:7 need"
    assert ranked[0].cause_bytes == (100 * MIB, 0, 0)
    growths = [place for one in ranked for place in one.growths]
    assert sorted(growths) == list(range(len(allocator.growths)))
    total = sum(growth.grown_bytes for growth in allocator.growths)
    assert sum(one.grown_bytes for one in ranked) == total
    assert sum(sum(one.cause_bytes) for one in ranked) == total


def test_the_blocks_that_keep_pieces_apart_are_named(grown: Path) -> None:
    snapshot = snapviewer.load(grown)
    device = snapshot.devices[0]
    place = next(
        place for place, one in enumerate(device.allocator.growths) if one.cause == "fragments"
    )

    [between] = kept_apart(device, device.allocator, place, lambda of: line_of(snapshot, of))

    assert (between.line, between.size_bytes, between.count) == ("train.py:2 fence", 2 * MIB, 1)


@pytest.mark.parametrize("name", sorted(_GROWTHS))
def test_what_is_pinned_adds_up_at_any_event(name: str) -> None:
    path = SNAPSHOTS / f"{name}.pickle"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    snapshot = snapviewer.load(path)
    device = snapshot.devices[0]
    assert len(device.allocator.growths) == _GROWTHS[name]

    for event in (-1, int(device.events) // 2, device.peak_event):
        pins = pins_by_line(device.allocator, event, lambda of: line_of(snapshot, of))
        domains = device.allocator.state(event).domains
        pinned = sum(domain.free_bytes - domain.releasable_bytes for domain in domains)
        assert sum(pin.pinned_bytes for pin in pins) == pinned


def test_the_command_lists_causes_lines_and_pins(grown: Path) -> None:
    ran = program.run("segments", grown, "--growth", "--event", "end")

    assert ran.code == 0, ran.err
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "demand 3 122 MiB less free memory than the request needed" in lines
    assert "train.py:7 need 1 100 MiB 100 MiB 0 B 0 B" in lines
    assert "kept apart by 1 block of 2.00 MiB: train.py:2 fence" in lines
    assert any(line.startswith("train.py:2 fence ") for line in lines), "it pins free memory"


def test_the_document_has_every_growth(grown: Path) -> None:
    document: dict[str, Any] = json.loads(
        program.run("segments", grown, "--growth", "--json", "--top", "1").out
    )

    assert list(document["causes"]) == list(CAUSES)
    assert sum(one["growths"] for one in document["causes"].values()) == len(document["growths"])
    assert [one["key"] for one in document["groups"]] == ["train.py:7 need"]
    assert {one["cause"] for one in document["growths"]} == set(CAUSES)


def test_a_state_without_a_trace_has_pins_and_no_growth(tmp_path: Path) -> None:
    model = Model(Settings())
    model.malloc(2 * MIB, stack("layer"))
    path = tmp_path / "state.json"
    path.write_text(json.dumps({**model.snapshot(), "device_traces": [[]]}))

    ran = program.run("segments", path, "--growth")

    assert "No memory came from the device during the trace" in ran.out
    assert "18.0 MiB of free memory pinned by live blocks" in ran.out
