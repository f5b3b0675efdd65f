"""The number of events of a device, which also has a length.

Both `range(device.events)` and `len(device.events)` work. It is Python, because the stable ABI
cannot subclass `int` before Python 3.12.
"""

from __future__ import annotations


class EventCount(int):
    """How many events a trace has: an `int` whose `len` is itself.

    >>> events = EventCount(3)
    >>> events + 1, len(events)
    (4, 3)
    """

    __slots__ = ()

    def __len__(self) -> int:
        """Return the number itself."""
        return int(self)
