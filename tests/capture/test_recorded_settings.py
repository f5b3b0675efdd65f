"""A program recorded under each setting of the allocator replays as PyTorch placed it."""

from __future__ import annotations

from functools import cache

import pytest

import snapviewer
from snapviewer import Device, _core
from support.recorded import Recorded, recorded
from support.torch_marks import torch_marks

pytestmark = [
    *torch_marks(),
    pytest.mark.slow,
    pytest.mark.skipif(_core.null_device() is None, reason="no null device on this system"),
]

EXPANDABLE = "expandable_segments:True"
ROWS = [
    ("gpt", ""),
    ("gpt", EXPANDABLE),
    ("gpt", "max_split_size_mb:64"),
    ("gpt_empty_cache", ""),
    ("gpt_streams", ""),
    ("gpt_pools", ""),
    ("gpt", "roundup_power2_divisions:4"),
    ("gpt", "roundup_power2_divisions:[1:8,4:2,>:4]"),
    ("gpt_fraction", "garbage_collection_threshold:0.6"),
    ("gpt_all", EXPANDABLE),
    ("gpt_all", ""),
    ("gpt_all", f"{EXPANDABLE},roundup_power2_divisions:8"),
    ("gpt_all", "max_split_size_mb:32"),
]


@cache
def _recorded(program: str, conf: str) -> tuple[Recorded, Device]:
    run = recorded(program, conf=conf)
    return run, snapviewer.load(run.path).devices[0]


@pytest.mark.parametrize(("program", "conf"), ROWS)
def test_every_placement_is_as_recorded(program: str, conf: str) -> None:
    run, device = _recorded(program, conf)

    allocator, peaks = device.allocator, device.curves.peaks

    [counted] = run.devices
    assert allocator.contradictions == {}
    assert allocator.as_recorded == allocator.placements > 4000
    assert peaks["allocated"] == counted["peak_allocated_bytes"]
    assert peaks["reserved"] == counted["peak_reserved_bytes"]


def test_settings_change_what_is_reserved() -> None:
    reserved = {conf: _recorded("gpt", conf)[1].curves.peaks["reserved"] for _, conf in ROWS[:3]}

    assert len(set(reserved.values())) == 3
    assert reserved[EXPANDABLE] < reserved[""] < reserved["max_split_size_mb:64"]


def test_what_the_collector_gave_back_is_neither_a_retry_nor_explicit() -> None:
    _, device = _recorded("gpt_fraction", "garbage_collection_threshold:0.6")

    causes = {release.cause for release in device.allocator.releases}

    assert causes == {"other"}
    assert device.allocator.settings["garbage_collection_threshold"] == pytest.approx(0.6)


def test_an_explicit_release_is_known() -> None:
    _, device = _recorded("gpt_empty_cache", "")

    assert [release.cause for release in device.allocator.releases] == ["empty cache"]


def test_frees_that_wait_for_another_stream_are_counted() -> None:
    _, device = _recorded("gpt_streams", "")

    [waited] = device.allocator.pending

    assert waited.frees == 24, "three in each of eight steps"
    assert waited.longest_events > 1
    a = device.allocations
    waits = (a.free_requested >= 0) & (a.free_event - a.free_requested > 1)
    blocks = device.allocator.block_size[waits]
    assert waited.bytes == int(blocks.sum())
    pending = device.curves.active.astype("int64") - device.curves.allocated.astype("int64")
    assert waited.most_bytes <= int(pending.max())


def test_a_pool_of_its_own_is_a_domain_of_its_own() -> None:
    _, device = _recorded("gpt_pools", "")
    made = [growth for growth in device.allocator.growths if growth.pool != (0, 0)]

    assert made
    state = device.allocator.state(made[-1].alloc_event)

    pools = {domain.pool for domain in state.domains}
    assert (0, 0) in pools
    assert {growth.pool for growth in made} <= pools
