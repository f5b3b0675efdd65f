"""Checkpoints that torch wrote are read as torch reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snapviewer import _core
from support.torch_marks import torch_marks

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch._weights_only_unpickler import (  # noqa: E402
    _get_allowed_globals,
    _get_user_allowed_globals,
)

from support import checkpoint_cases, checkpoint_oracle  # noqa: E402

# What torch says of its own features when tests make things to save.
pytestmark = torch_marks(
    "TypedStorage is deprecated:UserWarning",
    "Sparse .* tensor support is in beta:UserWarning",
    "Sparse invariant checks:UserWarning",
    "torch.quantize_per_tensor:UserWarning",
    "ComplexHalf support:UserWarning",
    "The PyTorch API of nested tensors:UserWarning",
    "Couldn't retrieve source code:UserWarning",
)

NAMES = tuple(checkpoint_cases.CASES)
# What torch's own legacy writer and reader can do; its newest types are beyond them.
LEGACY = (
    "views_of_one_storage",
    "tied_by_object",
    "sparse",
    "quantized",
    "parameters",
    "lightning",
)


@pytest.fixture(scope="module", autouse=True)
def seeded() -> None:
    torch.manual_seed(6)


def _saved(name: str, path: Path, **options: Any) -> Any:
    value = checkpoint_cases.CASES[name]()
    torch.save(value, path, **options)
    return value


# The ledger


@pytest.mark.parametrize("name", NAMES)
def test_every_byte_of_a_file_is_accounted_for(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    _saved(name, path)

    _assert_ledger(_core.read_checkpoint(path), path)


@pytest.mark.parametrize("name", LEGACY)
def test_every_byte_of_a_legacy_file_is_accounted_for(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    _saved(name, path, _use_new_zipfile_serialization=False)

    checkpoint = _core.read_checkpoint(path)

    assert checkpoint.format == "torch legacy"
    _assert_ledger(checkpoint, path)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("name", ["values", "circles", "lightning", "whole_module", "arrays"])
def test_a_pickle_of_any_protocol_is_read(name: str, protocol: int, tmp_path: Path) -> None:
    path, usual = tmp_path / "x.pth", tmp_path / "usual.pth"
    torch.manual_seed(0)
    _saved(name, path, pickle_protocol=protocol)
    torch.manual_seed(0)
    _saved(name, usual)

    checkpoint = _core.read_checkpoint(path)

    _assert_ledger(checkpoint, path)
    assert _tree(checkpoint.root) == _tree(_core.read_checkpoint(usual).root)


def _assert_ledger(checkpoint: _core.Checkpoint, path: Path) -> None:
    """The parts add up to the file, and each is what bits set one by one say."""
    ledger, saved = checkpoint.ledger, checkpoint_oracle.saved(path)
    parts = (ledger.tensors, ledger.unreferenced, ledger.pickle, ledger.padding, ledger.archive)

    assert sum(parts) == os.path.getsize(path) == checkpoint.file_bytes
    assert ledger.tensors == saved.reached_bytes()
    assert ledger.unreferenced == saved.unreferenced_bytes()
    assert checkpoint.unique_bytes == saved.reached_bytes()
    assert checkpoint.wasted_bytes == saved.wasted_bytes()
    assert sorted(storage.bytes for storage in checkpoint.storages) == sorted(saved.sizes.values())
    reached = sorted(map(saved.reached, saved.sizes))
    assert sorted(storage.reached_bytes for storage in checkpoint.storages) == reached
    clones = sorted(map(saved.clones, saved.sizes))
    assert sorted(storage.clone_bytes for storage in checkpoint.storages) == clones


# The tensors


@pytest.mark.parametrize("name", NAMES)
def test_every_tensor_is_described_as_torch_does(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    value = _saved(name, path)
    expected = list(_expected(value))

    checkpoint = _core.read_checkpoint(path)

    assert [_described(tensor) for tensor in checkpoint.tensors] == expected


def test_elements_on_another_device_are_listed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.pth"
    monkeypatch.setattr(torch.serialization, "location_tag", lambda _: "cuda:1")
    torch.save({"x": torch.ones(3)}, path)

    (tensor,) = _core.read_checkpoint(path).tensors

    assert tensor.device == "cuda:1"


def test_a_checkpoint_without_checksums_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    torch.serialization.set_crc32_options(False)
    try:
        _saved("contiguous", path)
    finally:
        torch.serialization.set_crc32_options(True)

    _assert_ledger(_core.read_checkpoint(path), path)


def test_a_file_of_many_storages_keeps_their_order(tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    torch.save([torch.full((2,), float(number)) for number in range(500)], path)

    checkpoint = _core.read_checkpoint(path)

    assert [tensor.name for tensor in checkpoint.tensors] == [f"[{place}]" for place in range(500)]
    assert [checkpoint.stats(place).max for place in (0, 123, 499)] == [0, 123, 499]


def _expected(value: Any) -> Iterator[dict[str, Any]]:
    """What is expected of each tensor, storage and array in a value."""
    for name, leaf in checkpoint_oracle.leaves(value):
        if isinstance(leaf, np.ndarray):
            yield {"name": name, "kind": "ndarray", "shape": leaf.shape}
        elif not isinstance(leaf, torch.Tensor):
            yield {"name": name, "kind": "storage"}
        else:
            entry = {
                "name": name,
                "kind": _kind(leaf),
                "shape": None if leaf.is_nested else tuple(leaf.shape),
                "dtype": str(leaf.dtype).removeprefix("torch."),
                "requires_grad": leaf.requires_grad,
                "device": str(leaf.device),
            }
            if entry["kind"] in ("tensor", "parameter"):
                entry["stride"] = leaf.stride()
                entry["offset"] = leaf.storage_offset()
                entry["logical_bytes"] = leaf.numel() * leaf.element_size()
                entry["stored_bytes"] = leaf.untyped_storage().nbytes()
            yield entry


def _described(tensor: _core.Tensor) -> dict[str, Any]:
    """The same of what was read."""
    entry: dict[str, Any] = {"name": tensor.name, "kind": tensor.kind}
    if tensor.kind == "storage":
        return entry
    entry["shape"] = None if tensor.kind == "nested" else tensor.shape
    if tensor.kind == "ndarray":
        return entry
    names = ["dtype", "requires_grad", "device"]
    if tensor.kind in ("tensor", "parameter"):
        names += ["stride", "offset", "logical_bytes", "stored_bytes"]
    return entry | {name: getattr(tensor, name) for name in names}


def _kind(tensor: Any) -> str:
    if tensor.is_nested:
        return "nested"
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        return "subclass"
    if tensor.is_quantized:
        return "quantized"
    if tensor.layout != torch.strided:
        return str(tensor.layout).removeprefix("torch.")
    if tensor.is_meta:
        return "meta"
    return "parameter" if isinstance(tensor, torch.nn.Parameter) else "tensor"


# The values around them


@pytest.mark.parametrize(
    "key", ["int", "large", "negative", "float", "nan", "none", "yes", "text", "bytes"]
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_plain_values_are_shown_as_python_prints_them(
    key: str, protocol: int, tmp_path: Path
) -> None:
    path = tmp_path / "x.pth"
    value = _saved("values", path, pickle_protocol=protocol)[key]

    found = dict(_core.read_checkpoint(path).root.items())[key]

    assert (found.type, found.preview) == (type(value).__name__, repr(value))


def test_values_of_other_kinds_are_shown_as_their_types(tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    value = _saved("values", path)

    found = dict(_core.read_checkpoint(path).root.items())

    assert list(found) == [str(key) for key in value]
    assert found["set"].count == 2
    types = {"dtype": "torch.dtype", "size": "torch.Size", "device": "torch.device"}
    types |= {"ordered": "OrderedDict", "set": "set"}
    assert {key: found[key].type for key in types} == types


def test_a_circle_ends_where_it_began(tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    _saved("circles", path)

    checkpoint = _core.read_checkpoint(path)

    table = dict(checkpoint.root.items())["table"]
    inner = dict(table.items())
    assert inner["self"] == table
    assert dict(inner["ring"].items())["[1]"] == inner["ring"]
    assert len({table, inner["self"], inner["ring"]}) == 2


def _tree(value: _core.Value, depth: int = 6) -> Any:
    """A value to some depth, as plain data."""
    entry = (value.type, value.preview, value.count, value.tensor)
    if not value.is_container or depth == 0:
        return entry
    return (*entry, [(label, _tree(inner, depth - 1)) for label, inner in value.items()])


# What a file would import


@pytest.mark.parametrize("name", NAMES)
def test_what_is_flagged_is_what_torch_would_not_load(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    _saved(name, path)

    checkpoint = _core.read_checkpoint(path)

    unsafe = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    # Parts of torch allow more once they are imported, which this process may or may not have done.
    more = _get_user_allowed_globals()
    assert [name for name in checkpoint.flagged_imports if name not in more] == sorted(unsafe)


def test_what_is_allowed_is_what_torch_allows(tmp_path: Path) -> None:
    from support.pth_writer import G, write_pth

    path = tmp_path / "x.pth"
    names = sorted(_get_allowed_globals())
    others = ["builtins.eval", "os.system", "torch.load", "torch.hub.load", "numpy.dtype"]
    write_pth(path, [G(*name.rsplit(".", 1)) for name in (*names, *others)])

    checkpoint = _core.read_checkpoint(path)

    assert list(checkpoint.allowed_imports) == names
    assert list(checkpoint.flagged_imports) == sorted(others)
