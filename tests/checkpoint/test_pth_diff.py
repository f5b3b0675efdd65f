"""What changed from one checkpoint to another."""

from __future__ import annotations

import json
import struct
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapviewer import CancelledError, _core
from snapviewer.checkpoint import values as checkpoint_values
from snapviewer.checkpoint.difference import CheckpointDiff, diff_of
from snapviewer.report.checkpoint import difference as report
from support.patience import PATIENT
from support.program import run
from support.pth_writer import T, write_pth


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


def test_what_cannot_be_compared_is_reported_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "meta.pth"
    write_pth(path, {"x": vector(1)})

    class Refusing:
        """A checkpoint whose elements cannot be had."""

        tensors = _core.read_checkpoint(path).tensors
        root = _core.read_checkpoint(path).root

        def difference(self, *_: object, **__: object) -> None:
            raise _core.SnapshotError("it has no elements")

    found = diff_of(Refusing(), Refusing())  # type: ignore[arg-type]

    assert [(item.after.name, item.reason) for item in found.uncompared] == [
        ("x", "it has no elements")
    ]
    assert "not compared: x: it has no elements" in report.as_text(found, before="a", after="b")


def test_a_diff_stops_when_asked_to(two: tuple[Path, Path]) -> None:
    cancel = threading.Event()
    cancel.set()

    with pytest.raises(CancelledError):
        diff_of(*map(_core.read_checkpoint, two), cancel=cancel)


_files = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.integers(0, 3), min_size=1, max_size=3), max_size=6
)


@settings(PATIENT)
@given(_files, _files)
def test_every_tensor_of_both_files_is_listed_once(
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


# NaN and Inf


@pytest.fixture
def broken(tmp_path: Path) -> tuple[Path, Path]:
    """Two checkpoints; in the second, two tensors broke, and another is whole again."""
    nan, inf = float("nan"), float("inf")
    before, after = tmp_path / "before.pth", tmp_path / "after.pth"
    write_pth(
        before,
        {"far": vector(1, 1), "one": vector(1, 2, 3), "two": vector(1, 2, 3), "ok": vector(nan, 1)},
    )
    write_pth(
        after,
        {
            "far": vector(9e9, 1),
            "one": vector(1, 2, inf),
            "two": vector(1, nan, -inf),
            "ok": vector(2, 1),
        },
    )
    return before, after


def test_what_became_nan_or_inf_comes_first(broken: tuple[Path, Path]) -> None:
    found = diff(*broken)

    out = report.as_text(found, before="a", after="b", width=80)
    document = report.to_json(found, before="a", after="b")

    assert out.splitlines()[2:5] == [
        "! new NaN or Inf in 2 tensors",
        "  ! two: 2 became NaN or Inf, of 3 elements",
        "  ! one: 1 became NaN or Inf, of 3 elements",
    ]
    assert [
        (item["name"], item["to_nonfinite"], item["from_nonfinite"]) for item in document["changed"]
    ] == [("two", 2, 0), ("one", 1, 0), ("ok", 0, 1), ("far", 0, 0)]
    assert "1 no longer NaN or Inf" in out
    assert max(map(len, out.splitlines())) <= 80


# Plain values


def test_values_are_compared_by_where_they_are(tmp_path: Path) -> None:
    paths = tmp_path / "a.pth", tmp_path / "b.pth"
    old = {"epoch": 3, "same": [1, {"x": "y"}], "gone": 1, "kind": [1], "text": "a" * 900, "e": {}}
    new = {"epoch": 4, "same": [1, {"x": "y"}], "new": 2.5, "kind": (1,), "text": "a" * 901, "e": 0}
    write_pth(paths[0], {**old, "w": vector(1)})
    write_pth(paths[1], {**new, "w": vector(1)})

    found = diff(*paths)
    out = report.as_text(found, before="a", after="b")
    values = report.to_json(found, before="a", after="b")["values"]

    assert not found.is_equal
    assert found.changed == ()
    assert "values\n  epoch: 3 → 4\n  kind: list → tuple\n" in out
    assert "  new: 2.5 (added)\n  gone: 1 (removed)\n" in out
    assert (values["added"], values["removed"]) == ({"new": "2.5"}, {"gone": "1"})
    assert list(values["changed"]) == ["epoch", "kind", "text", "e"]
    assert values["changed"]["epoch"] == {
        "before": {"type": "int", "preview": "3"},
        "after": {"type": "int", "preview": "4"},
    }


def test_values_in_cycles_are_compared_once(tmp_path: Path) -> None:
    paths = tmp_path / "a.pth", tmp_path / "b.pth"
    for number, path in enumerate(paths):
        loop: list[object] = [number]
        loop.append(loop)
        write_pth(path, {"loop": loop})

    found = diff(*paths).values

    assert list(found.changed) == ["loop[0]"]
    assert (found.added, found.removed) == ({}, {})


def test_of_too_many_values_none_is_called_new_without_looking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = tmp_path / "a.pth", tmp_path / "b.pth"
    write_pth(paths[0], {"a": 1, "b": 2, "c": 3, "d": 4})
    write_pth(paths[1], {"d": 4, "a": 2, "b": 2, "c": 3})
    monkeypatch.setattr(checkpoint_values, "MAX_VALUES", 3)

    found = diff(*paths).values

    assert (found.added, found.removed, list(found.changed)) == ({}, {}, ["a"])


_trees = st.recursive(
    st.integers(0, 2) | st.sampled_from(["x", None, True]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(PATIENT)
@given(st.dictionaries(st.sampled_from("pqr"), _trees), st.data())
def test_values_are_equal_if_the_trees_are(
    tmp_path_factory: pytest.TempPathFactory, before: dict[str, object], data: st.DataObject
) -> None:
    after = data.draw(st.just(before) | st.dictionaries(st.sampled_from("pqr"), _trees))
    directory = tmp_path_factory.mktemp("values")
    for name, content in (("a", before), ("b", after)):
        write_pth(directory / name, content)

    # As text, True and 1 are not the same, while for Python they are.
    assert diff(directory / "a", directory / "b").is_equal == (
        json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)
    )


# The command


def test_the_command_shows_what_changed(two: tuple[Path, Path]) -> None:
    ran = run("pth", two[0], "--diff", two[1])

    assert (ran.code, ran.err) == (0, "")
    assert "1 added, 1 removed, 1 reshaped, 1 retyped, 1 changed, 1 equal" in ran.out
    assert "2 → 3" in ran.out
    assert "float32 → float16" in ran.out
    assert ["moved", "50.0", "%", "4", "1.75", "100", "%"] in map(str.split, ran.out.splitlines())


def test_the_command_shows_what_changed_as_json(two: tuple[Path, Path]) -> None:
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
            "to_nonfinite": 0,
            "from_nonfinite": 0,
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
    assert "compare one FILE with one OTHER" in ran.err
