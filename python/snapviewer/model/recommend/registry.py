"""The registries of recommenders: functions that turn an analysis into recommendations.

`recommender` registers one for the whole model, `node_recommender` one for each node, and
`parameter_recommender` one for each parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from snapviewer.model.graph import Graph
from snapviewer.model.nodes import NodeDetails
from snapviewer.model.parameters import Parameter, Parameters
from snapviewer.model.quantity import Quantity, Status

if TYPE_CHECKING:
    from snapviewer.model.inference import Profile

MIN_SHARE = 0.001
"""Recommendations that gain less of the model are left out."""

_MAX_SUBJECTS = 20


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to do, the gain as a number and as a share of the model, and the evidence.

    `share_of` says what the share is of: the bytes, the FLOPs, the memory traffic, or the time of
    a run.
    """

    topic: str
    title: str
    subjects: tuple[str, ...]
    gain: Quantity
    share: float
    evidence: str
    share_of: str = "the parameters"


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about one node or one parameter, and the evidence."""

    topic: str
    title: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Known:
    """What recommenders work on: the parts of an analysis."""

    parameters: Parameters
    graph: Graph | None
    nodes: tuple[NodeDetails, ...] = ()
    profile: Profile | None = None


Recommender: TypeAlias = Callable[[Known], Iterable[Recommendation]]
NodeRecommender: TypeAlias = Callable[[NodeDetails], Iterable[Advice]]
ParameterRecommender: TypeAlias = Callable[[Parameter], Iterable[Advice]]

_recommenders: list[Recommender] = []
_for_nodes: list[NodeRecommender] = []
_for_parameters: list[ParameterRecommender] = []


def recommender(function: Recommender) -> Recommender:
    """Register a recommender for the whole model; a decorator."""
    _recommenders.append(function)
    return function


def node_recommender(function: NodeRecommender) -> NodeRecommender:
    """Register a recommender for nodes; a decorator."""
    _for_nodes.append(function)
    return function


def parameter_recommender(function: ParameterRecommender) -> ParameterRecommender:
    """Register a recommender for parameters; a decorator."""
    _for_parameters.append(function)
    return function


def recommend(known: Known) -> tuple[Recommendation, ...]:
    """Return the recommendations of all recommenders, the largest shares first."""
    found = [item for function in _recommenders for item in function(known)]
    found = [item for item in found if item.share >= MIN_SHARE or item.gain.value is None]
    return tuple(sorted(found, key=lambda item: -item.share))


def advice_for_node(node: NodeDetails) -> tuple[Advice, ...]:
    """Return the advice of all recommenders of nodes."""
    return tuple(advice for function in _for_nodes for advice in function(node))


def advice_for_parameter(item: Parameter) -> tuple[Advice, ...]:
    """Return the advice of all recommenders of parameters; none for a tied one."""
    if item.tied_to is not None:
        return ()
    return tuple(advice for function in _for_parameters for advice in function(item))


def largest_names(items: Sequence[Parameter]) -> tuple[str, ...]:
    """Return the names of the largest parameters."""
    ranked = sorted(items, key=lambda item: -item.size_bytes)
    return tuple(item.name for item in ranked[:_MAX_SUBJECTS])


def node_names(nodes: Sequence[NodeDetails]) -> tuple[str, ...]:
    """Return the modules of nodes, or their own names."""
    return tuple(node.node.module or node.name for node in nodes[:_MAX_SUBJECTS])


def time_gain(
    known: Known, nodes: Sequence[NodeDetails], what: str
) -> tuple[Quantity, float] | None:
    """Return the time of nodes as a gain and as a share of a run; None if it was not measured."""
    run = known.profile.plain.median.value if known.profile else None
    seconds = sum(node.time.value or 0.0 for node in nodes)
    if not run or not seconds:
        return None
    source = f"{what}; median times of {len(nodes):,} operations in the run"
    return Quantity(seconds, "s", "estimated", source), min(1.0, seconds / run)


def bytes_saved(
    known: Known,
    saved: Sequence[tuple[Parameter, int]],
    topic: str,
    title: str,
    status: Status,
    source: str,
    evidence: str,
) -> Iterator[Recommendation]:
    """Yield a recommendation that saves bytes of parameters, if it saves any.

    Args:
        known: The parts of the analysis.
        saved: The parameters, and the bytes that each would save.
        topic: The topic.
        title: What to do.
        status: How the gain was obtained.
        source: From what.
        evidence: Why to do it.
    """
    total, gain = known.parameters.size_bytes, sum(size for _, size in saved)
    if gain > 0 and total:
        names = largest_names([item for item, _ in saved])
        quantity = Quantity(gain, "bytes", status, source)
        yield Recommendation(topic, title, names, quantity, gain / total, evidence)
