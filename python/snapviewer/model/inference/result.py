"""What the runs of a model showed."""

from __future__ import annotations

from dataclasses import dataclass

from snapviewer.model.energy import Energy
from snapviewer.model.inference.allocations import Memory
from snapviewer.model.inference.batches import Batches
from snapviewer.model.inference.layouts import Layouts
from snapviewer.model.inference.nodes import NodeProfile
from snapviewer.model.inference.threads import ThreadRun
from snapviewer.model.inference.timing import Timing
from snapviewer.model.quantity import Quantity
from snapviewer.model.roofline import Roof
from snapviewer.model.system import SystemUse


@dataclass(frozen=True, slots=True)
class Profile:
    """A model that ran.

    `plain` are runs with nothing but a clock around them; `profiled` are runs in which each
    operation was timed, and took turns with the plain ones. In each profiled run the time is that
    of the nodes and that outside of them: `in_nodes` and `outside`. `overhead` is how much longer a
    profiled run takes than a plain one, and `accounted` what the nodes are of a plain one.
    """

    device: str
    threads: int
    level: int
    warmups: tuple[Quantity, ...]
    plain: Timing
    profiled: Timing
    in_nodes: Timing
    outside: Timing
    overhead: Quantity
    accounted: Quantity
    flops: Quantity
    moved: Quantity
    rate: Quantity
    bandwidth: Quantity
    intensity: Quantity
    nodes: tuple[NodeProfile, ...]
    """In the order in which they ran."""
    roof: Roof | None
    thread_runs: tuple[ThreadRun, ...]
    memory: Memory | None
    energy: Energy | None
    system: SystemUse | None
    layouts: Layouts | None
    """Runs with channels last, where convolutions set the pace and that was asked for."""
    batches: Batches | None
    """Runs with other batches, if these were asked for."""
    notes: tuple[str, ...]
    """What could not be done, and why, in sentences."""
