"""Features that decide the class of a model: counts and order of layers, masks, kinds of inputs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from snapviewer.model.graph import Graph, Node, TensorSpec, Value
from snapviewer.model.parameters import Parameter
from snapviewer.model.shapes.dtypes import is_integral
from snapviewer.model.work import kind_of
from snapviewer.model.work.sizes import flatten


@dataclass(frozen=True, slots=True)
class ArchitectureFeatures:
    """The features of a model.

    `backbone` is the number of convolutions before the attention or after it, or that look at
    neighbours between its layers; a convolution that only cuts an image into patches is not one.
    """

    convolutions: int = 0
    backbone: int = 0
    patches: int = 0
    depthwise: int = 0
    attentions: int = 0
    recurrent: int = 0
    linears: int = 0
    has_tokens: bool = False
    has_images: bool = False
    is_causal: bool = False
    has_two_sequences: bool = False


# With the graph


def features_of_graph(graph: Graph) -> ArchitectureFeatures:
    """Return the features that the operations of a graph show."""
    nodes = graph.nodes
    kinds = [kind_of(node.op) for node in nodes]
    layers = [at for at, kind in enumerate(kinds) if kind == "Convolution"]
    forms = [_form_of(nodes[at]) for at in layers]
    attentions = _attention_places(nodes, kinds)
    inputs = [value for value in flatten(graph.inputs) if isinstance(value, TensorSpec)]
    return ArchitectureFeatures(
        convolutions=len(layers),
        backbone=_backbone(layers, forms, attentions),
        patches=forms.count("patches"),
        depthwise=forms.count("depthwise"),
        attentions=len(attentions),
        recurrent=kinds.count("Recurrent"),
        linears=kinds.count("Linear"),
        # A table of positions is an embedding as well, with any kind of input.
        has_tokens="Embedding" in kinds and _may_be_tokens(graph, inputs),
        has_images=any(len(spec.shape) >= 4 and not is_integral(spec.dtype) for spec in inputs),
        is_causal=any(_is_causal(node) for node in nodes),
        has_two_sequences=_has_sound_and_tokens(inputs) or _has_two_sequences(nodes, attentions),
    )


def attentions_of(nodes: Sequence[Node]) -> int:
    """Count attention layers, including those written out as matrix products."""
    return len(_attention_places(nodes, [kind_of(node.op) for node in nodes]))


def _may_be_tokens(graph: Graph, inputs: Sequence[TensorSpec]) -> bool:
    return not inputs or any(is_integral(spec.dtype) for spec in inputs)


def _has_sound_and_tokens(inputs: Sequence[TensorSpec]) -> bool:
    """Whether the inputs are features of steps and tokens, as in speech recognition."""
    kinds = {(is_integral(spec.dtype), len(spec.shape)) for spec in inputs}
    return {(True, 2), (False, 3)} <= kinds


def _given(node: Node, place: int, name: str) -> Value:
    if place < len(node.arguments):
        return node.arguments[place]
    return dict(node.keywords).get(name)


def _form_of(node: Node) -> str:
    """Return the form of a convolution: patches, pointwise, depthwise or dense."""
    weight, stride = _given(node, 1, "weight"), _given(node, 3, "stride")
    if not isinstance(weight, TensorSpec) or len(weight.shape) < 3:
        return "dense"
    kernel = weight.shape[2:]
    if all(size == 1 for size in kernel):
        return "pointwise"
    steps = stride if isinstance(stride, tuple) else (stride,)
    if (steps * len(kernel) if len(steps) == 1 else steps) == kernel:
        return "patches"
    return "depthwise" if weight.shape[1] == 1 and weight.shape[0] != 1 else "dense"


def _backbone(layers: Sequence[int], forms: Sequence[str], attentions: Sequence[int]) -> int:
    if not attentions:
        return len(layers)
    before = sum(at < attentions[0] for at in layers)
    after = sum(at > attentions[-1] for at in layers)
    return max(before, after, forms.count("dense"))


def _attention_places(nodes: Sequence[Node], kinds: Sequence[str]) -> list[int]:
    """Return the places of attention: fused, or a softmax between two matrix products."""
    found: list[int] = []
    scores: list[TensorSpec] = []
    weights: tuple[int, TensorSpec] | None = None
    for at, (node, kind) in enumerate(zip(nodes, kinds, strict=True)):
        if kind == "Attention":
            found.append(at)
        elif kind == "MatMul":
            if weights and any(_is_alike(weights[1], spec) for spec in _tensors(node.arguments)):
                found.append(weights[0])
                scores, weights = [], None
            scores += _tensors(node.outputs)
        elif kind == "Softmax":
            made = _tensors(node.outputs)
            if made and any(_is_alike(made[0], spec) for spec in scores):
                weights = (at, made[0])
    return sorted(found)


def _tensors(values: tuple[Value, ...]) -> list[TensorSpec]:
    return [value for value in flatten(values) if isinstance(value, TensorSpec)]


def _is_alike(one: TensorSpec, other: TensorSpec) -> bool:
    """Whether two tensors may have the same elements in another shape, with rows as long."""
    if not one.shape or not other.shape or len(one.shape) < 2 or len(other.shape) < 2:
        return False
    if None in one.shape or None in other.shape:
        return one.shape[-1] in (None, other.shape[-1]) or other.shape[-1] is None
    return one.shape[-1] == other.shape[-1] and _count(one) == _count(other)


def _count(spec: TensorSpec) -> int:
    return prod(size or 0 for size in spec.shape)


_COMPARISONS = tuple(f"aten::{name}" for name in ("le", "lt", "ge", "gt"))
_MASKING = tuple(f"aten::{name}" for name in ("slice", "masked_fill", "where", "eq", "select"))


def _is_causal(node: Node) -> bool:
    """Whether an operation masks later positions: a flag, a triangle, or compared positions."""
    if node.op in ("aten::tril", "aten::triu"):
        return True
    if "scaled_dot_product" in node.op and _given(node, 5, "is_causal") is True:
        return True
    given = _tensors(node.arguments)
    if node.op in _COMPARISONS and len(given) == 2:
        return _is_pairwise(*given)
    # A triangle kept in a square buffer.
    return (
        node.op in _MASKING
        and bool(node.parameters)
        and any(_is_square(spec) for spec in given[:2])
    )


def _is_pairwise(one: TensorSpec, other: TensorSpec) -> bool:
    """Whether a column of integers is compared with a row: the positions of a sequence."""
    if not (is_integral(one.dtype) and is_integral(other.dtype)):
        return False
    return any(
        len(column.shape) >= 2
        and column.shape[-1] == 1
        and column.shape[-2] != 1
        and row.shape[-1:] not in ((), (1,))
        and row.shape[-2:-1] in ((), (1,))
        for column, row in ((one, other), (other, one))
    )


def _is_square(spec: TensorSpec) -> bool:
    return len(spec.shape) >= 2 and spec.shape[-1] == spec.shape[-2] not in (None, 1)


def _has_two_sequences(nodes: Sequence[Node], attentions: Sequence[int]) -> bool:
    """Whether one sequence attends to another: by names of modules, tables, or lengths."""
    sides = {side for at in attentions for side in _sides(nodes[at].module)}
    if len(sides) == 2:
        return True
    tables = Counter(
        table.shape
        for node in nodes
        if node.op == "aten::embedding"
        and isinstance(table := _given(node, 0, "weight"), TensorSpec)
    )
    if any(count > 1 for count in tables.values()):
        return True
    # In a decoder of one layer a third of the attention is cross-attention.
    crossed = sum(_is_crossed(nodes[at]) for at in attentions)
    return crossed > 0 and 4 * crossed >= len(attentions)


def _sides(path: str) -> Iterator[str]:
    for side in ("encoder", "decoder"):
        if re.search(rf"(^|\.){side}s?(\.|$)", path):
            yield side


def _is_crossed(node: Node) -> bool:
    """Whether a sequence attends to a longer one; attending to less saves work in one sequence."""
    query, key = _given(node, 0, "query"), _given(node, 1, "key")
    if not (isinstance(query, TensorSpec) and isinstance(key, TensorSpec)):
        return False
    if "attention" not in node.op or min(len(query.shape), len(key.shape)) < 2:
        return False
    queries, keys = query.shape[-2], key.shape[-2]
    return queries is not None and keys is not None and 1 < queries < keys


# With the parameters alone

_ATTENTION = re.compile(
    r"((^|[._])(q_proj|q|q_lin|to_q|wq|query|query_proj|Wqkv|qkv|qkv_proj|query_key_value|c_attn"
    r"|queries_keys_values|in_proj_weight))((\.linear)?\.weight)?$"
)
_RECURRENT = re.compile(r"weight_ih(_l\d+(_reverse)?)?$")
_TABLE = re.compile(r"(embed|(^|\.)(wte|wpe|shared)\.)", re.IGNORECASE)
_TOKENS = re.compile(
    r"((^|\.)(wte|shared)|(word|tok|token|tokens)_?embed\w*|embed_?(tokens|in)|embeddings?\.word\w*"
    r"|(^|\.)embeddings?(?=\.weight))(\.|$)"
)
_CAUSAL = re.compile(
    r"(^|\.)(wte|lm_head|c_attn|embed_out|embed_tokens|gate_proj|gate_up_proj"
    r"|post_attention_layernorm|ln_f)\."
)
# RoBERTa has a head with the name of a decoder, and BART has both halves.
_ENCODER = re.compile(r"(^|\.)encoders?\.")


def features_of_parameters(parameters: Sequence[Parameter]) -> ArchitectureFeatures:
    """Return the features that the names and shapes of parameters show."""
    layers = layers_of_parameters(parameters)
    names = [item.name for item in parameters]
    kernels = [item.shape for item in parameters if _kind_of(item) == "Convolution"]
    depthwise = sum(shape[1] == 1 and shape[0] != 1 for shape in kernels)
    pointwise = sum(all(size == 1 for size in shape[2:]) for shape in kernels)
    has_tokens = any(_TOKENS.search(name) for name in names)
    attention = [item.name for item in parameters if _kind_of(item) == "Attention"]
    sides = {side for name in attention for side in _sides(name)}
    return ArchitectureFeatures(
        convolutions=len(kernels),
        backbone=len(kernels) - depthwise - pointwise if layers.get("Attention") else len(kernels),
        depthwise=depthwise,
        attentions=layers.get("Attention", 0),
        recurrent=layers.get("Recurrent", 0),
        linears=layers.get("Linear", 0),
        has_tokens=has_tokens or (bool(layers.get("Embedding")) and not kernels),
        has_images=has_tokens and any(len(shape) > 3 for shape in kernels),
        is_causal=any(map(_CAUSAL.search, names)) and not any(map(_ENCODER.search, names)),
        has_two_sequences=len(sides) == 2,
    )


def layers_of_parameters(parameters: Iterable[Parameter]) -> dict[str, int]:
    """Count layers by their weights."""
    layers: dict[str, int] = {}
    for item in parameters:
        kind = _kind_of(item)
        if kind and not item.is_buffer:
            layers[kind] = layers.get(kind, 0) + 1
    return ranked(layers)


def ranked(layers: Mapping[str, int]) -> dict[str, int]:
    """Return counts with the largest first."""
    return dict(sorted(layers.items(), key=lambda item: -item[1]))


def _kind_of(item: Parameter) -> str | None:
    """Return the layer that a parameter is the weight of, by its name and shape."""
    name = item.name.lower()
    if _RECURRENT.search(name):
        return "Recurrent"
    if len(item.shape) > 1 and _ATTENTION.search(item.name):
        return "Attention"
    if not name.endswith(("weight", "kernel")):
        return None
    if len(item.shape) in (3, 4, 5):
        return "Convolution"
    if len(item.shape) == 2:
        return "Embedding" if _TABLE.search(name) else "Linear"
    return "Normalization" if len(item.shape) == 1 else None
