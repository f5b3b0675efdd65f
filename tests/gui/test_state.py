"""What the window shows and what changes it, without a window."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from snapviewer import demo
from snapviewer.gui.dialogs import FILTER_SYNTAX
from snapviewer.gui.labels import event_label
from snapviewer.gui.settings import WindowSettings, load_settings, save_settings
from snapviewer.gui.state import State
from snapviewer.gui.values import Topic
from snapviewer.gui.viewport import Viewport
from support import hostile
from support.inline_jobs import InlineJobs

PLOT = (800, 400)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two devices, two streams."""
    path = tmp_path_factory.mktemp("training") / "training.pickle"
    demo.write_demo(path, demo.DemoOptions(events=6000, devices=2, streams=2))
    return path


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Memory runs out now and then."""
    path = tmp_path_factory.mktemp("crowded") / "crowded.pickle"
    demo.write_demo(path, demo.DemoOptions(events=20_000, oom=True, leak=True))
    return path


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def made(
    path: Path, jobs: InlineJobs | None = None, now: Callable[[], float] | None = None
) -> State:
    """A state with a file opened, and a plot to show it on."""
    state = State(jobs or InlineJobs(held={"convert"}), WindowSettings(), now=now or Clock())
    state.plot_px = PLOT
    state.open(path)
    return state


def heard(state: State, *topics: Topic) -> Counter[Topic]:
    """Count how often each topic is published from now on."""
    counter: Counter[Topic] = Counter()
    for topic in topics:
        state.on(lambda topic=topic: counter.update([topic]), topic)  # type: ignore[misc]
    return counter


# Opening


def test_a_file_opens_whole_with_its_largest_device_and_the_cursor_at_the_peak(
    training: Path,
) -> None:
    state = made(training)

    assert state.document is not None
    peaks = [trace.device.peak_bytes for trace in state.document.traces]
    assert state.which == peaks.index(max(peaks))
    assert state.view == state.world.whole()
    assert state.device is not None
    assert state.cursor == state.device.peak_event
    assert state.alive is not None
    assert state.alive.total_bytes == state.device.peak_bytes
    assert state.settings.recent == [str(training)]
    assert state.notice is None


def test_a_file_that_is_no_snapshot_is_reported_and_what_was_open_stays(
    training: Path, tmp_path: Path
) -> None:
    state = made(training)
    other = tmp_path / "other.txt"
    other.write_text("nothing of the kind")

    state.open(other)

    assert state.document is not None
    assert state.document.path == training
    assert state.notice is not None
    assert state.notice.text.startswith("Could not open other.txt: ")
    assert state.settings.recent == [str(training)]


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    state = made(tmp_path / "missing.pickle")

    assert state.document is None
    assert state.notice is not None
    assert "missing.pickle" in state.notice.text


def test_opening_can_be_cancelled(training: Path) -> None:
    jobs = InlineJobs(held={"open"})
    state = made(training, jobs)

    state.cancel_opening()

    assert jobs.running() == []
    assert state.document is None
    assert state.notice is None


def test_another_file_opens_with_the_same_looks_and_without_the_filter(
    training: Path, small: Path
) -> None:
    state = made(training)
    state.set_look(color="size", order="size")
    state.set_filter("size>=1MiB", "only")

    state.open(small)

    assert state.filter.text == ""
    assert state.look.order == "size"
    assert state.timeline is not None
    assert state.device is not None
    assert state.timeline.shown == len(state.device.allocations)


def test_the_filter_stays_when_another_device_is_chosen(training: Path) -> None:
    state = made(training)
    state.set_filter("size>=1MiB", "only")

    state.choose_device(1 - state.which)

    assert state.filter.matches is not None
    assert state.device is not None
    assert state.filter.matches.mask.shape == (len(state.device.allocations),)
    assert state.timeline is not None
    assert state.timeline.shown == state.filter.matches.count


def test_escape_takes_back_one_thing_after_the_other(training: Path) -> None:
    state = made(training)
    state.set_filter("size>=1MiB", "only")
    state.select(3)
    state.notify("something")

    state.clear()
    assert (state.notice, state.selection, state.filter.mode) == (None, 3, "only")
    state.clear()
    assert (state.selection, state.filter.text) == (None, "size>=1MiB")
    state.clear()
    assert (state.filter.text, state.filter.mode) == ("", "highlight")


def test_an_axis_that_was_whole_is_whole_on_the_other_axes_too(training: Path) -> None:
    state = made(training)

    for axis in ("time", "busy time", "event"):
        state.set_look(axis=axis)
        assert state.view == state.world.whole()


def test_a_device_without_events_has_one_moment(tmp_path: Path) -> None:
    path = tmp_path / "state.pickle"
    path.write_bytes(pickle.dumps(hostile.small_snapshot()["segments"]))
    state = made(path)

    assert state.trace is not None
    assert state.trace.events == 0
    assert state.view.x_span == (0.0, 1.0) or state.view.width >= 1
    assert state.alive is not None
    assert state.device is not None
    assert state.alive.total_bytes == state.device.peak_bytes


def test_choosing_another_device_shows_it_whole(training: Path) -> None:
    state = made(training)
    state.select(3)
    other = 1 - state.which

    state.choose_device(other)

    assert state.which == other
    assert state.selection is None
    assert state.view == state.world.whole()
    assert state.device is not None
    assert state.cursor == state.device.peak_event


# Moving


def test_panning_by_pixels_moves_by_as_much_as_they_show(training: Path) -> None:
    state = made(training)
    state.go(Viewport(1000, 2000, 0, state.world.high / 2))

    state.pan_px(80, 40)

    assert state.view.x_span == pytest.approx((1100, 2100))
    assert state.view.low == pytest.approx(state.world.high / 2 / 10)


def test_zooming_keeps_what_is_under_the_pointer(training: Path) -> None:
    state = made(training)
    before = state.point_of(200, 100)

    state.zoom(0.5, 0.5, x_px=200, y_px=100)

    assert state.point_of(200, 100) == pytest.approx(before)
    assert state.view.width == pytest.approx(state.world.right / 2)


def test_pixels_and_places_are_inverse(training: Path) -> None:
    state = made(training)
    state.go(Viewport(100, 300, 10**8, 2 * 10**9))

    assert state.pixel_of(*state.point_of(123, 45)) == pytest.approx((123, 45))


def test_going_back_undoes_a_whole_motion_but_separate_ones_apart(training: Path) -> None:
    now = Clock()
    state = made(training, now=now)
    whole = state.view
    for _ in range(10):
        now.seconds += 0.05
        state.zoom(0.9, 1, x_px=400, y_px=200)
    first = state.view
    now.seconds += 5
    state.pan_px(50, 0)

    state.back()
    assert state.view == first
    state.back()
    assert state.view == whole
    state.back()
    assert state.view == whole


def test_a_box_is_zoomed_to_whichever_corner_came_first(training: Path) -> None:
    state = made(training)
    left, high = state.point_of(100, 250)
    right, low = state.point_of(300, 350)

    state.zoom_to_box((300, 350, 100, 250))

    view = state.view
    assert (view.left, view.right, view.low, view.high) == pytest.approx((left, right, low, high))


def test_the_peak_comes_to_the_middle_of_a_closer_view(training: Path) -> None:
    state = made(training)
    assert state.device is not None

    state.go_to_peak()

    first, last = state.visible_events()
    assert first <= state.device.peak_event < last
    assert state.view.width < state.world.right / 10
    assert state.cursor == state.device.peak_event


def test_out_of_memory_events_are_visited_one_after_the_other(crowded: Path) -> None:
    state = made(crowded)
    assert state.trace is not None
    ooms = state.trace.oom_events.tolist()
    assert len(ooms) > 1
    state.set_cursor(ooms[0])

    state.go_to_oom(1)
    assert state.cursor == ooms[1]
    state.go_to_oom(-1)
    assert state.cursor == ooms[0]
    state.go_to_oom(-1)
    assert state.cursor == ooms[-1]


def test_another_axis_shows_the_same_events(training: Path) -> None:
    state = made(training)
    state.go(Viewport(1000, 2000, 0, 10**9))

    state.set_look(axis="time")
    first, last = state.visible_events()

    # Events of one microsecond look the same on a clock.
    assert first == pytest.approx(1000, abs=20)
    assert last == pytest.approx(2000, abs=20)
    state.set_look(axis="event")
    assert state.view.x_span == pytest.approx((1000, 2000), abs=20)


# Zooming does not lead into the background


@pytest.mark.parametrize("axis", ["event", "time"])
def test_zooming_in_above_the_memory_keeps_some_of_it_in_view(
    training: Path, axis: Literal["event", "time"]
) -> None:
    state = made(training)
    state.set_look(axis=axis)
    assert state.timeline is not None
    x_px, _ = state.pixel_of(state.world.right * 0.05, 0)

    for _ in range(30):
        state.zoom(0.8, 0.8, x_px=x_px, y_px=10)

        first, last = state.visible_events()
        highest = int(state.timeline.totals[first:last].max())
        assert state.view.low < highest
    assert state.view.height < state.world.high / 100, "it did zoom in"


def test_a_box_drawn_in_the_background_shows_the_memory_below_it(training: Path) -> None:
    state = made(training)
    assert state.timeline is not None

    state.zoom_to_box((2, 2, 12, 12))

    first, last = state.visible_events()
    assert state.view.low < int(state.timeline.totals[first:last].max()) <= state.view.high


def test_panning_may_lead_into_the_background_and_back(training: Path) -> None:
    state = made(training)
    state.go(Viewport(0, 100, 0, state.world.high / 10))
    before = state.view

    state.pan_px(0, 2000)
    state.pan_px(0, -2000)

    assert state.view.low == before.low
    assert state.view.high == pytest.approx(before.high)


# Selecting


def test_selecting_shows_what_is_known_of_it(training: Path) -> None:
    state = made(training)
    counter = heard(state, "selection", "details")

    state.select(5)

    assert state.selection == 5
    assert state.allocation_details is not None
    assert state.device is not None
    assert state.allocation_details.size_bytes == state.device.allocations.size[5]
    assert counter["selection"] == 1
    state.clear()
    assert state.selection is None
    assert state.allocation_details is None


def test_what_is_revealed_is_in_view_at_the_same_scale(training: Path) -> None:
    state = made(training)
    assert state.device is not None
    a = state.device.allocations
    state.go(Viewport(0, 300, 0, 10**9))
    late = int(np.argmax(a.alloc_event))

    state.select(late, reveal=True)

    first, last = state.visible_events()
    assert a.alloc_event[late] < last
    assert a.free_event[late] > first
    assert state.view.width == pytest.approx(300)


def test_the_selection_fits_with_room_around_it(training: Path) -> None:
    state = made(training)
    assert state.device is not None
    a = state.device.allocations
    lives = (a.alloc_event > 0) & (a.free_event < int(state.device.events))
    which = int(np.flatnonzero(lives)[10])
    state.select(which)

    state.fit_selection()

    assert state.view.left < a.alloc_event[which] < a.free_event[which] < state.view.right
    assert state.view.height >= a.size[which]


def test_steps_go_through_all_allocations_of_a_stack_in_time(training: Path) -> None:
    state = made(training)
    assert state.device is not None
    a = state.device.allocations
    stacks, counts = np.unique(a.stack[a.alloc_event >= 0], return_counts=True)
    stack = stacks[counts >= 5][0]
    expected = sorted(np.flatnonzero(a.stack == stack).tolist(), key=lambda i: a.alloc_event[i])
    state.select(expected[0])

    found = [expected[0]]
    while state.notice is None:
        state.step_same_stack(1)
        assert state.selection is not None
        found.append(state.selection)

    assert found[:-1] == expected
    state.step_same_stack(-1)
    assert state.selection == expected[-2]


# Filtering


def test_a_filter_highlights_and_counts_what_matches(training: Path) -> None:
    state = made(training)
    assert state.device is not None
    size = state.device.allocations.size

    state.set_filter("size>=1MiB")

    assert state.filter.matches is not None
    assert state.filter.matches.count == np.count_nonzero(size >= 2**20)
    assert state.filter.matches.size_bytes == size[size >= 2**20].sum()
    dimmed = state.dimmed()
    assert dimmed is not None
    assert np.array_equal(dimmed, size >= 2**20)
    assert state.timeline is not None
    assert state.timeline.shown == len(size)


def test_only_matches_are_stacked_and_fill_the_height(training: Path) -> None:
    state = made(training)
    state.set_filter("size>=1MiB", "only")

    assert state.timeline is not None
    assert state.filter.matches is not None
    assert state.timeline.shown == state.filter.matches.count
    assert state.dimmed() is None
    assert state.view.high == pytest.approx(state.world.high)
    assert state.alive is not None
    assert state.alive.total_bytes <= state.timeline.peak_bytes

    state.clear_filter()
    assert state.device is not None
    assert state.timeline.shown == len(state.device.allocations)
    assert state.view.high == pytest.approx(state.world.high)


def test_older_allocations_are_hidden_with_any_filter(training: Path) -> None:
    state = made(training)
    assert state.device is not None
    assert state.timeline is not None
    a = state.device.allocations
    is_recorded, is_large = a.alloc_event >= 0, a.size >= 2**20
    assert not is_recorded.all()

    state.toggle_recorded_only()
    assert state.timeline.shown == np.count_nonzero(is_recorded)
    assert state.view.high == pytest.approx(state.world.high), "what is left fills the height"
    assert state.visible().tolist() == np.flatnonzero(is_recorded).tolist()
    state.set_filter("size>=1MiB")
    assert state.filter.matches is not None
    assert state.filter.matches.count == np.count_nonzero(is_recorded & is_large)
    assert state.timeline.shown == np.count_nonzero(is_recorded), "the others are only dimmed"
    state.set_filter("size>=1MiB", "only")
    assert state.timeline.shown == np.count_nonzero(is_recorded & is_large)
    state.clear_filter()
    state.toggle_recorded_only()
    assert state.timeline.shown == len(a)


def test_nothing_is_hidden_where_nothing_is_older_than_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "fresh.pickle"
    trace = [{"action": "alloc", "addr": 512, "size": 8, "stream": 0, "frames": []}]
    path.write_bytes(pickle.dumps({"device_traces": [trace], "segments": []}))
    state = made(path)

    state.toggle_recorded_only()

    assert not state.filter.recorded_only
    assert state.notice is not None
    assert state.notice.text == "No allocation of this device is older than the recording."


def test_another_file_shows_its_older_allocations(training: Path, crowded: Path) -> None:
    state = made(training)
    state.toggle_recorded_only()

    state.open(crowded)

    assert not state.filter.recorded_only
    assert state.timeline is not None
    assert state.device is not None
    assert state.timeline.shown == len(state.device.allocations)


def test_the_filter_of_the_selections_stack_is_its_line_of_code(training: Path) -> None:
    state = made(training)
    assert state.device is not None
    assert state.document is not None
    assert state.timeline is not None
    a = state.device.allocations
    which = next(n for n, stack in enumerate(a.stack.tolist()) if stack and a.alloc_event[n] > 100)
    state.select(which)

    state.filter_same_stack()

    line = state.document.line_of(int(a.stack[which])).split()[0]
    assert state.filter.text.strip('"').startswith(line)
    assert state.timeline.shown == np.count_nonzero(a.stack == a.stack[which])
    state.filter_same_stack()
    assert state.filter.text == ""


def test_the_newest_filter_wins(training: Path) -> None:
    jobs = InlineJobs(held={"convert", "stack"})
    state = made(training, jobs)

    state.set_filter("size>=1MiB")
    state.set_filter("size>=2MiB")
    jobs.release("stack")

    assert state.filter.text == "size>=2MiB"
    assert state.device is not None
    assert state.filter.matches is not None
    expected = np.count_nonzero(state.device.allocations.size >= 2**21)
    assert state.filter.matches.count == expected


def test_a_filter_that_is_not_understood_is_reported_and_changes_nothing(training: Path) -> None:
    state = made(training)
    before = state.timeline

    state.set_filter("size>=manyMiB")

    assert state.filter.error
    assert state.filter.matches is None
    assert state.timeline is before


def test_visible_is_what_is_alive_in_view_and_shown(training: Path) -> None:
    state = made(training)
    assert state.device is not None
    a = state.device.allocations
    state.go(Viewport(1000, 1200, 0, state.world.high))
    first, last = state.visible_events()
    assert (first, last) == (1000, 1200)

    alive = [
        i
        for i in range(len(a))
        if any(a.alloc_event[i] <= e < a.free_event[i] for e in range(first, last))
    ]
    assert state.visible().tolist() == alive

    state.set_filter("size>=1MiB", "only")
    state.go(Viewport(1000, 1200, 0, state.world.high))
    assert state.visible().tolist() == [i for i in alive if a.size[i] >= 2**20]


# Remembering


def test_settings_come_back_and_damaged_ones_are_as_in_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "a" / "window.json"
    settings = WindowSettings(theme="dark", side_width=333, recent=["x"], queries=["select 1"])
    save_settings(settings, path)
    assert load_settings(path) == settings

    path.write_text('{"theme": 7, "recent": ["a", 3], "unknown": 1, "side_width": true}')
    assert load_settings(path) == WindowSettings(recent=["a"])
    path.write_text("{")
    assert load_settings(path) == WindowSettings()
    assert load_settings(tmp_path / "nowhere.json") == WindowSettings()


def test_recent_files_have_the_newest_first_and_no_file_twice() -> None:
    settings = WindowSettings()
    for name in ("a", "b", "a", *"cdefghijk"):
        settings.add_recent(Path(name))

    assert settings.recent == list("kjihgfedca")


# What must not be mixed up


def test_a_missing_file_is_not_a_recent_one(training: Path, tmp_path: Path) -> None:
    state = made(training)
    state.settings.add_recent(tmp_path / "deleted.pickle")
    state.open(tmp_path / "missing.pickle")

    assert state.settings.recent_files() == [training]
    assert str(tmp_path / "missing.pickle") not in state.settings.recent


def test_the_peak_before_the_first_event_is_the_peak(tmp_path: Path) -> None:
    path = tmp_path / "falling.pickle"
    path.write_bytes(pickle.dumps(hostile.falling_snapshot()))
    state = made(path)
    assert state.device is not None
    assert state.device.peak_bytes == state.device.initial_bytes
    assert (state.device.peak_event, state.cursor) == (-1, -1)
    assert state.alive is not None
    assert state.alive.total_bytes == state.device.initial_bytes
    assert state.world.peak_bytes == state.device.initial_bytes

    state.set_cursor(0)
    state.go_to_peak()

    assert state.cursor == -1
    assert event_label(made(path).document.traces[0], -1) == "before the first event"  # type: ignore[union-attr]


def test_order_and_filter_changed_together_are_both_seen(training: Path) -> None:
    jobs = InlineJobs(held={"convert", "stack"})
    state = made(training, jobs)

    state.set_filter("size>=1MiB", "only")
    state.set_look(order="size")
    jobs.release("stack")

    assert state.timeline is not None
    assert state.filter.matches is not None
    assert state.timeline.shown == state.filter.matches.count
    ids, _ = state.timeline.stack(state.timeline.peak_event)
    assert state.device is not None
    sizes = state.device.allocations.size[ids].tolist()
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("job", ["stack", "details", "alive", "times"])
def test_what_was_begun_for_one_device_never_reaches_another(training: Path, job: str) -> None:
    jobs = InlineJobs(held={"convert"})
    state = made(training, jobs)
    jobs.held.add(job)
    state.set_look(order="stack")
    state.select(5)
    state.set_cursor(17)
    jobs.held.discard(job)

    state.choose_device(1 - state.which)

    assert state.device is not None
    assert state.timeline is not None
    assert state.timeline.totals.shape == state.device.totals.shape
    assert np.array_equal(state.timeline.totals, state.device.totals)
    assert state.allocation_details is None
    assert state.alive is not None
    assert state.alive.total_bytes == state.device.peak_bytes
    assert all(one.name == "convert" for one in jobs.running())


def test_a_file_without_devices_leaves_nothing_of_the_one_before(
    training: Path, tmp_path: Path
) -> None:
    state = made(training)
    state.set_look(axis="time")
    path = tmp_path / "none.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": []}))

    state.open(path)

    assert state.document is not None
    assert state.document.path == path
    assert (state.trace, state.timeline, state.alive, state.selection) == (None,) * 4
    assert state.look.axis == "event"
    assert state.notice is not None
    state.set_look(color="size")
    state.fit_all()


def test_a_file_that_changed_since_answers_no_queries(training: Path, tmp_path: Path) -> None:
    path = tmp_path / "changing.pickle"
    path.write_bytes(training.read_bytes())
    jobs = InlineJobs(held={"convert"})
    state = made(path, jobs)

    path.write_bytes(pickle.dumps(hostile.small_snapshot()))
    jobs.release("convert")

    assert state.document is not None
    assert state.document.bundle is None
    assert "has changed" in state.bundle_error


def test_a_listener_that_fails_does_not_keep_others_from_hearing(training: Path) -> None:
    state = made(training)
    reports: list[str] = []

    def fail() -> None:
        raise LookupError

    state.on(fail, "notice")
    state.on(lambda: reports.append("heard"), "notice")

    with pytest.raises(LookupError):
        state.notify("something")

    assert reports == ["heard"]


def test_times_that_no_axis_can_show_are_not_offered(tmp_path: Path) -> None:
    snapshot = hostile.small_snapshot()
    for trace in snapshot["device_traces"]:
        for place, event in enumerate(trace):
            event["time_us"] = place * 2**58
    path = tmp_path / "long.pickle"
    path.write_bytes(pickle.dumps(snapshot))

    state = made(path)

    assert state.trace is not None
    assert state.trace.clock is not None
    assert state.trace.axes() == ("event",)


def test_untrusted_settings_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "window.json"
    recent = ["\ud800x", "a\0b", "x" * 100_000, *(str(number) for number in range(1000))]
    path.write_text(json.dumps({"recent": recent, "queries": ["\ud800"], "width": 10**30}))

    settings = load_settings(path)

    assert settings.recent == [str(number) for number in range(10)]
    assert settings.queries == []


def test_every_filter_that_the_help_shows_is_understood(training: Path) -> None:
    state = made(training)
    assert state.device is not None

    for text, _ in FILTER_SYNTAX:
        state.device.mask(text)
