"""How far a picture can be trusted, in a word and in sentences. Without Tk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from snapviewer import Device, Snapshot
from snapviewer.text.units import format_bytes


@dataclass(frozen=True, slots=True)
class Trust:
    """The badge, and why it says so."""

    grade: Literal["good", "partly", "bad"]
    badge: str
    text: str


def trust_of(snapshot: Snapshot, device: Device) -> Trust:
    """Say whether what a trace leads to is what the segments hold."""
    warnings = [*device.warnings, *snapshot.warnings]
    if device.reconciles:
        agree = (
            "Trace and segments agree to the byte: what the trace leads to is what was in memory "
            "when the snapshot was taken."
            if device.events
            else "There is no trace, only the state of memory when the snapshot was taken."
        )
        badge = "✓ reconciles" if device.events else "✓ a state, no trace"
        text = " ".join([agree, *warnings])
        return Trust("partly" if warnings else "good", badge + ("  (!)" if warnings else ""), text)
    off = device.final_bytes - device.expected_final_bytes
    if off:
        more = "more" if off > 0 else "less"
        badge = f"⚠ off by {format_bytes(abs(off))}"
        text = (
            f"The trace leads to {abs(off):,} bytes {more} than the segments hold at the end. "
            "The picture is right up to that."
        )
    else:
        badge, text = "⚠ does not reconcile", "Trace and segments disagree."
    return Trust("bad", badge, " ".join([text, *warnings]))
