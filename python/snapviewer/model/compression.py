"""How far a parameter can be pruned, and in how few bits it can be stored.

All of it follows from `quality`, which reads every element; without that there is no answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from snapviewer.model.parameters import Parameter
from snapviewer.model.quantity import Quantity, unavailable

# The signal-to-noise ratio that a round trip must keep.
GOOD_INT8_DB = 30.0
GOOD_INT4_DB = 20.0
# The share of the squared norm that pruning may remove.
PRUNABLE_LOSS = 0.01
# The range over which int8 goes from harmless to useless.
_HARMLESS_DB, _USELESS_DB = 50.0, 10.0

NOT_ASKED = "the elements were not read"


def why_unknown(item: Parameter) -> str:
    """Return why a measure of a parameter has no value."""
    if item.tied_to:
        return f"tied to {item.tied_to}"
    if item.quality is not None and item.quality.max_abs == 0:
        return "all of its elements are zero"
    return item.unmeasured or NOT_ASKED


def pruning_potential(item: Parameter) -> float | None:
    """Return the largest share of a tensor whose removal loses at most `PRUNABLE_LOSS`.

    Tensors without any value other than zero have none: there is nothing to compare a loss with.
    """
    if item.quality is None or not item.quality.pruning or not item.quality.max_abs:
        return None
    shares = [point.share for point in item.quality.pruning if point.lost <= PRUNABLE_LOSS]
    return max(shares, default=0.0)


def best_db(item: Parameter, target: str) -> float | None:
    """Return the better SQNR of a round trip to a format: per channel, or per tensor."""
    if item.quality is None:
        return None
    for trip in item.quality.round_trips:
        if trip.format == target:
            found = [
                number for number in (trip.sqnr_db, trip.channel_sqnr_db) if number is not None
            ]
            return max(found, default=None)
    return None


def int8_db(item: Parameter) -> float | None:
    """Return the better SQNR of a round trip to int8."""
    return best_db(item, "int8")


def quantization_sensitivity(item: Parameter) -> float | None:
    """Return how much int8 hurts: 0 from 50 dB, 1 at 10 dB and below, linear in between."""
    decibels = int8_db(item)
    if decibels is None:
        return None
    return min(1.0, max(0.0, (_HARMLESS_DB - decibels) / (_HARMLESS_DB - _USELESS_DB)))


@dataclass(frozen=True, slots=True)
class Compression:
    """The fewest bits per element that keep a tensor good enough, and the way to store them."""

    stored_bits: float
    bits: float
    way: str

    @property
    def score(self) -> float:
        """The share of the bytes that would be saved."""
        return 1 - self.bits / self.stored_bits

    @property
    def ratio(self) -> float:
        """The factor by which it would be smaller."""
        return self.stored_bits / self.bits


FORMULA = (
    "1 − bits / stored bits, with the fewest bits per element of: as stored; a mask of zeros and "
    f"the rest (after pruning that loses ≤ {100 * PRUNABLE_LOSS:.0f} % of the squared norm); int8 "
    f"if a round trip keeps {GOOD_INT8_DB:g} dB, entropy coded min(8, entropy of 64 bins + 2); "
    f"int4 if it keeps {GOOD_INT4_DB:g} dB"
)


def compression_of(item: Parameter) -> Compression | None:
    """Find how small a tensor could be stored; None if its elements were not read.

    Each of the 64 bins of the histogram covers about 4 of the 256 steps of int8, so the entropy of
    the steps is at most 2 bits above that of the bins.
    """
    if item.stats is None or not item.elements or not item.size_bytes:
        return None
    stored = item.size_bytes * 8 / item.elements
    bits, way = min([(stored, "as stored"), *_ways(item, stored)])
    return Compression(stored, bits, way)


def _ways(item: Parameter, stored: float) -> Iterator[tuple[float, str]]:
    zeros = item.sparsity or 0.0
    potential = pruning_potential(item) or 0.0
    share = max(zeros, potential)
    if share:
        what = "pruned" if potential > zeros else "zeros left out"
        yield stored * (1 - share) + 1, f"{what} ({100 * share:.0f} %), with a mask"
    decibels = int8_db(item)
    if decibels is not None and decibels >= GOOD_INT8_DB:
        entropy = item.stats.entropy if item.stats else None
        yield min(8.0, 8.0 if entropy is None else entropy + 2), "int8, entropy coded"
    decibels = best_db(item, "int4")
    if decibels is not None and decibels >= GOOD_INT4_DB:
        yield 4.0, "int4"


def compressibility(item: Parameter) -> Quantity:
    """Return the compressibility score, with its formula."""
    found = compression_of(item)
    if found is None:
        return unavailable("share", why_unknown(item))
    source = f"{FORMULA}; here: {found.way}"
    if item.quality is None:
        source += "; fewer bits and pruning were not tried"
    return Quantity(found.score, "share", "computed", source)


def compression_ratio(item: Parameter) -> Quantity:
    """Return the factor by which it could be smaller."""
    found = compression_of(item)
    if found is None:
        return unavailable("×", why_unknown(item))
    return Quantity(found.ratio, "×", "computed", f"stored bits / bits: {found.way}")
