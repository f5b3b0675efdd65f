"""The slow, obvious timeline that the engine is compared with.

Each pixel is computed by its definition, one column at a time, from the columns of the allocations;
nothing is shared with the engine. Bytes are u64 or Python's integers, never floats: a total may
take 63 bits, and the end of a window 64.

Words: a *moment* is the state after an event; a trace without events has one, 0. A *position* is a
place in the stacking order. A *weight* is a size, or 0 for what the filter leaves out.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.uint32]
Sums = npt.NDArray[np.uint64]
Pixels = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Range = tuple[float, float]
Span = tuple[int, int]

BACKGROUND = 2**32 - 1
NO_MOMENT = -1
# Positions in a block; what of a block is thinner than half a pixel is drawn as one.
BLOCK = 32

ORDERS = ("allocation", "stack", "size", "lifetime", "pool", "stream")


class Reference:
    """The timeline of one device, in one stacking order, with one filter."""

    def __init__(self, dev: Any, order: str = "allocation", mask: Mask | None = None) -> None:
        a = dev.allocations
        self.events = int(dev.events)
        self.alloc_event, self.free_event = a.alloc_event, a.free_event
        self.free_requested = a.free_requested
        self.is_shown = np.ones(len(a), dtype=bool) if mask is None else np.asarray(mask)
        self.weight = np.where(self.is_shown, a.size, np.uint64(0))
        self.id_at = _order(dev, order)
        self.levels = self._levels()

    def _levels(self) -> Sums:
        """The total at each moment."""
        changes = [0] * (self.events + 1)
        initial = 0
        columns = (self.weight, self.alloc_event, self.free_event)
        for weight, first, end in zip(*(column.tolist() for column in columns), strict=True):
            if first == -1:
                initial += weight
            else:
                changes[first] += weight
            changes[end] -= weight
        levels = list(accumulate(changes[: self.events], initial=initial))
        return np.array(levels[1:] or levels, dtype=np.uint64)

    def is_alive(self, moment: int) -> Mask:
        """What of all allocations is alive at a moment; -1 is before the recording."""
        has_begun = self.alloc_event <= moment
        has_ended = (self.free_event <= moment) & (self.free_event < self.events)
        return np.asarray(has_begun & ~has_ended)

    # Totals

    def totals(self) -> Sums:
        """Live bytes after each event."""
        return self.levels[: self.events]

    def peak(self) -> tuple[int, int]:
        """The most live bytes, and the first event that has them (-1: before the first event)."""
        event = int(self.levels.argmax())
        highest, initial = int(self.levels[event]), int(self.weight[self.is_alive(-1)].sum())
        if not self.events or initial > highest:
            return initial, -1
        return highest, event

    # Columns

    def moments_of_events(self, lo: float, hi: float, w: int) -> list[int]:
        """The moment that each of w columns shows of a range of events."""
        return [self._highest(*span) for span in self._spans_of_events(lo, hi, w)]

    def moments_of_time(self, lo: float, hi: float, w: int, clock: Any) -> list[int]:
        """The moment that each of w columns shows of a range of µs on a clock."""
        at = np.array([clock.at(event) for event in range(self.events)])
        moments = []
        for left, right in _columns(lo, hi, w):
            if right <= 0 or left > clock.length_us:
                moments.append(NO_MOMENT)
                continue
            first = max(int((at <= left).sum()) - 1, 0)
            end = max(int((at < right).sum()), first + 1)
            moments.append(self._highest(first, end))
        return moments

    def overview(self, lo: float, hi: float, w: int) -> tuple[Sums, Sums]:
        """The smallest and the largest total in each column; 0 where there is none."""
        parts = [self.levels[a:b] for a, b in self._spans_of_events(lo, hi, w)]
        low = [part.min() if part.size else 0 for part in parts]
        high = [part.max() if part.size else 0 for part in parts]
        return np.array(low, dtype=np.uint64), np.array(high, dtype=np.uint64)

    def _spans_of_events(self, lo: float, hi: float, w: int) -> list[Span]:
        spans = []
        for left, right in _columns(lo, hi, w):
            a = math.floor(left)
            b = max(a + 1, math.floor(right))
            spans.append((max(a, 0), max(min(b, len(self.levels)), 0)))
        return spans

    def _highest(self, a: int, b: int) -> int:
        """The first moment of [a, b) that has the largest total of these."""
        return a + int(self.levels[a:b].argmax()) if a < b else NO_MOMENT

    # Pixels

    def ids(self, moments: list[int], span: Span, h: int) -> Ids:
        """What each pixel shows, row 0 on top, given each column's moment and a range of bytes."""
        # 2·h·B <= hi - lo, without a product that might not fit in 64 bits.
        return self._image(moments, span, h, np.uint64((span[1] - span[0]) // (2 * h)))

    def owners(self, moments: list[int], span: Span, h: int) -> Ids:
        """What holds the byte of each pixel: the same if no block were thin."""
        return self._image(moments, span, h, np.uint64(0))

    def _image(self, moments: list[int], span: Span, h: int, thin_bytes: np.uint64) -> Ids:
        ids = np.full((h, len(moments)), BACKGROUND, dtype=np.uint32)
        centres = np.array(centre_bytes(span, h), dtype=np.uint64)
        for column, moment in enumerate(moments):
            if moment != NO_MOMENT:
                ids[::-1, column] = self._column(moment, centres, thin_bytes)
        return ids

    def _column(self, moment: int, centres: Sums, thin_bytes: np.uint64) -> Ids:
        """The ids of one column, row 0 at the bottom."""
        id_at = self.id_at
        weights = np.where(self.is_alive(moment), self.weight, np.uint64(0))[id_at]
        weights = np.append(weights, np.zeros(-len(weights) % BLOCK, dtype=np.uint64))
        ends = np.cumsum(weights, dtype=np.uint64)
        blocks = weights.reshape(-1, BLOCK)
        sums = blocks.sum(axis=1, dtype=np.uint64)
        heaviest = blocks.argmax(axis=1) + BLOCK * np.arange(len(blocks))  # the first of equals

        shown = np.full(len(centres), BACKGROUND, dtype=np.uint32)
        is_inside = centres < (ends[-1] if len(ends) else np.uint64(0))
        owner = np.searchsorted(ends, centres[is_inside], side="right")
        block = owner // BLOCK
        is_thin = sums[block] <= thin_bytes
        shown[is_inside] = id_at[np.where(is_thin, heaviest[block], owner)]
        return shown

    def silhouette(self, moments: list[int], span: Span, h: int) -> list[int]:
        """How many rows of each column are not background."""
        centres = centre_bytes(span, h)
        totals = [0 if moment == NO_MOMENT else int(self.levels[moment]) for moment in moments]
        return [sum(centre < total for centre in centres) for total in totals]

    # Single places

    def stack(self, event: int) -> tuple[Ids, Sums]:
        """What is alive and shown after an event, bottom first, and where each of these starts."""
        is_there = self.is_alive(event) & self.is_shown
        ids = self.id_at[is_there[self.id_at]]
        ends = np.cumsum(self.weight[ids], dtype=np.uint64)
        return ids.astype(np.uint32), ends - self.weight[ids]

    def at(self, event: int, byte: int) -> int | None:
        """What holds a byte after an event: each living allocation is asked in turn."""
        is_alive = self.is_alive(event).tolist()
        end = 0
        for allocation in self.id_at.tolist():
            end += int(self.weight[allocation]) if is_alive[allocation] else 0
            if byte < end:
                return int(allocation)
        return None

    # Colours

    def rgb(
        self,
        ids: Ids,
        moments: list[int],
        colors: Pixels,
        *,
        origin: int = 0,
        theme: str = "light",
        dim: Mask | None = None,
        outlined: Mask | None = None,
    ) -> Pixels:
        """The colour of each pixel, given its id and the colour of each allocation.

        Args:
            ids: What each pixel shows, row 0 on top.
            moments: What each column shows.
            colors: The colour of each allocation.
            origin: See the function of that name.
            theme: Light or dark.
            dim: Which allocations are not dimmed.
            outlined: The pixels of the selected allocation, as `extent` gives them.
        """
        ink = INKS[theme]
        h, w = ids.shape
        rgb = np.empty((h, w, 3), dtype=np.uint8)
        for row, column in np.ndindex(h, w):
            allocation = int(ids[row, column])
            color = ink.background
            if allocation != BACKGROUND:
                color = tuple(int(part) for part in colors[allocation])
                if dim is not None and not dim[allocation]:
                    color = _dimmed(color, ink.background)
                if _is_edge(ids, row, column):
                    color = _mixed(color, ink.background, EDGE_QUARTERS)
                is_stripe = _is_on_stripe(origin + column, h - 1 - row)
                if is_stripe and self._is_pending(allocation, moments[column]):
                    color = _mixed(color, ink.background, STRIPE_QUARTERS)
            if outlined is not None and _is_at_border(outlined, row, column):
                color = ink.inside if outlined[row, column] else ink.outside
            rgb[row, column] = color
        return rgb

    def extent(self, allocation: int, moments: list[int], span: Span, h: int) -> Mask:
        """The pixels of an allocation, row 0 on top; one in a column where it has none."""
        centres = centre_bytes(span, h)
        is_inside = np.zeros((h, len(moments)), dtype=bool)
        for column, moment in enumerate(moments):
            if moment == NO_MOMENT or not self.is_alive(moment)[allocation]:
                continue
            ids, offsets = self.stack(moment)
            weight = int(self.weight[allocation])
            if weight == 0:
                continue
            start = int(offsets[ids == allocation][0])
            rows = [row for row in range(h) if start <= centres[row] < start + weight]
            if not rows and span[0] <= start < span[1]:
                rows = [min(sum(centre < start for centre in centres), h - 1)]
            for row in rows:
                is_inside[h - 1 - row, column] = True
        return is_inside

    def _is_pending(self, allocation: int, moment: int) -> bool:
        """Whether its free was asked for, and had to wait for more than the next event."""
        requested, end = int(self.free_requested[allocation]), int(self.free_event[allocation])
        return requested >= 0 and end - requested > 1 and requested <= moment < end


def centre_bytes(span: Span, h: int) -> list[int]:
    """The byte that each row shows, row 0 at the bottom."""
    lo, hi = span
    return [lo + (2 * row + 1) * (hi - lo) // (2 * h) for row in range(h)]


def _columns(lo: float, hi: float, w: int) -> list[Range]:
    """Where each of w columns begins and ends."""
    lo, hi = float(lo), float(hi)
    edges = [lo + c * (hi - lo) / w for c in range(w + 1)]
    return list(pairwise(edges))


def _order(dev: Any, order: str) -> npt.NDArray[np.int64]:
    """The allocation at each position."""
    a = dev.allocations
    if order == "allocation":
        keys = [0] * len(a)
    elif order == "stack":
        held: Counter[int] = Counter()
        lives = (a.free_event - a.alloc_event).tolist()
        for stack, size, events in zip(a.stack.tolist(), a.size.tolist(), lives, strict=True):
            held[stack] += size * events
        rank = sorted(held, key=lambda stack: (-held[stack], stack))
        place = {stack: n for n, stack in enumerate(rank)}
        keys = [place[stack] for stack in a.stack.tolist()]
    elif order == "size":
        keys = [-size for size in a.size.tolist()]
    elif order == "lifetime":
        keys = (a.alloc_event - a.free_event).tolist()
    elif order == "pool":
        keys = [pool or 2**16 for pool in a.pool.tolist()]
    else:
        keys = a.stream.tolist()
    return np.array(sorted(range(len(a)), key=keys.__getitem__), dtype=np.int64)


# How colours are mixed: every constant of it is in this part.

Color = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ink:
    """The colours of a theme that are no allocation's."""

    background: Color
    inside: Color
    outside: Color


INKS = {
    "light": Ink((0xFF, 0xFF, 0xFF), inside=(0xFF, 0xFF, 0xFF), outside=(0x09, 0x69, 0xDA)),
    "dark": Ink((0x16, 0x18, 0x1D), inside=(0x16, 0x18, 0x1D), outside=(0x44, 0x93, 0xF8)),
}
# How many quarters of a mixture are the background's.
EDGE_QUARTERS, STRIPE_QUARTERS = 2, 3
EDGE_ROWS = 4
STRIPE_PERIOD, STRIPE_WIDTH = 8, 3


def origin(lo: float, hi: float, w: int) -> int:
    """How many columns the first one is away from x = 0: stripes move with what they are on."""
    columns = lo * w / (hi - lo)
    whole = math.trunc(columns)
    is_nearer_to_next = abs(columns - whole) >= 0.5
    return whole + (int(math.copysign(1, columns)) if is_nearer_to_next else 0)


def _mixed(one: Color, other: Color, quarters: int) -> Color:
    """Each channel of a mixture; what is less than a quarter is dropped before it is added."""
    pairs = zip(one, other, strict=True)
    return tuple(a // 4 * (4 - quarters) + b // 4 * quarters for a, b in pairs)


def _dimmed(color: Color, background: Color) -> Color:
    """A third of the contrast."""
    return tuple((a + 2 * b) // 3 for a, b in zip(color, background, strict=True))


def _is_on_stripe(column: int, row_from_bottom: int) -> bool:
    return (column + row_from_bottom) % STRIPE_PERIOD < STRIPE_WIDTH


def _is_edge(ids: Ids, row: int, column: int) -> bool:
    """Whether it is the top row of a run that is tall enough to have an edge, below the image's."""
    if row == 0 or ids[row - 1, column] == ids[row, column]:
        return False
    run = ids[row : row + EDGE_ROWS, column]
    return len(run) == EDGE_ROWS and bool((run == run[0]).all())


def _is_at_border(outlined: Mask, row: int, column: int) -> bool:
    """Whether a pixel beside it in the image is inside where it is outside, or the other way."""
    h, w = outlined.shape
    beside = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    return any(
        outlined[r, c] != outlined[row, column] for r, c in beside if 0 <= r < h and 0 <= c < w
    )
