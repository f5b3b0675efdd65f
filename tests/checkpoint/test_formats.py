"""Checkpoints of other libraries and in torch's other formats: all tensors of their writers."""

from __future__ import annotations

import json
import os
import struct
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from snapviewer import _core

torch = pytest.importorskip("torch", reason="torch is not installed")

from support import checkpoint_cases, checkpoint_oracle  # noqa: E402

pytestmark = pytest.mark.torch


def _adds_up(checkpoint: _core.Checkpoint, *paths: Path) -> bool:
    """Whether the parts of the ledger are the bytes of the files."""
    ledger = checkpoint.ledger
    parts = (ledger.tensors, ledger.unreferenced, ledger.pickle, ledger.padding, ledger.archive)
    return sum(parts) == checkpoint.file_bytes == sum(map(os.path.getsize, paths))


def _described(checkpoint: _core.Checkpoint) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {tensor.name: (tensor.dtype, tensor.shape) for tensor in checkpoint.tensors}


def _expected(state: Any) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {
        name: (str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))
        for name, tensor in state.items()
    }


def _kinds(shown: dict[str, tuple[str, tuple[int, ...]]]) -> Counter[tuple[str, tuple[int, ...]]]:
    return Counter(shown.values())


# safetensors


@pytest.mark.parametrize("dtype", checkpoint_cases.NUMERIC)
def test_a_safetensors_file_of_any_type_is_read(dtype: str, tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    path = tmp_path / "x.safetensors"
    made = checkpoint_cases.grid().to(getattr(torch, dtype))
    state = {"a": made, "b": made[0].clone(), "none": made[:0].clone()}
    try:
        safetensors.save_file(state, path, metadata={"format": "pt"})
    except KeyError as error:
        pytest.skip(f"safetensors does not write {dtype}: {error}")

    checkpoint = _core.read_checkpoint(path)

    assert checkpoint.format == "safetensors"
    assert checkpoint.metadata == {"format": "pt"}
    assert _described(checkpoint) == _expected(state)
    assert _adds_up(checkpoint, path)
    logical = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
    assert checkpoint.ledger.tensors == checkpoint.logical_bytes == logical
    assert checkpoint.ledger.unreferenced == checkpoint.wasted_bytes == 0


# transformers


def _tiny(name: str) -> Any:
    """A model of transformers, made from its configuration alone."""
    transformers = pytest.importorskip("transformers")
    common = {"vocab_size": 100, "bos_token_id": 0, "eos_token_id": 1}
    if name == "gpt2":
        config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=2, n_positions=32, **common)
        return transformers.GPT2LMHeadModel(config)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    if name == "bert":
        return transformers.BertModel(
            transformers.BertConfig(intermediate_size=64, **sizes, **common)
        )
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(intermediate_size=64, tie_word_embeddings=False, **sizes, **common)
    )


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_a_transformers_model_in_shards_is_read_as_one(name: str, tmp_path: Path) -> None:
    model = _tiny(name)
    model.save_pretrained(tmp_path, max_shard_size="40KB")
    index = tmp_path / "model.safetensors.index.json"
    shards = list(dict.fromkeys(json.loads(index.read_text())["weight_map"].values()))

    checkpoint = _core.read_checkpoint(index)

    assert checkpoint.format == "safetensors sharded"
    assert [Path(file).name for file in checkpoint.files] == [index.name, *shards]
    assert _adds_up(checkpoint, index, *(tmp_path / shard for shard in shards))
    state = dict(model.state_dict())
    if name == "gpt2":
        del state["lm_head.weight"]  # the embedding, which is saved once
    assert _described(checkpoint) == _expected(state)
    assert {tensor.file for tensor in checkpoint.tensors} == set(shards)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_a_transformers_state_dict_is_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"
    state = _tiny(name).state_dict()
    torch.save(state, path)

    checkpoint = _core.read_checkpoint(path)

    assert _described(checkpoint) == _expected(state)
    assert _adds_up(checkpoint, path)
    assert checkpoint.ledger.tensors == checkpoint_oracle.saved(path).reached_bytes()
    assert checkpoint.wasted_bytes == 0
    tied = [storage for storage in checkpoint.storages if len(storage.tensors) > 1]
    assert len(tied) == (1 if name == "gpt2" else 0)


def test_torch_shards_are_read_as_one(tmp_path: Path) -> None:
    state = _tiny("bert").state_dict()
    names = list(state)
    halves = {"one.bin": names[:20], "two.bin": names[20:]}
    for file, inside in halves.items():
        torch.save({name: state[name] for name in inside}, tmp_path / file)
    weight_map = {name: file for file, inside in halves.items() for name in inside}
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))

    checkpoint = _core.read_checkpoint(index)

    assert checkpoint.format == "torch sharded"
    assert _described(checkpoint) == _expected(state)
    assert _adds_up(checkpoint, index, *(tmp_path / file for file in halves))


def test_a_torchvision_model_is_read(tmp_path: Path) -> None:
    models = pytest.importorskip("torchvision").models
    path = tmp_path / "model.pth"
    state = models.mobilenet_v3_small(weights=None).state_dict()
    torch.save(state, path)

    checkpoint = _core.read_checkpoint(path)

    assert _described(checkpoint) == _expected(state)
    assert _adds_up(checkpoint, path)


# torch's other formats


def _scripted() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(checkpoint_cases.trained()[0].eval())


def _traced() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.trace(checkpoint_cases.trained()[0].eval(), torch.ones(2, 4))


@pytest.mark.parametrize("make", [_scripted, _traced])
def test_a_torchscript_archive_is_read(make: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    model = make()
    model.save(str(path))

    checkpoint = _core.read_checkpoint(path)

    assert checkpoint.format == "torchscript"
    assert _adds_up(checkpoint, path)
    assert _kinds(_expected(model.state_dict())) <= _kinds(_described(checkpoint))


def test_an_exported_program_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.pt2"
    net = checkpoint_cases.trained()[0].eval()
    program = torch.export.export(net, (torch.ones(2, 4),))
    torch.export.save(program, path)

    checkpoint = _core.read_checkpoint(path)

    assert checkpoint.format == "pt2"
    assert _adds_up(checkpoint, path)
    assert _kinds(_expected(program.state_dict)) <= _kinds(_described(checkpoint))
    assert set(program.state_dict) <= {tensor.name for tensor in checkpoint.tensors}


def test_a_sparse_file_larger_than_memory_is_read(tmp_path: Path) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    path = tmp_path / "x.pth"
    with FakeTensorMode():
        state = {f"layer{number}": torch.empty(1 << 32) for number in range(7)}
    with torch.serialization.skip_data(materialize_fake_tensors=True):
        torch.save(state, path)

    checkpoint = _core.read_checkpoint(path)

    assert _adds_up(checkpoint, path)
    assert checkpoint.ledger.tensors == checkpoint.logical_bytes == 7 << 34
    assert [tensor.shape for tensor in checkpoint.tensors] == [(1 << 32,)] * 7


def test_numbers_with_the_high_byte_first_are_read_so(tmp_path: Path) -> None:
    from support.pth_writer import T, write_pth

    path = tmp_path / "x.pth"
    data = struct.pack(">4f", 1, 2, 3, -4)
    write_pth(path, {"x": T("float32", (4,), data)}, byteorder="big")

    checkpoint = _core.read_checkpoint(path)

    loaded = torch.load(path, weights_only=True)["x"]
    stats = checkpoint.stats(0)
    assert (stats.min, stats.max, stats.l1) == (-4, 3, 10)
    assert (loaded.min(), loaded.max()) == (-4, 3)


# The tests' own writer


def test_the_tests_write_what_torch_writes(tmp_path: Path) -> None:
    from support.pth_writer import S, T, write_pth

    ours, theirs = tmp_path / "ours" / "x.pth", tmp_path / "x.pth"
    ours.parent.mkdir()
    base = torch.arange(100.0)
    weight = torch.nn.Parameter(torch.ones(2, 3))
    small = torch.ones(3, dtype=torch.uint16)
    value = {"a": base[10:20], "b": base, "p": weight, "u": small, "none": torch.empty(0)}
    torch.save(value, theirs)

    storage = S("0", struct.pack("<100f", *range(100)))
    view, whole = (
        T("float32", (10,), storage=storage, offset=10),
        T("float32", (100,), storage=storage),
    )
    ones = struct.pack("<6f", *[1] * 6)
    parameter = T("float32", (2, 3), ones, requires_grad=True, is_parameter=True)
    same = {"a": view, "b": whole, "p": parameter, "u": T("uint16", (3,), b"\1\0" * 3)}
    write_pth(ours, {**same, "none": T("float32", (0,))}, prefix="x")

    one, other = (path.read_bytes() for path in (ours, theirs))
    start = other.index(b"PK\3\4", other.index(b"x/versionFB"))  # then comes the random name
    assert len(one) == len(other)
    assert one[:start] == other[:start]
