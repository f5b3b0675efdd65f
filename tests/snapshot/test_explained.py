"""Groups, peaks, limits, steps and categories, compared with slow and obvious versions."""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import snapviewer
from snapviewer._core import CATEGORIES, GROUPINGS
from snapviewer.snapshot.frames import NO_STACK, own_frame
from support import hostile, leaks
from support.program import run
from support.random_snapshots import snapshots

SHARED = Path(__file__).resolve().parents[3] / "shared" / "snapshots"
REAL = sorted(SHARED.glob("*.pickle")) if SHARED.is_dir() else []

Device = snapviewer.Device


def _load(document: Any, directory: Path) -> snapviewer.Snapshot:
    path = directory / "snap.pickle"
    path.write_bytes(pickle.dumps(document))
    return snapviewer.load(path)


def _slow_key(snapshot: snapviewer.Snapshot, device: Device, by: str, which: int) -> str | None:
    """The group of an allocation, one at a time; None where the test knows no better way."""
    a = device.allocations
    frame = own_frame(snapshot.frames(int(a.stack[which])))
    if by == "line":
        return NO_STACK if frame is None else frame.text
    if by == "file" and (frame is None or frame.filename not in ("", "??")):
        return NO_STACK if frame is None else frame.filename
    if by == "stack":
        frames = snapshot.frames(int(a.stack[which]))
        lines = [f"{one.name} ({one.filename}:{one.line})" for one in frames]
        return "\n".join(lines) if lines else NO_STACK
    if by == "stream":
        return f"stream {int(a.stream[which])}"
    if by == "category":
        return CATEGORIES[int(device.categories.category[which]) - 1]
    if by == "pool":
        place = int(a.pool[which])
        if not place:
            return "pool not recorded"
        pool = device.pools[place - 1]
        return "default pool" if pool == (0, 0) else f"pool {pool}"
    return None


def _check_groups(snapshot: snapviewer.Snapshot, device: Device, event: int) -> None:
    a = device.allocations
    alive = np.flatnonzero((a.alloc_event <= event) & (a.free_event > event)).tolist()
    total = sum(int(a.size[which]) for which in alive)
    expected = int(device.totals[event]) if event >= 0 else device.initial_bytes
    assert total == expected
    for by in GROUPINGS:
        groups = device.alive(event, by)
        assert groups.total_bytes == total
        assert sum(group.bytes for group in groups.groups) == total
        assert sum(group.count for group in groups.groups) == len(alive) == groups.count
        few = device.alive(event, by, top=1)
        assert sum(group.bytes for group in few.groups) + few.other_bytes == total
        members = defaultdict(list)
        ids = device.keys(by).ids
        for which in alive:
            members[int(ids[which])].append(which)
        for group in groups.groups:
            its = members.pop(group.id)
            assert group.bytes == sum(int(a.size[which]) for which in its)
            assert int(a.size[group.largest]) == max(int(a.size[which]) for which in its)
            made = min(int(a.alloc_event[which]) for which in its)
            assert int(a.alloc_event[group.oldest]) == made
            for which in its[:3]:
                slow = _slow_key(snapshot, device, by, which)
                assert slow is None or slow == group.key
        assert not members


def _slow_peaks(device: Device) -> list[tuple[int, int]]:
    """Peaks between which memory fell by a twentieth of the highest, walked one by one."""
    series = [(-1, device.initial_bytes), *enumerate(device.totals.tolist())]
    fall = max(device.peak_bytes // 20, 1)
    found, is_up, high, low = [], True, series[0], series[0][1]
    for event, total in series[1:]:
        if is_up and (total > high[1] or (total == high[1] and high[0] == -1)):
            high = (event, total)
        elif is_up and high[1] - total >= fall:
            found.append(high)
            is_up, low = False, total
        elif not is_up:
            low = min(low, total)
            if total - low >= fall:
                is_up, high = True, (event, total)
    if is_up and high[1] > 0:
        found.append(high)
    return sorted(found, key=lambda peak: (-peak[1], peak[0]))


def _check_cut(device: Device, limit: int, by: str) -> None:
    cut = device.cut(limit, by)
    a, ids = device.allocations, device.keys(by).ids
    gone = {group.id for _, group in cut.groups}
    totals = [0] * (len(device.totals) + 1)
    for which in range(len(a)):
        if int(ids[which]) not in gone:
            for moment in range(int(a.alloc_event[which]) + 1, int(a.free_event[which]) + 1):
                totals[moment] += int(a.size[which])
    assert cut.left_bytes == max(totals) <= limit
    if device.peak_bytes <= limit:
        assert not cut.groups
        return
    at_peak = [group.bytes for event, group in cut.groups if event == device.peak_event]
    over = device.peak_bytes - limit
    assert sum(at_peak) >= over > sum(at_peak[:-1]), "no fewer groups are enough at the peak"


def _check_steps(device: Device) -> None:
    a, totals = device.allocations, device.totals
    last = 0
    for step in device.steps.steps:
        assert last <= step.start < step.end <= device.events
        last = step.end
        made = (a.alloc_event >= step.start) & (a.alloc_event < step.end)
        freed = (a.free_event >= step.start) & (a.free_event < step.end)
        assert step.peak_bytes == int(totals[step.start : step.end].max())
        assert int(totals[step.peak_event]) == step.peak_bytes
        assert step.allocated_bytes == int(a.size[made].sum())
        assert step.allocated_count == int(made.sum())
        assert step.freed_bytes == int(a.size[freed].sum())
        assert step.freed_count == int(freed.sum())
        assert step.net_bytes == step.allocated_bytes - step.freed_bytes
        if step.largest is not None:
            assert int(a.size[step.largest]) == int(a.size[made].max())


def _check_device(snapshot: snapviewer.Snapshot, device: Device) -> None:
    count = int(device.events)
    for event in sorted({-1, count // 3, device.peak_event, count - 1}):
        if -1 <= event < max(count, 0):
            _check_groups(snapshot, device, event)
    assert [(peak.event, peak.bytes) for peak in device.peaks] == _slow_peaks(device)
    _check_steps(device)
    assert len(device.leaks) >= 0
    assert device.categories.category.all()


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(document=snapshots(), limit=st.integers(0, 2**34))
def test_answers_equal_slow_versions_on_random_traces(
    document: Any, limit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    try:
        snapshot = _load(document, tmp_path_factory.mktemp("random"))
    except snapviewer.SnapshotError:
        return
    for device in snapshot.devices:
        _check_device(snapshot, device)
        _check_cut(device, limit, "line")


@pytest.mark.skipif(not REAL, reason="the real files are not here")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_answers_equal_slow_versions_on_real_files(path: Path) -> None:
    snapshot = snapviewer.load(path)

    for device in snapshot.devices:
        if len(device.allocations):
            _check_device(snapshot, device)


def test_a_limit_is_kept_by_taking_the_heaviest_groups(tmp_path: Path) -> None:
    snapshot = _load(leaks.snapshot(leaks.Case(seed=3, slope=10**6, steps=5)), tmp_path)
    device = snapshot.devices[0]

    for limit in (device.peak_bytes, device.peak_bytes * 3 // 4, device.peak_bytes // 3, 0):
        for by in ("line", "category", "stack"):
            _check_cut(device, limit, by)


def test_a_bundle_gives_the_same_answers(tmp_path: Path) -> None:
    snapshot = _load(leaks.snapshot(leaks.Case(seed=5, slope=10**6, marks="marks")), tmp_path)
    snapviewer.convert(tmp_path / "snap.pickle", tmp_path / "bundle.zip")

    (device,), (same,) = snapshot.devices, snapviewer.load(tmp_path / "bundle.zip").devices
    for by in GROUPINGS:
        here, there = device.alive(device.peak_event, by), same.alive(device.peak_event, by)
        assert here.groups == there.groups
        assert here.missing == there.missing
    assert (device.categories.category == same.categories.category).all()
    rows = [
        [(step.name, step.start, step.peak_bytes) for step in one.steps.steps]
        for one in (device, same)
    ]
    assert rows[0] == rows[1]
    assert device.steps.source == same.steps.source == "marks of the recorder"
    slopes = [
        [(leak.key, leak.bytes_per_step) for leak in one.leaks.leaks] for one in (device, same)
    ]
    assert slopes[0] == slopes[1] != []


def test_the_files_categories_win_and_a_users_rules_win_over_both(tmp_path: Path) -> None:
    document = leaks.snapshot(leaks.Case(seed=1, steps=5))
    trace = document["device_traces"][0]
    for event in trace:
        if event["frames"] and "load" in event["frames"][0]["name"]:
            event["category"] = "gradient"
    _load(document, tmp_path)

    path = tmp_path / "snap.pickle"
    plain = snapviewer.load(path).devices[0]
    which = int(np.flatnonzero(plain.mask("data.py"))[0])
    assert plain.categories.of(which) == ("gradient", "recorded in the file", 1.0)
    ruled = snapviewer.load(path, rules=[("communication", "data.py")]).devices[0]
    assert ruled.categories.of(which) == ("communication", "a rule of the user's", 1.0)
    assert ruled.mask("category=communication").sum() == plain.mask("data.py").sum()
    with pytest.raises(ValueError, match="a category is one of"):
        snapviewer.load(path, rules=[("wieghts", "data.py")])


def test_a_file_of_rules_is_read_by_the_command(tmp_path: Path) -> None:
    _load(leaks.snapshot(leaks.Case(seed=1, steps=5)), tmp_path)
    rules = tmp_path / "rules.toml"
    rules.write_text('[[category]]\nname = "input"\nfilter = "model.py size>=3MiB"\n')

    ran = run("report", tmp_path / "snap.pickle", "--by", "category", "--rules", rules, "--json")
    document = json.loads(ran.out)
    assert {group["key"]: group["bytes"] for group in document["groups"]}["input"] > 0
    rules.write_text('[[category]]\nname = "wieghts"\nfilter = "x"\n')
    ran = run("report", tmp_path / "snap.pickle", "--rules", rules)
    assert ran.code == 1
    assert "name is one of parameter" in ran.err


def test_the_report_has_groups_that_add_up_steps_and_leaks(tmp_path: Path) -> None:
    _load(leaks.snapshot(leaks.Case(seed=2, slope=10**6)), tmp_path)
    path = tmp_path / "snap.pickle"

    for by in GROUPINGS:
        document = json.loads(run("report", path, "--by", by, "--json").out)
        assert sum(group["bytes"] for group in document["groups"]) == document["total_bytes"]
        for groups in document["by"].values():
            assert sum(group["bytes"] for group in groups) == document["total_bytes"]
    assert len(document["steps"]) >= 23
    (leak,) = document["leaks"]
    assert leak["key"] == leaks.LEAK
    assert leak["bytes_per_step"] == pytest.approx(10**6, rel=0.05)
    text = run("report", path, "--under", "40MiB", "--capacity", "1GiB").out
    assert "To stay under 40.0 MiB, these must go, for example" in text
    assert "+977 KiB per step" in text
    assert "runs out in" in text


def test_without_frames_times_or_events_answers_say_what_is_missing(tmp_path: Path) -> None:
    document = leaks.snapshot(leaks.Case(seed=4, steps=2))
    for event in document["device_traces"][0]:
        event["frames"], event["time_us"] = [], 0
    for segment in document["segments"]:
        for block in segment["blocks"]:
            block["frames"] = []
    device = _load(document, tmp_path).devices[0]
    assert device.alive(device.peak_event, "line").missing == "no stacks were recorded"
    assert "lifetimes only" in str(device.categories.missing)

    document["device_traces"] = [[]]
    device = _load(document, tmp_path).devices[0]
    assert device.alive(-1, "lifetime").total_bytes == device.peak_bytes
    assert "not known" in str(device.categories.missing)
    assert "no events" in str(device.steps.missing)
    assert device.leaks.missing


def test_an_event_or_a_grouping_that_is_not_there_is_refused(tmp_path: Path) -> None:
    device = _load(hostile.small_snapshot(), tmp_path).devices[0]

    with pytest.raises(IndexError):
        device.alive(int(device.events), "line")
    with pytest.raises(ValueError, match="by is one of line, stack"):
        device.alive(0, "colour")


@pytest.mark.parametrize(
    "rest",
    [
        "group by callstack",
        "where size > 1000000 group by callstack having count(*) > 1 order by 2 desc, 1 limit 7",
    ],
)
def test_grouping_by_call_stack_is_the_same_by_number(rest: str, tmp_path: Path) -> None:
    _load(leaks.snapshot(leaks.Case(seed=6, slope=10**6, cache=4)), tmp_path)
    snapviewer.convert(tmp_path / "snap.pickle", tmp_path / "bundle.zip")
    bundle = snapviewer.load(tmp_path / "bundle.zip")

    # A table with another name is grouped by the texts themselves.
    by_number = bundle.query(f"select callstack, sum(size), count(*) from allocs {rest}")
    by_text = bundle.query(f"select callstack, sum(size), count(*) from allocs as a {rest}")
    assert by_number == by_text
    assert len(by_number[1]) > 3
