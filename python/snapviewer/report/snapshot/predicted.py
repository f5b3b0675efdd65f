"""Whether a snapshot is a prediction, in words. What a file claims is untrusted text."""

from __future__ import annotations

from typing import Any

from snapviewer import Snapshot
from snapviewer.text.sanitize import sanitize

_MAX_CHARS = 80


def prediction_of(snapshot: Snapshot) -> dict[str, Any] | None:
    """Return what a predicted snapshot contains about its prediction; None if it was recorded."""
    found = snapshot.metadata.get("predicted")
    if found is None:
        return None
    return found if isinstance(found, dict) else {}


def prediction_note(snapshot: Snapshot) -> str | None:
    """Return a sentence about a predicted snapshot; None if it was recorded."""
    found = prediction_of(snapshot)
    if found is None:
        return None
    gpu, torch = (_text(found.get(key)) for key in ("gpu_name", "torch"))
    on = f" for {gpu}" if gpu else ""
    by = f" by PyTorch {torch}" if torch else ""
    return f"predicted{on}{by}, not measured: times show the order of events only"


def _text(value: object) -> str:
    return sanitize(value, _MAX_CHARS) if isinstance(value, str) else ""
