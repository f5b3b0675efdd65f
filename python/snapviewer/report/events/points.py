"""Curves with as many points as a reader can tell apart."""

from __future__ import annotations

from collections.abc import Sequence

Point = tuple[float, float]

MOST_POINTS = 400


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> tuple[Point, ...]:
    """Keep the first and last point, and the lowest and highest of each stretch in between.

    >>> thinned([(x, float(x % 7)) for x in range(1000)], most=10)[-1]
    (999, 5.0)
    """
    if len(points) <= most:
        return tuple(points)
    inner = points[1:-1]
    size = -(-len(inner) // max(1, (most - 2) // 2))
    kept = [points[0]]
    for start in range(0, len(inner), size):
        stretch = inner[start : start + size]
        ends = {min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])}
        kept += sorted(ends)
    return (*kept, points[-1])
