"""Programs that run out of memory for each reason, on the null device: the verdict names it."""

from __future__ import annotations

import pytest

import snapviewer
from snapviewer import _core
from snapviewer.report.snapshot.replay import oom_sentence
from support.recorded import recorded
from support.torch_marks import torch_marks

pytestmark = [
    *torch_marks(),
    pytest.mark.slow,
    pytest.mark.skipif(_core.null_device() is None, reason="no null device on this system"),
]

GIB, MIB = 2**30, 2**20
# The verdict, how much the program asked for, and words of the sentence.
CASES = {
    "oom_demand": ("demand", 600, "176 MiB too much for any setting of the allocator"),
    "oom_fragmentation": ("fragmentation", 30, "in pieces of at most 18.0 MiB"),
    "oom_other_stream": ("isolation", 15, "of it for the stream and pool that asked"),
    "oom_memory_pool": ("isolation", 400, "800 MiB in private pool 1, large, stream 0"),
    "oom_outside": ("outside", 500, "went to something else on the device"),
}


@pytest.mark.parametrize("conf", ["", "expandable_segments:True"])
@pytest.mark.parametrize("program", CASES)
def test_the_verdict_names_the_cause(program: str, conf: str) -> None:
    verdict, asked, words = CASES[program]
    device = snapviewer.load(recorded(program, conf=conf, capacity=GIB).path).devices[0]

    oom = device.ooms[-1]

    assert oom.exact
    assert (oom.verdict, oom.requested_bytes) == (verdict, asked * MIB)
    assert words in oom_sentence(oom)
    # Its numbers are those of the curves, and add up.
    amounts = device.curves.at(oom.event)
    assert (oom.live_bytes, oom.reserved_bytes) == (amounts["requested"], amounts["reserved"])
    assert oom.free_bytes == amounts["reserved"] - amounts["active"]
    assert oom.capacity_bytes == amounts["reserved"] + oom.device_free_bytes
    if verdict == "demand":
        assert oom.short_by_bytes == oom.live_bytes + oom.requested_bytes - oom.capacity_bytes
    else:
        assert oom.live_bytes + oom.requested_bytes <= max(
            oom.capacity_bytes, oom.capacity_seen_bytes
        )
    # One GiB, of which something else may have taken a part.
    taken = 600 * MIB if verdict == "outside" else 0
    assert oom.capacity_bytes == GIB - taken


def test_the_other_stream_is_named() -> None:
    device = snapviewer.load(recorded("oom_other_stream", capacity=GIB).path).devices[0]
    oom = device.ooms[-1]

    assert oom.elsewhere is not None
    pool, kind, stream, free = oom.elsewhere

    assert (pool, kind) == ((0, 0), "large")
    assert stream != oom.stream
    assert free == oom.free_bytes
