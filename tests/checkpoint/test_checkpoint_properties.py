"""Any checkpoint is read as it was written: every tensor, and every byte by what it is for."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapviewer import _core
from support import checkpoint_oracle, pth_writer
from support.patience import PATIENT
from support.pth_writer import DTYPES, S, T

TYPED = sorted(name for name, row in DTYPES.items() if row[0])


@st.composite
def storages(draw: st.DrawFn) -> list[S]:
    """A few storages of small sizes, each of one type."""
    made = []
    for number in range(draw(st.integers(1, 4))):
        dtype = draw(st.sampled_from(TYPED))
        count = draw(st.integers(0, 40))
        data = random.Random(count).randbytes(count * DTYPES[dtype][2])
        made.append(S(str(number), data, dtype))
    return made


@st.composite
def views(draw: st.DrawFn, among: list[S], *, any_type: bool) -> T:
    """A tensor that lies in one of the storages in any way that fits."""
    storage = draw(st.sampled_from(among))
    assert storage.dtype is not None
    dtype = draw(st.sampled_from(sorted(DTYPES))) if any_type else storage.dtype
    count = len(storage.data) // DTYPES[dtype][2]
    offset = draw(st.integers(0, count))
    room, shape, stride = count - offset, [], []
    for _ in range(draw(st.integers(0, 3))):
        step = draw(st.integers(0, 6))
        most = 4 if step == 0 else max(0, room - 1) // step + 1
        size = draw(st.integers(0, min(4, most)))
        room -= max(0, size - 1) * step
        shape.append(size)
        stride.append(step)
    if room < 1 and 0 not in shape:
        shape, stride = [*shape, 0], [*stride, 1]
    return T(
        dtype, shape, storage=storage, offset=offset, stride=stride,
        requires_grad=draw(st.booleans()), is_parameter=draw(st.booleans()),
    )  # fmt: skip


PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=5)
)


@st.composite
def trees(draw: st.DrawFn, *, any_type: bool) -> tuple[Any, list[S]]:
    """A value with tensors anywhere, and the storages that they are views of."""
    among = draw(storages())
    leaf = st.one_of(views(among, any_type=any_type), PLAIN)
    words = st.from_regex(r"[a-z_]{1,6}", fullmatch=True)
    value = st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.dictionaries(st.one_of(words, st.integers(0, 9)), inner, max_size=4),
            st.tuples(inner, inner),
        ),
        max_leaves=12,
    )
    return draw(value), among


def _tensors(value: Any, name: str = "") -> Iterator[tuple[str, T]]:
    """Every tensor and the way to it, in order."""
    if isinstance(value, T):
        yield name or "root", value
    elif isinstance(value, dict):
        for key, inner in value.items():
            step = f".{key}" if isinstance(key, str) else f"[{key!r}]"
            yield from _tensors(inner, name + step if name else step.removeprefix("."))
    elif isinstance(value, (list, tuple)):
        for place, inner in enumerate(value):
            yield from _tensors(inner, f"{name}[{place}]")


def _write_tar(path: Path, value: object) -> None:
    for _, tensor in _tensors(value):
        tensor.is_parameter = tensor.requires_grad = False  # there was no such thing
    pth_writer.write_tar(path, value)


WRITERS: dict[str, Callable[[Path, object], None]] = {
    "zip": pth_writer.write_pth,
    "legacy": pth_writer.write_legacy,
    "tar": _write_tar,
    # In these, storages have views of several types.
    **{f"protocol {n}": partial(pth_writer.write_pth, protocol=n) for n in (2, 3, 4, 5)},
}


@pytest.mark.parametrize("name", WRITERS)
@given(data=st.data())
@settings(PATIENT)
def test_a_checkpoint_in_any_format_is_reported_as_it_was_written(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    value, _ = data.draw(trees(any_type=name.startswith("protocol")))
    path = tmp_path_factory.mktemp("tree") / "x.pth"
    WRITERS[name](path, value)

    _assert_described(_core.read_checkpoint(path), value, path)


@given(tree=trees(any_type=True))
@settings(PATIENT)
def test_a_checkpoint_that_was_zipped_again_reads_the_same(
    tree: tuple[Any, list[S]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    plain, packed = folder / "plain.pth", folder / "packed.pth"
    pth_writer.write_pth(plain, tree[0])
    pth_writer.write_pth(packed, tree[0], deflate=True)

    one, other = _core.read_checkpoint(plain), _core.read_checkpoint(packed)

    assert _parts(other) == os.path.getsize(packed)
    assert [_described(tensor) for tensor in one.tensors] == [
        _described(tensor) for tensor in other.tensors
    ]
    reached = [storage.reached_bytes for storage in one.storages]
    assert [storage.reached_bytes for storage in other.storages] == reached
    assert other.wasted_bytes == one.wasted_bytes


def _assert_described(checkpoint: _core.Checkpoint, value: Any, path: Path) -> None:
    expected = list(_tensors(value))
    used: dict[str, S] = {}
    for _, tensor in expected:
        assert tensor.storage is not None
        used.setdefault(tensor.storage.key, tensor.storage)
    saved = checkpoint_oracle.written([tensor for _, tensor in expected], list(used.values()))

    assert _parts(checkpoint) == checkpoint.file_bytes == os.path.getsize(path)
    assert [_described(tensor) for tensor in checkpoint.tensors] == [
        _written(name, tensor) for name, tensor in expected
    ]
    assert checkpoint.ledger.tensors == checkpoint.unique_bytes == saved.reached_bytes()
    assert checkpoint.ledger.unreferenced == saved.unreferenced_bytes()
    assert checkpoint.logical_bytes == saved.logical_bytes()
    assert checkpoint.wasted_bytes == saved.wasted_bytes()
    by_key = {storage.key: storage for storage in checkpoint.storages}
    assert {key: storage.bytes for key, storage in by_key.items()} == saved.sizes
    assert {key: by_key[key].reached_bytes for key in by_key} == {
        key: saved.reached(key) for key in saved.sizes
    }
    content = path.read_bytes()
    for key, storage in by_key.items():
        assert content[storage.start : storage.start + storage.bytes] == used[key].data


def _parts(checkpoint: _core.Checkpoint) -> int:
    ledger = checkpoint.ledger
    return sum((ledger.tensors, ledger.unreferenced, ledger.pickle, ledger.padding, ledger.archive))


def _described(tensor: _core.Tensor) -> tuple[Any, ...]:
    place = (tensor.shape, tensor.stride, tensor.offset)
    return (tensor.name, tensor.kind, tensor.dtype, *place, tensor.requires_grad, tensor.storage)


def _written(name: str, tensor: T) -> tuple[Any, ...]:
    assert tensor.storage is not None
    kind = "parameter" if tensor.is_parameter else "tensor"
    place = (tuple(tensor.shape), tensor.strides(), tensor.offset)
    return (name, kind, tensor.dtype, *place, tensor.requires_grad, tensor.storage.key)


def test_a_storage_that_nobody_uses_is_unreferenced_and_wasted(tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    unused = {"data/9": bytes(1000)}
    pth_writer.write_pth(path, {"x": T("float32", (2,))}, extra_members=unused)

    checkpoint = _core.read_checkpoint(path)

    assert _parts(checkpoint) == os.path.getsize(path)
    assert (checkpoint.ledger.tensors, checkpoint.ledger.unreferenced) == (8, 1000)
    assert checkpoint.wasted_bytes == 1000
    assert {storage.key: storage.tensors for storage in checkpoint.storages} == {"0": (0,), "9": ()}


@pytest.mark.parametrize("prefix", ["archive", "my model", "é", "a.b"])
@pytest.mark.parametrize("byteorder", ["little", "big", None])
def test_a_checkpoint_is_found_in_a_folder_of_any_name(
    prefix: str, byteorder: Any, tmp_path: Path
) -> None:
    path = tmp_path / "x.pth"
    pth_writer.write_pth(path, {"x": T("float32", (2,))}, prefix=prefix, byteorder=byteorder)

    checkpoint = _core.read_checkpoint(path)

    assert [tensor.name for tensor in checkpoint.tensors] == ["x"]
    assert _parts(checkpoint) == os.path.getsize(path)
