"""What-ifs equal what PyTorch's allocator does, as recorded on the null device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import snapviewer
from snapviewer import whatif
from snapviewer.capture.gpus import find_gpu
from snapviewer.demo import DemoOptions, write_demo
from snapviewer.snapshot.whatif import SENSIBLE
from support import allocator_programs as programs
from support import program
from support.allocator_model import Settings
from support.oracle import SNAPSHOTS
from support.patience import PATIENT
from support.recorded import recorded
from support.whatif_programs import PAIRS, Pair, churn, pair_source

on_null_device = pytest.mark.torch

GIB = 1 << 30
LARGE = 40 * GIB
SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:64",
    "roundup_power2_divisions:4",
    "max_split_size_mb:32,roundup_power2_divisions:8",
    "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
    "garbage_collection_threshold:0.6,per_process_memory_fraction:0.9",
)
TRAININGS = (
    *("ragged", "adamw_foreach", "adamw_fused", "adafactor", "autocast", "attention_math"),
    *("checkpointing", "convolution", "lstm", "embedding", "streams", "memory_pool"),
)
CHURNS = {
    "one stream": churn(1),
    "two streams": churn(2, second=0.4),
    "small": churn(5, top=27),
}


def _device(path: Path) -> snapviewer.Device:
    return snapviewer.load(path).devices[0]


def _recorded(source: str, conf: str = "", capacity: int = LARGE) -> snapviewer.Device:
    return _device(recorded(source, conf=conf, capacity=capacity).path)


def _asked(device: snapviewer.Device, conf: str, capacity: int = LARGE) -> snapviewer.WhatIf:
    memory = find_gpu("a100-40gb").with_capacity(capacity).memory_bytes
    return whatif(device, conf, capacity=capacity, memory=memory)


def _allocations_before(device: snapviewer.Device, event: int) -> int:
    """Events are numbered differently in two recordings of a program; its requests are not."""
    return int((device.allocations.alloc_event < event).sum())


@on_null_device
@pytest.mark.parametrize("conf", SETTINGS)
@pytest.mark.parametrize("name", TRAININGS)
def test_other_settings_reserve_what_a_recording_with_them_does(name: str, conf: str) -> None:
    truth = _recorded(name, conf)

    found = _asked(_recorded(name), conf)

    assert found.kind == "whole"
    assert found.peak_reserved_bytes == truth.curves.peaks["reserved"]
    assert found.peak_requested_bytes == truth.curves.peaks["requested"]
    assert found.peak_active_bytes == truth.curves.peaks["active"]
    assert found.low_bytes is not None
    assert found.high_bytes is not None
    assert found.low_bytes <= truth.curves.peaks["reserved"] <= found.high_bytes


@on_null_device
@pytest.mark.parametrize("capacity", [LARGE, 2 * GIB, 5 * GIB // 4])
@pytest.mark.parametrize("conf", SETTINGS)
@pytest.mark.parametrize("name", CHURNS)
def test_a_strained_allocator_retries_and_runs_out_where_a_recording_does(
    name: str, conf: str, capacity: int
) -> None:
    base, truth = _recorded(CHURNS[name]), _recorded(CHURNS[name], conf, capacity)

    found = _asked(base, conf, capacity)

    assert found.peak_reserved_bytes == truth.curves.peaks["reserved"]
    failed = [_allocations_before(truth, event) for event in truth.oom_at]
    ended = [] if found.oom_event is None else [_allocations_before(base, found.oom_event)]
    assert ended == failed
    if "max_split" not in conf and "collection" not in conf and not failed:
        # Else segments go back for other reasons, too.
        retries = sum(release.cause == "retry" for release in truth.allocator.releases)
        assert len(found.retries) == retries


@on_null_device
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
@pytest.mark.parametrize("conf", ["", "expandable_segments:True"])
def test_changed_requests_reserve_what_the_changed_program_does(pair: Pair, conf: str) -> None:
    base, truth = _recorded(pair_source()), _recorded(pair.other, conf)

    found = whatif(base, conf, without=list(pair.without), scale=list(pair.scale))

    assert found.trust == "exact"
    assert found.peak_reserved_bytes == truth.curves.peaks["reserved"]
    assert found.peak_requested_bytes == truth.curves.peaks["requested"]


@on_null_device
def test_where_the_cache_was_emptied_the_answer_is_a_range_with_the_truth_in_it() -> None:
    source = churn(4, top=27, empties=True)
    base = _recorded(source)

    for conf in SETTINGS[1:4]:
        found, truth = whatif(base, conf), _recorded(source, conf).curves.peaks["reserved"]

        assert found.trust == "interval"
        assert "empty_cache" in found.why
        assert found.low_bytes is not None
        assert found.high_bytes is not None
        assert found.low_bytes <= truth <= found.high_bytes


@PATIENT
@given(settings=programs.SETTINGS, program=programs.PROGRAMS)
def test_recorded_settings_give_the_recorded_curve(
    settings: Settings, program: list[Any], tmp_path: Path
) -> None:
    model = programs.run(settings, program)
    path = tmp_path / "a.json"
    path.write_text(json.dumps(model.snapshot()))
    device = _device(path)

    found = whatif(device)

    if found.trust == "exact":
        assert found.peak_reserved_bytes == device.curves.peaks["reserved"]


@pytest.mark.parametrize("path", sorted(SNAPSHOTS.glob("*.pickle")), ids=lambda path: path.stem)
def test_real_recordings_are_repeated_to_the_byte(path: Path) -> None:
    for device in snapviewer.load(path).devices:
        found = whatif(device)
        if not device.allocator.exact or not (device.allocations.alloc_event >= 0).any():
            assert found.trust == "refused"
            assert found.why
            assert found.peak_reserved_bytes is None
            continue
        assert found.trust == "exact"
        assert found.peak_reserved_bytes == device.curves.peaks["reserved"]
        assert found.oom_event is None
        events, sizes = found.reserved
        assert int(sizes.max()) == found.peak_reserved_bytes
        assert events[0] == -1
        for conf in SENSIBLE:
            other = whatif(device, conf)
            assert other.peak_requested_bytes == device.curves.peaks["requested"]
            assert other.high_bytes >= other.peak_requested_bytes  # type: ignore[operator]


def test_a_demo_without_its_largest_group_needs_less(tmp_path: Path) -> None:
    path = tmp_path / "demo.pickle"
    write_demo(path, DemoOptions(events=5000))
    ran = program.run("whatif", path, "--without", "forward", "--conf", "all")

    assert ran.code == 0, ran.err
    assert "without forward: " in ran.out
    assert "PyTorch's defaults" in ran.out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--conf", "expandable:True"), "PyTorch has no setting `expandable`"),
        (("--conf", "expandable_segments:yes"), "takes True or False, not `yes`"),
        (("--conf", "max_split_size_mb:4"), "takes megabytes, at least 21, not `4`"),
        (("--conf", "roundup_power2_divisions:3"), "takes a power of two"),
        (("--conf", "backend:cudaMallocAsync"), "other backends cannot be simulated"),
        (("--conf", "expandable_segments"), "write name:value"),
        (("--scale", "forward", "0"), "--scale takes a factor above 0"),
        (("--gpu", "h1000"), "h1000"),
        (("--without", "size>=lots"), "filter"),
    ],
)
def test_wrong_usage_gets_a_sentence(
    tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    path = tmp_path / "demo.pickle"
    write_demo(path, DemoOptions(events=500))

    ran = program.run("whatif", path, *options)

    assert ran.code == 2
    assert sentence in ran.err


def test_a_filter_that_matches_nothing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "demo.pickle"
    write_demo(path, DemoOptions(events=500))

    ran = program.run("whatif", path, "--without", "no_such_function")

    assert ran.code == 1
    assert "no allocation of device 0 matches: no_such_function" in ran.err
