"""Record the calls of a live model's modules: times, shapes, memory and flow.

`calls` replaces `torch.nn.Module.__call__`, takes the time and notifies `recorder`, which adds up
(`totals`), helped by `values`, `flow`, `devices` and `backward`. `registry` keeps the
results. Torch is imported when something is recorded.
"""

from __future__ import annotations

from snapviewer.explorer.recording.registry import (
    get_forward_stats,
    record_torch_module_forward_stats,
    recorded_stats,
)

__all__ = [
    "get_forward_stats",
    "record_torch_module_forward_stats",
    "recorded_stats",
]
