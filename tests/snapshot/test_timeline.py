"""The timeline engine draws and answers what the definition of a pixel says, on any trace."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.patience import EXAMPLES, PATIENT
from support.timeline_cases import (
    START_US,
    Plain,
    Window,
    any_snapshots,
    busy_snapshots,
    byte_ranges,
    crowd,
    crowd_window,
    loaded,
    looks,
    masks,
    multitude,
    timelines,
    windows,
)
from support.timeline_reference import BACKGROUND, NO_MOMENT, ORDERS, Range, Reference

THREADS = (2, 3, 7)


def _device(data: st.DataObject, plain: Plain, directory: Path) -> Any:
    return data.draw(st.sampled_from(loaded(plain, directory).devices))


def _on_any_timeline(
    snapshots: st.SearchStrategy[Plain], examples: int = EXAMPLES // 3
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with `data` and what it takes of `plain`, `dev`, `t` and `model`, all drawn."""

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        taken = inspect.signature(test).parameters.keys()

        def run(plain: Plain, data: st.DataObject, tmp_path: Path) -> None:
            dev = _device(data, plain, tmp_path)
            drawn = {"plain": plain, "data": data, "dev": dev}
            if "t" in taken:
                drawn["t"], drawn["model"] = data.draw(timelines(dev))
            test(**{name: drawn[name] for name in taken})

        run.__name__ = run.__qualname__ = test.__name__
        return settings(PATIENT, max_examples=examples)(given(plain=snapshots, data=st.data())(run))

    return decorated


def _assert_same_image(ours: Any, theirs: Any) -> None:
    assert ours.events.tolist() == theirs.events.tolist()
    assert ours.ids.tolist() == theirs.ids.tolist()
    assert ours.rgb.tolist() == theirs.rgb.tolist()


# Pixels


def _crowd_windows(seed: int, directory: Path) -> Iterator[tuple[Any, Reference, Window]]:
    """Some windows onto a crowd in each order, half of them filtered."""
    random = Random(seed)
    (dev,) = loaded(crowd(seed), directory).devices
    mask = np.random.default_rng(seed).random(len(dev.allocations)) < 0.6
    for number, order in enumerate(ORDERS):
        where = mask if (seed + number) % 2 else None
        t, model = dev.timeline(order=order, where=where), Reference(dev, order, where)
        for _ in range(4):
            yield t, model, crowd_window(model, random)


@pytest.mark.parametrize("seed", range(25))
def test_a_crowd_is_drawn_as_the_definition_says(seed: int, tmp_path: Path) -> None:
    for t, model, window in _crowd_windows(seed, tmp_path):
        image = window.of(t)

        assert image.events.tolist() == window.moments(model), window
        assert image.ids.tolist() == window.ids(model).tolist(), window
        event = max(image.events.tolist())
        ours, theirs = t.stack(event), model.stack(event)
        assert ours[0].tolist() == theirs[0].tolist(), event
        assert ours[1].tolist() == theirs[1].tolist(), event
        offsets = dict(zip(*(part.tolist() for part in theirs), strict=True))
        every = range(len(model.weight))
        assert [t.offset(one, event) for one in every] == [offsets.get(one) for one in every]
        byte = sum(window.bytes) // 2
        assert t.at(event, byte) == model.at(event, byte), (event, byte)


def test_a_multitude_is_drawn_as_the_definition_says(tmp_path: Path) -> None:
    (dev,) = loaded(multitude(), tmp_path).devices
    mask = np.random.default_rng(0).random(len(dev.allocations)) < 0.9
    for order, where in (("allocation", None), ("size", mask)):
        t, model = dev.timeline(order=order, where=where), Reference(dev, order, where)
        total = model.peak()[0]
        for events in ((0, dev.events), (dev.events - 900, dev.events), (139_990, 140_030)):
            for span in ((0, total), (total // 3, total // 3 + 5000), (total - 9000, total + 9)):
                window = Window(events, span, (40, 300))

                image = window.of(t)

                assert image.events.tolist() == window.moments(model), window
                assert np.array_equal(image.ids, window.ids(model)), window


@_on_any_timeline(any_snapshots(), EXAMPLES)
def test_any_window_shows_what_the_definition_says(
    t: Any, model: Reference, data: st.DataObject
) -> None:
    for window in data.draw(st.lists(windows(model), min_size=1, max_size=4)):
        image = window.of(t)

        assert (image.ids.shape, image.ids.dtype) == (window.size[::-1], np.uint32)
        assert (image.events.shape, image.events.dtype) == (window.size[:1], np.int64)
        assert image.events.tolist() == window.moments(model)
        assert image.ids.tolist() == window.ids(model).tolist()


@_on_any_timeline(any_snapshots(), EXAMPLES // 2)
def test_any_window_has_the_colours_that_the_definition_says(
    dev: Any, t: Any, model: Reference, data: st.DataObject
) -> None:
    window, look = data.draw(windows(model)), data.draw(looks(dev))
    colors = dev.colors(color=look["color"], theme=look["theme"])

    image = window.of(t, **look)

    assert image.rgb.tolist() == window.rgb(model, colors, look).tolist()


@_on_any_timeline(busy_snapshots())
def test_any_window_on_a_clock_shows_what_the_definition_says(
    dev: Any, t: Any, model: Reference, data: st.DataObject
) -> None:
    clock = dev.clock(compress=data.draw(st.booleans()))
    assume(clock is not None)
    w, h = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 30))
    length = data.draw(st.sampled_from([1.0, float(w), w / 3, clock.length_us + 1.0, 1e9]))
    # Whole µs, too, so that columns end where events are.
    near = st.integers(-5, clock.length_us + 1) | st.floats(-length, clock.length_us + 1)
    lo = data.draw(near) if length < 1e9 else -5
    span = data.draw(byte_ranges(model, h))
    moments = model.moments_of_time(lo, lo + length, w, clock)

    image = t.image(time=(lo, lo + length), clock=clock, bytes=span, size=(w, h))

    assert image.events.tolist() == moments
    assert image.ids.tolist() == model.ids(moments, span, h).tolist()


@_on_any_timeline(any_snapshots())
def test_what_a_pixel_shows_is_in_it_and_what_fills_most_of_it_is_shown(
    t: Any, model: Reference, data: st.DataObject
) -> None:
    window = data.draw(windows(model))
    (lo, hi), h = window.bytes, window.size[1]

    image = window.of(t)

    for column, moment in enumerate(image.events.tolist()):
        if moment == NO_MOMENT:
            assert set(image.ids[:, column].tolist()) == {BACKGROUND}
            continue
        ids, offsets = (part.tolist() for part in model.stack(moment))
        # In parts of a byte that make a row's height, hi - lo, a whole number: h parts a byte.
        spans = [
            (allocation, start * h, (start + int(model.weight[allocation])) * h)
            for allocation, start in zip(ids, offsets, strict=True)
        ]
        for row, shown in enumerate(image.ids[::-1, column].tolist()):
            below = lo * h + row * (hi - lo)
            covered = {
                allocation: min(end, below + hi - lo) - max(start, below)
                for allocation, start, end in spans
            }
            most = [allocation for allocation, part in covered.items() if 2 * part > hi - lo]
            assert shown == BACKGROUND or covered[shown] > 0
            assert most in ([], [shown])


@_on_any_timeline(any_snapshots())
def test_the_silhouette_of_any_window_is_the_totals(
    t: Any, model: Reference, data: st.DataObject
) -> None:
    window = data.draw(windows(model))
    h = window.size[1]

    image = window.of(t)

    is_filled = image.ids != BACKGROUND
    heights = is_filled.sum(axis=0).tolist()
    assert heights == model.silhouette(image.events.tolist(), window.bytes, h)
    assert all(is_filled[h - height :, c].all() for c, height in enumerate(heights)), "no holes"


@_on_any_timeline(busy_snapshots())
def test_no_moment_of_a_column_is_higher_than_the_one_it_shows(
    t: Any, model: Reference, data: st.DataObject
) -> None:
    assume(model.events)
    w = data.draw(st.integers(1, model.events))
    whole = Window((0, model.events), (0, 1), (w, 1))

    shown = t.totals[whole.of(t).events].tolist()

    assert max(shown) == t.peak_bytes
    edges = [column * model.events // w for column in range(w + 1)]
    highest = [max(t.totals[a:b].tolist()) for a, b in pairwise(edges)]
    assert shown == highest


# Answers


@_on_any_timeline(any_snapshots(), EXAMPLES)
def test_totals_peak_and_overview_are_those_of_what_is_shown(
    t: Any, model: Reference, data: st.DataObject
) -> None:
    window = data.draw(windows(model))
    low, high = model.overview(*window.events, window.size[0])

    ours = t.overview(events=window.events, size=window.size[0])

    assert t.totals.dtype == np.uint64
    assert t.totals.tolist() == model.totals().tolist()
    assert (t.peak_bytes, t.peak_event) == model.peak()
    assert t.shown == model.is_shown.sum()
    assert [part.dtype for part in ours] == [np.uint64, np.uint64]
    assert [part.tolist() for part in ours] == [low.tolist(), high.tolist()]


@_on_any_timeline(any_snapshots())
def test_the_stack_at_any_event_and_what_is_at_its_places_are_as_defined(
    t: Any, model: Reference, data: st.DataObject
) -> None:
    for event in data.draw(st.lists(st.integers(-1, model.events - 1), min_size=1, max_size=6)):
        ids, offsets = (part.tolist() for part in model.stack(event))
        total = sum(int(model.weight[n]) for n in ids)
        edges = data.draw(st.lists(st.sampled_from([*offsets, total]), max_size=6))
        inside = data.draw(st.lists(st.integers(0, total + 1), max_size=3))

        ours = t.stack(event)

        assert [part.dtype for part in ours] == [np.uint32, np.uint64]
        assert [part.tolist() for part in ours] == [ids, offsets]
        for byte in {*edges, *(max(edge - 1, 0) for edge in edges), *inside, 2**64 - 1}:
            assert t.at(event, byte) == model.at(event, byte)


@_on_any_timeline(busy_snapshots())
def test_a_clock_has_the_time_of_each_event_and_never_runs_backwards(
    plain: Plain, dev: Any, data: st.DataObject
) -> None:
    times = [event["time_us"] for event in plain["device_traces"][0]]
    assume(times)
    expected = (np.maximum.accumulate(times) - times[0]).tolist()

    clock, short = dev.clock(), dev.clock(compress=True)

    assert clock.start_us == times[0] >= START_US - 100
    assert clock.gaps == ()
    assert [clock.at(event) for event in range(len(times))] == expected
    assert clock.length_us == expected[-1]
    on_short = [short.at(event) for event in range(len(times))]
    assert on_short == sorted(on_short)
    assert short.length_us == on_short[-1] <= clock.length_us
    assert [short.real(at) for at in on_short] == expected
    cut = sum(real_us - (to_us - from_us) for _, from_us, to_us, real_us in short.gaps)
    assert clock.length_us - short.length_us == cut
    for event, from_us, to_us, real_us in short.gaps:
        assert (from_us, to_us) == (on_short[event], on_short[event + 1])
        assert real_us == expected[event + 1] - expected[event] > to_us - from_us


# Threads, pans


@_on_any_timeline(any_snapshots())
def test_an_image_does_not_depend_on_the_number_of_threads(
    dev: Any, t: Any, model: Reference, data: st.DataObject
) -> None:
    window, look = data.draw(windows(model)), data.draw(looks(dev))
    # So wide that there is something to divide.
    window = replace(window, size=(data.draw(st.integers(1, 500)), window.size[1]))
    assume((window.events[1] - window.events[0]) / window.size[0] > 1e-5)

    alone = window.of(t, threads=1, **look)

    for threads in THREADS:
        _assert_same_image(window.of(t, threads=threads, **look), alone)


@_on_any_timeline(any_snapshots(), EXAMPLES)
def test_a_pan_looks_as_if_it_were_drawn_afresh(
    dev: Any, t: Any, model: Reference, data: st.DataObject
) -> None:
    window, look = data.draw(windows(model)), data.draw(looks(dev))
    clock = dev.clock() if data.draw(st.booleans()) else None
    (lo, hi), w = window.events, data.draw(st.integers(1, 300))
    pixels = data.draw(st.one_of(st.integers(-w - 2, w + 2), st.floats(-w, w)))
    step = pixels * (hi - lo) / w
    assume(max(map(abs, (lo + step, hi + step))) <= 1e15 and (hi - lo) / w > 1e-5)

    def image(ends: Range, previous: Any = None) -> Any:
        x = {"time": ends, "clock": clock} if clock else {"events": ends}
        place = {"bytes": window.bytes, "size": (w, window.size[1])}
        return t.image(previous=previous, **x, **place, **look)

    panned = image((lo + step, hi + step), previous=image((lo, hi)))

    _assert_same_image(panned, image((lo + step, hi + step)))


@_on_any_timeline(any_snapshots())
def test_an_image_of_anything_else_leaves_no_trace_in_the_next(
    dev: Any, data: st.DataObject
) -> None:
    (t, model), (other, _) = (data.draw(timelines(dev)) for _ in range(2))
    before, after = data.draw(windows(model)), data.draw(windows(model))
    after = data.draw(st.sampled_from([after, before]))
    look, earlier = data.draw(looks(dev)), data.draw(looks(dev))
    previous = before.of(data.draw(st.sampled_from([t, other])), **earlier)

    image = after.of(t, previous=previous, **look)

    _assert_same_image(image, after.of(t, **look))


# The reference itself


def test_in_a_crowd_many_pixels_show_the_heaviest_of_a_block(tmp_path: Path) -> None:
    merged = 0
    for seed in range(5):
        for _, model, window in _crowd_windows(seed, tmp_path):
            owners = model.owners(window.moments(model), window.bytes, window.size[1])
            merged += int((window.ids(model) != owners).sum())

    assert merged > 500, "else no test would notice how blocks are merged"


@settings(PATIENT, max_examples=EXAMPLES // 3)
@given(plain=busy_snapshots(), data=st.data())
def test_the_reference_agrees_with_a_list_of_bytes(
    plain: Plain, data: st.DataObject, tmp_path: Path
) -> None:
    """On tiny traces each byte can be written down, and each total added up."""
    for event in plain["device_traces"][0]:
        event["size"] %= 7
    for segment in plain["segments"]:
        segment["blocks"][0]["requested_size"] %= 7
    dev = _device(data, plain, tmp_path)
    mask = data.draw(masks(dev))
    order = data.draw(st.sampled_from([order for order in ORDERS if order != "pool"]))
    model = Reference(dev, order, mask)
    window = data.draw(windows(model))
    (lo, hi), h = window.bytes, window.size[1]
    a = dev.allocations

    def bytes_at(moment: int) -> list[int]:
        return [
            position
            for position, n in enumerate(model.id_at.tolist())
            if a.alloc_event[n] <= moment and (moment < a.free_event[n] or dev.events == 0)
            for _ in range(int(a.size[n]) if mask is None or mask[n] else 0)
        ]

    totals = [len(bytes_at(moment)) for moment in range(max(dev.events, 1))]
    assert model.levels.tolist() == totals
    ids = window.ids(model)
    for column, moment in enumerate(window.moments(model)):
        if moment == NO_MOMENT:
            continue
        owners = bytes_at(moment)
        assert len(owners) == totals[moment]
        for row in range(h):
            byte = int(lo + (row + 0.5) * (hi - lo) / h) if hi < 2**40 else 2**40
            expected = BACKGROUND
            if byte < len(owners):
                block = [p for p in owners if p // 32 == owners[byte] // 32]
                is_thin = len(block) <= (hi - lo) / h / 2
                heaviest = max(sorted(set(block)), key=block.count)
                expected = int(model.id_at[heaviest if is_thin else owners[byte]])
            assert ids[h - 1 - row, column] == expected
