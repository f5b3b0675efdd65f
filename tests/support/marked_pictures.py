"""Pictures of a timeline, and random marks to paint onto them."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from snapviewer import Image, Timeline
from snapviewer.report.picture.marks import PixelMark

Pixels = npt.NDArray[np.uint8]


def any_marks(random: Random, size: tuple[int, int]) -> list[PixelMark]:
    """Marks of all kinds: lines, areas, empty ones, some outside and some far away."""

    def span(length: int) -> tuple[int, int]:
        kind = random.choice(["some", "some", "line", "all", "empty", "far"])
        start = random.randint(-length - 2, 2 * length)
        if kind == "far":
            return random.choice([(-(2**62), 2**62), (-(2**63), 2**63 - 1), (2**62, 2**62)])
        if kind == "all":
            return -1, length + 2
        lengths = {"line": 1, "empty": random.choice([0, -5, -(2**63)])}
        return start, lengths.get(kind, random.randint(1, length))

    def mark() -> PixelMark:
        (x, width), (y, height) = span(size[0]), span(size[1])
        red, green, blue = random.randbytes(3)
        alpha = random.choice([0, 1, 127, 128, 254, 255, random.randrange(256)])
        return PixelMark(x, y, width, height, (red, green, blue), alpha, random.random() < 0.5)

    return [mark() for _ in range(random.randint(0, 8))]


def picture(timeline: Timeline, size: tuple[int, int], **options: Any) -> Image:
    events = len(timeline.totals)
    view = {"events": (0, events), "bytes": (0, timeline.peak_bytes * 1.5)}
    return timeline.image(**(view | {"size": size} | options))
