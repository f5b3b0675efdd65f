"""The replayed allocator at the cursor, without a window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import snapviewer
from snapviewer import demo
from snapviewer.gui.plot.amounts import amount_lines, amount_marks
from snapviewer.gui.replay import NO_REPLAY, NO_TRACE, RowSizes
from snapviewer.gui.settings import WindowSettings
from snapviewer.gui.state import State
from snapviewer.report.snapshot.allocator_settings import settings_of
from support.inline_jobs import InlineJobs
from support.oracle import SNAPSHOTS

SIZE, ROWS = (800, 200), RowSizes()


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Memory runs out now and then."""
    path = tmp_path_factory.mktemp("crowded") / "crowded.pickle"
    demo.write_demo(path, demo.DemoOptions(events=20_000, oom=True, leak=True))
    return path


def made(path: Path, *, held: tuple[str, ...] = (), show_map: bool = True) -> State:
    """A state with a file opened, and the memory map shown."""
    jobs = InlineJobs(held={"convert", *held})
    state = State(jobs, WindowSettings(show_dock=show_map))
    state.plot_px = (800, 400)
    state.open(path)
    return state


def test_nothing_is_replayed_before_something_shows_it(crowded: Path) -> None:
    state = made(crowded, show_map=False)
    assert state.replayed.replay is None

    state.show_dock("map")

    assert state.replayed.replay is not None
    assert state.replayed.memory() is not None


def test_the_map_follows_the_cursor(crowded: Path) -> None:
    state = made(crowded)
    for event in (100, 7000, 19_999, -1):
        state.set_cursor(event)

        memory = state.replayed.memory()

        assert memory is not None
        assert memory.event == event
        assert state.device is not None
        assert int(memory.segment_size.sum()) == state.device.curves.at(event)["reserved"]


def test_another_device_has_a_replay_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "two.pickle"
    demo.write_demo(path, demo.DemoOptions(events=3000, devices=2))
    state = made(path)
    first = state.replayed.replay

    state.next_device()

    assert state.replayed.replay is not None
    assert state.replayed.replay is not first


def test_steps_go_from_event_to_event(crowded: Path) -> None:
    state = made(crowded)
    state.set_cursor(0)

    state.replayed.step(1)
    assert state.cursor == 1
    for _ in range(4):
        state.replayed.step(-1)

    assert state.cursor == -1, "before the first event, and no further"


def test_steps_to_segment_events_skip_the_others(crowded: Path) -> None:
    state = made(crowded)
    assert state.device is not None
    actions = ("segment_alloc", "segment_free", "segment_map", "segment_unmap")
    expected = np.sort(np.concatenate([state.device.events_of(one) for one in actions]))
    state.set_cursor(-1)

    state.replayed.step_segment(1)
    state.replayed.step_segment(1)
    assert state.cursor == expected[1]
    state.replayed.step_segment(-1)
    assert state.cursor == expected[0]
    state.replayed.step_segment(-1)

    assert state.cursor == expected[0]
    assert state.notice is not None
    assert state.notice.text == "No segment event before the cursor."


def test_the_scale_halves_and_doubles_and_fits_again(crowded: Path) -> None:
    state = made(crowded)
    fitted = state.replayed.row_bytes_of(SIZE, ROWS)
    assert fitted is not None

    state.replayed.zoom(1, SIZE, ROWS)
    assert state.replayed.row_bytes_of(SIZE, ROWS) == fitted // 2
    for _ in range(60):
        state.replayed.zoom(-1, SIZE, ROWS)
    memory, widest = state.replayed.memory(), state.replayed.row_bytes_of(SIZE, ROWS)
    assert memory is not None
    assert widest is not None
    assert widest // 2 < int(memory.segment_size.max()) <= widest, "one row for each segment"

    state.replayed.fit()
    assert state.replayed.row_bytes_of(SIZE, ROWS) == fitted


def test_one_long_segment_fills_the_height() -> None:
    state = made(SNAPSHOTS / "t211-expandable-steady.pickle")

    layout = state.replayed.layout((800, 400), ROWS)

    assert layout is not None
    assert 200 < layout.height <= 400


def test_orders_change_only_the_order(crowded: Path) -> None:
    state = made(crowded)
    seen = []
    for _ in range(4):
        layout = state.replayed.layout(SIZE, ROWS)
        assert layout is not None
        rows = layout.rows(0, layout.height)
        seen.append(tuple(place for _, kind, place, part in rows if kind == "segment" and not part))
        state.replayed.next_order()

    assert state.replayed.order == "address"
    assert len(set(seen)) > 1
    assert len({tuple(sorted(places)) for places in seen}) == 1


def test_a_block_of_the_map_is_the_allocation_of_its_pixel(crowded: Path) -> None:
    state = made(crowded)
    layout = state.replayed.layout(SIZE, ROWS)
    assert layout is not None

    ids = layout.image(height=200).ids

    for x in range(0, 800, 37):
        for y in range(0, 200, 5):
            block = layout.at(x, y)
            owner = 2**32 - 1 if block is None or block.allocation is None else block.allocation
            assert int(ids[y, x]) == owner


# What a file does not contain


def test_a_file_without_a_trace_shows_its_memory_and_says_so() -> None:
    state = made(SNAPSHOTS / "private-pools-state-only.pickle")

    assert state.replayed.note() == NO_TRACE
    assert state.replayed.layout(SIZE, ROWS) is not None
    state.replayed.step(1)
    assert state.cursor == -1


def test_a_bundle_without_segments_says_what_to_open(crowded: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "crowded.zip"
    snapviewer.convert(crowded, bundle)

    state = made(bundle)

    assert state.replayed.note() == NO_REPLAY
    assert state.replayed.layout(SIZE, ROWS) is None
    assert amount_lines(state) == []


def test_states_after_a_contradiction_are_marked() -> None:
    state = made(SNAPSHOTS / "SYNTHETIC-mosaic.pickle")
    assert state.replayed.replay is not None
    assert state.trace is not None
    first = state.replayed.replay.allocator.first_contradiction
    assert first is not None

    state.set_cursor(state.trace.events - 1)

    assert state.replayed.note() != ""


# Amounts


def test_the_gaps_add_up_to_the_reserved_memory(crowded: Path) -> None:
    state = made(crowded)
    amounts, memory = state.replayed.amounts(state.cursor), state.replayed.memory()
    assert amounts is not None
    assert memory is not None

    lines = amount_lines(state)

    assert [line.name for line in lines] == [
        *("reserved", "releasable", "in pieces", "active", "pending", "allocated"),
        *("rounding", "requested"),
    ]
    free = sum(domain.free_bytes for domain in memory.domains)
    assert amounts["active"] + free == amounts["reserved"]


def test_lines_are_where_their_bytes_are(crowded: Path) -> None:
    state = made(crowded)
    state.set_pane("lines", is_shown=True)
    assert state.replayed.replay is not None
    events = np.linspace(0, 19_999, 800).astype(np.int64)

    marks = list(amount_marks(state, events, 1))

    reserved = state.replayed.replay.curves.reserved[events]
    assert state.view.high >= state.replayed.replay.peak_reserved_bytes, "all of it is in view"
    for x in (0, 400, 799):
        row = round(state.pixel_of(0, float(reserved[x]))[1])
        assert any(mark.x <= x < mark.x + mark.width and mark.y == row - 1 for mark in marks)
    state.set_pane("lines", is_shown=False)
    assert list(amount_marks(state, events, 1)) == []


def test_the_height_returns_when_the_lines_go(crowded: Path) -> None:
    state = made(crowded)
    before = state.view

    state.set_pane("lines", is_shown=True)
    assert state.view.high > before.high
    state.set_pane("lines", is_shown=False)

    assert state.view == before


# Out of memory


def test_the_reason_is_known_at_an_out_of_memory_event_only(crowded: Path) -> None:
    state = made(crowded, show_map=False)
    assert state.replayed.oom_at_cursor() == ""

    state.go_to_oom(1)

    assert state.device is not None
    sentence = state.replayed.oom_at_cursor()
    assert sentence.startswith(f"Out of memory: {state.device.ooms[0].verdict}: ")
    state.replayed.step(1)
    assert state.replayed.oom_at_cursor() == ""


# Settings


def test_every_setting_has_its_effect(crowded: Path) -> None:
    state = made(crowded)
    assert state.replayed.replay is not None
    allocator = state.replayed.replay.allocator

    settings = settings_of(allocator)

    assert {one.name for one in settings} == set(allocator.settings)
    assert all(one.value and one.effect.endswith(".") for one in settings)
