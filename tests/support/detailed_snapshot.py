"""A snapshot with everything that the format can say about an allocation."""

from __future__ import annotations

from typing import Any

BASE = 0x7F00_0000_0000
START_US = 1_700_000_000_000_000

FORWARD = [
    {"name": "at::native::linear(at::Tensor const&)", "filename": "??", "line": 0},
    {"name": "_call_impl", "filename": "/x/site-packages/torch/nn/module.py", "line": 17},
    {"name": "attention", "filename": "/home/a/model.py", "line": 77},
    {"name": "generate", "filename": "/x/site-packages/transformers/utils.py", "line": 5},
    {"name": "main", "filename": "/home/a/train.py", "line": 9},
]
FREE = [{"name": "clear", "filename": "/home/a/train.py", "line": 31}]


def detailed_snapshot() -> dict[str, Any]:
    """A snapshot in which one allocation, 1, has every possible detail."""

    def event(action: str, slot: int, at: int, frames: Any = FORWARD, **more: Any) -> Any:
        where = {"addr": BASE + slot * 4096, "size": 1000 + slot, "stream": 7}
        time = {"time_us": START_US + at}
        return {"action": action, **where, **time, "frames": frames, **more}

    trace = [
        event("free_completed", 0, 0, FREE),
        event(
            "alloc",
            0,
            1000,
            compile_context="0/1",
            user_metadata="layer 3",
            forward_frames=["model.py:70 f", "model.py:71 g"],
            category="activation",
            pool_id=(0, 3),
        ),
        event("alloc", 1, 1500, compile_context="N/A", user_metadata=""),
        event("free_requested", 0, 2000, FREE),
        event("alloc", 2, 2500, FREE),
        event("free_completed", 0, 3000, []),
        event("alloc", 2, 3500, []),
    ]
    blocks = [
        {"address": BASE + 4096, "size": 1536, "requested_size": 1001, "frames": FORWARD},
        {"address": BASE + 5 * 4096, "size": 512, "requested_size": 8, "frames": []},
    ]
    segment = {
        "device": 0,
        "address": BASE,
        "total_size": 2**20,
        "stream": 7,
        "segment_type": "small",
        "blocks": [{**block, "state": "active_allocated"} for block in blocks],
    }
    annotations = [
        {"name": name, "stage": stage, "device": 0, "time_us": START_US + at}
        for name, stage, at in (
            ("step", "START", -10),
            ("forward", "START", 900),
            ("other", "START", 1100),
            ("forward", "END", 1200),
        )
    ]
    return {
        "segments": [segment],
        "device_traces": [trace],
        "external_annotations": annotations,
    }
