"""Fewer bits: quantization to int8 or int4 as far as a round trip allows, and 16-bit floats."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from snapviewer.model.compression import GOOD_INT4_DB, GOOD_INT8_DB, best_db
from snapviewer.model.nodes import NodeDetails
from snapviewer.model.parameters import Parameter
from snapviewer.model.recommend.registry import (
    Advice,
    Known,
    Recommendation,
    bytes_saved,
    node_recommender,
    parameter_recommender,
    recommender,
)
from snapviewer.text.units import count_of

_TARGETS = (("int4", 4, GOOD_INT4_DB), ("int8", 8, GOOD_INT8_DB))
_LARGEST_HALF = 65504.0
_quantization = partial(Advice, "quantization")
# Weights of matrix products; scales and shifts are kept as they are.
_MIN_DIMENSIONS = 2


@recommender
def fewer_bits(known: Known) -> Iterator[Recommendation]:
    """For each format, all tensors that a round trip to it preserves well enough."""
    for target, bits, least in _TARGETS:
        fitting = [
            (item, decibels)
            for item in known.parameters.counted
            if _is_weight(item)
            and (decibels := best_db(item, target)) is not None
            and decibels >= least
        ]
        worst = min((decibels for _, decibels in fitting), default=0.0)
        yield from bytes_saved(
            known,
            [(item, _saved_bytes(item, bits)) for item, _ in fitting],
            "quantization",
            f"Quantize the weights of {count_of(len(fitting), 'tensor')} to {target}",
            "computed",
            f"stored in {bits} bits, scales left out",
            f"each keeps an SQNR of {worst:.1f} dB or more in a round trip with a scale per "
            f"channel ({least:g} dB required); measure the accuracy afterwards"
            + ("; instead of int8, not in addition" if target == "int4" else ""),
        )


@recommender
def half_of_the_bits(known: Known) -> Iterator[Recommendation]:
    """Weights of which only the type is known, as in files too large to read."""
    saved = [
        (item, _saved_bytes(item, 16))
        for item in known.parameters.counted
        if item.quality is None and item.dtype in ("float32", "float64") and _is_weight(item)
    ]
    yield from bytes_saved(
        known,
        saved,
        "quantization",
        f"Store {count_of(len(saved), 'tensor')} in 16 bits (bfloat16)",
        "computed",
        "2 bytes per element",
        "bfloat16 has the range of float32; the cost of fewer bits was not computed (--quality), "
        "so compare the accuracy",
    )


def _is_weight(item: Parameter) -> bool:
    return len(item.shape) >= _MIN_DIMENSIONS


def _saved_bytes(item: Parameter, bits: int) -> int:
    return max(0, item.size_bytes - item.elements * bits // 8)


@parameter_recommender
def bits_of_parameter(item: Parameter) -> Iterator[Advice]:
    """The fewest bits that a round trip allows, else 16."""
    if not _is_weight(item):
        return
    for target, bits, least in _TARGETS:
        decibels = best_db(item, target)
        if decibels is not None and decibels >= least and _saved_bytes(item, bits):
            yield _quantization(
                f"Quantize to {bits} bits ({target})",
                f"a round trip keeps {decibels:.1f} dB, {least:g} dB are required",
            )
            return
    stats = item.stats
    if item.dtype == "float32" and stats is not None and stats.max is not None:
        largest = max(abs(stats.min or 0.0), abs(stats.max))
        half = "float16" if largest < _LARGEST_HALF else "bfloat16"
        yield _quantization(
            f"Consider quantization to 16-bit precision ({half})",
            f"the largest magnitude is {largest:.3g}, float16 holds {_LARGEST_HALF:g}",
        )


@node_recommender
def bits_of_node(node: NodeDetails) -> Iterator[Advice]:
    """Whether the weights of a node can be quantized to int8."""
    weights = [item for item in node.parameters if _is_weight(item)]
    known = [best_db(item, "int8") for item in weights]
    worst = min((decibels for decibels in known if decibels is not None), default=None)
    if worst is None or None in known:
        return
    if worst >= GOOD_INT8_DB:
        yield _quantization(
            "Could be quantized to 8 bits",
            f"its weights keep {worst:.1f} dB in a round trip, {GOOD_INT8_DB:g} dB are required",
        )
    else:
        yield _quantization(
            "Keep in 16 bits or more",
            f"its weights keep only {worst:.1f} dB in a round trip to int8",
        )
