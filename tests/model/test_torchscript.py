"""The code of TorchScript archives is followed as torch runs it: same operations, same shapes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import Any

import pytest

from snapviewer.model.graph import Graph, Node, TensorSpec, Unknown
from snapviewer.model.torchscript import read_torchscript
from support.pth_writer import T
from support.torchscript_writer import module, write_torchscript

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

# What asks, converts or makes, and what the profiler shows under another name or not at all.
_LEFT_OUT = {
    *("aten::size", "aten::to", "aten::contiguous", "aten::detach", "aten::dim", "aten::item"),
    *("aten::tensor", "aten::arange", "aten::zeros", "aten::ones", "aten::full", "aten::empty"),
    *("aten::lift_fresh", "aten::is_floating_point", "aten::numel", "aten::is_nonzero"),
    *("aten::detach_", "aten::_local_scalar_dense", "aten::scalar_tensor", "aten::eye"),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def saved(model: Any, kind: str, path: Path, inputs: tuple[Any, ...]) -> Path:
    model.eval()
    if kind == "traced":
        made = torch.jit.trace(model, inputs, check_trace=False, strict=False)
    else:
        made = torch.jit.script(model)
        if kind == "frozen":
            made = torch.jit.freeze(made)
    torch.jit.save(made, str(path))
    return path


def specs(inputs: tuple[Any, ...]) -> list[TensorSpec]:
    return [TensorSpec(tuple(x.shape), str(x.dtype).removeprefix("torch.")) for x in inputs]


def torch_runs(path: Path, inputs: tuple[Any, ...]) -> list[tuple[str, list[list[int]]]]:
    """The operations that torch runs, and the shapes of the tensors that they are given."""
    old = torch._C._jit_set_profiling_executor(False)
    try:
        model = torch.jit.load(str(path)).eval()
        with (
            torch.jit.optimized_execution(False),
            torch.autograd.profiler.profile(record_shapes=True, use_kineto=False) as profile,
        ):
            model(*inputs)
    finally:
        torch._C._jit_set_profiling_executor(old)
    events = sorted(profile.function_events, key=lambda e: (e.time_range.start, -e.time_range.end))
    return [
        (event.name, [shape for shape in event.input_shapes if shape])
        for event in events
        if "::" in event.name and event.name not in _LEFT_OUT and not _is_inside(event)
    ]


def _is_inside(event: Any) -> bool:
    while event.cpu_parent is not None:
        event = event.cpu_parent
        if "::" in event.name:
            return True
    return False


def we_say(graph: Graph) -> list[tuple[str, list[list[int | None]]]]:
    return [
        (node.op, [list(v.shape) for v in node.arguments if isinstance(v, TensorSpec) and v.shape])
        for node in graph.nodes
        if node.op not in _LEFT_OUT
    ]


def macs(graph: Graph) -> int:
    return sum(_macs(node) * node.times for node in graph.nodes)


def _macs(node: Node) -> int:
    """The multiply-adds of layers, from the definition; all shapes must be known."""
    op = node.op.removeprefix("aten::")
    given = [value for value in node.arguments if isinstance(value, TensorSpec)]
    made = prod(node.outputs[0].shape) if isinstance(node.outputs[0], TensorSpec) else 0  # type: ignore[arg-type]
    if op in ("conv1d", "conv2d", "conv3d", "_convolution"):
        return made * prod(given[1].shape[1:])  # type: ignore[arg-type]
    if op in ("linear", "matmul", "bmm"):
        return made * (given[0].shape[-1] or 0)
    if op == "scaled_dot_product_attention":
        return 2 * prod(given[0].shape) * (given[1].shape[-2] or 0)  # type: ignore[arg-type]
    if op == "lstm":
        weights = node.arguments[2]
        assert isinstance(weights, tuple)
        steps = prod(given[0].shape[:-1])  # type: ignore[arg-type]
        matrices = [w.shape for w in weights if isinstance(w, TensorSpec) and len(w.shape) == 2]
        return steps * sum(prod(shape) for shape in matrices)  # type: ignore[arg-type, misc]
    return 0


MODELS = (
    *("mlp", "lstm", "gru", "cells", "attention", "encoder", "gpt", "detr", "odds", "flow"),
    "lenet",
)


def _models() -> dict[str, tuple[Callable[[], Any], tuple[Any, ...]]]:
    from torch import nn

    from support import script_models as models

    sequence = torch.zeros(2, 5, 8)
    encoder = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    return {
        "mlp": (models.Mlp, (torch.zeros(3, 8),)),
        "lstm": (models.Recurrent, (sequence,)),
        "gru": (lambda: models.Recurrent(nn.GRU), (sequence,)),
        "cells": (models.Cells, (torch.zeros(5, 2, 8),)),
        "attention": (
            lambda: nn.MultiheadAttention(16, 4, batch_first=True),
            (torch.zeros(2, 5, 16), torch.zeros(2, 7, 16), torch.ones(2, 7, 16)),
        ),
        "encoder": (lambda: nn.TransformerEncoder(encoder, 2), (torch.zeros(2, 5, 16),)),
        "gpt": (models.Gpt, (torch.zeros(2, 12, dtype=torch.int64),)),
        "detr": (models.Detr, (torch.zeros(1, 3, 64, 48),)),
        "odds": (models.Odds, (torch.rand(2, 3, 5, 6),)),
        "flow": (models.Flow, (torch.zeros(4, 4),)),
        "lenet": (models.LeNet, (torch.zeros(1, 1, 32, 32),)),
    }


@pytest.mark.parametrize("kind", ["scripted", "traced", "frozen"])
@pytest.mark.parametrize("name", MODELS)
def test_the_operations_and_shapes_are_those_that_torch_runs(
    tmp_path: Path, name: str, kind: str
) -> None:
    make, inputs = _models()[name]
    path = saved(make(), kind, tmp_path / "m.pt", inputs)

    graph = read_torchscript(path, inputs=specs(inputs))

    theirs, ours = torch_runs(path, inputs), we_say(graph)
    if name == "flow":
        # Its forks run on other threads, in any order among each other.
        assert sorted(op for op, _ in ours) == sorted(op for op, _ in theirs)
    else:
        assert [op for op, _ in ours] == [op for op, _ in theirs]
        for (op, shapes), (_, real) in zip(ours, theirs, strict=True):
            # The profiler shows what else lies on the interpreter's stack before the arguments.
            assert real[len(real) - len(shapes) :] == shapes, op
    assert graph.notes == ()


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["scripted", "traced", "frozen"])
@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("mobilenet_v3_small", 64),
        ("densenet121", 64),
        ("shufflenet_v2_x0_5", 64),
        ("googlenet", 64),
        ("swin_v2_t", 64),
        ("convnext_tiny", 64),
        ("vit_b_32", 224),
        ("maxvit_t", 224),
    ],
)
def test_models_of_torchvision_are_followed_as_torch_runs_them(
    tmp_path: Path, name: str, size: int, kind: str
) -> None:
    models = pytest.importorskip("torchvision").models
    inputs = (torch.zeros(1, 3, size, size),)
    path = saved(models.get_model(name), kind, tmp_path / "m.pt", inputs)

    graph = read_torchscript(path, inputs=specs(inputs))

    same = {"aten::swapaxes": "aten::transpose"}
    names = [same.get(op, op) for op, _ in we_say(graph)]
    assert names == [op for op, _ in torch_runs(path, inputs)]
    assert graph.notes == ()


@pytest.mark.parametrize("kind", ["scripted", "traced", "frozen"])
def test_resnet_18_has_the_multiply_adds_of_its_paper(tmp_path: Path, kind: str) -> None:
    models = pytest.importorskip("torchvision").models
    inputs = (torch.zeros(1, 3, 224, 224),)
    path = saved(models.resnet18(), kind, tmp_path / "m.pt", inputs)

    graph = read_torchscript(path)

    assert macs(graph) == 1_814_073_344
    assert graph.input_source == ("traced" if kind == "traced" else "inferred")
    assert graph.inputs == (TensorSpec((1, 3, 224, 224), "float32"),)


@pytest.mark.parametrize("kind", ["scripted", "traced"])
def test_vit_b_16_has_the_multiply_adds_that_are_published(tmp_path: Path, kind: str) -> None:
    models = pytest.importorskip("torchvision").models
    inputs = (torch.zeros(1, 3, 224, 224),)
    path = saved(models.vit_b_16(), kind, tmp_path / "m.pt", inputs)

    graph = read_torchscript(path)

    assert macs(graph) / 1e9 == pytest.approx(17.58, abs=0.02)


@pytest.mark.parametrize("kind", ["scripted", "traced", "frozen"])
def test_an_lstm_of_64_to_128_over_ten_steps_has_983040(tmp_path: Path, kind: str) -> None:
    inputs = (torch.zeros(10, 1, 64),)
    path = saved(torch.nn.LSTM(64, 128), kind, tmp_path / "m.pt", inputs)

    assert macs(read_torchscript(path, inputs=specs(inputs))) == 983_040


def test_modules_and_parameters_are_named(tmp_path: Path) -> None:
    from support import script_models as models

    path = saved(models.Mlp(), "scripted", tmp_path / "m.pt", ())

    nodes = read_torchscript(path, inputs=[TensorSpec((3, 8), "float32")]).nodes

    assert [(node.number, node.op, node.module, node.module_type) for node in nodes] == [
        (0, "aten::linear", "layers.0", "Linear"),
        (1, "aten::relu", "layers.1", "ReLU"),
        (2, "aten::linear", "layers.2", "Linear"),
    ]
    assert nodes[2].parameters == ("layers.2.weight", "layers.2.bias")
    assert nodes[2].outputs == (TensorSpec((3, 4), "float32"),)


def test_a_condition_on_values_takes_the_longer_way_and_says_so(tmp_path: Path) -> None:
    from support import script_models as models

    path = saved(models.Choice(), "scripted", tmp_path / "m.pt", ())

    graph = read_torchscript(path, inputs=[TensorSpec((2, 4), "float32")])

    assert macs(graph) == 2 * 4 * 64
    # The list has what the way that was kept put into it: no relu.
    assert [node.op for node in graph.nodes] == ["aten::sum", "aten::gt", "aten::linear"]
    assert any("the branch with more work" in note for note in graph.notes)


def test_a_loop_that_depends_on_values_counts_once_and_says_so(tmp_path: Path) -> None:
    from support import script_models as models

    path = saved(models.Turns(), "scripted", tmp_path / "m.pt", ())

    graph = read_torchscript(path, inputs=[TensorSpec((2, 4), "float32")])

    assert [node.op for node in graph.nodes].count("aten::linear") == 1
    assert any("how often a loop runs depends on values" in note for note in graph.notes)


@pytest.mark.parametrize(
    ("name", "expected", "reason"),
    [
        ("mlp", TensorSpec((1, 8), "float32"), "takes 8 features"),
        ("lstm", TensorSpec((1, 128, 8), "float32"), "takes 8 features"),
        ("gpt", TensorSpec((1, 16), "int64"), "16 tokens, of at most 16"),
        ("lenet", TensorSpec((1, 1, 32, 32), "float32"), "1 channels"),
        ("detr", TensorSpec((1, 3, 200, 200), "float32"), "3 channels"),
        ("encoder", TensorSpec((1, 128, 16), "float32"), "128 steps"),
    ],
)
@pytest.mark.parametrize("kind", ["scripted", "frozen"])
def test_an_input_is_inferred_that_suits_the_layers(
    tmp_path: Path, name: str, kind: str, expected: TensorSpec, reason: str
) -> None:
    make, _ = _models()[name]
    path = saved(make(), kind, tmp_path / "m.pt", ())

    graph = read_torchscript(path)
    inputs, why = graph.inputs, " ".join(graph.notes)

    assert inputs[0] == expected
    assert reason in why


class Sized(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Computes sizes with tensors, as traced models do: a root, a least one, a remainder."""

    def forward(self, x: Any) -> Any:
        # While it is traced, sizes are tensors.
        side = (x.shape[1] ** 0.5).to(torch.int64)
        least = torch.min(torch.tensor([4, 6]))
        image = x.reshape(x.shape[0], side, side, x.shape[2])
        missing = (least - side % least) % least
        padded = torch.nn.functional.pad(image, (0, 0, 0, missing, 0, missing))
        frames = torch.stft(x.flatten(1), 16, 4, window=torch.ones(16), return_complex=True)
        waves = torch.fft.rfft(x, n=36, dim=1).real
        return padded @ padded.transpose(-1, -2), frames.abs() @ waves


@pytest.mark.parametrize("kind", ["traced", "frozen"])
def test_sizes_that_traced_code_computes_are_known(tmp_path: Path, kind: str) -> None:
    inputs = (torch.rand(1, 25, 3),)
    made = torch.jit.trace(Sized().eval(), inputs, check_trace=False)
    made = torch.jit.freeze(made) if kind == "frozen" else made
    torch.jit.save(made, str(tmp_path / "m.pt"))

    graph = read_torchscript(tmp_path / "m.pt", inputs=specs(inputs))

    products = [node for node in graph.nodes if node.op == "aten::matmul"]
    assert [node.outputs[0] for node in products] == [
        TensorSpec((1, 8, 8, 8), "float32"),
        TensorSpec((1, 9, 3), "float32"),
    ]
    assert graph.notes == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # It makes the one channel by itself.
        ("Sound", (1, 16_000)),
        # Frames come before channels.
        ("Video", (1, 8, 3, 224, 224)),
        # Its table has places for 20 × 20 patches of 12 × 12, and for one token more.
        ("Patches", (1, 3, 240, 240)),
    ],
)
def test_an_input_is_mended_by_the_sizes_that_differ(
    tmp_path: Path, name: str, expected: tuple[int, ...]
) -> None:
    from support import script_models as models

    path = saved(getattr(models, name)(), "frozen", tmp_path / "m.pt", ())

    graph = read_torchscript(path)
    found, why = graph.inputs, " ".join(graph.notes)

    assert found == (TensorSpec(expected, "float32"),)
    assert "first size that fits" in why


def test_quantized_models_are_followed(tmp_path: Path) -> None:
    from torch import nn

    torch.backends.quantized.engine = "fbgemm"
    plain = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    model = torch.ao.quantization.quantize_dynamic(plain, {nn.Linear})
    for kind in ("scripted", "traced", "frozen"):
        path = saved(model, kind, tmp_path / f"{kind}.pt", (torch.zeros(2, 8),))

        graph = read_torchscript(path, inputs=[TensorSpec((2, 8), "float32")])

        made = [n.outputs for n in graph.nodes if n.op.startswith("quantized::")]
        assert made[-1] == (TensorSpec((2, 4), "float32"),)
        assert graph.notes == ()


def test_a_dictionary_that_a_model_was_traced_with_is_read(tmp_path: Path) -> None:
    from support import script_models as models

    inputs = (torch.zeros(2, 4), {"k": torch.zeros(4)})
    path = saved(models.Both(), "traced", tmp_path / "m.pt", inputs)

    graph = read_torchscript(path)

    assert graph.inputs == (
        TensorSpec((2, 4), "float32"),
        (("k", TensorSpec((4,), "float32")),),
    )
    assert graph.nodes[0].outputs == (TensorSpec((2, 4), "float32"),)


def test_an_archive_optimized_for_inference_says_what_it_lacks(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).eval()
    made = torch.jit.optimize_for_inference(torch.jit.script(model))
    torch.jit.save(made, str(tmp_path / "m.pt"))

    graph = read_torchscript(tmp_path / "m.pt", inputs=[TensorSpec((1, 3, 8, 8), "float32")])

    assert any("does not contain its packed weights" in note for note in graph.notes)
    convolution = next(node for node in graph.nodes if "convolution" in node.op)
    assert isinstance(convolution.outputs[0], Unknown)


def test_an_archive_that_no_torch_wrote_is_followed_too(tmp_path: Path) -> None:
    code = module("weight = self.weight\nreturn torch.relu(torch.linear(x, weight))")
    state = {"training": False, "weight": T("float32", (5, 3))}
    path = write_torchscript(tmp_path / "m.pt", code, state=state, traced=[T("float32", (2, 3))])

    graph = read_torchscript(path)

    assert graph.input_source == "traced"
    assert [node.op for node in graph.nodes] == ["aten::linear", "aten::relu"]
    assert graph.nodes[-1].outputs == (TensorSpec((2, 5), "float32"),)


def test_a_list_of_images_that_is_scaled_to_a_size_keeps_its_shapes(tmp_path: Path) -> None:
    body = """
    image = images[0]
    sizes = torch.tensor(torch.slice(torch.size(image), -2))
    scale = torch.item(torch.mul(torch.reciprocal(torch.to(torch.min(sizes), 6)), 320.))
    height = int(torch.floor(torch.mul(float(torch.size(image, 1)), scale)))
    scaled = torch.upsample_nearest2d(torch.unsqueeze(image, 0), [height, height])
    return torch.conv2d(scaled, self.weight)
    """
    code = module(body, parameters="images: List[Tensor]")
    state = {"training": False, "weight": T("float32", (4, 3, 1, 1))}
    path = write_torchscript(tmp_path / "m.pt", code, state=state)

    given = read_torchscript(path, inputs=[TensorSpec((3, 128, 160), "float32")])
    inferred = read_torchscript(path)

    for graph in (given, inferred):
        assert graph.nodes[-1].outputs == (TensorSpec((1, 4, 320, 320), "float32"),)
        assert not [note for note in graph.notes if "inferred" not in note]
    assert inferred.inputs == ((TensorSpec((3, 224, 224), "float32"),),)


def test_inputs_that_meet_different_layers_are_inferred_apart(tmp_path: Path) -> None:
    body = """
    a = torch.embedding(self.table, tokens)
    b = torch.linear(features, self.weight)
    return torch.add(torch.mean(a, [1]), b)
    """
    code = module(body, parameters="tokens: Tensor,\n    features: Tensor,\n    n: int=3")
    state = {"table": T("float32", (10, 4)), "weight": T("float16", (4, 6))}
    path = write_torchscript(tmp_path / "m.pt", code, state=state)

    graph = read_torchscript(path)
    inputs, why = graph.inputs, " ".join(graph.notes)

    assert inputs == (TensorSpec((1, 128), "int64"), TensorSpec((1, 6), "float16"), 3)
    assert "'tokens'" in why
    assert "'features'" in why
