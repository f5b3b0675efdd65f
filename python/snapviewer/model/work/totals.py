"""The work of many nodes together, and what part of it is convolutions of images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from snapviewer.model.graph import Node, TensorSpec
from snapviewer.model.work.registry import NO_WORK, Uncounted, Work, kind_of, work_of

MOSTLY_IMAGES = 0.5
"""The share of the FLOPs from which convolutions of images dominate a model."""
IMAGE_DIMENSIONS = 4


@dataclass(frozen=True, slots=True)
class Totals:
    """The work of some nodes: in total, by kind of layer, and what could not be counted."""

    work: Work
    by_kind: dict[str, Work]
    """The kinds with the most FLOPs first."""
    counts: dict[str, int]
    """How many nodes are of each kind, including uncounted ones."""
    uncounted: tuple[tuple[Node, str], ...]
    """Nodes, each with the reason."""


def totals_of(nodes: Iterable[Node]) -> Totals:
    """Add up the work of nodes.

    >>> totals_of([]).work.flops
    0
    """
    work = NO_WORK
    by_kind: dict[str, Work] = {}
    counts: dict[str, int] = {}
    uncounted: list[tuple[Node, str]] = []
    for node in nodes:
        kind = kind_of(node.op)
        counts[kind] = counts.get(kind, 0) + 1
        one = work_of(node)
        if isinstance(one, Uncounted):
            uncounted.append((node, one.why))
            continue
        work += one
        by_kind[kind] = by_kind.get(kind, NO_WORK) + one
    ranked = sorted(by_kind.items(), key=lambda item: (-item[1].flops, item[0]))
    return Totals(work, dict(ranked), counts, tuple(uncounted))


def main_dtype(nodes: Iterable[Node]) -> str:
    """Return the dtype with the most FLOPs."""
    flops: dict[str, int] = {}
    for node in nodes:
        work = work_of(node)
        spec = next((value for value in node.arguments if isinstance(value, TensorSpec)), None)
        if not isinstance(work, Uncounted) and spec is not None and "float" in spec.dtype:
            flops[spec.dtype] = flops.get(spec.dtype, 0) + work.flops
    return max(flops, key=lambda dtype: flops[dtype], default="float32")


def image_share(nodes: Sequence[Node]) -> float:
    """Return the share of the FLOPs that are convolutions of images."""
    whole = part = 0
    for node in nodes:
        work = work_of(node)
        flops = 0 if isinstance(work, Uncounted) else work.flops
        whole += flops
        part += flops if _is_image_convolution(node) else 0
    return part / whole if whole else 0.0


def _is_image_convolution(node: Node) -> bool:
    first = node.arguments[0] if node.arguments else None
    is_image = isinstance(first, TensorSpec) and len(first.shape) == IMAGE_DIMENSIONS
    return is_image and "conv" in node.op
