"""The energy of a run: measured where the machine has a sensor, estimated elsewhere.

In order of preference: the energy counter of the GPU, its sampled power, the RAPL counters of the
processor, an estimate from a given TDP, a model of the work. The answers of all are kept, so that
a report can say why a better one was not used.
"""

from snapviewer.model.energy.assumptions import Range
from snapviewer.model.energy.estimate import (
    EnergyEstimate,
    EnergySetting,
    Term,
    carbon_of,
    energy_model,
    energy_models,
    register_energy_model,
)
from snapviewer.model.energy.meter import EnergyMeter
from snapviewer.model.energy.result import Attempt, Energy, energy_without_run
from snapviewer.model.energy.work import RunWork, WorkTotals, work_by_class

__all__ = [
    "Attempt",
    "Energy",
    "EnergyEstimate",
    "EnergyMeter",
    "EnergySetting",
    "Range",
    "RunWork",
    "Term",
    "WorkTotals",
    "carbon_of",
    "energy_model",
    "energy_models",
    "energy_without_run",
    "register_energy_model",
    "work_by_class",
]
