"""The timeline of every published snapshot that we have is the slow reference's."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import snapviewer
from support.oracle import SNAPSHOTS
from support.timeline_cases import Window
from support.timeline_reference import BACKGROUND, Reference

FILES = sorted(SNAPSHOTS.glob("*.pickle"))
NAMES = [path.stem for path in FILES] or ["absent"]
SIZE = W, H = 120, 80
POINTS = 60


def _devices(name: str) -> list[Any]:
    if not FILES:
        pytest.skip(f"{SNAPSHOTS} is absent")
    devices = snapviewer.load(SNAPSHOTS / f"{name}.pickle").devices
    return [dev for dev in devices if dev.peak_bytes > 0]


def _windows(model: Reference) -> list[Window]:
    """The whole, some of it about the peak, each event there, each byte there."""
    highest, event = model.peak()
    n, event = max(model.events, 1), max(event, 0)
    near = (event - n / 40, event + n / 40)
    each = (event - W // 2, event + W // 2)
    top = max(highest - 60, 0)
    return [
        Window((0, n), (0, highest + highest // 20 + 1), SIZE),
        Window(near, (highest // 2, highest + highest // 50 + 1), SIZE),
        Window(each, (0, highest + 1), SIZE),
        Window(each, (top, top + H), SIZE),
    ]


def _timelines(dev: Any) -> list[tuple[Any, Reference]]:
    mask = np.random.default_rng(len(dev.allocations)).random(len(dev.allocations)) < 0.4
    kinds = [("allocation", None), ("stack", None), ("allocation", mask), ("size", mask)]
    return [
        (dev.timeline(order=order, where=where), Reference(dev, order, where))
        for order, where in kinds
    ]


@pytest.mark.parametrize("name", NAMES)
def test_windows_onto_a_real_file_show_what_the_definition_says(name: str) -> None:
    for dev in _devices(name):
        for t, model in _timelines(dev):
            assert np.array_equal(t.totals, model.totals())
            for window in _windows(model):
                image, moments = window.of(t), window.moments(model)

                assert image.events.tolist() == moments
                differs = image.ids != window.ids(model)
                assert np.argwhere(differs)[:5].tolist() == [], window
                heights = (image.ids != BACKGROUND).sum(axis=0).tolist()
                assert heights == model.silhouette(moments, window.bytes, H)


@pytest.mark.parametrize("name", NAMES)
def test_a_real_file_on_a_clock_shows_what_the_definition_says(name: str) -> None:
    for dev in _devices(name):
        for compress in (False, True):
            clock = dev.clock(compress=compress)
            if clock is None:
                continue
            t, model = dev.timeline(), Reference(dev)
            peak_us, span = clock.at(max(dev.peak_event, 0)), (0, dev.peak_bytes + 1)
            for lo, hi in ((-1, clock.length_us + 1), (peak_us - 60, peak_us + 60)):
                moments = model.moments_of_time(lo, hi, W, clock)

                image = t.image(time=(lo, hi), clock=clock, bytes=span, size=SIZE)

                assert image.events.tolist() == moments
                assert np.array_equal(image.ids, model.ids(moments, span, H))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_at_a_place_of_a_real_file_is_found_as_by_a_linear_search(name: str) -> None:
    random = Random(name)
    for dev in _devices(name):
        for t, model in _timelines(dev):
            for _ in range(POINTS // 4):
                event = random.randrange(-1, model.events)
                total = int(model.levels[max(event, 0)])
                byte = random.randrange(total + total // 50 + 1)

                assert t.at(event, byte) == model.at(event, byte)
            ids, offsets = model.stack(event)
            ours = t.stack(event)
            assert np.array_equal(ours[0], ids)
            assert np.array_equal(ours[1], offsets)
