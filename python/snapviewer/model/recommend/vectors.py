"""Vectorization: operations whose sizes, strides or types keep them from full vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from snapviewer.model.graph import TensorSpec
from snapviewer.model.nodes import NodeDetails
from snapviewer.model.quantity import Quantity
from snapviewer.model.recommend.registry import (
    Advice,
    Known,
    Recommendation,
    node_names,
    node_recommender,
    recommender,
)
from snapviewer.text.units import count_of

VECTOR_BYTES = 64
"""The widest vectors of processors: those of AVX-512, two of AVX2 or four of NEON."""

# Fuller vectors than this are not worth padding.
_FULL = 0.9
_ITEM_BYTES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int8": 1, "uint8": 1}
_ROWS = ("Normalization", "Softmax")
_WALKS = ("ElementWise", "Activation", "Reduction", *_ROWS)
# These leave their elements where they are, so that neighbours are apart.
_TURNED = frozenset(
    f"aten::{name}"
    for name in ("t", "transpose", "permute", "movedim", "swapaxes", "expand", "unfold")
)


class Lanes(NamedTuple):
    """How far a dimension fills the vectors of an operation."""

    size: int
    what: str
    dtype: str
    lanes: int

    @property
    def padded(self) -> int:
        """The next size that fills all vectors."""
        return -(-self.size // self.lanes) * self.lanes

    @property
    def filled(self) -> float:
        """The share of the lanes that is used."""
        return self.size / self.padded


def lanes_of(node: NodeDetails) -> Lanes | None:
    """Return the dimension along which a node is vectorized; None if it is not known."""
    output = next((spec for spec in node.node.outputs if isinstance(spec, TensorSpec)), None)
    if output is None or output.dtype not in _ITEM_BYTES or len(output.shape) < 2:
        return None
    if node.kind == "Convolution":
        size, what = output.shape[1], "output channels"
    elif node.kind in ("Linear", "MatMul"):
        size, what = output.shape[-1], "output features" if node.kind == "Linear" else "columns"
    elif node.kind == "Attention":
        size, what = output.shape[-1], "features of a head"
    elif node.kind in _ROWS and "batch_norm" not in node.node.op:
        size, what = output.shape[-1], "elements of a row"
    else:
        return None
    # A product with one vector runs along the other dimension.
    if size is None or size < 2:
        return None
    return Lanes(size, what, output.dtype, VECTOR_BYTES // _ITEM_BYTES[output.dtype])


@node_recommender
def vectorize_node(node: NodeDetails) -> Iterator[Advice]:
    """Advise on sizes, strides and types that leave lanes of vectors unused."""
    found = lanes_of(node)
    if found is not None and found.filled < _FULL and node.counted.flops:
        yield Advice(
            "vectorization",
            f"Pad {found.size:,} {found.what} to {found.padded:,} for full vectors",
            f"{found.dtype}: they fill vectors of {VECTOR_BYTES} bytes ({found.lanes} lanes) to "
            f"{100 * found.filled:.0f} %",
        )
    if node.kind in _WALKS and node.before is not None and node.before.op in _TURNED:
        yield Advice(
            "vectorization",
            f"Make the result of the {node.before.op} before it contiguous, or fuse the two",
            "elements that follow each other are apart in memory: they are loaded one by one",
        )
    for item in node.parameters:
        place = item.placement
        if place is not None and not place.is_contiguous:
            yield Advice(
                "vectorization",
                f"Save {item.name} contiguous",
                f"its strides are {list(place.stride)}: neighbours are apart in memory",
            )
    yield from _types(node)


def _types(node: NodeDetails) -> Iterator[Advice]:
    specs = [spec for spec in node.node.arguments if isinstance(spec, TensorSpec)]
    floats = list(dict.fromkeys(spec.dtype for spec in specs if "float" in spec.dtype))
    if not node.counted.flops or not floats:
        return
    if len(floats) > 1:
        yield Advice(
            "vectorization",
            f"Give its operands one type: they are {' and '.join(floats)}",
            "vectors hold one type: the others are converted first",
        )
    elif floats == ["float64"]:
        yield Advice(
            "vectorization",
            "Compute in float32 where the accuracy allows it",
            f"a vector of {VECTOR_BYTES} bytes holds 8 float64 or 16 float32",
        )
    elif floats == ["float16"]:
        yield Advice(
            "vectorization",
            "Use bfloat16 or float32 on processors",
            "few processors compute with float16: elsewhere values are converted first",
        )


@recommender
def full_vectors(known: Known) -> Iterator[Recommendation]:
    """Pad all sizes that leave lanes unused."""
    partial = [
        (node, found)
        for node in known.nodes
        if (found := lanes_of(node)) is not None and found.filled < _FULL and node.counted.flops
    ]
    whole = sum(node.counted.flops for node in known.nodes)
    if not partial or not whole:
        return
    idle = sum(round(node.counted.flops * (1 / found.filled - 1)) for node, found in partial)
    worst = min((found for _, found in partial), key=lambda found: found.filled)
    yield Recommendation(
        "vectorization",
        f"Pad the sizes of {count_of(len(partial), 'operation')} to full vectors",
        node_names([node for node, _ in sorted(partial, key=lambda pair: pair[1].filled)]),
        Quantity(idle, "FLOP", "estimated", f"unused lanes of vectors of {VECTOR_BYTES} bytes"),
        idle / (whole + idle),
        f"{worst.size:,} {worst.what} of {worst.dtype} fill {worst.lanes} lanes to "
        f"{100 * worst.filled:.0f} %; kernels may arrange small sizes otherwise: measure it",
        "the lanes",
    )
