"""Real times on a clock that shortens idle times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapviewer._core import Clock

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FAR_US = 2.0**53
"""Beyond all times: before the first event and after the last, nothing is shortened."""


def shown_us(clock: Clock, real_us: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the places on a clock of real times since the first event."""
    import numpy as np  # only here, so that commands that do not need it start quickly

    real, shown = [-_FAR_US, 0.0], [-_FAR_US, 0.0]
    for _, start, end, gap_us in clock.gaps:
        gap_start = real[-1] + start - shown[-1]
        real += [gap_start, gap_start + gap_us]
        shown += [start, end]
    real.append(real[-1] + _FAR_US)
    shown.append(shown[-1] + _FAR_US)
    return np.interp(np.asarray(real_us, dtype=np.float64), real, shown)
