"""Record the calls of a live model's modules: times, shapes, memory and flow.

`calls` stands in for `torch.nn.Module.__call__`, keeps the time and tells `recorder`, which adds up
(`accounts`, `samples`) and asks `values`, `flow`, `devices` and `backward` for the rest. `kept` is
where the results are. Torch is imported when something is recorded.
"""

from __future__ import annotations

from snapviewer.explorer.recording.kept import get_forward_stats, record_torch_module_forward_stats

__all__ = [
    "get_forward_stats",
    "record_torch_module_forward_stats",
]
