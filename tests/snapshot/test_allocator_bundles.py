"""A bundle has the replay of its snapshot: states, curves, growths and failed requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import snapviewer
from snapviewer import Device
from snapviewer.demo import DemoOptions, write_demo
from support import program
from support.oracle import SNAPSHOTS

REAL = (
    "t211-expandable-steady",
    "t26-4.2MB-train",
    "t28-ring-full-annot",
    "private-pools-state-only",
    "SYNTHETIC-mosaic",
)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("crowded")
    options = DemoOptions(events=20_000, oom=True, streams=3, private_pools=True)
    write_demo(folder / "demo.pickle", options)
    snapviewer.convert(folder / "demo.pickle", folder / "demo.zip")
    return folder / "demo.pickle", folder / "demo.zip"


def _fields(records: Any) -> list[list[Any]]:
    """The fields of records of the core, which have no equality."""
    return [[getattr(one, name) for name in dir(one) if name[0] != "_"] for one in records]


def _assert_same(one: Device, other: Device) -> None:
    ours, theirs = one.allocator, other.allocator
    assert ours.contradictions == theirs.contradictions
    assert ours.first_contradiction == theirs.first_contradiction
    assert (ours.placements, ours.as_recorded) == (theirs.placements, theirs.as_recorded)
    assert (ours.settings, ours.has_settings) == (theirs.settings, theirs.has_settings)
    assert ours.uncertain_blocks == theirs.uncertain_blocks
    assert ours.block_size.tolist() == theirs.block_size.tolist()
    assert one.curves.peaks == other.curves.peaks
    for what in ("growths", "releases", "pending"):
        assert _fields(getattr(ours, what)) == _fields(getattr(theirs, what)), what
    assert _fields(one.ooms) == _fields(other.ooms)
    for event in {-1, int(one.events) // 2 - 1, one.peak_event, int(one.events) - 1}:
        assert one.curves.at(event) == other.curves.at(event)
        assert _fields(ours.pins(event)) == _fields(theirs.pins(event))
        states = ours.state(event), theirs.state(event)
        for column in ("segment_address", "segment_size", "block_address", "block_size"):
            first, second = (getattr(state, column).tolist() for state in states)
            assert first == second, (event, column)


@pytest.mark.parametrize("name", REAL)
def test_a_bundle_of_a_real_snapshot_has_its_replay(name: str, tmp_path: Path) -> None:
    path = SNAPSHOTS / f"{name}.pickle"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    snapviewer.convert(path, tmp_path / "b.zip")

    pairs = zip(
        snapviewer.load(path).devices, snapviewer.load(tmp_path / "b.zip").devices, strict=True
    )

    for one, other in pairs:
        _assert_same(one, other)


def test_commands_print_the_same_of_a_bundle(crowded: tuple[Path, Path]) -> None:
    snapshot, bundle = crowded
    _assert_same(snapviewer.load(snapshot).devices[0], snapviewer.load(bundle).devices[0])

    for command in (
        ["segments", "--event", "oom"],
        ["segments", "--growth"],
        ["segments", "--growth", "--json"],
        ["report", "--event", "oom", "--json"],
    ):
        answers = [
            program.run(command[0], file, *command[1:]).out.replace(str(file), "FILE")
            for file in (snapshot, bundle)
        ]
        assert answers[0] == answers[1], command
        assert len(answers[0]) > 100


def test_queries_have_block_sizes_and_the_four_amounts(crowded: tuple[Path, Path]) -> None:
    snapshot, bundle = crowded
    device = snapviewer.load(snapshot).devices[0]

    sizes = snapviewer.query(bundle, "select block_size from allocations where idx % 10 = 3")[1]
    curves = snapviewer.query(
        bundle, "select requested, allocated, active, reserved from events where event % 25 = 7"
    )[1]

    assert [size for (size,) in sizes] == device.allocator.block_size[3::10].tolist()
    ours = device.curves
    columns = (ours.requested, ours.allocated, ours.active, ours.reserved)
    assert curves == list(zip(*(column[7::25].tolist() for column in columns), strict=True))
