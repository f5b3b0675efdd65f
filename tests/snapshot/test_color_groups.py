"""What the colours of a picture stand for, compared with the definition in NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snapviewer
from snapviewer.demo import DemoOptions, write_demo
from support.timeline_reference import BACKGROUND

EVENTS = 1500
PARTS = [(0, EVENTS), (0, 40), (600, 650), (EVENTS - 1, EVENTS)]


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A device with streams, pools and categories."""
    path = tmp_path_factory.mktemp("groups") / "demo.pickle"
    write_demo(path, DemoOptions(events=EVENTS, streams=3, private_pools=True))
    return snapviewer.load(path).devices[0]


def _picture(timeline: Any, events: tuple[int, int], **look: str) -> Any:
    return timeline.image(events=events, bytes=(0, timeline.peak_bytes), size=(120, 80), **look)


@pytest.mark.parametrize("where", [None, "size>1MiB"])
@pytest.mark.parametrize("events", PARTS)
@pytest.mark.parametrize("color", ["stack", "stream", "pool", "category"])
def test_groups_are_those_of_the_definition(
    dev: Any, color: str, events: tuple[int, int], where: str | None
) -> None:
    timeline = dev.timeline(where=where)
    image = _picture(timeline, events, color=color)
    at_peak = timeline.peak_in(*events)[0]

    found = timeline.color_groups(image, at_peak, color, "dark")

    is_category = color == "category"
    keys = dev.categories.category if is_category else getattr(dev.allocations, color)
    colors = dev.colors(color, "dark")
    alive, visible = timeline.stack(at_peak)[0], image.ids[image.ids != BACKGROUND]
    expected = []
    for key in np.unique(keys[np.concatenate([alive, visible])]).tolist():
        held = int(dev.allocations.size[alive][keys[alive] == key].sum())
        pixels = int((keys[visible] == key).sum())
        expected.append((key, held, pixels, tuple(colors[keys == key][0].tolist())))
    assert found == sorted(expected, key=lambda group: (-group[1], group[0]))
    assert timeline.visible_extent(image, color) is None


@pytest.mark.parametrize("events", PARTS)
def test_the_visible_extent_is_that_of_visible_allocations(
    dev: Any, events: tuple[int, int]
) -> None:
    timeline, a = dev.timeline(), dev.allocations
    image = _picture(timeline, events)
    visible = image.ids[image.ids != BACKGROUND]
    ages = a.free_event - a.alloc_event

    for color, numbers in (("size", a.size), ("age", ages)):
        shown = numbers[visible]
        assert timeline.visible_extent(image, color) == (shown.min(), shown.max())
        assert timeline.color_groups(image, 0, color) == []


@pytest.mark.parametrize("part", [(0, 1), (0, EVENTS), (7, 900), (EVENTS - 1, EVENTS)])
def test_the_peak_of_a_part_is_its_first_largest_total(dev: Any, part: tuple[int, int]) -> None:
    timeline = dev.timeline()
    totals = timeline.totals[slice(*part)]
    assert timeline.peak_in(*part) == (part[0] + int(totals.argmax()), int(totals.max()))


@pytest.mark.parametrize("part", [(5, 5), (6, 5), (0, EVENTS + 1)])
def test_a_part_without_events_has_no_peak(dev: Any, part: tuple[int, int]) -> None:
    with pytest.raises(IndexError, match=f"of {EVENTS}"):
        dev.timeline().peak_in(*part)


def test_a_stretch_of_time_shows_the_event_at_or_before_its_start(dev: Any) -> None:
    clock = dev.clock()
    times = clock.times.tolist()
    for low, high in [(0, 1), (times[9], times[20]), (times[9] - 0.5, times[20] + 0.5), (-5, -1)]:
        first, last = clock.events(low, high)
        assert first == max(sum(time <= low for time in times) - 1, 0)
        assert last == max(sum(time < high for time in times), first + 1)


def test_a_picture_of_another_device_is_refused(dev: Any, tmp_path: Path) -> None:
    path = tmp_path / "other.pickle"
    write_demo(path, DemoOptions(events=200))
    other = snapviewer.load(path).devices[0].timeline()
    with pytest.raises(ValueError, match="another device"):
        dev.timeline().color_groups(_picture(other, (0, 200)), 0)


def test_the_bytes_of_a_picture_are_its_pixels(dev: Any) -> None:
    image = _picture(dev.timeline(), (0, EVENTS))
    marks = [(3, 4, 20, 10, (255, 0, 0), 128, True)]
    assert image.marked_bytes(marks) == image.marked(marks).tobytes()
