"""A number, and how it was obtained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Status: TypeAlias = Literal["measured", "computed", "estimated", "unavailable"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit, its status, and where it comes from or why it is not there."""

    value: float | None
    unit: str
    status: Status
    source: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as the documents have it."""
        # There are many: `asdict` would take ten times as long.
        return {
            "value": self.value,
            "unit": self.unit,
            "status": self.status,
            "source": self.source,
        }


def unavailable(unit: str, why: str) -> Quantity:
    """Return a number that is not there.

    >>> unavailable("W", "no RAPL").status
    'unavailable'
    """
    return Quantity(None, unit, "unavailable", why)
