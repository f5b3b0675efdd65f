"""Recommenders: plain functions from what is known to what to do, in three open registries.

`recommender` adds one for the whole model, `node_recommender` one that is asked for each node, and
`parameter_recommender` one that is asked for each parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from snapviewer.model.graph import Graph
from snapviewer.model.nodes import NodeFacts
from snapviewer.model.parameters import Parameter, Parameters
from snapviewer.model.quantity import Quantity

if TYPE_CHECKING:
    from snapviewer.model.inference import Profile

# What gains less of the model than this is not worth a line.
LEAST_SHARE = 0.001


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Something to do: what it gains, as a number and as a share of the model, and why.

    The share is of the model's bytes, FLOPs or memory traffic, and where runs were timed, of their
    time; `share_of` says which.
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
    """Something to do about one node or one parameter, and why."""

    topic: str
    title: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Known:
    """What recommenders work on."""

    parameters: Parameters
    graph: Graph | None
    nodes: tuple[NodeFacts, ...] = ()
    profile: Profile | None = None


Recommender: TypeAlias = Callable[[Known], Iterable[Recommendation]]
NodeRecommender: TypeAlias = Callable[[NodeFacts], Iterable[Advice]]
ParameterRecommender: TypeAlias = Callable[[Parameter], Iterable[Advice]]

_recommenders: list[Recommender] = []
_for_nodes: list[NodeRecommender] = []
_for_parameters: list[ParameterRecommender] = []


def recommender(function: Recommender) -> Recommender:
    """Add a recommender for the whole model; also a decorator."""
    _recommenders.append(function)
    return function


def node_recommender(function: NodeRecommender) -> NodeRecommender:
    """Add a recommender that is asked for each node; also a decorator."""
    _for_nodes.append(function)
    return function


def parameter_recommender(function: ParameterRecommender) -> ParameterRecommender:
    """Add a recommender that is asked for each parameter; also a decorator."""
    _for_parameters.append(function)
    return function


def recommend(known: Known) -> tuple[Recommendation, ...]:
    """Ask all recommenders, and return what they say, the largest shares first."""
    found = [item for ask in _recommenders for item in ask(known)]
    found = [item for item in found if item.share >= LEAST_SHARE or item.gain.value is None]
    return tuple(sorted(found, key=lambda item: -item.share))


def advice_for_node(node: NodeFacts) -> tuple[Advice, ...]:
    """Ask all recommenders of nodes."""
    return tuple(item for ask in _for_nodes for item in ask(node))


def advice_for_parameter(item: Parameter) -> tuple[Advice, ...]:
    """Ask all recommenders of parameters; what is tied is told where it is counted."""
    if item.tied_to is not None:
        return ()
    return tuple(advice for ask in _for_parameters for advice in ask(item))
