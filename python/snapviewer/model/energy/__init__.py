"""What a run costs in joules: measured where the machine tells, estimated where it does not.

The ladder, from the best to the last: the GPU's energy counter, its sampled power, the processor's
RAPL counters, an estimate from a stated TDP, a model of the work. What each rung says is kept,
so that a report can tell why a better one was not used.
"""

from snapviewer.model.energy.carbon import carbon_of
from snapviewer.model.energy.constants import Range
from snapviewer.model.energy.estimate import (
    EnergyEstimate,
    Setting,
    Term,
    WorkTotals,
    energy_model,
    energy_models,
    register_energy_model,
)
from snapviewer.model.energy.meter import EnergyMeter
from snapviewer.model.energy.result import Attempt, Energy

__all__ = [
    "Attempt",
    "Energy",
    "EnergyEstimate",
    "EnergyMeter",
    "Range",
    "Setting",
    "Term",
    "WorkTotals",
    "carbon_of",
    "energy_model",
    "energy_models",
    "register_energy_model",
]
