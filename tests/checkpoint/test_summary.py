"""The summary of a checkpoint's structure, whole, compared with one made by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from snapviewer.checkpoint.summary import (
    SORTS,
    SharedStorage,
    StorageAdvice,
    Summary,
    TensorGroup,
    elements_of,
    groups_of,
    order_of,
    summary_of,
)


class FakeTensor(NamedTuple):
    name: str
    shape: tuple[int, ...]
    dtype: str
    logical_bytes: int
    wasted_bytes: int = 0


class FakeStorage(NamedTuple):
    bytes: int
    clone_bytes: int
    tensors: tuple[int, ...]


class FakeCheckpoint(NamedTuple):
    tensors: tuple[FakeTensor, ...]
    storages: tuple[FakeStorage, ...]


TENSORS: Any = (
    FakeTensor("layers.10.weight", (2, 3), "float32", 24),
    FakeTensor("layers.2.weight", (5,), "float16", 10, 90),
    FakeTensor("head[0].bias", (), "float32", 4, 60),
    FakeTensor("layers.02.x", (7, 0), "int8", 0),
    FakeTensor("layers.2.bias", (40,), "bfloat16", 80, 60),
)
UNUSED, TWICE, VIEWS, LARGE, EXACT = STORAGES = (
    FakeStorage(8, 0, ()),
    FakeStorage(64, 4, (2, 2)),
    FakeStorage(100, 34, (0, 1, 1)),
    FakeStorage(200, 190, (4, 1)),
    FakeStorage(24, 24, (3,)),
)


def test_a_summary_has_types_sharing_and_advice() -> None:
    checkpoint: Any = FakeCheckpoint(TENSORS, STORAGES)
    first, second, third, _, last = TENSORS

    made: Any = summary_of(checkpoint, "a.pth")

    assert made == Summary(
        file="a.pth",
        checkpoint=checkpoint,
        tensors=TENSORS,
        elements=6 + 5 + 1 + 0 + 40,
        dtypes=(
            TensorGroup("bfloat16", 1, 40, 80),
            TensorGroup("float32", 2, 7, 28),
            TensorGroup("float16", 1, 5, 10),
            TensorGroup("int8", 1, 0, 0),
        ),
        sharing=(
            SharedStorage(LARGE, (last, second)),  # type: ignore[arg-type]
            SharedStorage(VIEWS, (first, second, second)),  # type: ignore[arg-type]
        ),
        group_of={4: 0, 1: 0, 0: 1},
        advice=(
            StorageAdvice(VIEWS, (first, second, second)),  # type: ignore[arg-type]
            StorageAdvice(TWICE, (third, third)),  # type: ignore[arg-type]
            StorageAdvice(LARGE, (last, second)),  # type: ignore[arg-type]
            StorageAdvice(UNUSED, ()),  # type: ignore[arg-type]
        ),
    )
    assert [item.saved_bytes for item in made.advice] == [66, 60, 10, 8]
    assert list(map(elements_of, TENSORS)) == [6, 5, 1, 0, 40]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("file", [0, 1, 2, 3, 4]),
        ("name", [2, 4, 1, 3, 0]),
        ("size", [4, 0, 1, 2, 3]),
        ("waste", [1, 2, 4, 0, 3]),
        ("dtype", [4, 1, 0, 2, 3]),
    ],
)
def test_tensors_are_sorted(sort: str, expected: list[int]) -> None:
    assert sort in SORTS
    assert order_of(TENSORS, sort) == expected


def test_groups_by_the_beginnings_of_names_are_in_the_order_of_the_file() -> None:
    assert groups_of(TENSORS, 2) == (
        TensorGroup("layers.10", 1, 6, 24),
        TensorGroup("layers.2", 2, 45, 90),
        TensorGroup("head[0]", 1, 1, 4),
        TensorGroup("layers.02", 1, 0, 0),
    )
