"""A number of things that also answers `len`."""

from __future__ import annotations


class EventCount(int):
    """How many events a trace has: a number, and the length that goes with its indexes.

    >>> events = EventCount(3)
    >>> events + 1, len(events)
    (4, 3)
    """

    __slots__ = ()

    def __len__(self) -> int:
        """Return the number itself."""
        return int(self)
