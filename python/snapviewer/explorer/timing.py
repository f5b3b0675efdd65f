"""What recorded runs of a model showed: plain data, made by `recording`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Spread:
    """Times of several calls, in seconds. `deviation_s` is the median distance to the median."""

    count: int
    median_s: float
    deviation_s: float
    min_s: float
    max_s: float
    sum_s: float


@dataclass(frozen=True, slots=True)
class TensorShape:
    """A tensor that went into a module or came out of it; `name` is its way in the arguments."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ModuleTiming:
    """What the calls of one module showed.

    `total` is the time of a call with all that it calls, `own` the same without the modules that it
    calls. Shapes are those of the last call.
    """

    path: str
    type_name: str
    calls: int
    total: Spread
    own: Spread
    backward: Spread | None
    backward_own: Spread | None
    has_gradient: bool
    inputs: tuple[TensorShape, ...]
    outputs: tuple[TensorShape, ...]
    activation_bytes: int
    """Of the outputs of a call, those that are views of inputs or returned unchanged left out."""
    allocated_bytes: int | None
    """How much the device's memory grew during a call at most; None where nothing counts it."""


@dataclass(frozen=True, slots=True)
class FlowStep:
    """One call of a module in the last run, in the order in which calls began.

    `sources` are the paths of the modules whose outputs it took, `depth` how many calls it is in.
    """

    order: int
    path: str
    type_name: str
    depth: int
    sources: tuple[str, ...]
    inputs: tuple[TensorShape, ...]
    outputs: tuple[TensorShape, ...]


@dataclass(frozen=True, slots=True)
class ForwardStats:
    """All that was recorded of a model: by the path of each module that was called."""

    timings: Mapping[str, ModuleTiming] = field(default_factory=dict)
    flow: tuple[FlowStep, ...] = ()
    runs: int = 0
    notes: tuple[str, ...] = ()
