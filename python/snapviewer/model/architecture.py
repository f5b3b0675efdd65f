"""What kind of model it is, and why we think so.

With a graph, its operations tell. Without one, the names and shapes of the parameters do, and the
reason says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from snapviewer.model.graph import Graph
from snapviewer.model.parameters import Parameter
from snapviewer.model.signs import (
    Signs,
    attentions_of,
    layers_of_parameters,
    ranked,
    signs_of_graph,
    signs_of_parameters,
)
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
# Linear layers for each convolution where these only cut patches.
_MIXING = 4


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


def architecture_of(
    graph: Graph | None, parameters: Sequence[Parameter], parameter_count: int
) -> Architecture:
    """Classify a model by its graph, or by its parameters if there is none."""
    if graph is not None and graph.nodes:
        signs, layers = signs_of_graph(graph), _layers_of_graph(graph)
        source = "operations"
    else:
        signs, layers = signs_of_parameters(parameters), layers_of_parameters(parameters)
        source = "names and shapes of parameters"
    model_class, reason = _classified(signs)
    return Architecture(
        model_class, f"{reason} (by {source})", layers, _complexity(parameter_count)
    )


def _classified(signs: Signs) -> tuple[ModelClass, str]:
    if signs.attentions > signs.recurrent:
        return _with_attention(signs)
    if signs.recurrent:
        beside = f" beside {_many(signs.attentions, 'attention layer')}" if signs.attentions else ""
        return "RNN", f"{_many(signs.recurrent, 'recurrent layer')}{beside or ' and no attention'}"
    if signs.has_tokens and signs.linears > signs.convolutions == signs.depthwise > 0:
        return "Custom", (
            f"token embeddings, {_many(signs.linears, 'linear layer')} and "
            f"{_many(signs.depthwise, 'depthwise convolution')}, as in state-space models"
        )
    if 0 < signs.convolutions == signs.patches <= signs.linears // _MIXING:
        return "MLP", (
            f"patches by {_many(signs.convolutions, 'convolution')}, then "
            f"{_many(signs.linears, 'linear layer')} and no attention"
        )
    if signs.convolutions:
        return "CNN", f"{_many(signs.convolutions, 'convolution')} and no attention"
    if signs.linears:
        what = _many(signs.linears, "linear layer")
        return "MLP", f"{what} and nothing else that mixes features"
    return "Custom", "no convolution, attention, recurrent or linear layer"


def _with_attention(signs: Signs) -> tuple[ModelClass, str]:
    layers = _many(signs.attentions, "attention layer")
    if signs.backbone >= _BACKBONE:
        return "Hybrid", f"{_many(signs.convolutions, 'convolution')} and {layers}, as in DETR"
    if signs.has_tokens and signs.has_images and signs.convolutions:
        return "Transformer", f"{layers} over tokens and over patches of images"
    if signs.has_two_sequences and signs.has_images and signs.convolutions:
        what = f"{_many(signs.convolutions, 'convolution')}, then {layers}"
        return "Hybrid", f"{what} of an encoder and a decoder, as in DETR"
    if signs.has_two_sequences:
        return "Transformer", f"{layers} of an encoder and a decoder"
    if signs.has_tokens and signs.is_causal:
        return "GPT", f"token embeddings and {_many(signs.attentions, 'causal attention layer')}"
    if signs.convolutions and not signs.has_tokens:
        by = _many(signs.convolutions, "convolution")
        if signs.convolutions < _BACKBONE:
            return "Vision Transformer", f"patches by {by}, then {layers}"
        return "Vision Transformer", f"{layers}, and {by} between them that cut or pool patches"
    return "Transformer", layers


def _many(count: int, what: str) -> str:
    """Return a number of things.

    >>> _many(1, "layer"), _many(2, "layer")
    ('1 layer', '2 layers')
    """
    return f"{count} {what}{'s'[: count != 1]}"


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
    written_out = attentions_of(graph.nodes) - layers.get("Attention", 0)
    if written_out:
        layers["Attention"] = layers.get("Attention", 0) + written_out
    return ranked(layers)
