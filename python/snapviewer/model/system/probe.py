"""Reads numbers of the system, or the reason why a number is not available."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from snapviewer.model.nvml import NoAnswerError
from snapviewer.model.quantity import Quantity, unavailable


def probe_errors() -> tuple[type[Exception], ...]:
    """Return the errors of a number that is not available; psutil has errors of its own."""
    known = (NoAnswerError, OSError, RuntimeError, ValueError, AttributeError)
    own = getattr(sys.modules.get("psutil"), "Error", None)
    return known if own is None else (*known, own)


def probe(unit: str, source: str, read: Callable[[], float | None]) -> Quantity:
    """Return a measured number, or an unavailable one with the error as the reason.

    >>> probe("°C", "sensor", lambda: 41.0).value
    41.0
    """
    try:
        value = read()
    except NoAnswerError as error:
        return unavailable(unit, str(error))
    except probe_errors() as error:
        return unavailable(unit, f"{source}: {str(error) or type(error).__name__}"[:300])
    if value is None:
        return unavailable(unit, f"{source} does not report it here")
    return Quantity(float(value), unit, "measured", source)


def psutil() -> Any:
    """Return psutil.

    Raises:
        NoAnswerError: It is not installed.
    """
    try:
        return import_module("psutil")
    except ImportError:
        raise NoAnswerError("psutil is not installed (pip install psutil)") from None


def small_text(file: Path) -> str:
    """Return the first 64 KiB of a file of the system.

    Raises:
        OSError: It cannot be read.
    """
    with file.open(encoding="utf-8", errors="replace") as stream:
        return stream.read(65_536)
