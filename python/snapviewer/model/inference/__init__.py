"""A model, run and timed: how long each operation takes, and what that is of what it could be.

    from snapviewer.model.inference import load_torchscript, profile

    result = profile(load_torchscript("model.pt"), torch.randn(1, 3, 224, 224))
    print(result.plain.median, result.overhead)

This part needs torch. `load_torchscript` and `load_pt2` are the only places of the analyzer that
load the code of a file; everything else only reads it.
"""

from __future__ import annotations

from snapviewer.model.inference.allocations import Memory
from snapviewer.model.inference.batches import Batches, BatchRun
from snapviewer.model.inference.examples import example_inputs
from snapviewer.model.inference.layouts import Layouts
from snapviewer.model.inference.loading import load_pt2, load_torchscript
from snapviewer.model.inference.nodes import NodeProfile
from snapviewer.model.inference.profiling import profile
from snapviewer.model.inference.result import Profile
from snapviewer.model.inference.threads import ThreadRun
from snapviewer.model.inference.timing import Timing

__all__ = [
    "BatchRun",
    "Batches",
    "Layouts",
    "Memory",
    "NodeProfile",
    "Profile",
    "ThreadRun",
    "Timing",
    "example_inputs",
    "load_pt2",
    "load_torchscript",
    "profile",
]
