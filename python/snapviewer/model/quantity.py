"""A number, and how it was obtained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Status: TypeAlias = Literal["measured", "computed", "estimated", "unavailable"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit and status; `source` is how it was obtained, or why it is missing."""

    value: float | None
    unit: str
    status: Status
    source: str


def unavailable(unit: str, why: str) -> Quantity:
    """Return a quantity without a value.

    >>> unavailable("W", "no RAPL").status
    'unavailable'
    """
    return Quantity(None, unit, "unavailable", why)
