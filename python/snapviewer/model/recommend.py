"""What follows from the numbers of a model: what to prune, quantize, fuse or lay out otherwise.

Each recommender is a plain function from what is known to recommendations; `recommender` adds one
of your own. They are ranked by the share of the model's bytes or FLOPs that they would save.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from snapviewer.model.graph import Graph, Node
from snapviewer.model.parameters import Parameter, Parameters
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.work import Uncounted, Work, kind_of, work_of

Topic: TypeAlias = Literal["pruning", "quantization", "fusion", "layout", "storage", "batch"]

# What a round trip may cost: 8 bits are seldom noticed above 30 dB, 4 bits above 20 dB.
GOOD_INT8_DB = 30.0
GOOD_INT4_DB = 20.0
# What gains less of the model than this is not worth a line.
LEAST_SHARE = 0.001
# The part of a tensor's squared norm that pruning may take.
PRUNABLE_LOSS = 0.01


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Something to do: what it gains, as a number and as a share of the model, and why."""

    topic: Topic
    title: str
    subjects: tuple[str, ...]
    gain: Quantity
    share: float
    evidence: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as the documents have it."""
        return {
            "topic": self.topic,
            "title": self.title,
            "subjects": list(self.subjects),
            "gain": self.gain.to_dict(),
            "share": self.share,
            "evidence": self.evidence,
        }


@dataclass(frozen=True, slots=True)
class Known:
    """What recommenders work on."""

    parameters: Parameters
    graph: Graph | None


Recommender: TypeAlias = Callable[[Known], Iterable[Recommendation]]

_recommenders: list[Recommender] = []


def recommender(function: Recommender) -> Recommender:
    """Add a recommender; also a decorator."""
    _recommenders.append(function)
    return function


def recommend(known: Known) -> tuple[Recommendation, ...]:
    """Ask all recommenders, and return what they say, what gains most first."""
    found = [item for ask in _recommenders for item in ask(known)]
    found = [item for item in found if item.share >= LEAST_SHARE or item.gain.value is None]
    return tuple(sorted(found, key=lambda item: -item.share))


def pruning_potential(item: Parameter) -> float | None:
    """Return the largest share of a tensor whose loss is no more than `PRUNABLE_LOSS`."""
    if item.quality is None or not item.quality.pruning:
        return None
    shares = [point.share for point in item.quality.pruning if point.lost <= PRUNABLE_LOSS]
    return max(shares, default=0.0)


def int8_db(item: Parameter) -> float | None:
    """Return the better SQNR of a round trip to int8: per channel, or per tensor."""
    return _best_db(item, "int8")


def quantization_sensitivity(item: Parameter) -> float | None:
    """Return how much int8 hurts: 0 from 50 dB on, 1 at 10 dB and below, straight in between."""
    decibels = int8_db(item)
    return None if decibels is None else min(1.0, max(0.0, (50 - decibels) / 40))


def _best_db(item: Parameter, target: str) -> float | None:
    if item.quality is None:
        return None
    for trip in item.quality.round_trips:
        if trip.format == target:
            found = [
                number for number in (trip.sqnr_db, trip.channel_sqnr_db) if number is not None
            ]
            return max(found, default=None)
    return None


def _named(items: Sequence[Parameter]) -> tuple[str, ...]:
    return tuple(item.name for item in sorted(items, key=lambda item: -item.size_bytes)[:20])


@recommender
def _fewer_bits(known: Known) -> Iterator[Recommendation]:
    total = known.parameters.size_bytes
    for target, bits, least in (("int8", 8, GOOD_INT8_DB), ("int4", 4, GOOD_INT4_DB)):
        fitting = [
            (item, decibels)
            for item in known.parameters.counted
            if len(item.shape) >= 2
            and (decibels := _best_db(item, target)) is not None
            and decibels >= least
        ]
        saved = sum(_saved_bytes(item, bits) for item, _ in fitting)
        if saved > 0 and total:
            worst = min(decibels for _, decibels in fitting)
            yield Recommendation(
                "quantization",
                f"Quantize the weights of {len(fitting):,} tensors to {target}",
                _named([item for item, _ in fitting]),
                Quantity(saved, "bytes", "computed", f"stored in {bits} bits, scales left out"),
                saved / total,
                f"a round trip keeps an SQNR of {worst:.1f} dB in each ({least:g} dB asked for)",
            )


def _saved_bytes(item: Parameter, bits: int) -> int:
    return max(0, item.size_bytes - item.elements * bits // 8)


@recommender
def _prune(known: Known) -> Iterator[Recommendation]:
    total = known.parameters.size_bytes
    fitting = [
        (item, potential)
        for item in known.parameters.counted
        if len(item.shape) >= 2 and (potential := pruning_potential(item) or 0.0) >= 0.1
    ]
    saved = sum(round(item.size_bytes * potential) for item, potential in fitting)
    if saved and total:
        yield Recommendation(
            "pruning",
            f"Prune the smallest weights of {len(fitting):,} tensors (unstructured)",
            _named([item for item, _ in fitting]),
            Quantity(saved, "bytes", "computed", "values set to zero; stored sparse they go"),
            saved / total,
            f"at most {PRUNABLE_LOSS:.0%} of the squared norm of each is lost",
        )


@recommender
def _prune_channels(known: Known) -> Iterator[Recommendation]:
    total = known.parameters.size_bytes
    fitting = []
    saved = channels = 0
    for item in known.parameters.counted:
        rows = item.quality.channels if item.quality else None
        if rows is not None and rows.small and len(item.shape) >= 2:
            fitting.append(item)
            channels += rows.small
            saved += item.size_bytes * rows.small // rows.count
    if saved and total:
        yield Recommendation(
            "pruning",
            f"Remove {channels:,} output channels of {len(fitting):,} tensors (structured)",
            _named(fitting),
            Quantity(saved, "bytes", "computed", "the rows of these channels"),
            saved / total,
            "their norms are below 10 % of the median of their tensor",
        )


@recommender
def _store_sparse(known: Known) -> Iterator[Recommendation]:
    total = known.parameters.size_bytes
    fitting = [item for item in known.parameters.counted if (item.sparsity or 0.0) >= 0.7]
    saved = sum(round(item.size_bytes * ((item.sparsity or 0.0) - 0.5)) for item in fitting)
    if saved and total:
        yield Recommendation(
            "storage",
            f"Store {len(fitting):,} tensors sparse",
            _named(fitting),
            Quantity(saved, "bytes", "estimated", "an index costs about as much as a value"),
            saved / total,
            "70 % of their elements or more are zero",
        )


@recommender
def _fold_normalization(known: Known) -> Iterator[Recommendation]:
    if known.graph is None:
        return
    pairs = [
        (before, after)
        for before, after in _neighbours(known.graph.nodes)
        if kind_of(before.op) == "Convolution" and "batch_norm" in after.op
    ]
    works = [_work(node) for _, node in pairs]
    saved = sum(work.flops for work in works)
    total = sum(_work(node).flops for node in known.graph.nodes)
    if pairs and total:
        moved = sum(work.read_bytes + work.written_bytes for work in works)
        yield Recommendation(
            "fusion",
            f"Fold {len(pairs):,} batch normalisations into their convolutions",
            tuple(after.module for _, after in pairs[:20]),
            Quantity(saved, "FLOP", "computed", "the work of the normalisations"),
            saved / total,
            f"each follows a convolution; {moved / 2**20:.1f} MiB of memory traffic go, too",
        )


@recommender
def _fuse_activations(known: Known) -> Iterator[Recommendation]:
    if known.graph is None:
        return
    pairs = [
        after
        for before, after in _neighbours(known.graph.nodes)
        if kind_of(after.op) == "Activation"
        and kind_of(before.op) in ("Convolution", "Linear", "Normalization", "ElementWise")
    ]
    works = [_work(node) for node in pairs]
    saved = sum(work.read_bytes + work.written_bytes for work in works)
    total = sum(work.read_bytes + work.written_bytes for work in map(_work, known.graph.nodes))
    if pairs and total:
        yield Recommendation(
            "fusion",
            f"Fuse {len(pairs):,} activations with what computes their input",
            tuple(node.module for node in pairs[:20]),
            Quantity(saved, "bytes", "computed", "memory traffic of the activations"),
            saved / total,
            "each reads what the operation before it just wrote (torch.compile does this)",
        )


@recommender
def _channels_last(known: Known) -> Iterator[Recommendation]:
    if known.graph is None:
        return
    convolutions = [
        node for node in known.graph.nodes if node.op.endswith(("conv2d", "_convolution"))
    ]
    total = sum(_work(node).flops for node in known.graph.nodes)
    part = sum(_work(node).flops for node in convolutions)
    if total and part >= 0.5 * total:
        yield Recommendation(
            "layout",
            "Use the channels_last memory format",
            (),
            unavailable("s", "not measured: time the model in both formats (--inference)"),
            0.0,
            f"{part / total:.0%} of the FLOPs are convolutions of images, whose kernels prefer it",
        )


def _neighbours(nodes: Sequence[Node]) -> Iterator[tuple[Node, Node]]:
    """Yield each node with the next if that works on what the node made, as far as shapes tell."""
    for before, after in pairwise(nodes):
        if before.outputs and after.arguments and before.outputs[0] == after.arguments[0]:
            yield before, after


def _work(node: Node) -> Work:
    work = work_of(node)
    return Work(0, 0, 0, 0) if isinstance(work, Uncounted) else work
