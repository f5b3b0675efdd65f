"""Rectangles on pictures: every pixel is compared with a slow and obvious way to paint them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from snapviewer import Image, Timeline
from snapviewer.report.picture.marks import PixelMark
from support.marked_pictures import Pixels, any_marks, picture
from support.timeline_cases import crowd, loaded

BACKGROUND = 2**32 - 1
RED, BLUE = (255, 0, 0), (0, 0, 255)


def painted(image: Image, marks: Sequence[PixelMark]) -> Pixels:
    """What `image.marked` has to return."""
    opaque = np.full((*image.ids.shape, 1), 255)
    pixels = np.concatenate([image.rgb, opaque], axis=2).astype(np.float64)
    rows, columns = np.indices(image.ids.shape)
    for mark in marks:
        inside = (rows >= mark.y) & (rows < mark.y + mark.height)
        inside &= (columns >= mark.x) & (columns < mark.x + mark.width)
        inside &= mark.over | (image.ids == BACKGROUND)
        share = mark.alpha / 255
        mixed = pixels[inside, :3] * (1 - share) + np.array(mark.color) * share
        pixels[inside, :3] = np.rint(mixed)
    return pixels.astype(np.uint8)


@pytest.fixture(scope="module")
def timeline(tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    snapshot = loaded(crowd(1), tmp_path_factory.mktemp("marks"))
    timeline: Timeline = snapshot.devices[0].timeline()
    return timeline


@pytest.mark.parametrize("seed", range(150))
def test_marks_are_painted_as_the_obvious_way_does(timeline: Timeline, seed: int) -> None:
    random = Random(seed)
    size = random.choice([(random.randint(1, 60), random.randint(1, 60)), (1, 1), (700, 400)])
    image = picture(timeline, size)
    marks = any_marks(random, size)

    assert (image.marked(marks) == painted(image, marks)).all()


def test_marks_find_the_background_of_a_picture_that_was_moved(timeline: Timeline) -> None:
    moved = picture(timeline, (100, 80), events=(10, 110))
    for first in (20, 60, 13):
        moved = picture(timeline, (100, 80), events=(first, first + 100), previous=moved)
    marks = [PixelMark(0, 0, 100, 80, RED), PixelMark(0, 0, 50, 80, BLUE, 99)]

    assert (moved.marked(marks) == painted(moved, marks)).all()


def test_the_picture_itself_is_not_painted_on(timeline: Timeline) -> None:
    image = picture(timeline, (60, 40))
    before = image.marked(())

    marked = image.marked([PixelMark(0, 0, 60, 40, RED, over=True)])

    assert (marked == [*RED, 255]).all()
    assert (image.rgb == before[..., :3]).all()
    assert (image.marked(()) == before).all()
    assert marked.flags.writeable


def test_a_mark_on_the_background_covers_no_allocation(timeline: Timeline) -> None:
    image = picture(timeline, (60, 40))
    is_free = image.ids == BACKGROUND

    marked = image.marked([PixelMark(0, 0, 60, 40, RED)])

    assert (marked[is_free] == [*RED, 255]).all()
    assert (marked[~is_free] == image.marked(())[~is_free]).all()
    assert 0 < is_free.sum() < is_free.size


@pytest.mark.parametrize(
    ("mark", "error"),
    [
        ((0, 0, 1, 1, RED, 256, False), OverflowError),
        ((0, 0, 1, 1, (0, -1, 0), 255, False), OverflowError),
        ((0, 0, 1, 1, (0, 0), 255, False), ValueError),
        ((0, 0, 1, 1, RED, 255), ValueError),
        ((0.5, 0, 1, 1, RED, 255, True), TypeError),
        ("mark", TypeError),
    ],
)
def test_what_is_not_a_mark_is_refused(
    timeline: Timeline, mark: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        picture(timeline, (4, 4)).marked([mark])


def test_a_picture_that_was_given_up_cannot_be_marked(timeline: Timeline) -> None:
    old = picture(timeline, (20, 20))
    picture(timeline, (20, 20), previous=old)

    with pytest.raises(ValueError, match="given up"):
        old.marked([])
