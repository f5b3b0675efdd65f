"""The replayed allocator has the state of a slow model of it, after every event."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import snapviewer
from snapviewer.demo import DemoOptions, write_demo
from support import allocator_programs as programs
from support.allocator_model import Model, Settings
from support.patience import PATIENT

_STATES = ("allocated", "pending", "free")


def _device(folder: Path, snapshot: dict[str, Any]) -> snapviewer.Device:
    path = folder / "a.json"
    path.write_text(json.dumps(snapshot))
    return snapviewer.load(path).devices[0]


def _state(device: snapviewer.Device, event: int) -> list[Any]:
    """The state as the model describes it."""
    state = device.allocator.state(event)
    blocks = [
        (address, size, requested, _STATES[kind])
        for address, size, requested, kind in zip(
            state.block_address.tolist(),
            state.block_size.tolist(),
            state.block_requested.tolist(),
            state.block_state.tolist(),
            strict=True,
        )
    ]
    firsts = [*state.segment_first_block.tolist(), len(blocks)]
    assert not len(state.unplaced)
    return [
        (address, size, pool, kind, stream, expandable, blocks[firsts[place] : firsts[place + 1]])
        for place, (address, size, pool, kind, stream, expandable) in enumerate(
            zip(
                state.segment_address.tolist(),
                state.segment_size.tolist(),
                state.segment_pool,
                ["small" if small else "large" for small in state.segment_is_small.tolist()],
                state.segment_stream.tolist(),
                state.segment_is_expandable.tolist(),
                strict=True,
            )
        )
    ]


def _assert_replayed(device: snapviewer.Device, model: Model) -> None:
    allocator = device.allocator
    assert allocator.contradictions == {}
    assert allocator.exact
    assert allocator.first_contradiction is None
    made = [event for event in model.trace if event["action"] == "alloc"]
    assert (allocator.placements, allocator.as_recorded) == (len(made), len(made))
    for event in range(-1, len(model.trace)):
        assert _state(device, event) == model.states[event + 1], event
        assert tuple(device.curves.at(event).values()) == model.amounts[event + 1], event
    curves = device.curves
    columns = (curves.requested, curves.allocated, curves.active, curves.reserved)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == model.amounts[1:]
    peaks = tuple(max(column) for column in zip(*model.amounts, strict=True))
    assert tuple(curves.peaks.values()) == peaks


@PATIENT
@given(settings=programs.SETTINGS, program=programs.PROGRAMS)
def test_every_state_of_any_program_is_the_models(
    settings: Settings, program: list[Any], tmp_path: Path
) -> None:
    model = programs.run(settings, program)

    _assert_replayed(_device(tmp_path, model.snapshot()), model)


@PATIENT
@given(settings=programs.SETTINGS, program=programs.PROGRAMS, cut=st.integers(0, 200))
def test_a_trace_that_was_cut_anywhere_replays_as_recorded(
    settings: Settings, program: list[Any], cut: int, tmp_path: Path
) -> None:
    model = programs.run(settings, program)
    first = min(cut, len(model.trace))

    actions = {event["action"] for event in model.trace[first:]}
    # Without any completion, a recording is taken for one that leaves them out.
    assume("free_completed" in actions or "free_requested" not in actions)

    device = _device(tmp_path, model.snapshot(first))

    allocator = device.allocator
    assert allocator.contradictions == {}
    # Without any, a recording is taken for one that leaves the requests out: none then waits.
    is_certain = "free_requested" in actions and not allocator.uncertain_blocks
    for event in range(-1, int(device.events)):
        at = first + event + 1
        assert device.curves.at(event)["reserved"] == model.amounts[at][3]
        if is_certain:
            assert _state(device, event) == model.states[at], event


@PATIENT
@given(expandable=st.booleans(), program=programs.PROGRAMS)
def test_the_fork_for_npus_is_recognized(
    expandable: bool, program: list[Any], tmp_path: Path
) -> None:
    model = programs.run(Settings(expandable=expandable, npu=True), program)

    allocator = _device(tmp_path, model.snapshot()).allocator

    assert allocator.contradictions == {}
    assert allocator.placements == allocator.as_recorded


@pytest.mark.parametrize(
    "options",
    [
        DemoOptions(events=20_000),
        DemoOptions(events=20_000, oom=True, streams=3, ring=True),
        DemoOptions(events=30_000, oom=True, streams=3, expandable=True, private_pools=True),
    ],
)
def test_the_demo_follows_the_rules_of_the_allocator(options: DemoOptions, tmp_path: Path) -> None:
    path = tmp_path / "demo.pickle"
    write_demo(path, options)

    [device] = snapviewer.load(path).devices

    assert device.allocator.contradictions == {}
    assert device.allocator.placements == device.allocator.as_recorded > 0
