"""What is alive at a moment, compared with a slow and obvious version."""

from __future__ import annotations

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import snapviewer
from snapviewer.snapshot import alive as moment
from snapviewer.snapshot.alive import (
    Alive,
    Group,
    LiveAllocation,
    alive_at,
    allocation_of_event,
)
from snapviewer.snapshot.frames import own_frame
from snapviewer.snapshot.stack_filter import filter_of
from support.patience import PATIENT
from support.timeline_cases import any_snapshots, loaded, masks, multitude

BASE = 0x7F00_0000_0000
FORWARD = {"name": "forward", "filename": "model.py", "line": 7}
BACKWARD = {"name": "backward", "filename": "model.py", "line": 9}
MAIN = {"name": "main", "filename": "train.py", "line": 99}
WARM_UP = {"name": "warm_up", "filename": "train.py", "line": 12}


def _line_of(stack: int) -> str:
    """Names that several stacks share."""
    return f"line {stack % 3}"


def _slowly(device: Any, mask: Any, event: int, stacks: int, groups: int, largest: int) -> Alive:
    """The same as `alive_at`, in the words of its documentation."""
    a = device.allocations
    alive = [
        which
        for which in range(len(a))
        if a.alloc_event[which] <= event < a.free_event[which] and (mask is None or mask[which])
    ]
    size = {which: int(a.size[which]) for which in alive}
    by_stack = defaultdict(list)
    for which in alive:
        by_stack[int(a.stack[which])].append(which)

    def weight(stack: int) -> int:
        return sum(size[which] for which in by_stack[stack])

    def group(line: str, of: list[int], stacks: tuple[int, ...]) -> Group:
        members = [which for stack in of for which in by_stack[stack]]
        best = min(members, key=lambda which: (-size[which], which))
        return Group(line, sum(size[which] for which in members), len(members), best, stacks)

    heaviest = sorted(by_stack, key=lambda stack: (-weight(stack), stack))[:stacks]
    by_line = defaultdict(list)
    for stack in heaviest:
        by_line[_line_of(stack)].append(stack)
    named = [group(line, of, tuple(of)) for line, of in by_line.items()]
    shown = sorted(named, key=lambda one: -one.size_bytes)[:groups]
    listed = {stack for one in shown for stack in one.stacks}
    others = [stack for stack in by_stack if stack not in listed]
    words = f"{len(others)} more stack{'s' if len(others) != 1 else ''}"
    living = [
        LiveAllocation(
            which,
            size[which],
            _line_of(int(a.stack[which])),
            int(a.alloc_event[which]),
            int(a.free_event[which]),
        )
        for which in sorted(alive, key=lambda which: (-size[which], which))[:largest]
    ]
    return Alive(
        event=event,
        total_bytes=sum(size.values()),
        count=len(alive),
        groups=tuple(shown),
        rest=group(words, others, ()) if others else None,
        largest=tuple(living),
    )


@PATIENT
@given(plain=any_snapshots(), data=st.data())
def test_a_moment_is_what_is_alive_then(plain: Any, data: st.DataObject, tmp_path: Path) -> None:
    for device in loaded(plain, tmp_path).devices:
        mask = data.draw(masks(device))
        timeline = device.timeline(data.draw(st.sampled_from(["allocation", "size"])), mask)
        event = data.draw(st.integers(-1, device.events - 1))
        most = [data.draw(st.sampled_from([1, 2, 3, 200])) for _ in range(3)]
        asked: list[int] = []

        def line_of(stack: int, asked: list[int] = asked) -> str:
            asked.append(stack)
            return _line_of(stack)

        stacks, groups, largest = most
        with mock.patch.multiple(moment, MAX_STACKS=stacks, MAX_GROUPS=groups, MAX_LARGEST=largest):
            found = alive_at(device, timeline, event, line_of)

        assert found == _slowly(device, mask, event, *most)
        assert len(asked) == len(set(asked)) <= stacks + largest
        parts = [*found.groups, *([found.rest] if found.rest else [])]
        assert sum(one.size_bytes for one in parts) == found.total_bytes
        assert sum(one.count for one in parts) == found.count
        if mask is None and event >= 0:
            assert found.total_bytes == device.totals[event]


def test_a_moment_of_very_many_adds_up(tmp_path: Path) -> None:
    device = loaded(multitude(), tmp_path).devices[0]

    found = alive_at(device, device.timeline(), device.peak_event, _line_of)

    assert (found.total_bytes, found.count) == (device.peak_bytes, 140_000)
    assert sum(one.size_bytes for one in found.groups) == device.peak_bytes
    assert len(found.largest) == 200
    assert {one.size_bytes for one in found.largest} == {49}


def test_sizes_that_no_double_can_hold_add_up_to_the_byte(tmp_path: Path) -> None:
    sizes = [2**61 + 1, 2**61 + 2, 2**60 + 5]
    device = _written(tmp_path, [_alloc(n, size) for n, size in enumerate(sizes)]).devices[0]

    found = alive_at(device, device.timeline(), 2, _line_of)

    assert found.total_bytes == sum(sizes)
    assert [one.size_bytes for one in found.groups] == [sum(sizes)]


def test_a_moment_with_nothing_alive_is_empty(tmp_path: Path) -> None:
    device = _written(tmp_path, [_alloc(0, 10)]).devices[0]

    assert alive_at(device, device.timeline(), -1, _line_of) == Alive(-1, 0, 0, (), None, ())


def test_an_event_leads_to_the_allocation_that_it_made_or_freed(small: Path) -> None:
    device = snapviewer.load(small).devices[0]
    a = device.allocations

    found = [allocation_of_event(device, event) for event in range(-1, device.events + 1)]

    first, second = (int(np.flatnonzero(a.alloc_event == event)[0]) for event in (1, 2))
    # Before all, the segment, two allocations, both steps of a free, OOM, snapshot, after all.
    assert found == [None, None, first, second, first, first, None, None, None]


def test_an_event_that_reuses_an_address_leads_to_what_it_made(tmp_path: Path) -> None:
    trace = [_alloc(0, 10), _alloc(0, 20)]

    device = _written(tmp_path, trace).devices[0]

    made = [allocation_of_event(device, event) for event in (0, 1)]
    assert None not in made
    assert [device.allocations.size[which] for which in made] == [10, 20]


def test_the_filter_of_a_group_matches_the_group(tmp_path: Path) -> None:
    quoted = {"name": 'say "hi"', "filename": "/a (b)/c+.py", "line": 3}
    stacks = [[FORWARD, MAIN], [BACKWARD, MAIN], [FORWARD, WARM_UP], [quoted], [quoted, MAIN], []]
    trace = [_alloc(n, 100 + n, frames) for n, frames in enumerate(stacks * 2)]
    snapshot = _written(tmp_path, trace)
    device = snapshot.devices[0]

    def line_of(stack: int) -> str:
        frames = snapshot.frames(stack)
        return frames[0].name if frames else "none"

    found = alive_at(device, device.timeline(), len(trace) - 1, line_of)

    filters = {one.line: filter_of(device, one.stacks, snapshot.frames) for one in found.groups}
    assert filters["none"] == "stack=none"
    for one in found.groups:
        shown = device.timeline(where=filters[one.line])
        sizes = device.allocations.size[device.mask(filters[one.line] or "")]
        assert (shown.shown, int(sizes.sum())) == (one.count, one.size_bytes), one.line


def test_a_filter_reads_as_a_person_would_type_it(tmp_path: Path) -> None:
    later = {"name": "forward", "filename": "model.py", "line": 70}
    other = {"name": "main", "filename": "/elsewhere/train.py", "line": 99}
    operator = {"name": "at::native::add(at::Tensor&)", "filename": "??", "line": 0}
    stacks = [[BACKWARD, MAIN], [FORWARD, MAIN], [later, MAIN], [other], [operator], [MAIN]]
    trace = [_alloc(n, 100, frames) for n, frames in enumerate(stacks)]
    snapshot = _written(tmp_path, trace)
    device = snapshot.devices[0]
    stack_of = device.allocations.stack.tolist()

    def filter_of_stack(place: int) -> str | None:
        return filter_of(device, [stack_of[place]], snapshot.frames)

    assert filter_of_stack(0) == "model.py:9"
    assert filter_of_stack(1) == r'"model.py:7\)"', "model.py:70 is another line"
    assert filter_of_stack(3) == r'"^main \(/elsewhere/train\.py:99\)$"'
    assert filter_of_stack(4) == "at::native::add"
    through = filter_of_stack(5)
    assert through == f"train.py:99 stack={stack_of[5]}", "others are called from this line"
    for place in range(len(stacks)):
        assert device.mask(str(filter_of_stack(place))).tolist() == [
            stack == stack_of[place] for stack in stack_of
        ]


def test_a_filter_of_a_line_has_every_stack_of_the_line(tmp_path: Path) -> None:
    stacks = [[FORWARD, MAIN], [BACKWARD], [FORWARD, WARM_UP], [FORWARD]]
    later = [{"name": "forward", "filename": "model.py", "line": 70}]
    filters = []

    for number, frames in enumerate((stacks, [*stacks, later])):
        (directory := tmp_path / str(number)).mkdir()
        snapshot, device = _of_stacks(directory, frames)
        first, _, last, *_ = device.allocations.stack.tolist()
        filters.append(filter_of(device, [first, last], snapshot.frames, same_line=True))

    assert filters == ["model.py:7", r'"model.py:7\)"']


def test_a_filter_excludes_the_stacks_that_only_pass_through_the_line(tmp_path: Path) -> None:
    block = {"name": "forward", "filename": "model.py", "line": 58}
    stacks = [[block, MAIN], [FORWARD, block, MAIN], [block, WARM_UP], [BACKWARD, block, MAIN]]
    snapshot, device = _of_stacks(tmp_path, stacks)
    ids = device.allocations.stack.tolist()

    text = filter_of(device, ids[:1], snapshot.frames, same_line=True)
    assert text == "model.py:58 !model.py:7|model.py:9"
    assert device.mask(text).tolist() == [True, False, True, False]

    # A line that calls itself cannot be excluded in words.
    (tmp_path / "recursive").mkdir()
    stacks = [[block, FORWARD, MAIN], [FORWARD, block, MAIN], [block, FORWARD, WARM_UP]]
    snapshot, device = _of_stacks(tmp_path / "recursive", stacks)
    first, through, last = device.allocations.stack.tolist()
    text = filter_of(device, [first, last], snapshot.frames, same_line=True)
    assert text == f"model.py:58 !stack={through}"
    assert device.mask(text).tolist() == [True, False, True]


@PATIENT
@given(
    stacks=st.lists(
        st.lists(st.sampled_from([FORWARD, BACKWARD, MAIN, WARM_UP]), max_size=3),
        min_size=1,
        max_size=12,
    ),
    picks=st.sets(st.integers(0, 11), min_size=1),
    same_line=st.booleans(),
)
def test_a_filter_matches_the_stacks_and_no_other_line(
    tmp_path_factory: pytest.TempPathFactory,
    stacks: list[list[dict[str, Any]]],
    picks: set[int],
    same_line: bool,
) -> None:
    snapshot, device = _of_stacks(tmp_path_factory.mktemp("filter"), stacks)
    ids = device.allocations.stack.tolist()
    wanted = {ids[pick % len(ids)] for pick in picks}

    text = filter_of(device, sorted(wanted), snapshot.frames, same_line=same_line)

    assert text is not None
    matched = {stack for stack, one in zip(ids, device.mask(text), strict=True) if one}
    lines = {own_frame(snapshot.frames(stack)) for stack in wanted}
    assert wanted <= matched
    for stack in matched - wanted:
        assert same_line
        assert own_frame(snapshot.frames(stack)) in lines


def test_what_no_filter_describes_has_none(tmp_path: Path) -> None:
    lines = [{"name": "forward", "filename": "model.py", "line": n} for n in range(1, 131)]
    snapshot, device = _of_stacks(tmp_path, [[line] for line in lines])
    ids = device.allocations.stack.tolist()

    def unknown(_: int) -> tuple[()]:
        return ()

    assert filter_of(device, (), snapshot.frames) is None
    assert filter_of(device, ids[0:3:2], unknown) == f"stack={ids[0]}..{ids[3]} !stack={ids[1]}"
    assert filter_of(device, ids[::2], unknown) is None, "too many ranges"


def _of_stacks(
    directory: Path, stacks: list[list[Any]]
) -> tuple[snapviewer.Snapshot, snapviewer.Device]:
    snapshot = _written(directory, [_alloc(n, 100, frames) for n, frames in enumerate(stacks)])
    return snapshot, snapshot.devices[0]


def _alloc(place: int, size: int, frames: list[Any] | None = None) -> dict[str, Any]:
    event = {"action": "alloc", "addr": BASE + place * 512, "size": size, "stream": 0}
    return event | {"time_us": 1_700_000_000_000_000, "frames": frames or []}


def _written(directory: Path, trace: list[dict[str, Any]]) -> snapviewer.Snapshot:
    path = directory / "made.pickle"
    path.write_bytes(pickle.dumps({"device_traces": [trace], "segments": []}))
    return snapviewer.load(path)
