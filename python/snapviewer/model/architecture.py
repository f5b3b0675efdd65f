"""The class of a model, and the evidence for it.

It follows from the operations of the graph or, without one, from the names and shapes of the
parameters; the reason says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from snapviewer.model.architecture_features import (
    ArchitectureFeatures,
    attentions_of,
    features_of_graph,
    features_of_parameters,
    layers_of_parameters,
    ranked,
)
from snapviewer.model.graph import Graph
from snapviewer.model.parameters import Parameter
from snapviewer.model.work import kind_of
from snapviewer.text.units import count_of

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
# A patch embedding is one or two convolutions; more are a backbone.
_BACKBONE = 5
# Linear layers per convolution in models that use convolutions only to cut patches.
_MIXING = 4


@dataclass(frozen=True, slots=True)
class Architecture:
    """The class of a model, the reason, and the number of layers of each kind."""

    model_class: ModelClass
    reason: str
    layers: Mapping[str, int]
    complexity: Literal["Low", "Medium", "High"]

    @property
    def label(self) -> str:
        """The class and its complexity in words.

        >>> Architecture("CNN", "", {}, "Low").label
        'Convolutional Neural Network (Low Complexity)'
        """
        return f"{_LABELS[self.model_class]} ({self.complexity} Complexity)"


def architecture_of(
    graph: Graph | None, parameters: Sequence[Parameter], parameter_count: int
) -> Architecture:
    """Classify a model by its graph, or by its parameters if there is none."""
    if graph is not None and graph.nodes:
        features, layers = features_of_graph(graph), _layers_of_graph(graph)
        source = "operations"
    else:
        features, layers = features_of_parameters(parameters), layers_of_parameters(parameters)
        source = "names and shapes of parameters"
    model_class, reason = _classified(features)
    return Architecture(
        model_class, f"{reason} (by {source})", layers, _complexity(parameter_count)
    )


def _classified(features: ArchitectureFeatures) -> tuple[ModelClass, str]:
    attentions = count_of(features.attentions, "attention layer")
    convolutions = count_of(features.convolutions, "convolution")
    linears = count_of(features.linears, "linear layer")
    if features.attentions > features.recurrent:
        return _with_attention(features, attentions, convolutions)
    if features.recurrent:
        recurrent = count_of(features.recurrent, "recurrent layer")
        return "RNN", f"{recurrent} and {attentions if features.attentions else 'no attention'}"
    if features.has_tokens and features.linears > features.convolutions == features.depthwise > 0:
        depthwise = count_of(features.depthwise, "depthwise convolution")
        return "Custom", f"token embeddings, {linears} and {depthwise}, as in state-space models"
    if 0 < features.convolutions == features.patches <= features.linears // _MIXING:
        return "MLP", f"patches by {convolutions}, then {linears} and no attention"
    if features.convolutions:
        return "CNN", f"{convolutions} and no attention"
    if features.linears:
        return "MLP", f"{linears} and no other layer that mixes features"
    return "Custom", "no convolution, attention, recurrent or linear layer"


def _with_attention(
    features: ArchitectureFeatures, attentions: str, convolutions: str
) -> tuple[ModelClass, str]:
    if features.backbone >= _BACKBONE:
        return "Hybrid", f"{convolutions} and {attentions}, as in DETR"
    if features.has_tokens and features.has_images and features.convolutions:
        return "Transformer", f"{attentions} over tokens and over patches of images"
    if features.has_two_sequences and features.has_images and features.convolutions:
        return (
            "Hybrid",
            f"{convolutions}, then {attentions} of an encoder and a decoder, as in DETR",
        )
    if features.has_two_sequences:
        return "Transformer", f"{attentions} of an encoder and a decoder"
    if features.has_tokens and features.is_causal:
        return "GPT", f"token embeddings and causal attention ({attentions})"
    if features.convolutions and not features.has_tokens:
        if features.convolutions < _BACKBONE:
            return "Vision Transformer", f"patches by {convolutions}, then {attentions}"
        between = f"{convolutions} between them that cut or pool patches"
        return "Vision Transformer", f"{attentions}, and {between}"
    return "Transformer", attentions


def _complexity(parameter_count: int) -> Literal["Low", "Medium", "High"]:
    """Return the complexity: medium from a million parameters, high from ten million."""
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
