"""A module in one line: `conv1: Conv2d(3→64, 7×7) [9.4K params]`.

The part in parentheses comes from a live module (`describer_of`), or from the shapes of a saved
one's tensors (`saved_types.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from snapviewer.text.sanitize import sanitize

from .formats import format_param_count, format_shape
from .safe_call import CallFailure, safe_call
from .tree import ModuleNode

MAX_ARGUMENT_CHARS = 60
MAX_NAME_CHARS = 80

Describe = Callable[[Any], str]


def label(node: ModuleNode) -> str:
    """Return the label of a module: `conv1: Conv2d(3→64, 7×7) [9.4K params]`."""
    return f"{title(node)} [{format_param_count(node.sums.parameters)} params]"


def title(node: ModuleNode) -> str:
    """Return the label without the sums: `conv1: Conv2d(3→64, 7×7)`.

    A module without a name, or without a class, has the other one alone.
    """
    name, what = sanitize(node.name, MAX_NAME_CHARS), type_text(node)
    return f"{name}: {what}" if name and what else name or what or "(no name)"


def type_text(node: ModuleNode) -> str:
    """Return the class and arguments: `Conv2d(3→64, 7×7)`; empty if unknown."""
    name = sanitize(node.type_name, MAX_NAME_CHARS)
    return f"{name}({node.arguments})" if name and node.arguments else name


def described(describe: Describe, module: Any) -> str:
    """Describe a module with the describer of its class.

    A known class that lacks an attribute falls back to its `extra_repr`.
    """
    text = safe_call(describe, module)
    if isinstance(text, CallFailure):
        return "" if describe is _extra_repr else described(_extra_repr, module)
    # Attributes such as `in_features` may be anything, a text of any length, too.
    return sanitize(text, MAX_ARGUMENT_CHARS)


def describer_of(kind: type) -> Describe:
    """Return the describer of a class, by the first of its bases that is known."""
    known = (_KNOWN.get(base.__name__) for base in kind.__mro__)
    return next((describe for describe in known if describe is not None), _extra_repr)


_DEFAULTS = re.compile(r"(?:^|(?<=, ))(?:inplace=False|affine=True|bias=True)(?:, |$)")


def _extra_repr(module: Any) -> str:
    text = module.extra_repr()
    if not text or not isinstance(text, str):
        return ""
    text = _DEFAULTS.sub("", sanitize(text, 4 * MAX_ARGUMENT_CHARS))
    return sanitize(text.removesuffix(", "), MAX_ARGUMENT_CHARS)


def conv_text(
    channels_in: int, channels_out: int, kernel: Sequence[int], *, groups: int = 1
) -> str:
    """Describe a convolution.

    >>> conv_text(3, 64, (7, 7)), conv_text(64, 64, (3,), groups=64)
    ('3→64, 7×7', '64→64, 3, depthwise')
    """
    text = f"{channels_in or '?'}→{channels_out}, {format_shape(kernel)}"
    if groups > 1:
        text += ", depthwise" if groups == channels_in else f", groups={groups}"
    return text


def _conv(module: Any) -> str:
    text = conv_text(
        module.in_channels, module.out_channels, module.kernel_size, groups=module.groups
    )
    dilation = module.dilation
    if any(step != 1 for step in dilation):
        is_even = len(set(dilation)) == 1
        text += f", dilation={dilation[0] if is_even else format_shape(dilation)}"
    return text


def _linear(module: Any) -> str:
    # Lazy ones have no inputs yet.
    return f"{module.in_features or '?'}→{module.out_features}"


def _features(module: Any) -> str:
    return str(module.num_features or "?")


def _normalized(module: Any) -> str:
    return format_shape(module.normalized_shape)


def recurrent_text(inputs: int, hidden: int, layers: int, *, is_bidirectional: bool) -> str:
    """Describe a recurrent layer.

    >>> recurrent_text(64, 128, 2, is_bidirectional=True)
    '64→128, 2 layers, bidirectional'
    """
    text = f"{inputs}→{hidden}"
    text += f", {layers} layers" if layers > 1 else ""
    return f"{text}, bidirectional" if is_bidirectional else text


def _recurrent(module: Any) -> str:
    return recurrent_text(
        module.input_size,
        module.hidden_size,
        getattr(module, "num_layers", 1),
        is_bidirectional=bool(getattr(module, "bidirectional", False)),
    )


def _dimensions(module: Any) -> int:
    """Return the number of spatial dimensions in a class name: 2 of `MaxPool2d`."""
    for base in type(module).__mro__:
        found = re.search(r"([123])d$", base.__name__)
        if found:
            return int(found[1])
    raise ValueError


def _each(value: Any, dimensions: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,) * dimensions


def _pool(module: Any) -> str:
    dimensions = _dimensions(module)
    kernel = _each(module.kernel_size, dimensions)
    stride = module.stride if module.stride is not None else kernel
    steps = _each(stride, dimensions)
    text = format_shape(kernel)
    if steps != kernel:
        text += f", stride={steps[0] if len(set(steps)) == 1 else format_shape(steps)}"
    return text


def _adaptive_pool(module: Any) -> str:
    sizes = _each(module.output_size, _dimensions(module))
    return "×".join("same" if size is None else str(size) for size in sizes)


_KNOWN: dict[str, Describe] = {
    "_ConvNd": _conv,
    "Linear": _linear,
    "Bilinear": lambda module: (
        f"{module.in1_features}, {module.in2_features}→{module.out_features}"
    ),
    "Conv1D": lambda module: f"{module.nx}→{module.nf}",  # of transformers: a linear layer
    "Embedding": lambda module: f"{module.num_embeddings}, {module.embedding_dim}",
    "EmbeddingBag": lambda module: f"{module.num_embeddings}, {module.embedding_dim}",
    "_NormBase": _features,
    "FrozenBatchNorm2d": lambda module: str(module.weight.shape[0]),
    "LayerNorm": _normalized,
    "RMSNorm": _normalized,
    "GroupNorm": lambda module: f"{module.num_groups} groups, {module.num_channels}",
    "RNNBase": _recurrent,
    "RNNCellBase": _recurrent,
    "MultiheadAttention": lambda module: f"{module.embed_dim}, {module.num_heads} heads",
    "_DropoutNd": lambda module: f"p={module.p:g}",
    "_MaxPoolNd": _pool,
    "_AvgPoolNd": _pool,
    "_AdaptiveAvgPoolNd": _adaptive_pool,
    "_AdaptiveMaxPoolNd": _adaptive_pool,
}
