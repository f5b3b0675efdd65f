"""Running and timing a model: the time of each operation, against the limits of the machine.

    from snapviewer.model.inference import load_torchscript, profile

    result = profile(load_torchscript("model.pt"), torch.randn(1, 3, 224, 224))
    print(result.plain.median, result.overhead)

This package needs torch. Only `load_torchscript` and `load_pt2` load the code of a file; everything
else in the analyzer only reads it.
"""

from __future__ import annotations

from snapviewer.model.inference.batches import Batches, BatchRun
from snapviewer.model.inference.loading import example_inputs, load_pt2, load_torchscript
from snapviewer.model.inference.memory import RunMemory
from snapviewer.model.inference.nodes import NodeProfile
from snapviewer.model.inference.patterns import Pattern, Patterns
from snapviewer.model.inference.profiling import profile
from snapviewer.model.inference.result import Profile
from snapviewer.model.inference.timing import Timing
from snapviewer.model.inference.trials import DtypeRun, Layouts, ThreadRun

__all__ = [
    "BatchRun",
    "Batches",
    "DtypeRun",
    "Layouts",
    "NodeProfile",
    "Pattern",
    "Patterns",
    "Profile",
    "RunMemory",
    "ThreadRun",
    "Timing",
    "example_inputs",
    "load_pt2",
    "load_torchscript",
    "profile",
]
