"""Models are classed by what they show: order, masks, lengths; or by names and shapes alone."""

from __future__ import annotations

import pytest

from snapviewer.model.architecture import architecture_of
from snapviewer.model.graph import Graph, Node, TensorSpec, Value
from snapviewer.model.parameters import Parameter


def t(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(shape, dtype)


def node(op: str, *arguments: Value, out: TensorSpec, module: str = "", owns: str = "") -> Node:
    parameters = (owns,) if owns else ()
    return Node(0, f"aten::{op}", module, "", arguments, (), (out,), parameters)


def class_of(nodes: list[Node], *inputs: TensorSpec) -> str:
    graph = Graph("live", tuple(nodes), inputs, "given", ())
    return architecture_of(graph, (), 0).model_class


IDS, IMAGE = t(1, 8, dtype="int64"), t(1, 3, 32, 32)
TOKENS = node("embedding", t(50, 16), IDS, out=t(1, 8, 16))
PLACES = node("embedding", t(64, 16), t(1, 16, dtype="int64"), out=t(1, 16, 16))
PATCHES = node("conv2d", IMAGE, t(16, 3, 8, 8), None, (8, 8), out=t(1, 16, 4, 4))
DENSE = node("conv2d", IMAGE, t(16, 3, 3, 3), None, (1, 1), out=t(1, 16, 30, 30))
LINEAR = node("linear", t(1, 8, 16), t(16, 16), None, out=t(1, 8, 16))


def attention(queries: int = 8, keys: int = 8, *, causal: bool = False, module: str = "") -> Node:
    query, key = t(1, 4, queries, 4), t(1, 4, keys, 4)
    return node(
        "scaled_dot_product_attention", query, key, key, None, 0.0, causal, out=query, module=module
    )


def written_out(between: list[Node]) -> list[Node]:
    scores = t(1, 4, 8, 8)
    return [
        node("matmul", t(1, 4, 8, 4), t(1, 4, 4, 8), out=scores),
        *between,
        node("softmax", scores, -1, out=scores),
        node("matmul", scores, t(1, 4, 8, 4), out=t(1, 4, 8, 4)),
    ]


EARLIER = node(
    "le",
    t(1, 1, 1, 8, dtype="int64"),
    t(1, 1, 8, 1, dtype="int64"),
    out=t(1, 1, 8, 8, dtype="bool"),
)
TRIANGLE = node("slice", t(1, 1, 64, 64), 2, 0, 8, 1, out=t(1, 1, 8, 64), owns="h.0.bias")
PADDING = node("masked_fill", t(1, 4, 8, 8), t(1, 1, 8, 8, dtype="bool"), 0.0, out=t(1, 4, 8, 8))


@pytest.mark.parametrize(
    ("nodes", "inputs", "expected"),
    [
        ([TOKENS, attention()], (IDS,), "Transformer"),
        ([TOKENS, attention(causal=True)], (IDS,), "GPT"),
        ([TOKENS, EARLIER, attention()], (IDS,), "GPT"),
        ([TOKENS, TRIANGLE, *written_out([])], (IDS,), "GPT"),
        ([TOKENS, *written_out([PADDING])], (IDS,), "Transformer"),
        ([TOKENS, attention(), TOKENS, attention(causal=True)], (IDS, IDS), "Transformer"),
        (
            [
                TOKENS,
                attention(module="encoder.0"),
                attention(causal=True, module="decoder.0"),
            ],
            (IDS,),
            "Transformer",
        ),
        ([PATCHES, attention(16, 16)], (IMAGE,), "Vision Transformer"),
        ([PATCHES, PLACES, attention(16, 16)], (IMAGE,), "Vision Transformer"),
        # Attention with fewer keys than queries saves work; it is no decoder.
        ([PATCHES, attention(64, 16)], (IMAGE,), "Vision Transformer"),
        ([PATCHES, *written_out([LINEAR])], (IMAGE,), "Vision Transformer"),
        ([DENSE, DENSE, attention(16, 16), attention(4, 16)], (IMAGE,), "Hybrid"),
        ([*[DENSE] * 6, attention()], (IMAGE,), "Hybrid"),
        ([PATCHES, TOKENS, attention(causal=True)], (IDS, IMAGE), "Transformer"),
        ([DENSE, LINEAR], (IMAGE,), "CNN"),
        ([PATCHES, *[LINEAR] * 8], (IMAGE,), "MLP"),
        ([LINEAR, node("softmax", t(1, 8, 16), -1, out=t(1, 8, 16))], (t(1, 8, 16),), "MLP"),
        ([node("lstm", t(5, 1, 8), out=t(5, 1, 8)), LINEAR], (t(5, 1, 8),), "RNN"),
        ([node("relu", t(4), out=t(4))], (t(4),), "Custom"),
    ],
)
def test_the_class_follows_from_the_operations(
    nodes: list[Node], inputs: tuple[TensorSpec, ...], expected: str
) -> None:
    assert class_of(nodes, *inputs) == expected


def parameter(name: str, *shape: int) -> Parameter:
    from inspect import signature

    known = {"name": name, "shape": shape, "is_buffer": False, "dtype": "float32"}
    needed = {
        key: known.get(key, 0)
        for key, item in signature(Parameter).parameters.items()
        if key in known or item.default is item.empty
    }
    return Parameter(**needed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"word_embeddings.weight": (9, 8), "self.query.weight": (8, 8)}, "Transformer"),
        (
            {
                "model.embed_tokens.weight": (9, 8),
                "model.layers.0.self_attn.q_proj.weight": (8, 8),
                "model.layers.0.mlp.gate_proj.weight": (8, 8),
            },
            "GPT",
        ),
        (
            {
                "shared.weight": (9, 8),
                "encoder.block.0.layer.0.SelfAttention.q.weight": (8, 8),
                "decoder.block.0.layer.0.SelfAttention.q.weight": (8, 8),
                "lm_head.weight": (9, 8),
            },
            "Transformer",
        ),
        (
            {"patch.proj.weight": (8, 3, 4, 4), "blocks.0.attn.qkv.weight": (24, 8)},
            "Vision Transformer",
        ),
        (
            {
                **{f"backbone.{n}.conv.weight": (8, 8, 3, 3) for n in range(6)},
                "encoder.layers.0.self_attn.in_proj_weight": (24, 8),
            },
            "Hybrid",
        ),
        (
            {
                "backbone.embeddings.weight": (9, 8),
                "backbone.layers.0.mixer.in_proj.weight": (32, 8),
                "backbone.layers.0.mixer.conv1d.weight": (16, 1, 4),
                "backbone.layers.0.mixer.out_proj.weight": (8, 16),
            },
            "Custom",
        ),
        ({"lstm.weight_ih_l0": (32, 8), "lstm.weight_hh_l0": (32, 8)}, "RNN"),
    ],
)
def test_the_class_of_a_file_without_a_graph_follows_from_names_and_shapes(
    names: dict[str, tuple[int, ...]], expected: str
) -> None:
    found = architecture_of(None, [parameter(name, *shape) for name, shape in names.items()], 0)

    assert found.model_class == expected
    assert "names and shapes" in found.reason
