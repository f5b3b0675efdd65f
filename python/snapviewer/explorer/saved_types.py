"""Guesses the class and arguments of a saved module from the names and shapes of its tensors.

A file of tensors does not name classes; the names of tensors follow torch's conventions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from .formats import format_shape
from .labels import conv_text, recurrent_text

Shapes: TypeAlias = Mapping[str, tuple[int, ...]]

_TABLE = re.compile(r"emb|wte|wpe|vocab|tok(en)?s?$|position|shared$", re.IGNORECASE)
_NORM = re.compile(r"norm|^ln|_ln$|rms|^bn|layernorm", re.IGNORECASE)
_GATES = {4: "LSTM", 3: "GRU", 1: "RNN"}


def guessed_type(name: str, shapes: Shapes) -> str:
    """Guess the class of a module; empty if its tensors do not determine it.

    Args:
        name: The module's own name, such as `conv1`.
        shapes: The shapes of its own tensors, by their own names.

    >>> guessed_type("conv1", {"weight": (64, 3, 7, 7)}), guessed_type("x", {"scale": (3,)})
    ('Conv2d', '')
    """
    weight, bias = shapes.get("weight"), shapes.get("bias")
    if "running_mean" in shapes and "running_var" in shapes:
        return "BatchNorm"
    if "weight_ih_l0" in shapes and "weight_hh_l0" in shapes:
        rows, hidden = shapes["weight_ih_l0"][:1], shapes["weight_hh_l0"][1:]
        return next((_GATES[n] for n in _GATES if rows == tuple(n * size for size in hidden)), "")
    if "in_proj_weight" in shapes or {"q_proj_weight", "k_proj_weight"} <= shapes.keys():
        return "MultiheadAttention"
    if weight is None:
        return ""
    if len(weight) in (3, 4, 5):
        return f"Conv{len(weight) - 2}d"
    if len(weight) == 2:
        if bias is None and _TABLE.search(name):
            return "Embedding"
        if bias is not None and bias == weight[1:] != weight[:1]:
            return "Conv1D"  # of transformers: a linear layer with its weight transposed
        return "Linear" if bias is None or bias == weight[:1] else ""
    if len(weight) == 1:
        if bias == weight:
            return "LayerNorm"
        return "RMSNorm" if bias is None and _NORM.search(name) else ""
    return ""


def arguments_of_shapes(type_name: str, shapes: Shapes) -> str:
    """Return the arguments of a saved module, as far as the shapes of its tensors determine them.

    >>> arguments_of_shapes("Conv2d", {"weight": (64, 3, 7, 7)})
    '3→64, 7×7'
    >>> arguments_of_shapes("Linear", {"weight": (1000, 2048), "bias": (1000,)})
    '2048→1000'
    """
    weight = shapes.get("weight", ())
    is_transposed = type_name == "Conv1D" or type_name.startswith("ConvTranspose")
    if re.fullmatch(r"(Lazy)?Conv(Transpose)?[123]d", type_name) and len(weight) > 2:
        before, after = (weight[0], weight[1]) if is_transposed else (weight[1], weight[0])
        return conv_text(before, after, weight[2:])
    if type_name in _RECURRENT and "weight_hh_l0" in shapes and "weight_ih_l0" in shapes:
        return _recurrent(shapes)
    if type_name == "MultiheadAttention":
        projection = shapes.get("in_proj_weight") or shapes.get("q_proj_weight") or ()
        return str(projection[-1]) if projection else ""
    if type_name.startswith("Embedding") and len(weight) == 2:
        return f"{weight[0]}, {weight[1]}"
    if type_name == "Conv1D" and len(weight) == 2:
        return f"{weight[0]}→{weight[1]}"
    if type_name.endswith("Linear") and len(weight) == 2:
        return f"{weight[1]}→{weight[0]}"
    if "Norm" in type_name:
        return format_shape(weight or shapes.get("running_mean", ()))
    return ""


_RECURRENT = frozenset(("LSTM", "GRU", "RNN"))


def _recurrent(shapes: Shapes) -> str:
    if len(shapes["weight_ih_l0"]) != 2 or len(shapes["weight_hh_l0"]) != 2:
        return ""
    layers = sum(bool(re.fullmatch(r"weight_ih_l\d+", name)) for name in shapes)
    return recurrent_text(
        shapes["weight_ih_l0"][1],
        shapes["weight_hh_l0"][1],
        layers,
        is_bidirectional="weight_ih_l0_reverse" in shapes,
    )
