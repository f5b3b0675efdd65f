"""Networks of others count what is published of them, live and in every file form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from snapviewer.model.architecture import architecture_of
from snapviewer.model.graph import Graph, TensorSpec
from snapviewer.model.pt2 import read_pt2
from snapviewer.model.torchscript import read_torchscript
from snapviewer.model.work import Totals, totals_of
from support import published_counts as published

torch = pytest.importorskip("torch", reason="torch is not installed")

from snapviewer.model.live import record  # noqa: E402 (after the line that skips)

pytestmark = [
    pytest.mark.torch,
    # What torch and these libraries say of their own ways to make and to save models.
    pytest.mark.filterwarnings("ignore"),
]

FORMS = ("live", "traced", "frozen", "pt2")


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(8)


@pytest.fixture
def transformers() -> Iterator[Any]:
    library = pytest.importorskip("transformers", reason="transformers is not installed")
    said = library.logging.get_verbosity()
    library.logging.set_verbosity_error()
    yield library
    library.logging.set_verbosity(said)


def in_form(model: Any, inputs: tuple[Any, ...], form: str, path: Path) -> Graph:
    """The graph of a model: of a run, or of a file that is read without torch."""
    model.eval()
    if form == "live":
        return record(model, inputs)
    if form == "pt2":
        torch.export.save(torch.export.export(model, inputs, strict=False), path)
        return read_pt2(path)
    if form == "scripted":
        made = torch.jit.script(model)
    else:
        made = torch.jit.trace(model, inputs, check_trace=False, strict=False)
        made = torch.jit.freeze(made) if form == "frozen" else made
    torch.jit.save(made, str(path))
    given = inputs[0] if isinstance(inputs[0], list) else inputs
    return read_torchscript(path, inputs=[spec_of(one) for one in given])


def spec_of(tensor: Any) -> TensorSpec:
    return TensorSpec(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))


class Named(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Calls a model by keywords, and gives the tensors that it gives."""

    def __init__(self, model: Any, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *values: Any) -> Any:
        made = self.model(**dict(zip(self.names, values, strict=True)), return_dict=False)
        return tuple(one for one in made if isinstance(one, torch.Tensor))


# Small models by other people, against torch's own counter

SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
TEXT = {**SIZES, "vocab_size": 60}
GROUPED = {**TEXT, "num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0}
IMAGE = {**SIZES, "image_size": 32, "patch_size": 8}
BOTH = {
    "d_model": 32,
    "vocab_size": 60,
    **{f"{side}_layers": 1 for side in ("encoder", "decoder")},
    **{f"{side}_attention_heads": 4 for side in ("encoder", "decoder")},
    **{f"{side}_ffn_dim": 64 for side in ("encoder", "decoder")},
}
STAGES = {"depths": [1, 1, 1, 1], "hidden_sizes": [8, 16, 24, 32]}

SMALL: dict[str, tuple[str, str, dict[str, Any], dict[str, tuple[int, ...]], str]] = {
    "bert": ("BertModel", "BertConfig", TEXT, {"input_ids": (2, 12)}, "Transformer"),
    "gpt2": (
        "GPT2LMHeadModel", "GPT2Config",
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 60},
        {"input_ids": (1, 12)}, "GPT",
    ),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED, {"input_ids": (1, 12)}, "GPT"),
    "t5": (
        "T5Model", "T5Config",
        {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_heads": 4, "vocab_size": 60},
        {"input_ids": (1, 12), "decoder_input_ids": (1, 6)}, "Transformer",
    ),
    "whisper": (
        "WhisperModel", "WhisperConfig",
        {
            **BOTH, "max_source_positions": 25, "max_target_positions": 20, "num_mel_bins": 16,
            "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
        },
        {"input_features": (1, 16, 50), "decoder_input_ids": (1, 6)}, "Transformer",
    ),
    "vit": ("ViTModel", "ViTConfig", IMAGE, {"pixel_values": (1, 3, 32, 32)}, "Vision Transformer"),
    "swinv2": (
        "Swinv2Model", "Swinv2Config",
        {
            "image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2, 2],
            "num_heads": [2, 4], "window_size": 4,
        },
        {"pixel_values": (1, 3, 32, 32)}, "Vision Transformer",
    ),
    "segformer": (
        "SegformerModel", "SegformerConfig", {**STAGES, "num_attention_heads": [1, 2, 2, 4]},
        {"pixel_values": (1, 3, 64, 64)}, "Vision Transformer",
    ),
    "convnext": (
        "ConvNextModel", "ConvNextConfig", STAGES, {"pixel_values": (1, 3, 64, 64)}, "CNN",
    ),
    "mamba": (
        "MambaModel", "MambaConfig",
        {"hidden_size": 16, "num_hidden_layers": 1, "state_size": 4, "vocab_size": 60},
        {"input_ids": (1, 6)}, "Custom",
    ),
    "wav2vec2": (
        "Wav2Vec2Model", "Wav2Vec2Config",
        {
            **SIZES, "conv_dim": [16] * 7, "num_conv_pos_embeddings": 8,
            "num_conv_pos_embedding_groups": 4,
        },
        {"input_values": (1, 2000)}, "Hybrid",
    ),
}  # fmt: skip


def small(transformers: Any, name: str) -> tuple[Any, tuple[Any, ...]]:
    kind, config, options, shapes, _ = SMALL[name]
    made = getattr(transformers, config)(**options)
    if hasattr(made, "use_cache"):
        made.use_cache = False
    model = Named(getattr(transformers, kind)(made), tuple(shapes)).eval()
    inputs = tuple(
        torch.zeros(shape, dtype=torch.int64) if "ids" in key else torch.rand(shape)
        for key, shape in shapes.items()
    )
    return model, inputs


def torch_counts(model: Any, inputs: tuple[Any, ...]) -> int:
    """Multiply-adds by torch's own counter, which sees all products once attention is apart."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        model(*inputs)
    return int(counter.get_total_flops()) // 2


QUICK = ("gpt2", "t5", "vit", "mamba")


@pytest.mark.parametrize(
    "name",
    [
        *QUICK,
        *(pytest.param(name, marks=pytest.mark.exhaustive) for name in SMALL if name not in QUICK),
    ],
)
def test_models_of_transformers_count_and_are_classed_alike_in_every_form(
    transformers: Any, tmp_path: Path, name: str
) -> None:
    model, inputs = small(transformers, name)
    truth = torch_counts(model, inputs)

    for form in FORMS:
        graph = in_form(model, inputs, form, tmp_path / f"m.{form}")
        totals = totals_of(graph.nodes)

        assert (totals.work.macs, totals.uncounted) == (truth, ()), form
        assert architecture_of(graph, (), 0).model_class == SMALL[name][4], form


def test_experts_count_for_the_tokens_that_they_get_whoever_gets_them(
    transformers: Any, tmp_path: Path
) -> None:
    options = {**TEXT, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2}
    config = transformers.MixtralConfig(**options, use_cache=False)
    model = Named(transformers.MixtralModel(config), ("input_ids",)).eval()
    inputs = (torch.zeros(1, 12, dtype=torch.int64),)
    projections = 32 * (32 + 16 + 16 + 32)
    layer = 12 * (projections + 32 * 4 + 2 * 3 * 32 * 64) + 2 * 12 * 12 * 32

    for form in FORMS:
        totals = totals_of(in_form(model, inputs, form, tmp_path / f"m.{form}").nodes)

        assert (totals.work.macs, totals.uncounted) == (2 * layer, ()), form


def test_experts_that_are_asked_one_by_one_are_said_to_depend_on_the_data(
    transformers: Any,
) -> None:
    options = {**TEXT, "num_key_value_heads": 2, "num_local_experts": 4}
    config = transformers.MixtralConfig(**options, use_cache=False, experts_implementation="eager")
    model = transformers.MixtralModel(config).eval()

    graph = record(model, {"input_ids": torch.zeros(1, 12, dtype=torch.int64)})

    assert any("may depend on the values" in note for note in graph.notes)


# ViT-B/16 under both conventions


def test_vit_b_16_agrees_with_the_number_that_adds_norms_within_a_thousandth() -> None:
    assert round(published.VIT_B_16_WITH_NORMS, 2) == 17.58
    assert abs(published.VIT_B_16 / 17.58 - 1) < 1e-3


# Everything that is published


def torchvision_model(name: str, **options: Any) -> Any:
    models = pytest.importorskip("torchvision", reason="torchvision is not installed").models
    return models.get_model(name, weights=None, **options).eval()


def billions(totals: Totals) -> float:
    return totals.work.macs / 1e9


@pytest.mark.parametrize(
    "name",
    [
        "r3d_18",
        *(
            pytest.param(name, marks=pytest.mark.exhaustive)
            for name in published.VIDEO
            if name != "r3d_18"
        ),
    ],
)
def test_videos_count_as_published(name: str) -> None:
    side = 112 if name in ("mc3_18", "r3d_18", "r2plus1d_18") else 224

    graph = record(torchvision_model(name), TensorSpec((1, 3, 16, side, side), "float32"))

    assert billions(totals_of(graph.nodes)) == pytest.approx(published.VIDEO[name], abs=0.0006)


@pytest.mark.parametrize(
    "name",
    [
        "lraspp_mobilenet_v3_large",
        *(
            pytest.param(name, marks=pytest.mark.exhaustive)
            for name in published.SEGMENTATION
            if "lraspp" not in name
        ),
    ],
)
def test_segmentation_counts_as_published(name: str) -> None:
    options = {} if "lraspp" in name else {"aux_loss": True}
    model = torchvision_model(name, weights_backbone=None, **options)

    totals = totals_of(record(model, TensorSpec((1, 3, 520, 520), "float32")).nodes)

    assert billions(totals) == pytest.approx(published.SEGMENTATION[name], abs=0.0006)


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", ["live", "scripted"])
@pytest.mark.parametrize("name", published.DETECTION)
def test_detection_in_one_stage_counts_as_published(tmp_path: Path, name: str, form: str) -> None:
    model = torchvision_model(name, weights_backbone=None)

    totals = totals_of(in_form(model, ([torch.rand(3, 800, 800)],), form, tmp_path / "m.pt").nodes)

    assert billions(totals) == pytest.approx(published.DETECTION[name], abs=0.0006)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", published.BEFORE_REGIONS)
def test_regions_of_two_stages_are_uncounted_and_the_rest_is_as_published(
    tmp_path: Path, name: str
) -> None:
    model = torchvision_model(name, weights_backbone=None)

    graph = in_form(model, ([torch.rand(3, 800, 800)],), "scripted", tmp_path / "m.pt")

    totals = totals_of(graph.nodes)
    assert billions(totals) == pytest.approx(published.BEFORE_REGIONS[name], abs=0.0006)
    left_out = {node.op for node, _ in totals.uncounted}
    assert {"aten::linear", "torchvision::roi_align"} <= left_out


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", published.TRANSFORMERS)
def test_models_of_transformers_count_as_published(transformers: Any, name: str) -> None:
    kind, config, shape, giga, digits = published.TRANSFORMERS[name]
    made = getattr(transformers, config)()
    with torch.device("meta"):
        model = getattr(transformers, kind)(made)
    key = "input_ids" if len(shape) == 2 else "pixel_values"
    dtype = "int64" if len(shape) == 2 else "float32"

    totals = totals_of(record(model, {key: TensorSpec(shape, dtype)}).nodes)

    assert round(billions(totals), digits) == giga
    assert totals.uncounted == ()


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", ["scripted", "traced", "frozen", "pt2"])
@pytest.mark.parametrize(
    "name",
    [
        "swin_t",
        "convnext_tiny",
        "densenet121",
        "efficientnet_b0",
        "mobilenet_v3_large",
        "regnet_y_400mf",
        "maxvit_t",
        "vit_b_16",
    ],
)
def test_files_of_classifiers_count_as_published(tmp_path: Path, name: str, form: str) -> None:
    models = pytest.importorskip("torchvision", reason="torchvision is not installed").models
    weights = models.get_model_weights(name).DEFAULT
    side = weights.transforms().crop_size[0]

    graph = in_form(
        models.get_model(name), (torch.zeros(1, 3, side, side),), form, tmp_path / "m.pt"
    )

    totals = totals_of(graph.nodes)
    assert billions(totals) == pytest.approx(weights.meta["_ops"], abs=0.0006)
    assert totals.uncounted == ()
