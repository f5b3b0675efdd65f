"""What changed from one checkpoint to another."""

from __future__ import annotations

import json
import struct
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patience import PATIENT
from program import run
from pth_writer import T, write_pth
from snapviewer import CancelledError, _core
from snapviewer.checkpoint_diff import CheckpointDiff, diff_of
from snapviewer.report.checkpoint import difference as report


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def vector(*values: float) -> T:
    return T("float32", (len(values),), floats(*values))


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two checkpoints, with one tensor of each fate."""
    before, after = tmp_path / "before.pth", tmp_path / "after.pth"
    write_pth(
        before,
        {
            "same": vector(1, 2, 3),
            "moved": vector(3, 4, 0, 0),
            "shape": vector(1, 2),
            "type": vector(1, 2),
            "gone": vector(9),
        },
    )
    write_pth(
        after,
        {
            "new": vector(1, 1),
            "same": vector(1, 2, 3),
            "moved": vector(3, 4, 3, 4),
            "shape": vector(1, 2, 3),
            "type": T("float16", (2,)),
        },
    )
    return before, after


def diff(before: Path, after: Path) -> CheckpointDiff:
    return diff_of(_core.read_checkpoint(before), _core.read_checkpoint(after))


def test_each_tensor_has_one_fate(two: tuple[Path, Path]) -> None:
    found = diff(*two)

    assert [tensor.name for tensor in found.added] == ["new"]
    assert [tensor.name for tensor in found.removed] == ["gone"]
    assert [(pair.before.shape, pair.after.shape) for pair in found.reshaped] == [((2,), (3,))]
    assert [(pair.before.dtype, pair.after.dtype) for pair in found.retyped] == [
        ("float32", "float16")
    ]
    assert [item.after.name for item in found.changed] == ["moved"]
    assert [tensor.name for tensor in found.equal] == ["same"]
    assert not found.is_equal


def test_a_change_says_how_much(two: tuple[Path, Path]) -> None:
    (changed,) = diff(*two).changed

    difference = changed.difference
    assert (difference.changed, difference.count) == (2, 4)
    assert (difference.max_abs, difference.mean_abs) == (4, 1.75)
    assert difference.relative_l2 == pytest.approx(1)


def test_a_checkpoint_is_equal_to_itself_written_anew(tmp_path: Path) -> None:
    paths = tmp_path / "a.pth", tmp_path / "b.pth"
    write_pth(paths[0], {"x": vector(1, 2), "y": vector(float("nan"))})
    write_pth(paths[1], {"x": vector(1, 2), "y": vector(float("nan"))}, deflate=True)

    assert diff(*paths).is_equal


def test_what_cannot_be_compared_is_told_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "meta.pth"
    write_pth(path, {"x": vector(1)})

    class Refusing:
        """A checkpoint whose elements cannot be had."""

        tensors = _core.read_checkpoint(path).tensors

        def difference(self, *_: object, **__: object) -> None:
            raise _core.SnapshotError("it has no elements")

    found = diff_of(Refusing(), Refusing())  # type: ignore[arg-type]

    assert [(item.after.name, item.reason) for item in found.uncompared] == [
        ("x", "it has no elements")
    ]
    assert "not compared: x: it has no elements" in report.as_text(found, before="a", after="b")


def test_a_diff_stops_when_told_to(two: tuple[Path, Path]) -> None:
    cancel = threading.Event()
    cancel.set()

    with pytest.raises(CancelledError):
        diff_of(*map(_core.read_checkpoint, two), cancel=cancel)


_files = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.integers(0, 3), min_size=1, max_size=3), max_size=6
)


@settings(PATIENT)
@given(_files, _files)
def test_every_tensor_of_both_files_is_told_of_once(
    tmp_path_factory: pytest.TempPathFactory,
    before: dict[str, list[int]],
    after: dict[str, list[int]],
) -> None:
    directory = tmp_path_factory.mktemp("diff")
    for name, content in (("a", before), ("b", after)):
        write_pth(directory / name, {key: vector(*values) for key, values in content.items()})

    found = diff(directory / "a", directory / "b")

    both = before.keys() & after.keys()
    shapes = {key for key in both if len(before[key]) != len(after[key])}
    equal = {key for key in both if before[key] == after[key]}
    assert {tensor.name for tensor in found.added} == after.keys() - before.keys()
    assert {tensor.name for tensor in found.removed} == before.keys() - after.keys()
    assert {pair.after.name for pair in found.reshaped} == shapes
    assert {item.after.name for item in found.changed} == both - shapes - equal
    assert {tensor.name for tensor in found.equal} == equal
    assert found.is_equal == (before == after)


# The command


def test_the_command_tells_what_changed(two: tuple[Path, Path]) -> None:
    ran = run("pth", two[0], "--diff", two[1])

    assert (ran.code, ran.err) == (0, "")
    assert "1 added, 1 removed, 1 reshaped, 1 retyped, 1 changed, 1 equal" in ran.out
    assert "2 → 3" in ran.out
    assert "float32 → float16" in ran.out
    assert ["moved", "50.0", "%", "4", "1.75", "100", "%"] in map(str.split, ran.out.splitlines())


def test_the_command_tells_what_changed_as_json(two: tuple[Path, Path]) -> None:
    ran = run("pth", two[0], "--diff", two[1], "--json")

    document = json.loads(ran.out)
    assert (ran.code, ran.err) == (0, "")
    assert (document["before"], document["after"]) == tuple(map(str, two))
    assert document["changed"] == [
        {
            "name": "moved",
            "dtype": "float32",
            "shape": [4],
            "changed": 2,
            "count": 4,
            "max_abs": 4.0,
            "mean_abs": 1.75,
            "relative_l2": pytest.approx(1),
        }
    ]
    assert document["reshaped"][0]["after"] == {"dtype": "float32", "shape": [3]}
    assert document["equal"] == 1
    assert not document["is_equal"]


def test_only_one_file_can_be_compared(two: tuple[Path, Path]) -> None:
    ran = run("pth", *two, "--diff", two[0])

    assert ran.code == 2
    assert "--diff compares one FILE" in ran.err
