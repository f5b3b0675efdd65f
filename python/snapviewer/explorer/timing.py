"""The results of recorded runs: plain data, made by `recording`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .tree import ModuleNode, Tree


@dataclass(frozen=True, slots=True)
class Spread:
    """Times of several calls in seconds; `deviation_s` is the median absolute deviation."""

    count: int
    median_s: float
    deviation_s: float
    min_s: float
    max_s: float
    sum_s: float


@dataclass(frozen=True, slots=True)
class TensorShape:
    """An input or output of a module; `name` is its path in the arguments, such as `x[0]`."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ModuleTiming:
    """The recorded calls of one module.

    `total` is the time of a call including the modules that it calls, `own` excludes these. Shapes
    are those of the last call.
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
    """Bytes of a call's outputs, without views of inputs and inputs returned unchanged."""
    allocated_bytes: int | None
    """The most that memory grew during a call, on the CPU a lower bound; None if not counted."""


@dataclass(frozen=True, slots=True)
class FlowStep:
    """One call of a module in the last run, in the order in which calls began.

    `sources` are the paths of the modules whose outputs it took, `depth` is its nesting level.
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
    """Everything recorded of a model; `timings` are by the path of each called module."""

    timings: Mapping[str, ModuleTiming] = field(default_factory=dict)
    flow: tuple[FlowStep, ...] = ()
    runs: int = 0
    notes: tuple[str, ...] = ()
    tree: Tree | None = field(default=None, compare=False, repr=False)
    """The model's tree, which has its parameters."""

    def timing_of(self, node: ModuleNode) -> ModuleTiming | None:
        """Return the timing of a module, recorded under any of its paths."""
        timing = self.timings.get(node.path)
        if timing is None and node.shared_with is not None:
            timing = self.timings.get(node.shared_with)
        return timing

    def edges(self) -> Iterator[tuple[str, str]]:
        """Yield, each once, between which modules tensors flowed in the last run."""
        yield from dict.fromkeys(
            (source, step.path) for step in self.flow for source in step.sources
        )
