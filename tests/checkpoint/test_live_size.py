"""How much memory live objects take."""

from __future__ import annotations

import sys
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapviewer.checkpoint import address_runs
from snapviewer.checkpoint.address_runs import Reached
from snapviewer.pth_analyzer import get_size_bytes
from support.patience import PATIENT


@pytest.mark.promise("P14")
@pytest.mark.parametrize("value", [None, True, 7, 2**100, 0.5, 1j, "text", "ü", b"ab", range(9)])
def test_a_plain_value_takes_what_python_says(value: object) -> None:
    assert get_size_bytes(value) >= sys.getsizeof(value)
    if not isinstance(value, range):
        assert get_size_bytes(value) == sys.getsizeof(value)


@pytest.mark.promise("P14")
@pytest.mark.parametrize(
    "value",
    [
        [1000, "a"],
        (1000, "a"),
        {1000, "a"},
        frozenset([1000, "a"]),
        deque([1000, "a"]),
        {1000: "a"},
    ],
)
def test_a_container_takes_its_own_bytes_and_its_items(value: Any) -> None:
    items = sys.getsizeof(1000) + sys.getsizeof("a")

    assert get_size_bytes(value) == sys.getsizeof(value) + items


@pytest.mark.promise("P14")
def test_what_is_met_twice_counts_once() -> None:
    text = "x" * 1000

    both = [text, {"again": text}, (text,)]

    assert get_size_bytes(both) < 2 * len(text)
    assert get_size_bytes([both, both]) - get_size_bytes(both) == sys.getsizeof([both, both])


@pytest.mark.promise("P14")
def test_a_cycle_ends() -> None:
    first: list[Any] = []
    second = {"first": first}
    first.append(second)

    size = get_size_bytes(first)

    assert size == sys.getsizeof(first) + sys.getsizeof(second) + sys.getsizeof("first")


@pytest.mark.promise("P14")
def test_depth_does_not_matter() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]

    assert get_size_bytes(value) > 100_000 * sys.getsizeof([])


@pytest.mark.promise("P14")
def test_attributes_and_slots_are_looked_into() -> None:
    class Plain:
        def __init__(self) -> None:
            self.data = b"x" * 5000

    @dataclass(slots=True)
    class Slotted:
        data: bytes
        empty: bytes = b""

    half = Slotted.__new__(Slotted)

    assert get_size_bytes(Plain()) > 5000
    assert get_size_bytes(Slotted(b"x" * 5000)) > 5000
    assert get_size_bytes(half) < 5000
    assert get_size_bytes(OrderedDict(a=b"x" * 5000)) > 5000


@pytest.mark.promise("P14")
def test_classes_modules_and_functions_are_not_followed() -> None:
    def function() -> None: ...

    assert get_size_bytes([sys, Reached, function]) < 10_000


class _Hostile:
    """Everything about it fails."""

    __slots__ = ("inner",)

    def __sizeof__(self) -> int:
        raise RuntimeError("no")

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __hash__(self) -> int:
        raise RuntimeError("no")


class _Unwalkable(dict[str, int]):
    def __iter__(self) -> Any:
        raise RuntimeError("no")

    def items(self) -> Any:
        raise RuntimeError("no")


class _Negative:
    def __sizeof__(self) -> int:
        return -5


@pytest.mark.promise("P14")
def test_objects_that_misbehave_raise_nothing() -> None:
    unwalkable = _Unwalkable(a=10**50)

    assert get_size_bytes(_Hostile()) > 0
    assert get_size_bytes([_Hostile(), _Negative()]) > 0
    assert get_size_bytes(unwalkable) > get_size_bytes(_Unwalkable())


# Arrays


def test_arrays_take_the_bytes_that_they_reach() -> None:
    base = np.zeros((100, 100), np.float32)

    assert get_size_bytes(base) == 40_000
    assert get_size_bytes(base[:, ::2]) == 20_000
    assert get_size_bytes(base[::-1]) == 40_000
    assert get_size_bytes(np.broadcast_to(np.float32(1), (1000, 1000))) == 4
    together = (base, base[3:], base.T)
    assert get_size_bytes(together) == 40_000 + sys.getsizeof(together)


def test_an_array_of_objects_takes_them_too() -> None:
    array = np.array([b"x" * 5000, None], dtype=object)

    assert get_size_bytes(array) > 5000


_views = st.tuples(
    st.integers(0, 60),
    st.sampled_from([1, 2, 4]),
    st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), max_size=3),
)


def _bytes_of(address: int, item: int, steps: list[tuple[int, int]]) -> set[int]:
    """All bytes of a view, one by one."""
    starts = {address}
    for count, step in steps:
        starts = {start + step * place for start in starts for place in range(count)}
    return {start + byte for start in starts for byte in range(item)}


@settings(PATIENT)
@given(st.lists(_views, max_size=5))
def test_views_reach_each_byte_once(views: list[tuple[int, int, list[tuple[int, int]]]]) -> None:
    reached, expected = Reached(), set[int]()
    for address, item, steps in views:
        place = 10_000 + address
        reached.add("cpu", place, item, [n for n, _ in steps], [step for _, step in steps])
        expected |= _bytes_of(place, item, steps)

    assert reached.total_bytes() == len(expected)


def test_a_view_of_very_many_runs_is_counted_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_runs, "MAX_RUNS", 10)
    base = np.zeros((100, 2), np.int8)

    assert get_size_bytes([base[:, 0], base[:, 0]]) - get_size_bytes([None, None]) < 100
    assert get_size_bytes(base[:, 0]) == 100


def test_other_devices_have_other_addresses() -> None:
    reached = Reached()
    for device in ("cuda:0", "cuda:1", "cuda:0"):
        reached.add(device, 0, 4, (10,), (4,))

    assert reached.total_bytes() == 80


# Tensors


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.mark.promise("P14")
@pytest.mark.torch
def test_tensors_take_the_bytes_that_they_reach(torch: Any) -> None:
    base = torch.zeros(100, 100)
    pair = (base, base[3:])

    assert get_size_bytes(base) == 40_000
    assert get_size_bytes(base[:10]) == 4_000
    assert get_size_bytes(base.t()) == 40_000
    assert get_size_bytes(torch.zeros(1).expand(1000, 1000)) == 4
    assert get_size_bytes(torch.nn.Parameter(torch.zeros(5))) == 20
    assert get_size_bytes(torch.empty(0)) == 0
    assert get_size_bytes(torch.empty(10, device="meta")) == 0
    assert get_size_bytes(torch.ones(3).untyped_storage()) == 12
    assert get_size_bytes(pair) == 40_000 + sys.getsizeof(pair)


@pytest.mark.promise("P14")
@pytest.mark.torch
def test_a_tensor_and_the_array_of_it_are_the_same_memory(torch: Any) -> None:
    tensor = torch.zeros(100)
    both = (tensor, tensor.numpy())

    assert get_size_bytes(both) == 400 + sys.getsizeof(both)


@pytest.mark.promise("P14")
@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_tensors_of_other_kinds_take_their_parts(torch: Any) -> None:
    eye = torch.eye(4)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])

    assert get_size_bytes(eye.to_sparse()) == 4 * 2 * 8 + 4 * 4
    assert get_size_bytes(eye.to_sparse_csr()) == 5 * 8 + 4 * 8 + 4 * 4
    assert get_size_bytes(nested) == 20
    assert get_size_bytes(torch.quantize_per_tensor(eye, 0.1, 0, torch.qint8)) == 16


@pytest.mark.promise("P14")
@pytest.mark.torch
def test_a_module_takes_its_parameters(torch: Any) -> None:
    size = get_size_bytes(torch.nn.Linear(100, 100))

    assert 40_400 <= size < 60_000
