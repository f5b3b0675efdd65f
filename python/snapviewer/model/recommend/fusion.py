"""Fusion: operations that one kernel could compute together with their neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from snapviewer.model.nodes import NodeDetails
from snapviewer.model.quantity import Quantity
from snapviewer.model.recommend.registry import (
    Advice,
    Known,
    Recommendation,
    node_names,
    node_recommender,
    recommender,
    time_gain,
)
from snapviewer.model.work import kind_of
from snapviewer.text.units import count_of, format_bytes

_PRODUCERS = ("Convolution", "Linear", "Normalization", "ElementWise", "MatMul")


def _folds(node: NodeDetails) -> bool:
    """Return whether a batch normalisation follows a convolution, into which it can be folded."""
    before = kind_of(node.before.op) if node.before else ""
    return "batch_norm" in node.node.op and before == "Convolution"


def _fuses(node: NodeDetails) -> bool:
    """Return whether an activation works on what was just computed."""
    return (
        node.kind == "Activation"
        and node.before is not None
        and kind_of(node.before.op) in _PRODUCERS
    )


@recommender
def fold_normalization(known: Known) -> Iterator[Recommendation]:
    """Fold batch normalisations into the convolutions before them."""
    folded = [node for node in known.nodes if _folds(node)]
    moved = sum(node.moved_bytes for node in folded)
    yield from _fusion(
        f"Fold {count_of(len(folded), 'batch normalisation')} into the preceding convolutions",
        folded,
        _gain(known, folded, "FLOP", "the work of the normalisations"),
        f"each follows a convolution; it also saves {format_bytes(moved)} of memory traffic "
        "(torch.nn.utils.fuse_conv_bn_eval, torch.jit.freeze)",
    )


@recommender
def fuse_activations(known: Known) -> Iterator[Recommendation]:
    """Fuse activations with the operation that computes their input."""
    fused = [node for node in known.nodes if _fuses(node)]
    title = f"Fuse {count_of(len(fused), 'activation')} with the preceding operations"
    gain = _gain(known, fused, "bytes", "memory traffic of the activations")
    evidence = "each reads what the operation before it wrote (torch.compile does this)"
    yield from _fusion(title, fused, gain, evidence)


def _fusion(
    title: str,
    nodes: Sequence[NodeDetails],
    gain: tuple[Quantity, float, str],
    evidence: str,
) -> Iterator[Recommendation]:
    if nodes:
        saved, share, share_of = gain
        yield Recommendation("fusion", title, node_names(nodes), saved, share, evidence, share_of)


def _gain(
    known: Known, nodes: Sequence[NodeDetails], unit: str, what: str
) -> tuple[Quantity, float, str]:
    """Return what removing nodes saves: their time if measured, else their FLOPs or traffic."""
    timed = time_gain(known, nodes, what)
    if timed is not None:
        return (*timed, "the time of a run")
    if unit == "FLOP":
        saved, whole = (sum(one.counted.flops for one in some) for some in (nodes, known.nodes))
        return Quantity(saved, unit, "computed", what), saved / max(1, whole), "the FLOPs"
    saved, whole = (sum(one.moved_bytes for one in some) for some in (nodes, known.nodes))
    return Quantity(saved, unit, "computed", what), saved / max(1, whole), "the memory traffic"


@node_recommender
def fuse_node(node: NodeDetails) -> Iterator[Advice]:
    """Advise on what a node can be fused with."""
    if _folds(node):
        yield Advice(
            "fusion",
            "Fold into the convolution before it",
            f"saves its {node.moved_bytes:,} bytes of traffic; its scales become weights",
        )
    elif _fuses(node) and node.before is not None:
        yield Advice(
            "fusion",
            f"Fuse with the {node.before.op} before it",
            f"it reads what that wrote: {node.moved_bytes:,} bytes of traffic",
        )
    elif node.kind in _PRODUCERS and node.after is not None:
        kind = kind_of(node.after.op)
        if kind == "Activation" or (node.kind == "Convolution" and "batch_norm" in node.after.op):
            yield Advice(
                "fusion",
                f"High fusion potential with the {node.after.op} after it",
                f"which reads the {node.counted.written_bytes:,} bytes that this one writes",
            )
