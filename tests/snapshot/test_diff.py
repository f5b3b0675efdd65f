"""Differences of snapshots: they add up to the byte, and find exactly what was changed."""

from __future__ import annotations

import json
import pickle
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import snapviewer
from snapviewer.demo import DemoOptions, write_demo
from snapviewer.snapshot.difference import GROUPINGS, Difference, Row
from snapviewer.snapshot.frames import NO_STACK, line_of, own_frame
from snapviewer.text.units import format_bytes
from support import hostile
from support.oracle import SNAPSHOTS
from support.program import Ran, run_here
from support.recorded import recorded
from support.whatif_programs import pair_source

REAL = sorted(SNAPSHOTS.glob("*.pickle"))
on_null_device = pytest.mark.torch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Demos that differ in one option each, a state without a trace, and one of two devices."""
    folder = tmp_path_factory.mktemp("diff")
    made = {
        "a": DemoOptions(events=8000),
        "leak": DemoOptions(events=8000, leak=True),
        "expandable": DemoOptions(events=8000, expandable=True),
        "seed": DemoOptions(events=8000, seed=1),
        "two": DemoOptions(events=8000, devices=2),
        "oom": DemoOptions(events=9000, oom=True),
    }
    for name, options in made.items():
        write_demo(folder / f"{name}.pickle", options)
    document = hostile.small_snapshot()
    document["device_traces"] = []
    (folder / "state.pickle").write_bytes(pickle.dumps(document))
    document["segments"][0]["device"] = 3
    (folder / "third.pickle").write_bytes(pickle.dumps(document))
    return folder


def assert_adds_up(found: Difference) -> None:
    for side, sizes, counts in (
        (found.a, [row.a_bytes for row in found.rows], [row.a_count for row in found.rows]),
        (found.b, [row.b_bytes for row in found.rows], [row.b_count for row in found.rows]),
    ):
        assert sum(sizes) == side.total_bytes
        assert sum(counts) == side.count
    assert sum(row.change_bytes for row in found.rows) == found.change_bytes
    if found.a.is_peak and found.b.is_peak:
        assert found.change_bytes == found.b.peak_bytes - found.a.peak_bytes


def slow_groups(
    snapshot: snapviewer.Snapshot, device: snapviewer.Device, event: int, by: str
) -> Counter[str]:
    """The bytes of each line, site or stack that is alive after an event, one at a time."""
    a = device.allocations
    sizes: Counter[str] = Counter()
    columns = (a.size.tolist(), a.stack.tolist(), a.alloc_event.tolist(), a.free_event.tolist())
    for size, stack, start, end in zip(*columns, strict=True):
        if start <= event < end:
            sizes[_slow_key(snapshot, stack, by)] += size
    return sizes


def _slow_key(snapshot: snapviewer.Snapshot, stack: int, by: str) -> str:
    frames = snapshot.frames(stack)
    if by == "line":
        return line_of(snapshot, stack)
    frame = own_frame(frames)
    if frame is None:
        return NO_STACK
    return f"{frame.name} ({frame.filename.rpartition('/')[2]})"


# What is found


@pytest.mark.parametrize("by", GROUPINGS)
@pytest.mark.parametrize("name", ["a", "oom", "two", "state"])
def test_a_file_has_no_difference_with_itself(folder: Path, name: str, by: str) -> None:
    found = snapviewer.diff(folder / f"{name}.pickle", folder / f"{name}.pickle", by=by)

    assert found.changed == ()
    assert found.change_bytes == 0
    assert found.rows
    assert_adds_up(found)


@pytest.mark.parametrize("by", ["line", "site"])
def test_a_demo_that_leaks_differs_in_the_line_that_leaks(folder: Path, by: str) -> None:
    found = snapviewer.diff(folder / "a.pickle", folder / "leak.pickle", by=by)

    (row,) = found.changed
    assert row.key == {"line": "train.py:83 log_hidden", "site": "log_hidden (train.py)"}[by]
    assert (row.kind, row.a_bytes, row.a_count) == ("new", 0, 0)
    assert row.b_bytes == found.b.peak_bytes - found.a.peak_bytes > 0
    assert_adds_up(found)


def test_backwards_what_was_new_is_gone(folder: Path) -> None:
    there = snapviewer.diff(folder / "a.pickle", folder / "seed.pickle")
    back = snapviewer.diff(folder / "seed.pickle", folder / "a.pickle")

    opposite = {"new": "gone", "larger": "smaller", "more often": "less often", "same": "same"}
    opposite |= {after: before for before, after in opposite.items()}
    kinds = {row.key: opposite[row.kind] for row in there.rows}
    assert kinds == {row.key: row.kind for row in back.rows}
    assert {row.key: row.change_bytes for row in there.rows} == {
        row.key: -row.change_bytes for row in back.rows
    }


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ((0, 5, 0, 1), "new"),
        ((5, 0, 1, 0), "gone"),
        ((5, 6, 3, 1), "larger"),
        ((6, 5, 1, 3), "smaller"),
        ((5, 5, 1, 2), "more often"),
        ((5, 5, 2, 1), "less often"),
        ((5, 5, 1, 1), "same"),
        ((0, 0, 0, 1), "new"),
    ],
)
def test_what_happened_to_a_group(numbers: tuple[int, int, int, int], kind: str) -> None:
    assert Row("x", *numbers).kind == kind


@on_null_device
@pytest.mark.parametrize("by", GROUPINGS)
def test_two_programs_that_differ_in_one_line_differ_in_that_line(by: str) -> None:
    source, other = pair_source(), pair_source(factor="2")
    a, b = recorded(source).path, recorded(other).path
    (line,) = (at for at, text in enumerate(source.splitlines(), 1) if "FACTOR)" in text)

    found = snapviewer.diff(a, b, by=by)

    assert_adds_up(found)
    numbers = [3_000_000 + 70_000 * place for place in range(12)]
    (row,) = found.changed
    assert (row.kind, row.change_bytes) == ("larger", 4 * sum(numbers))
    if by in ("line", "stack"):
        assert f"program.py:{line}" in row.key.split("\n")[0]
        assert (row.a_bytes, row.b_bytes) == (4 * sum(numbers), 8 * sum(numbers))
        assert (row.a_count, row.b_count) == (12, 12)


@on_null_device
def test_an_edited_file_is_the_same_by_site_only() -> None:
    source = pair_source()
    edited = source.replace("def weights", "# A comment.\n\n\ndef weights")
    assert edited != source
    a, b = recorded(source).path, recorded(edited).path

    by_line, by_site = (snapviewer.diff(a, b, by=by) for by in ("line", "site"))

    assert {row.kind for row in by_line.changed} == {"new", "gone"}
    assert by_line.change_bytes == 0
    # Both scripts are called program.py, and their own code at the top level is a site, too.
    assert by_site.changed == ()


@on_null_device
def test_settings_that_differ_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    a = recorded(pair_source()).path
    b = recorded(pair_source(), conf="expandable_segments:True").path

    ran = run_here(capsys, "diff", a, b)

    assert ran.code == 0
    assert "No difference by line" in ran.out
    assert "expandable_segments  off  on" in ran.out


@on_null_device
def test_a_prediction_beside_a_recording_is_noted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run_here(capsys, "diff", recorded(pair_source()).path, folder / "a.pickle")

    assert ran.code == 0
    assert re.search(r"^note: A was predicted.*, B was recorded$", ran.out, re.MULTILINE)


@pytest.mark.skipif(not REAL, reason="there are no real snapshots")
@pytest.mark.parametrize("seed", range(12))
def test_real_pairs_add_up_to_the_byte(seed: int) -> None:
    chance = random.Random(seed)
    a, b = (snapviewer.load(path) for path in chance.sample(REAL, 2))
    for by in GROUPINGS:
        for event in ("peak", "end"):
            found = snapviewer.diff(a, b, by=by, event=event)
            assert_adds_up(found)
            assert found.rows


@pytest.mark.skipif(not REAL, reason="there are no real snapshots")
@pytest.mark.parametrize("seed", range(4))
def test_real_pairs_have_the_rows_that_one_at_a_time_gives(seed: int) -> None:
    a, b = (snapviewer.load(path) for path in random.Random(100 + seed).sample(REAL, 2))

    found = snapviewer.diff(a, b)

    for snapshot, side, name in ((a, found.a, "a_bytes"), (b, found.b, "b_bytes")):
        (device,) = (one for one in snapshot.devices if one.index == side.device)
        expected = slow_groups(snapshot, device, side.event, "line")
        rows = {row.key: getattr(row, name) for row in found.rows if getattr(row, name)}
        assert rows == {key: size for key, size in expected.items() if size}


def test_rows_by_site_are_what_one_at_a_time_gives(folder: Path) -> None:
    a, b = (snapviewer.load(folder / f"{name}.pickle") for name in ("a", "seed"))

    found = snapviewer.diff(a, b, by="site")

    for snapshot, side, name in ((a, found.a, "a_bytes"), (b, found.b, "b_bytes")):
        rows = {row.key: getattr(row, name) for row in found.rows if getattr(row, name)}
        known = {key: size for key, size in rows.items() if key.endswith(".py)")}
        expected = slow_groups(snapshot, snapshot.devices[0], side.event, "site")
        assert known
        assert known == {key: size for key, size in expected.items() if key in known}


# Moments and devices


def test_moments_are_those_of_each_file(folder: Path) -> None:
    a, b = (snapviewer.load(folder / f"{name}.pickle") for name in ("a", "oom"))
    first, second = a.devices[0], b.devices[0]

    end = snapviewer.diff(a, b, event="end")
    number = snapviewer.diff(a, b, event=17)
    step = snapviewer.diff(a, b, step=1)

    assert (end.a.event, end.b.event) == (first.events - 1, second.events - 1)
    assert (end.a.total_bytes, end.b.total_bytes) == (first.final_bytes, second.final_bytes)
    assert (number.a.event, number.b.event) == (17, 17)
    assert (step.a.step, step.b.step) == ("step 1", "step 1")
    assert step.a.total_bytes == first.steps.steps[1].peak_bytes
    for found in (end, number, step):
        assert_adds_up(found)
    oom = snapviewer.diff(b, b, event="oom")
    assert oom.a.event == second.oom_at[0]


def test_without_a_number_the_largest_device_of_a_is_compared(folder: Path) -> None:
    two = snapviewer.load(folder / "two.pickle")
    largest = max(two.devices, key=lambda device: device.peak_bytes)

    found = snapviewer.diff(two, two)

    assert (found.a.device, found.b.device) == (largest.index, largest.index)
    assert snapviewer.diff(two, two, device=1).b.device == 1


def program(capsys: pytest.CaptureFixture[str], *words: str | Path) -> Ran:
    return run_here(capsys, "diff", *words)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("a", "a", "-d", "1"), 1, "A: there is no device 1 in this file; there is 0"),
        (("two", "a", "-d", "1"), 1, "B: there is no device 1 in this file; there is 0"),
        (("oom", "a", "--event", "oom"), 1, "B: device 0 did not run out of memory"),
        (("a", "oom", "--event", "8500"), 1, "A: there is no event 8,500; events are 0 to 7,999"),
        (("a", "a", "--step", "77"), 1, "A: there is no step 77; there is step 0, step 1, "),
        (("state", "a", "--step", "0"), 1, "A: there are no steps"),
        (("a", "a", "--step", "0", "--event", "end"), 2, "leave --event out"),
        (("a", "a", "--by", "color"), 2, "invalid choice: 'color'"),
        (("a", "a", "--fail-regression", "much"), 2, "must be a percentage, such as 2%"),
        (("a", "a", "--fail-over", "much"), 2, "must be a number of bytes"),
    ],
)
def test_what_makes_no_sense_gets_a_sentence(
    folder: Path,
    words: tuple[str, ...],
    code: int,
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = [folder / f"{name}.pickle" for name in words[:2]]

    ran = program(capsys, *files, *words[2:])

    assert ran.code == code
    assert ran.out == ""
    assert sentence in ran.err


def test_from_python_the_same_are_value_errors(folder: Path) -> None:
    a = folder / "a.pickle"
    for wrong in ({"by": "color"}, {"device": 9}, {"event": "lunch"}, {"step": 99}):
        with pytest.raises(ValueError, match=r".+"):
            snapviewer.diff(a, a, **wrong)


def test_devices_of_different_numbers_are_compared_with_a_note(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = program(capsys, folder / "a.pickle", folder / "third.pickle")

    assert ran.code == 0
    assert "device 0 of A and device 3 of B" in ran.out
    assert "note: no device has the same number in both" in ran.out


def test_a_state_without_a_trace_is_compared_with_a_note(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = program(capsys, folder / "state.pickle", folder / "a.pickle")

    assert ran.code == 0
    assert "A state only" in ran.out
    assert "note: A is a state without a trace: its peak is not known" in ran.out


def test_a_bundle_is_as_good_as_its_snapshot(folder: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "a.zip"
    snapviewer.convert(folder / "a.pickle", bundle)

    found = snapviewer.diff(folder / "a.pickle", bundle)

    assert found.changed == ()
    assert (found.a.format, found.b.format) == ("pickle", "bundle of pickle")


# What is printed and written


def document(capsys: pytest.CaptureFixture[str], *words: str | Path) -> Any:
    ran = program(capsys, *words, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


@pytest.mark.parametrize("top", [None, 0, 1, 5])
def test_the_document_adds_up_however_many_rows_it_has(
    folder: Path, top: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    files = (folder / "a.pickle", folder / "seed.pickle")
    chosen = () if top is None else ("--top", str(top))

    found = document(capsys, *files, *chosen)

    a, b = (snapviewer.load(file).devices[0] for file in files)
    assert found["peak_bytes"] == {"a": a.peak_bytes, "b": b.peak_bytes}
    assert found["reserved_bytes"] == {"a": a.reserved_peak_bytes, "b": b.reserved_peak_bytes}
    assert (found["by"], found["failed"]) == ("line", [])
    for side in ("a", "b"):
        assert sum(one[f"{side}_bytes"] for one in found["groups"]) == found["peak_bytes"][side]
    all_of_them = len(snapviewer.diff(*files).rows)
    assert len(found["groups"]) == (top + 1 if top else all_of_them)


def test_the_table_shows_what_changed_and_the_rest(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = (folder / "a.pickle", folder / "leak.pickle")
    found = snapviewer.diff(*files)
    more = format_bytes(found.change_bytes)

    ran = program(capsys, *files)

    assert f"+{more} by line: 1 new.\n" in ran.out
    (row,) = (line for line in ran.out.splitlines() if line.endswith("train.py:83 log_hidden"))
    assert row.split("  ")[1:3] == [f"+{more}", "new"]
    assert f"{len(found.rows) - 1} more groups" in ran.out


def test_markdown_and_html_have_the_same_rows(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = (folder / "a.pickle", folder / "leak.pickle")
    outputs = [tmp_path / f"diff{suffix}" for suffix in (".md", ".html", ".txt", ".json")]
    words = [word for output in outputs for word in ("-o", output)]

    ran = program(capsys, *files, *words, "--fail-over", "1MiB")

    assert ran.code == 3
    markdown, html, text, written = (output.read_text() for output in outputs)
    more = format_bytes(snapviewer.diff(*files).change_bytes)
    assert f"# GPU memory: +{more} at the peak" in markdown
    assert "> ❌ the peak of device 0, " in markdown
    assert f"| `train.py:83 log_hidden` | +{more} | new |" in " ".join(markdown.split())
    assert "| **total**" in markdown
    assert f"<code>train.py:83 log_hidden</code></td><td>+{more}</td><td>new</td>" in re.sub(
        r"<(\w+) [^>]*>", r"<\1>", html
    )
    assert "failed: the peak of device 0" in text
    assert json.loads(written)["failed"][0]["check"] == "over"


# The gate


def test_the_gate_is_passed_at_the_limit_and_failed_above_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = (folder / "a.pickle", folder / "leak.pickle")
    a, b = (snapviewer.load(file).devices[0].peak_bytes for file in files)
    needed = 100 * (b - a) / a

    def code(*words: str) -> int:
        return program(capsys, *files, *words).code

    assert code("--fail-over", str(b)) == 0
    assert code("--fail-over", str(b - 1)) == 3
    assert code("--fail-regression", f"{needed * 1.01}%") == 0
    assert code("--fail-regression", f"{needed * 0.99}%") == 3
    assert code("--fail-regression", "0") == 3
    assert program(capsys, files[1], files[0], "--fail-regression", "0").code == 0
    assert program(capsys, files[0], files[0], "--fail-regression", "0%").code == 0


def test_the_reason_is_one_line_and_in_the_document(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = (folder / "a.pickle", folder / "leak.pickle")
    limits = ("--fail-over", "1GiB", "--fail-regression", "0.01%")

    ran = program(capsys, *files, *limits, "--json")

    assert ran.code == 3
    over, regression = json.loads(ran.out)["failed"]
    assert (over["check"], over["limit_bytes"]) == ("over", 1 << 30)
    assert (regression["check"], regression["percent"]) == ("regression", 0.01)
    assert regression["limit_bytes"] < regression["peak_bytes"] == over["peak_bytes"]
    assert ran.err == f"snapviewer: {over['reason']}; {regression['reason']}\n"
    assert "the peak of device 0, 3.74 GiB, is over 1.00 GiB" in ran.err


def test_every_gpu_passes_the_gate_unless_one_is_chosen(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "two.pickle"
    small, large = sorted(snapviewer.load(file).devices, key=lambda device: device.peak_bytes)
    assert small.peak_bytes < large.peak_bytes
    limit = ("--fail-over", str(small.peak_bytes))

    commands: list[list[str | Path]] = [["diff", file, file], ["report", file]]
    for command in commands:
        both = run_here(capsys, *command, *limit)
        one = run_here(capsys, *command, *limit, "-d", str(small.index))

        assert both.code == 3
        assert f"the peak of device {large.index}, " in both.err
        assert one.code == 0


def test_report_has_the_same_gate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "a.pickle"
    peak = snapviewer.load(file).devices[0].peak_bytes

    passed = run_here(capsys, "report", file, "--fail-over", str(peak), "--json")
    failed = run_here(capsys, "report", file, "--fail-over", str(peak - 1), "--json")

    assert (passed.code, failed.code) == (0, 3)
    assert json.loads(passed.out)["failed"] == []
    assert json.loads(failed.out)["failed"][0]["peak_bytes"] == peak
    assert failed.err == (f"snapviewer: the peak of device 0, {peak:,} B, is over {peak - 1:,} B\n")
