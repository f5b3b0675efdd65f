"""Why a request failed: one program for each verdict, and numbers that add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import snapviewer
from support import allocator_programs as programs
from support import program
from support.allocator_model import MIB, Block, Model, OutOfMemoryError, Settings
from support.allocator_programs import stack
from support.patience import PATIENT

GPU = 100 * MIB
GRAPH_POOL = (0, 1)


def _model(capacity: int = GPU, **settings: Any) -> Model:
    model = Model(Settings(capacity=capacity, **settings))
    model.free(model.malloc(1, stack("warm_up")), stack("free"))
    model.empty_cache(stack("empty_cache"))
    return model


def _fail(model: Model, size: int, **where: Any) -> None:
    with pytest.raises(OutOfMemoryError):
        model.malloc(size, stack("too_much", 77), **where)


def _in_pieces(model: Model, **where: Any) -> list[Block]:
    """Five segments, each with 18 MiB free between two blocks in use."""
    blocks = [model.malloc(2 * MIB, stack("layer"), **where) for _ in range(50)]
    for place, block in enumerate(blocks):
        if place % 10:
            model.free(block, stack("free"))
    return blocks[::10]


def _only_oom(model: Model, tmp_path: Path) -> tuple[snapviewer.Oom, Path]:
    path = tmp_path / "oom.json"
    path.write_text(json.dumps(model.snapshot()))
    device = snapviewer.load(path).devices[0]
    [oom] = device.ooms
    assert device.allocator.contradictions == {}
    assert oom.exact
    assert oom.event == device.oom_at[0]
    requested, _, active, reserved = model.amounts[oom.event + 1]
    assert (oom.live_bytes, oom.active_bytes, oom.reserved_bytes) == (requested, active, reserved)
    assert oom.free_bytes == reserved - active
    assert oom.capacity_bytes == reserved + oom.device_free_bytes
    return oom, path


def _report(path: Path) -> str:
    ran = program.run("report", path, "--event", "oom")
    assert ran.code == 0, ran.err
    return next(line.strip() for line in ran.out.splitlines() if "out of memory" in line)


def test_more_than_the_device_has_is_demand(tmp_path: Path) -> None:
    model = _model()
    for _ in range(3):
        model.malloc(20 * MIB, stack("layer"))
    _fail(model, 60 * MIB)

    oom, path = _only_oom(model, tmp_path)

    assert (oom.verdict, oom.short_by_bytes) == ("demand", 20 * MIB)
    assert _report(path) == (
        "out of memory: demand: 60.0 MiB in use + 60.0 MiB requested = 120 MiB, of 100 MiB "
        "(60.0 MiB reserved + 40.0 MiB free on the device): 20.0 MiB too much for any setting of "
        "the allocator"
    )


def test_enough_in_pieces_is_fragmentation(tmp_path: Path) -> None:
    model = _model()
    _in_pieces(model)
    _fail(model, 30 * MIB)

    oom, path = _only_oom(model, tmp_path)

    assert (oom.verdict, oom.short_by_bytes) == ("fragmentation", 30 * MIB)
    assert (oom.domain_free_bytes, oom.largest_free_bytes) == (90 * MIB, 18 * MIB)
    assert _report(path) == (
        "out of memory: fragmentation: 30.0 MiB needed 30.0 MiB from the device, which had 0 B: "
        "30.0 MiB too little; 90.0 MiB were cached for such requests, in pieces of at most "
        "18.0 MiB between blocks in use"
    )


def test_what_rounding_takes_is_fragmentation(tmp_path: Path) -> None:
    model = _model(divisions=4)
    model.malloc(65 * MIB, stack("layer"))
    _fail(model, 24 * MIB)

    oom, path = _only_oom(model, tmp_path)

    assert (oom.verdict, oom.short_by_bytes) == ("fragmentation", 4 * MIB)
    assert "; 15.0 MiB are lost to the rounding of blocks" in _report(path)


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ({"stream": 7}, "default pool, large, stream 7"),
        ({"pool": GRAPH_POOL}, "private pool 1, large, stream 0"),
    ],
)
def test_memory_of_another_stream_or_pool_is_isolation(
    where: Any, name: str, tmp_path: Path
) -> None:
    model = _model()
    _in_pieces(model, **where)
    _fail(model, 15 * MIB)

    oom, path = _only_oom(model, tmp_path)

    assert (oom.verdict, oom.short_by_bytes) == ("isolation", 16 * MIB)
    assert _report(path).endswith(
        "90.0 MiB were cached, but only 0 B of it for the stream and pool that asked "
        f"(default pool, large, stream 0); 90.0 MiB in {name}"
    )


def test_a_pool_that_keeps_its_free_segments_is_isolation(tmp_path: Path) -> None:
    model = _model()
    for _ in range(4):
        model.free(model.malloc(22 * MIB, stack("graph"), pool=GRAPH_POOL), stack("free"))
        model.malloc(2 * MIB, stack("other"), pool=GRAPH_POOL)
    _fail(model, 90 * MIB)

    oom, _ = _only_oom(model, tmp_path)

    assert oom.verdict == "isolation"
    assert (oom.pool, oom.domain_free_bytes) == ((0, 0), 0)


def test_memory_that_another_process_took_is_outside(tmp_path: Path) -> None:
    model = _model()
    model.free(model.malloc(80 * MIB, stack("first")), stack("free"))
    model.empty_cache(stack("empty_cache"))
    model.malloc(20 * MIB, stack("layer"))
    model.settings.capacity = 50 * MIB
    _fail(model, 40 * MIB)

    oom, path = _only_oom(model, tmp_path)

    assert (oom.verdict, oom.short_by_bytes) == ("outside", 10 * MIB)
    assert _report(path).endswith(
        "PyTorch could have 80.0 MiB before and 50.0 MiB then, so 30.0 MiB went to something "
        "else on the device"
    )


def test_the_report_and_the_summary_contain_the_reason(tmp_path: Path) -> None:
    model = _model()
    _in_pieces(model)
    _fail(model, 30 * MIB)
    oom, path = _only_oom(model, tmp_path)

    report = json.loads(program.run("report", path, "--event", "oom", "--json").out)
    info = program.run("info", path).out

    [said] = report["ooms"]
    assert said["event"] == report["event"] == oom.event
    assert (said["verdict"], said["short_by_bytes"]) == ("fragmentation", 30 * MIB)
    assert (said["requested_bytes"], said["device_free_bytes"]) == (30 * MIB, 0)
    assert said["sentence"] in info


def test_a_state_without_a_trace_is_explained_as_far_as_it_goes(tmp_path: Path) -> None:
    model = _model()
    _in_pieces(model)
    path = tmp_path / "state.json"
    path.write_text(json.dumps({**model.snapshot(), "device_traces": [[]]}))

    assert _report(path) == (
        "out of memory: the file contains no trace, so the request is not known; 10.0 MiB of "
        "100 MiB reserved were in use and 90.0 MiB free, of which 0 B could go back to the device; "
        "requests above 18.0 MiB (the largest free block, default pool, large, stream 0) needed "
        "memory from the device"
    )
    document = json.loads(program.run("report", path, "--event", "oom", "--json").out)
    assert (document["ooms"], document["bytes"]) == ([], 10 * MIB)
    assert document["oom_state"].startswith("the file contains no trace")


def test_a_trace_in_which_memory_sufficed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fine.json"
    path.write_text(json.dumps(_model().snapshot()))

    ran = program.run("report", path, "--event", "oom")

    assert (ran.code, ran.err) == (1, "snapviewer: device 0 did not run out of memory\n")


@PATIENT
@given(settings=programs.SETTINGS, program=programs.PROGRAMS)
def test_the_numbers_of_any_oom_add_up(
    settings: Settings, program: list[Any], tmp_path: Path
) -> None:
    model = programs.run(settings, program)
    path = tmp_path / "any.json"
    path.write_text(json.dumps(model.snapshot()))

    device = snapviewer.load(path).devices[0]

    failed = [at for at, event in enumerate(model.trace) if event["action"] == "oom"]
    assert [oom.event for oom in device.ooms] == failed
    for oom in device.ooms:
        requested, _, active, reserved = model.amounts[oom.event + 1]
        assert (oom.live_bytes, oom.active_bytes, oom.reserved_bytes) == (
            requested,
            active,
            reserved,
        )
        assert oom.capacity_bytes == settings.capacity
        is_hopeless = requested + oom.requested_bytes > oom.capacity_bytes
        assert (oom.verdict == "demand") == is_hopeless
        assert oom.short_by_bytes > 0 or oom.needed_bytes == 0
