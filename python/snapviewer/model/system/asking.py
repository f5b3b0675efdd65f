"""Asks for a number, and says why there is none if there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from snapviewer.model.nvml import NoAnswerError
from snapviewer.model.quantity import Quantity, unavailable


def refusals() -> tuple[type[Exception], ...]:
    """Return what is raised where a system does not tell; psutil has errors of its own."""
    known = (NoAnswerError, OSError, RuntimeError, ValueError, AttributeError)
    own = getattr(sys.modules.get("psutil"), "Error", None)
    return known if own is None else (*known, own)


def asked(unit: str, source: str, ask: Callable[[], float | None]) -> Quantity:
    """Return a measured number, or one that is unavailable for the reason that asking gave.

    >>> asked("°C", "sensor", lambda: 41.0).value
    41.0
    """
    try:
        value = ask()
    except NoAnswerError as error:
        return unavailable(unit, str(error))
    except refusals() as error:
        return unavailable(unit, f"{source}: {str(error) or type(error).__name__}"[:300])
    if value is None:
        return unavailable(unit, f"{source} does not tell it here")
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
    """Return the first kilobytes of a system's file.

    Raises:
        OSError: It cannot be read.
    """
    with file.open(encoding="utf-8", errors="replace") as stream:
        return stream.read(65_536)
