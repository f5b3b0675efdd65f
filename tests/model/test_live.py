"""A live module is recorded without a trace on it, and counts what is published of it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from snapviewer import SnapshotError
from snapviewer.model.analysis import RunOptions, analyze
from snapviewer.model.graph import Graph, TensorSpec
from snapviewer.model.work import registry, totals_of
from support.torch_marks import torch_marks

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402 (after the line that skips)
from torch.nn import functional  # noqa: E402
from torch.nn.modules import module as torch_module  # noqa: E402

from snapviewer.model.live import Way, record  # noqa: E402
from snapviewer.model.live.recorder import recording  # noqa: E402
from support import live_models  # noqa: E402 (it needs torch)

# What torch says of its own ways to save and to quantize.
pytestmark = torch_marks(
    ":DeprecationWarning", ":UserWarning", ":FutureWarning", ":torch.jit.TracerWarning"
)

WAYS: tuple[Way, ...] = ("meta", "fake", "cpu")


def spec(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(shape, dtype)


def macs_of(graph: Graph) -> int:
    totals = totals_of(graph.nodes)
    assert totals.uncounted == ()
    return totals.work.macs


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(8)


# What is counted


CASES: dict[str, tuple[Any, tuple[TensorSpec, ...], int]] = {
    "linear": (lambda: nn.Linear(8, 16), (spec(5, 8),), 5 * 8 * 16),
    "depthwise": (
        lambda: nn.Conv2d(8, 8, 3, groups=8, padding=1),
        (spec(2, 8, 10, 10),),
        2 * 8 * 100 * 9,
    ),
    "grouped and dilated": (
        lambda: nn.Conv2d(8, 12, 3, groups=4, dilation=2, stride=2),
        (spec(1, 8, 11, 11),),
        12 * 4 * 4 * 2 * 9,
    ),
    "one dimension": (lambda: nn.Conv1d(3, 4, 5), (spec(1, 3, 20),), 4 * 16 * 15),
    "three dimensions": (lambda: nn.Conv3d(2, 3, 2), (spec(1, 2, 4, 4, 4),), 3 * 27 * 16),
    "transposed": (
        lambda: nn.ConvTranspose2d(16, 32, 4, stride=2, padding=1),
        (spec(1, 16, 16, 16),),
        2_097_152,
    ),
    "LSTM": (lambda: nn.LSTM(64, 128), (spec(10, 1, 64),), 983_040),
    "deep LSTM in two directions": (
        lambda: nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True),
        (spec(3, 5, 6),),
        15 * 2 * 32 * (6 + 8) + 15 * 2 * 32 * (16 + 8),
    ),
    "LSTM with projections": (
        lambda: nn.LSTM(6, 8, proj_size=4),
        (spec(5, 3, 6),),
        15 * (32 * (6 + 4) + 8 * 4),
    ),
    "GRU": (lambda: nn.GRU(6, 8), (spec(5, 3, 6),), 15 * 24 * (6 + 8)),
    "RNN": (lambda: nn.RNN(6, 8), (spec(5, 3, 6),), 15 * 8 * (6 + 8)),
    "LSTM cell": (lambda: nn.LSTMCell(6, 8), (spec(3, 6),), 3 * 32 * (6 + 8)),
    "bilinear": (lambda: nn.Bilinear(3, 4, 5), (spec(2, 3), spec(2, 4)), 2 * 5 * (12 + 4)),
    "encoder layer": (
        lambda: nn.TransformerEncoderLayer(8, 2, 32, batch_first=True),
        (spec(2, 5, 8),),
        10 * (4 * 64 + 2 * 8 * 32) + 2 * 2 * 25 * 8,
    ),
    "decoder layer": (
        lambda: nn.TransformerDecoderLayer(8, 2, 32, batch_first=True),
        (spec(2, 5, 8), spec(2, 7, 8)),
        # Itself, the other sequence, and the layers behind.
        10 * 4 * 64 + 2 * 2 * 25 * 8
        + (2 * 10 + 2 * 14) * 64 + 2 * 2 * 35 * 8
        + 10 * 2 * 8 * 32,
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_layers_have_the_multiply_adds_of_their_definition(name: str, way: Any) -> None:
    build, inputs, macs = CASES[name]

    graph = record(build(), inputs, device=way)

    assert macs_of(graph) == macs
    assert graph.notes == ()


@pytest.mark.parametrize("name", [name for name in CASES if name != "bilinear"])
def test_a_layer_counts_as_the_steps_that_torch_takes_it_apart_into(name: str) -> None:
    build, inputs, macs = CASES[name]
    module = build().to("meta").eval()
    tensors = [torch.empty(one.shape, device="meta") for one in inputs]
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        # Without inference mode torch decomposes before anyone can listen.
        with torch.no_grad(), recording(module) as nodes:
            module(*tensors)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)

    assert totals_of(nodes).uncounted == ()
    assert totals_of(nodes).work.macs == macs


class Attention(nn.Module):
    def forward(self, query: Any, key: Any, value: Any) -> Any:
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)


def test_causal_attention_counts_every_score() -> None:
    graph = record(Attention(), (spec(1, 8, 128, 64),) * 3)

    assert macs_of(graph) == 2 * 8 * 128 * 128 * 64 == 16_777_216


@pytest.mark.parametrize("way", WAYS)
def test_a_fused_encoder_on_the_fast_path_counts_all_the_same(way: Any) -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 32, batch_first=True), 3)

    graph = record(encoder.eval(), spec(2, 5, 8), device=way)

    assert macs_of(graph) == 3 * CASES["encoder layer"][2]
    assert torch.backends.mha.get_fastpath_enabled(), "it is on again"


def test_the_fused_operation_itself_has_the_multiply_adds_of_its_parts() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 32, batch_first=True).eval()
    with torch.inference_mode(), recording(layer) as nodes:
        layer(torch.ones(2, 5, 8))

    assert [node.op for node in nodes] == ["aten::ones", "aten::_transformer_encoder_layer_fwd"]
    assert totals_of(nodes).work.macs == CASES["encoder layer"][2]


def test_a_gpt_counts_as_its_formula_says() -> None:
    model = live_models.Gpt(vocabulary=1000, width=64, heads=4, layers=3, positions=32)
    rows, width, layers = 2 * 16, 64, 3
    per_layer = rows * (4 * width**2 + 8 * width**2) + 2 * 2 * 16 * 16 * width

    graph = record(model, spec(2, 16, dtype="int64"))

    assert macs_of(graph) == layers * per_layer + rows * width * 1000


def test_a_detr_counts_as_its_formula_says() -> None:
    model = live_models.Detr(width=32, heads=4, layers=2, queries=10, classes=7)
    size, width, hidden = 64, 32, 128
    places = (size // 16) ** 2
    backbone = sum(
        (size // scale) ** 2 * channels * before * 9
        for scale, before, channels in ((2, 3, 8), (4, 8, 16), (8, 16, 24), (16, 24, 32))
    )
    encoder = places * (4 * width**2 + 2 * width * hidden) + 2 * places**2 * width
    decoder = (
        10 * 4 * width**2 + 2 * 100 * width
        + (2 * 10 + 2 * places) * width**2 + 2 * 10 * places * width
        + 10 * 2 * width * hidden
    )  # fmt: skip
    heads = 10 * width * (7 + 1) + 10 * width * 4

    graph = record(model, spec(1, 3, size, size))

    assert macs_of(graph) == backbone + places * width**2 + 2 * (encoder + decoder) + heads


def test_quantized_layers_count_as_the_layers_they_were() -> None:
    model = nn.Sequential(nn.Linear(4, 5), nn.LSTM(5, 6))
    quantized = torch.ao.quantization.quantize_dynamic(model)

    graph = record(quantized, spec(3, 2, 4))

    assert macs_of(graph) == 6 * 4 * 5 + 6 * 24 * (5 + 6)


@pytest.mark.parametrize("form", ["script", "trace", "freeze", "export"])
@pytest.mark.parametrize("name", ["grouped and dilated", "LSTM", "encoder layer"])
def test_scripted_traced_frozen_and_exported_forms_count_the_same(name: str, form: str) -> None:
    build, inputs, macs = CASES[name]
    # A recurrent layer by itself has no one forward once it is scripted.
    module = nn.Sequential(build()).eval()
    examples = tuple(torch.ones(one.shape) for one in inputs)
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        changed = {
            "script": lambda: torch.jit.script(module),
            "trace": lambda: torch.jit.trace(module, examples),
            "freeze": lambda: torch.jit.freeze(torch.jit.script(module)),
            "export": lambda: torch.export.export(module, examples),
        }[form]()
    finally:
        torch.backends.mha.set_fastpath_enabled(True)

    graph = record(changed, inputs)

    assert totals_of(graph.nodes).work.macs == macs


def test_what_an_optimized_module_runs_unseen_is_uncounted_and_not_zero() -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval()
    optimized = torch.jit.optimize_for_inference(torch.jit.script(module))

    graph = record(optimized, spec(1, 3, 8, 8))
    totals = totals_of(graph.nodes)

    seen = [node.op for node in graph.nodes]
    assert ("aten::conv2d" in seen) != ("prim::mkldnn_convolution" in seen)
    if "prim::mkldnn_convolution" in seen:
        assert [node.op for node, _ in totals.uncounted] == ["prim::mkldnn_convolution"]
        hidden = "a run does not show some operations of an optimized TorchScript module"
        assert any(hidden in note for note in graph.notes)


def test_forked_tasks_of_torchscript_are_heard() -> None:
    graph = record(torch.jit.script(live_models.Forks()), spec(2, 4))

    assert macs_of(graph) == 2 * 2 * 4 * 4
    assert [node.number for node in graph.nodes] == list(range(len(graph.nodes)))


# What a node says


def test_nodes_know_their_modules_and_parameters() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sequential(nn.BatchNorm2d(4), nn.ReLU()))

    graph = record(model, spec(1, 3, 8, 8))

    assert [(node.op, node.module, node.module_type) for node in graph.nodes] == [
        ("aten::conv2d", "0", "Conv2d"),
        ("aten::batch_norm", "1.0", "BatchNorm2d"),
        ("aten::relu", "1.1", "ReLU"),
    ]
    assert graph.nodes[0].parameters == ("0.weight", "0.bias")
    assert graph.nodes[1].parameters[2:] == ("1.0.running_mean", "1.0.running_var")
    assert graph.nodes[0].outputs == (spec(1, 4, 6, 6),)
    assert graph.inputs == (spec(1, 3, 8, 8),)


def test_tied_weights_have_one_name() -> None:
    model = live_models.Gpt(vocabulary=50, width=8, heads=2, layers=1, positions=8)

    graph = record(model, spec(1, 4, dtype="int64"))

    tables = [node.parameters for node in graph.nodes if node.op == "aten::embedding"]
    assert tables == [("tokens.weight",), ("positions.weight",)]
    assert graph.nodes[-1].parameters == ("tokens.weight",)


def test_a_module_used_twice_runs_under_its_first_name() -> None:
    shared = nn.Linear(4, 4)

    graph = record(nn.Sequential(shared, nn.ReLU(), shared), spec(1, 4))

    assert [node.module for node in graph.nodes] == ["0", "1", "0"]


def test_questions_about_tensors_are_no_operations() -> None:
    class Asks(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.reshape(x.size(0), x.numel() // x.size(0)) if x.dim() > 2 else x

    assert [node.op for node in record(Asks(), spec(2, 3, 4)).nodes] == ["aten::reshape"]


# What it is called with


class Takes(nn.Module):
    def forward(self, pair: Any, options: Any, *, scale: Any = None) -> Any:
        left, (right, factor) = pair
        return (left @ right) * factor * (scale if scale is not None else options["scale"])


def test_inputs_may_be_nested_and_named() -> None:
    left, right = spec(2, 3), torch.ones(3, 4)
    inputs = ((left, [right, 2.0]), {"scale": spec(4)})

    plain = record(Takes(), inputs)
    named = record(Takes(), {"pair": inputs[0], "options": {}}, keywords={"scale": spec(2, 4)})

    assert macs_of(plain) == macs_of(named) == 24
    assert plain.inputs == ((left, (spec(3, 4), 2.0)), (spec(4),))


def test_the_tensors_of_a_caller_stay_as_they_were() -> None:
    class Writes(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.add_(1)

    mine = torch.zeros(3)

    for way in WAYS:
        record(Writes(), mine, device=way)

    assert torch.equal(mine, torch.zeros(3))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (TensorSpec((None, 4), "float32"), "an input needs all of its sizes"),
        (spec(1, 4, dtype="float31"), "'float31' is not a dtype of torch"),
        (
            spec(1, 5),
            "failed with these inputs: RuntimeError: mat1 and mat2 shapes cannot be multiplied",
        ),
        ((spec(1, 4), spec(1, 4)), "failed with these inputs: TypeError"),
    ],
)
def test_inputs_that_do_not_fit_say_so_in_one_sentence(given: Any, sentence: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        record(nn.Linear(4, 4), given)

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(SnapshotError, match=r"dict is not a torch\.nn\.Module"):
        record({}, spec(1))


# The ways it runs


class Decides(nn.Module):
    """Looks at its numbers, which only a real run has."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.layer(x) if x.sum().item() > -1e9 else x


def test_a_model_that_looks_at_its_numbers_runs_for_real_and_the_notes_say_so() -> None:
    graph = record(Decides(), torch.ones(2, 4))

    assert macs_of(graph) == 32
    assert [note.partition(":")[0] for note in graph.notes[:3]] == [
        "the model did not run on the meta device",
        "the model did not run with fake tensors",
        "the model ran for real",
    ]
    assert graph.notes[3].startswith("the work may depend on the values of inputs and weights")
    assert "aten::item" in graph.notes[3]


class Chooses(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.small, self.large = nn.Linear(4, 4), nn.Linear(4, 64)

    def forward(self, x: Any) -> Any:
        return torch.cond(x.sum() > 0, self.small, lambda x: self.large(x)[:, :4].clone(), (x,))


class Turns(nn.Module):
    def forward(self, x: Any) -> Any:
        from torch._higher_order_ops import while_loop

        return while_loop(lambda i, w: i < 5, lambda i, w: (i + 1, w @ w), (torch.tensor(0), x))


class Maps(nn.Module):
    def forward(self, x: Any) -> Any:
        from torch._higher_order_ops import map as map_each

        return map_each(lambda row, other: row @ other, x, torch.ones(4, 4, device=x.device))


class Flexible(nn.Module):
    def forward(self, x: Any) -> Any:
        from torch.nn.attention.flex_attention import flex_attention

        return flex_attention(x, x[:, :2], x[:, :2], enable_gqa=True)


@pytest.mark.parametrize(
    ("module", "shape", "macs"),
    [
        (Chooses, (2, 4), 2 * 4 * 4),
        (Turns, (4, 4), 5 * 64),
        (Maps, (6, 4, 4), 6 * 64),
        (Flexible, (1, 4, 16, 8), 2 * 4 * 16 * 16 * 8),
    ],
)
def test_what_runs_inside_of_blocks_is_heard(
    module: type[nn.Module], shape: tuple[int, ...], macs: int
) -> None:
    graph = record(module(), torch.rand(shape))

    assert macs_of(graph) == macs
    decides = any("higher_order::" in note and "depend on" in note for note in graph.notes)
    assert decides == (module in (Chooses, Turns))


def test_a_sparse_matrix_is_uncounted_and_never_counts_as_a_dense_one() -> None:
    class Sparse(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.sparse.mm(torch.eye(4).to_sparse(), x)

    totals = totals_of(record(Sparse(), torch.rand(4, 5), device="cpu").nodes)

    assert totals.work.macs == 0
    assert any("_sparse_mm" in node.op or "mm" in node.op for node, _ in totals.uncounted)


def test_products_of_groups_run_without_numbers_in_any_type() -> None:
    class Groups(nn.Module):
        def forward(self, x: Any, weights: Any, ends: Any) -> Any:
            return torch._grouped_mm(x, weights, ends)

    inputs = (spec(12, 8), spec(3, 8, 16), spec(3, dtype="int32"))

    assert macs_of(record(Groups(), inputs)) == 12 * 8 * 16


def test_a_model_with_constants_on_the_processor_runs_with_fake_tensors() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = [torch.ones(4)]

        def forward(self, x: Any) -> Any:
            return x * self.hidden[0]

    graph = record(Mixed(), spec(2, 4))

    assert graph.notes[-1] == "the model ran with fake tensors"


def test_a_model_that_needs_gradients_gets_them() -> None:
    class Forces(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, x: Any) -> Any:
            with torch.enable_grad():
                x = x.requires_grad_()
                return torch.autograd.grad(self.layer(x).sum(), x)[0]

    graph = record(Forces(), torch.ones(2, 4))

    assert graph.notes[-1] == "the model ran for real"
    assert any(node.op == "aten::addmm" for node in graph.nodes)


def test_a_model_larger_than_memory_is_counted_on_the_meta_device() -> None:
    with torch.device("meta"):
        model = nn.Sequential(*[nn.Linear(2**17, 2**17) for _ in range(8)])

    assert macs_of(record(model, spec(1, 2**17))) == 8 * 2**34


def test_a_model_without_weights_meets_its_own_constants_among_fake_tensors() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.hidden = [torch.ones(4, device="cpu")]

        def forward(self, x: Any) -> Any:
            return self.layer(x * self.hidden[0])

    with torch.device("meta"):
        model = Mixed()

    graph = record(model, spec(2, 4))

    assert macs_of(graph) == 32
    assert graph.notes[-1] == "the model ran with fake tensors"


def test_a_model_without_weights_that_looks_at_its_numbers_says_why_it_cannot_run() -> None:
    with torch.device("meta"):
        model = Decides()

    with pytest.raises(SnapshotError, match=r"failed with these inputs: .*_local_scalar_dense"):
        record(model, spec(2, 4))


def test_a_compiled_module_is_recorded_as_what_it_was() -> None:
    model = torch.compile(nn.Linear(4, 4))

    assert macs_of(record(model, spec(2, 4))) == 32


# What stays behind: nothing


class Remembers(nn.Module):
    """Keeps what it computed, and counts its calls in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)
        self.last: Any = None
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.calls += 1
        self.last = self.drop(self.layer(x)) + torch.rand(4)
        return self.last


@pytest.mark.parametrize("way", WAYS)
def test_nothing_stays_on_the_module(way: Any) -> None:
    model = Remembers()
    model.drop.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    weight = model.layer.weight
    random_state = torch.get_rng_state()

    record(model, torch.ones(2, 4), device=way)

    assert (model.training, model.layer.training, model.drop.training) == (True, True, False)
    assert model.last is None
    assert model.layer.weight is weight
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert torch.equal(torch.get_rng_state(), random_state)
    assert not torch_module._global_forward_hooks
    assert not torch_module._global_forward_pre_hooks


def test_nothing_stays_behind_a_model_that_fails() -> None:
    class Fails(nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("not\x1b[31m today\n" * 1000)

    model = Fails()
    with pytest.raises(SnapshotError) as caught:
        record(model, spec(1))

    assert "failed with these inputs: ValueError: not?[31m today" in str(caught.value)
    assert len(str(caught.value)) < 400
    assert model.training
    assert not torch_module._global_forward_hooks
    assert torch.backends.mha.get_fastpath_enabled()


class Meddles(nn.Module):
    """Changes what holds for the whole process, and leaves the program if asked for."""

    def __init__(self, *, leaves: bool = False) -> None:
        super().__init__()
        self.leaves = leaves

    def forward(self, x: Any) -> Any:
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(torch.get_num_threads() + 1)
        if self.leaves:
            raise SystemExit(3)
        return x.relu()


@pytest.mark.parametrize("is_run", [False, True])
def test_what_a_model_sets_for_the_process_is_put_back(is_run: bool) -> None:
    before = torch.get_default_dtype(), torch.get_num_threads()
    options = RunOptions(budget_s=0.01, has_trials=False)

    analysis = analyze(Meddles(), (spec(2, 3),), is_run=is_run, options=options)

    assert [node.node.op for node in analysis.nodes] == ["aten::relu"]
    assert (torch.get_default_dtype(), torch.get_num_threads()) == before


def test_a_model_that_would_leave_the_program_is_reported() -> None:
    before = torch.get_default_dtype(), torch.get_num_threads()

    with pytest.raises(SnapshotError, match="SystemExit: 3"):
        record(Meddles(leaves=True), (spec(2, 3),))

    assert (torch.get_default_dtype(), torch.get_num_threads()) == before


def test_a_module_that_cannot_be_copied_runs_itself_and_is_put_back() -> None:
    class Bound(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.source = (number for number in range(3))

        def forward(self, x: Any) -> Any:
            return self.layer(x)

    model = Bound()

    graph = record(model, spec(2, 4))

    assert macs_of(graph) == 32
    assert model.training


def test_the_buffers_of_a_scripted_module_stay_as_they_were() -> None:
    scripted = torch.jit.script(live_models.Counter())

    for way in WAYS:
        record(scripted, torch.ones(2), device=way)

    assert scripted.calls.item() == 0


def test_a_lazy_module_stays_lazy() -> None:
    model = nn.Sequential(nn.LazyLinear(4))

    graph = record(model, spec(2, 8))

    assert macs_of(graph) == 64
    assert isinstance(model[0], nn.LazyLinear)


# The registry


def test_formulas_name_their_arguments_as_torch_does() -> None:
    schemas: dict[str, list[list[str]]] = {}
    for schema in torch._C._jit_get_all_schemas():
        schemas.setdefault(schema.name, []).append([one.name for one in schema.arguments])

    wrong = {
        op: parameters
        for op in registry._entries
        if op in schemas
        for parameters in [registry.parameters_of(op)]
        if not any(
            len(names) >= len(parameters)
            and all(name in allowed for name, allowed in zip(names, parameters, strict=False))
            for names in schemas[op]
        )
    }

    assert wrong == {}


def test_the_package_imports_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from snapviewer.model.live import record\n"
        "from snapviewer.model.work import work_of\n"
        "try: record(None, ())\n"
        "except Exception as error: print(type(error).__name__, error)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.startswith("SnapshotError a live module needs torch")


# What others published

QUICK = ("resnet18", "vit_b_16", "mobilenet_v3_small", "densenet121", "swin_t", "convnext_tiny")


def published(name: str) -> tuple[Any, TensorSpec, float]:
    """A model of torchvision, its input, and the thousand millions of multiply-adds it states."""
    models = pytest.importorskip("torchvision.models", reason="torchvision is not installed")
    weights = models.get_model_weights(name).DEFAULT
    size = weights.transforms().crop_size[0]
    options = {"image_size": size} if name == "vit_h_14" else {}
    if name.startswith("regnet"):
        # They look at their first numbers when they are built.
        model = models.get_model(name, weights=None)
    else:
        with torch.device("meta"):
            model = models.get_model(name, weights=None, **options)
    return model, spec(1, 3, size, size), weights.meta["_ops"]


@pytest.mark.parametrize("name", QUICK)
def test_published_multiply_adds_are_met(name: str) -> None:
    model, inputs, billions = published(name)

    macs = macs_of(record(model, inputs))

    # They are published with three decimals.
    assert macs / 1e9 == pytest.approx(billions, abs=0.0006)


@pytest.mark.exhaustive
def test_published_multiply_adds_are_met_by_all_classifiers() -> None:
    models = pytest.importorskip("torchvision.models", reason="torchvision is not installed")
    names = [name for name in models.list_models(module=models) if name != "regnet_y_128gf"]

    differences = {}
    for name in names:
        model, inputs, billions = published(name)
        macs = macs_of(record(model, inputs))
        if abs(macs / 1e9 - billions) > 0.0006:
            differences[name] = (macs / 1e9, billions)

    assert len(names) > 70
    assert differences == {}


def test_resnet_18_and_vit_b_16_are_exact() -> None:
    resnet, image, _ = published("resnet18")
    vit, _, _ = published("vit_b_16")
    tokens, width = 197, 768
    block = tokens * (4 * width**2 + 2 * width * 3072) + 2 * tokens**2 * width

    assert macs_of(record(resnet, image)) == 1_814_073_344
    assert macs_of(record(vit, image)) == 12 * block + 196 * width * 768 + width * 1000
