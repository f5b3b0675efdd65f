"""What kind of model it is, and why we think so.

With a graph, its operations tell. Without one, the names and shapes of the parameters do, and the
reason says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from snapviewer.model.graph import Graph, Node
from snapviewer.model.parameters import Parameter
from snapviewer.model.work import kind_of

ModelClass: TypeAlias = Literal[
    "CNN", "Transformer", "Vision Transformer", "GPT", "Hybrid", "RNN", "MLP", "Custom"
]

_LABELS: Mapping[ModelClass, str] = {
    "CNN": "Convolutional Neural Network",
    "Transformer": "Transformer-based Model",
    "Vision Transformer": "Vision Transformer",
    "GPT": "GPT-style Transformer",
    "Hybrid": "Hybrid CNN-Transformer Model",
    "RNN": "Recurrent Model",
    "MLP": "Multi-Layer Perceptron",
    "Custom": "Custom Model",
}
# A patch embedding is one convolution or two; more of them are a backbone.
_BACKBONE = 5


@dataclass(frozen=True, slots=True)
class Architecture:
    """The class of a model, why, and how many layers it has of each kind."""

    model_class: ModelClass
    reason: str
    layers: Mapping[str, int]
    complexity: Literal["Low", "Medium", "High"]

    @property
    def label(self) -> str:
        """The class in words.

        >>> Architecture("CNN", "", {}, "Low").label
        'Convolutional Neural Network (Low Complexity)'
        """
        return f"{_LABELS[self.model_class]} ({self.complexity} Complexity)"


@dataclass(frozen=True, slots=True)
class _Signs:
    convolutions: int
    attentions: int
    recurrent: int
    embeddings: int
    linears: int
    is_causal: bool


def architecture_of(
    graph: Graph | None, parameters: Sequence[Parameter], parameter_count: int
) -> Architecture:
    """Classify a model by its graph, or by its parameters if there is none."""
    if graph is not None and graph.nodes:
        layers = _layers_of_graph(graph)
        signs = _signs_of_graph(graph, is_causal=_is_causal_by_name(parameters))
        source = "operations"
    else:
        layers = _layers_of_parameters(parameters)
        signs = _Signs(
            layers.get("Convolution", 0),
            layers.get("Attention", 0),
            layers.get("Recurrent", 0),
            layers.get("Embedding", 0),
            layers.get("Linear", 0),
            is_causal=_is_causal_by_name(parameters),
        )
        source = "names and shapes of parameters"
    model_class, reason = _classified(signs)
    return Architecture(
        model_class, f"{reason} (by {source})", layers, _complexity(parameter_count)
    )


def _classified(signs: _Signs) -> tuple[ModelClass, str]:
    if signs.attentions and signs.convolutions >= _BACKBONE:
        return "Hybrid", (
            f"{signs.convolutions} convolutions and {signs.attentions} attention layers, as in DETR"
        )
    if signs.attentions and signs.embeddings and signs.is_causal:
        return "GPT", f"token embeddings and {signs.attentions} causal attention layers"
    if signs.attentions and signs.convolutions and not signs.embeddings:
        return "Vision Transformer", (
            f"patches by {signs.convolutions} convolution{'s'[: signs.convolutions > 1]}, then "
            f"{signs.attentions} attention layers"
        )
    if signs.attentions:
        return "Transformer", f"{signs.attentions} attention layers"
    if signs.recurrent:
        return "RNN", f"{signs.recurrent} recurrent layers and no attention"
    if signs.convolutions:
        return "CNN", f"{signs.convolutions} convolutions and no attention"
    if signs.linears:
        return "MLP", f"{signs.linears} linear layers and nothing else that mixes features"
    return "Custom", "no convolution, attention, recurrent or linear layer was found"


def _complexity(parameter_count: int) -> Literal["Low", "Medium", "High"]:
    """By parameters: a million, and ten millions."""
    if parameter_count >= 10_000_000:
        return "High"
    return "Medium" if parameter_count >= 1_000_000 else "Low"


def _layers_of_graph(graph: Graph) -> dict[str, int]:
    layers: dict[str, int] = {}
    for node in graph.nodes:
        kind = kind_of(node.op)
        layers[kind] = layers.get(kind, 0) + 1
    written_out = _written_out_attentions(graph.nodes)
    if written_out:
        layers["Attention"] = layers.get("Attention", 0) + written_out
    return dict(sorted(layers.items(), key=lambda item: -item[1]))


def _signs_of_graph(graph: Graph, *, is_causal: bool) -> _Signs:
    """Look for signs; a mask may be computed or given, so that names may tell of it alone."""
    kinds = [kind_of(node.op) for node in graph.nodes]
    attentions = [node for node in graph.nodes if kind_of(node.op) == "Attention"]
    return _Signs(
        convolutions=kinds.count("Convolution"),
        attentions=len(attentions) + _written_out_attentions(graph.nodes),
        recurrent=kinds.count("Recurrent"),
        embeddings=kinds.count("Embedding"),
        linears=kinds.count("Linear"),
        is_causal=is_causal or any(map(_is_causal, attentions)) or _has_mask(graph.nodes),
    )


def _written_out_attentions(nodes: Sequence[Node]) -> int:
    """Count softmaxes over products of matrices: attention that is written out."""
    count = 0
    products = 0
    for node in nodes:
        kind = kind_of(node.op)
        if kind == "MatMul":
            products += 1
        elif kind == "Softmax":
            count += products > 0
            products = 0
        elif kind in ("Linear", "Convolution", "Attention"):
            products = 0
    return count


def _is_causal(node: Node) -> bool:
    if dict(node.keywords).get("is_causal") is True:
        return True
    return (
        "scaled_dot_product_attention" in node.op
        and len(node.arguments) > 5
        and (node.arguments[5] is True)
    )


def _has_mask(nodes: Iterable[Node]) -> bool:
    return any(node.op in ("aten::tril", "aten::triu", "aten::masked_fill") for node in nodes)


_ATTENTION = re.compile(r"(q_proj|query|in_proj_weight|c_attn|qkv|to_q|Wqkv)(\.weight)?$")
_RECURRENT = re.compile(r"weight_ih_l\d+(_reverse)?$")


def _layers_of_parameters(parameters: Sequence[Parameter]) -> dict[str, int]:
    layers: dict[str, int] = {}
    for item in parameters:
        kind = _kind_of_parameter(item)
        if kind and not item.is_buffer:
            layers[kind] = layers.get(kind, 0) + 1
    return dict(sorted(layers.items(), key=lambda item: -item[1]))


def _kind_of_parameter(item: Parameter) -> str | None:
    """Return the layer that a parameter is the weight of, by its name and shape."""
    name = item.name.lower()
    if _ATTENTION.search(item.name):
        return "Attention"
    if _RECURRENT.search(name):
        return "Recurrent"
    if not name.endswith(("weight", "kernel")):
        return None
    if len(item.shape) in (3, 4, 5):
        return "Convolution"
    if len(item.shape) == 2:
        is_table = "embed" in name or "wte" in name or "wpe" in name
        return "Embedding" if is_table else "Linear"
    return "Normalization" if len(item.shape) == 1 else None


_DECODER = re.compile(r"\b(wte|c_attn|lm_head|embed_tokens)\b")
# RoBERTa has a head of that name, T5 and BART have both halves.
_ENCODER = re.compile(r"\bencoders?\b")


def _is_causal_by_name(parameters: Sequence[Parameter]) -> bool:
    names = " ".join(item.name for item in parameters[:2000])
    return _DECODER.search(names) is not None and _ENCODER.search(names) is None
