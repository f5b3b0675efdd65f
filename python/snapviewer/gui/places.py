"""Where an allocation is on the plot, and views that show it."""

from __future__ import annotations

import numpy as np

from snapviewer import Timeline

from .document import Axis, Trace
from .views import View

_MOMENTS = 8  # of a life at which its height is looked up


def rectangle_of(trace: Trace, timeline: Timeline, axis: Axis, allocation: int) -> View | None:
    """Return what an allocation takes on the plot, over all of its life; None if it is not shown.

    It moves up and down as what lies below it comes and goes: its height is looked up at some
    moments of its life only.
    """
    a = trace.device.allocations
    first, last = int(a.alloc_event[allocation]), int(a.free_event[allocation])
    moments = np.unique(np.linspace(first, max(last - 1, first), _MOMENTS).astype(np.int64))
    places = []
    for moment in moments.tolist():
        place = timeline.offset(allocation, min(moment, trace.events - 1))
        if place is not None:
            places.append(place)
    if not places:
        return None
    left, right = trace.x_of(axis, first), trace.x_of(axis, last)
    return View(left, max(right, left + 1), min(places), max(places) + int(a.size[allocation]))


def with_room(rectangle: View) -> View:
    """Return a view of a rectangle with some room around it."""
    x, y = rectangle.width * 0.1 + 1, rectangle.height * 0.25 + 64
    return View(rectangle.left - x, rectangle.right + x, rectangle.low - y, rectangle.high + y)


def revealing(rectangle: View, view: View) -> View:
    """Return a view in which a rectangle is: this one if it is, else as large a one around it.

    >>> revealing(View(40, 50, 0, 10), View(0, 100, 0, 100))
    View(left=0, right=100, low=0, high=100)
    >>> revealing(View(140, 150, 0, 10), View(0, 100, 0, 100)).x_span
    (95.0, 195.0)
    """
    x = y = 0.0
    if not (rectangle.left < view.right and rectangle.right > view.left):
        x = (rectangle.left + rectangle.right - view.left - view.right) / 2
    if not (rectangle.low < view.high and rectangle.high > view.low):
        y = (rectangle.low + rectangle.high - view.low - view.high) / 2
    return view.moved(x, y) if x or y else view
