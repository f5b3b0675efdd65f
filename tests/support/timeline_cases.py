"""Traces, filters and windows for the tests of the timeline.

Traces have many allocations alive at once, tiny ones beside huge ones, so that blocks of them are
thinner than a pixel; windows go from far beyond the trace down to a part of an event and a byte.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from support import timeline_reference as reference
from support.random_snapshots import snapshots
from support.timeline_reference import Ids, Mask, Pixels, Range, Reference, Span

Plain = dict[str, Any]

BASE = 0x7F00_0000_0000
SLOT_BYTES = 512
START_US = 1_700_000_000_000_000

SIZES = st.one_of(
    st.sampled_from([0, 1, 2, 3, 100, 512, 2**20, 2**33, 2**40]),
    st.integers(1, 2**12),
    st.integers(1, 2**40),
)
# What an event does: half of them allocate.
ACTIONS = ("alloc",) * 8 + ("free",) * 4 + ("free_requested",) * 2 + ("unknown_free", "snapshot")
STEPS_US = (0, 0, 1, 1, 7, 250, -40, 3_000_000)
STACKS: list[list[Plain]] = [
    [],
    *([{"name": name, "filename": "train.py", "line": n}] for n, name in enumerate("abcde")),
]


class _Recorder:
    """Writes down what an allocator does, as PyTorch would."""

    def __init__(self) -> None:
        self.trace: list[Plain] = []
        self.live: dict[int, int] = {}
        self.pending: list[int] = []
        self._time_us = START_US
        self._next = BASE

    def add(self, action: str, address: int, size: int, roll: int) -> None:
        """One event; the roll decides the rest."""
        self._time_us += STEPS_US[roll % len(STEPS_US)]
        event = {"action": action, "addr": address, "size": size, "time_us": self._time_us}
        event |= {"stream": roll % 3, "frames": STACKS[roll % len(STACKS)]}
        self.trace.append(event | ({"pool_id": (0, roll % 2)} if roll % 5 == 0 else {}))

    def alloc(self, size: int, roll: int) -> None:
        self.live[self._next] = size
        self.add("alloc", self._next, size, roll)
        self._next += SLOT_BYTES

    def free(self, address: int, roll: int) -> None:
        self.add("free_completed", address, self.live.pop(address), roll)
        self.pending = [other for other in self.pending if other != address]

    def request_free(self, address: int, roll: int) -> None:
        self.add("free_requested", address, self.live[address], roll)
        self.pending.append(address)


@st.composite
def busy_traces(draw: st.DrawFn) -> tuple[list[Plain], dict[int, int]]:
    """A trace, and the size of what it leaves open at each address."""
    small, large = (draw(st.lists(SIZES, min_size=1, max_size=4)) for _ in range(2))
    recorder = _Recorder()

    # Bytes are drawn, not events: a hundred of them take as long as one number.
    length = draw(st.sampled_from([1, 2, 5, 10, 30, 60, 100, 150]))
    rolls = draw(st.binary(min_size=3 * length, max_size=3 * length))
    for number in range(length):
        what, which, roll = rolls[3 * number : 3 * number + 3]
        action = ACTIONS[what % len(ACTIONS)]
        live = list(recorder.live)
        if action == "alloc":
            sizes = large if which % 16 == 0 else small
            recorder.alloc(sizes[roll % len(sizes)], roll)
        elif action == "unknown_free":
            recorder.add("free_completed", BASE - SLOT_BYTES * (1 + number), small[0], roll)
        elif action == "snapshot" or not live:
            recorder.add("snapshot", 0, 0, roll)
        elif action == "free_requested":
            recorder.request_free(live[which % len(live)], roll)
        elif recorder.pending and which % 2:
            recorder.free(recorder.pending[0], roll)
        else:
            recorder.free(live[which % len(live)], roll)
    return recorder.trace, recorder.live


@st.composite
def busy_snapshots(draw: st.DrawFn) -> Plain:
    """A snapshot of one device, with some memory that was there before the trace began."""
    trace, live = draw(busy_traces())
    older = {2 * BASE + n * SLOT_BYTES: draw(SIZES) for n in range(draw(st.integers(0, 5)))}
    blocks = [
        {"address": a, "size": SLOT_BYTES, "requested_size": n, "state": "active_allocated"}
        for a, n in (live | older).items()
    ]
    segments = [
        {
            "device": 0,
            "address": block["address"],
            "total_size": 512,
            "stream": 0,
            "blocks": [block],
        }
        | {"segment_pool_id": (0, n % 2), "segment_type": "small"}
        for n, block in enumerate(blocks)
    ]
    return {"device_traces": [trace], "segments": segments}


def crowd(seed: int) -> Plain:
    """A snapshot with hundreds of allocations alive at once.

    Not drawn by Hypothesis, which makes most of its examples by small changes of others: of these
    too few have what it takes, blocks of positions that are thinner than a pixel.
    """
    random = Random(seed)
    recorder = _Recorder()
    # Sizes within a factor of 1, 8, 2**10 or 2**40: all alike, or many tiny ones beside few huge.
    bits, leaving = random.choice([0, 3, 10, 40]), random.choice([0, 0.3, 0.9])
    for _ in range(random.choice([300, 600, 1200])):
        recorder.alloc(int(2 ** random.uniform(0, bits)), random.randrange(256))
        if random.random() < leaving:
            end = recorder.request_free if random.random() < 0.2 else recorder.free
            end(random.choice(list(recorder.live)), random.randrange(256))
    return {"device_traces": [recorder.trace]}


def multitude() -> Plain:
    """A snapshot with more alive at once than 2**17, of which some go one after the other."""
    random = Random(0)
    recorder = _Recorder()
    for roll in range(140_000):
        recorder.alloc(random.randrange(1, 50), roll)
    for address in random.sample(list(recorder.live), 1000):
        recorder.free(address, 0)
    return {"device_traces": [recorder.trace]}


@st.composite
def any_snapshots(draw: st.DrawFn) -> Plain:
    """A busy one, a crowd, or now and then one with everything that a file may have."""
    kind = draw(st.sampled_from(["busy"] * 5 + ["crowd"] * 4 + ["anything"]))
    if kind == "crowd":
        return crowd(draw(st.integers(0, 9999)))
    return draw(busy_snapshots() if kind == "busy" else snapshots())


def loaded(plain: Plain, directory: Path) -> Any:
    """The snapshot, read from a file."""
    import snapviewer

    path = directory / "any.pickle"
    path.write_bytes(pickle.dumps(plain))
    return snapviewer.load(path)


# Timelines


@st.composite
def masks(draw: st.DrawFn, dev: Any) -> Mask | None:
    """A filter: none, or one that shows everything, nothing, or any share of the allocations."""
    share = draw(st.sampled_from([None, None, None, 0.0, 0.1, 0.5, 0.9, 1.0]))
    if share is None:
        return None
    return np.random.default_rng(draw(st.integers(0, 999))).random(len(dev.allocations)) < share


@st.composite
def timelines(draw: st.DrawFn, dev: Any) -> tuple[Any, Reference]:
    """A timeline of a device, and the reference's."""
    order, mask = draw(st.sampled_from(reference.ORDERS)), draw(masks(dev))
    return dev.timeline(order=order, where=mask), Reference(dev, order, mask)


@st.composite
def looks(draw: st.DrawFn, dev: Any) -> dict[str, Any]:
    """Options of an image that change its colours."""
    look: dict[str, Any] = {
        "color": draw(st.sampled_from(["stack", "size", "stream", "age"])),
        "theme": draw(st.sampled_from(["light", "dark"])),
        "dim": draw(masks(dev)),
    }
    if len(dev.allocations) and draw(st.booleans()):
        look["selected"] = draw(st.integers(0, len(dev.allocations) - 1))
    return look


# Windows


@dataclass(frozen=True, slots=True)
class Window:
    """What to draw, and how large."""

    events: Range
    bytes: Span
    size: tuple[int, int]

    def moments(self, model: Reference) -> list[int]:
        """What its columns show."""
        return model.moments_of_events(*self.events, self.size[0])

    def ids(self, model: Reference) -> Ids:
        """What its pixels show."""
        return model.ids(self.moments(model), self.bytes, self.size[1])

    def rgb(self, model: Reference, colors: Pixels, look: Mapping[str, Any]) -> Pixels:
        """Its pixels, given the colour of each allocation."""
        moments, selected = self.moments(model), look.get("selected")
        outlined = None
        if selected is not None:
            outlined = model.extent(selected, moments, self.bytes, self.size[1])
        return model.rgb(
            self.ids(model),
            moments,
            colors,
            origin=reference.origin(*self.events, self.size[0]),
            theme=look.get("theme", "light"),
            dim=look.get("dim"),
            outlined=outlined,
        )

    def of(self, timeline: Any, **options: Any) -> Any:
        """The engine's image."""
        return timeline.image(events=self.events, bytes=self.bytes, size=self.size, **options)


@st.composite
def event_ranges(draw: st.DrawFn, events: int, w: int) -> Range:
    """A range of events: whole, some of them, a fraction of one, beyond the ends, or huge."""
    kinds = ["whole"] * 4 + ["some"] * 6 + ["each"] * 3 + ["fraction"] * 3 + ["beyond", "huge"]
    kind = draw(st.sampled_from(kinds))
    first = draw(st.integers(-3, events + 3))
    if kind == "whole":
        return 0, max(events, 1)
    if kind == "each":
        return first, first + w
    if kind == "fraction":
        return first + draw(st.floats(0, 1)), first + 1.1 + w / draw(st.integers(1, 9))
    if kind == "beyond":
        return draw(st.sampled_from([(events, events + 5), (events + 7.5, 1e6), (-9, 0), (-9, -1)]))
    if kind == "huge":
        return draw(st.sampled_from([(-1e15, 1e15), (0, 1e15), (-7, 1e9), (-1e12, 50)]))
    length = draw(st.floats(0.01, 1.5 * events + 1))
    lo = draw(st.floats(-0.2 * events - 1, 1.1 * events))
    return lo, lo + length


@st.composite
def byte_ranges(draw: st.DrawFn, model: Reference, h: int) -> Span:
    """A range of bytes: whole, some, one or a part of one a pixel, above everything, or huge."""
    kinds = ["whole"] * 4 + ["some"] * 3 + ["between"] * 6 + ["each", "part"] * 2 + ["top", "huge"]
    kind = draw(st.sampled_from(kinds))
    highest = model.peak()[0]
    if kind == "whole":
        return 0, highest + highest // 20 + 1
    if kind == "huge":
        return draw(st.sampled_from([(0, 2**63), (0, 2**64 - 1), (2**63, 2**64 - 1)]))
    if kind == "top":
        lo = highest - min(highest, draw(st.integers(0, 2 * h)))
        return lo, lo + draw(st.integers(1, 2 * h))
    if kind == "between":
        # From one allocation to another: tiny ones fill a window like this as well as huge ones.
        _, offsets = model.stack(draw(st.integers(-1, model.events - 1)))
        ends = [0, *offsets.tolist()]
        lo, hi = sorted(draw(st.sampled_from(ends)) for _ in range(2))
        return lo, hi + 1
    lo = draw(st.integers(0, highest))
    if kind == "each":
        return lo, lo + h
    return lo, lo + draw(st.integers(1, h if kind == "part" else highest + 1))


@st.composite
def windows(draw: st.DrawFn, model: Reference) -> Window:
    """Any window onto a timeline."""
    # Few rows often: then pixels are tall, and blocks thinner than one are many.
    w, h = draw(st.integers(1, 60)), draw(st.integers(1, 50) | st.integers(1, 8))
    events = draw(event_ranges(model.events, w))
    return Window(events, draw(byte_ranges(model, h)), (w, h))


def crowd_window(model: Reference, random: Random) -> Window:
    """A window in which a pixel holds from half a block to some of them."""
    event = random.randrange(model.events // 4, model.events)
    ids, offsets = model.stack(event)
    ends = sorted(random.randrange(len(ids)) for _ in range(2)) if len(ids) else []
    lo, hi = (int(offsets[end]) for end in ends) if ends else (0, 0)
    places = np.argsort(model.id_at)[ids[ends]].tolist() or [0, 0]
    blocks = (places[1] - places[0]) / reference.BLOCK
    h = max(int(blocks / random.choice([0.5, 2, 3, 5, 8])), 1)
    length = random.choice([1, 7.5, 60, model.events])
    return Window((event - length / 2, event + length / 2), (lo, hi + 1), (40, h))
