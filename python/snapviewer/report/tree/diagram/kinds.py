"""What kind of layer a module is, by the name of its type: what colour its box has."""

from __future__ import annotations

import re

from snapviewer.report.writers.colors import Ink

# The first that fits counts.
_KINDS: tuple[tuple[str, str, Ink], ...] = (
    ("embedding", r"Embed", "series5"),
    ("attention", r"Attention|Attn", "series3"),
    ("normalization", r"Norm", "series4"),
    ("dropout", r"Dropout|DropPath|Identity|StochasticDepth", "series7"),
    ("recurrent", r"LSTM|GRU|RNN", "series6"),
    ("linear", r"Linear|Conv1D$|MLP|FeedForward", "series0"),
    ("convolution", r"Conv", "series2"),
    ("pooling", r"Pool|Upsample|Flatten|PixelShuffle|Pad\dd", "series9"),
    (
        "activation",
        r"LU$|ELU|Sigmoid|Tanh|Softmax|Softplus|Hardswish|Mish|Activation|Swish|Softsign",
        "series1",
    ),
)
OTHER = ("other", "axis")


def kind_of(type_name: str) -> tuple[str, Ink]:
    """Return the kind of a layer and its ink.

    >>> kind_of("Conv2d"), kind_of("BasicBlock")
    (('convolution', 'series2'), ('other', 'axis'))
    """
    for kind, pattern, ink in _KINDS:
        if re.search(pattern, type_name):
            return kind, ink
    return OTHER
