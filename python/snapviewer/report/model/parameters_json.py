"""Parameters as documents have them: structure as plain numbers, the rest as quantities."""

from __future__ import annotations

from math import isfinite
from typing import Any

from snapviewer.model.measures import (
    NOT_ASKED,
    compressibility,
    compression_ratio,
    int8_db,
    pruning_potential,
    quantization_sensitivity,
)
from snapviewer.model.parameters import Parameter, Parameters
from snapviewer.model.placement import no_placement
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.recommend import advice_for_parameter

_EVERY = "every element, in one pass"
_NOT_PLACED = "where its elements lie is not known: packed, sparse, or on another device"


def parameters_document(parameters: Parameters) -> dict[str, Any]:
    """Return all of them and their sums."""
    return {
        "count": _told(parameters.count, "elements", "shapes, tied ones once, no buffers", ""),
        "bytes": _told(parameters.size_bytes, "bytes", "shapes and types", ""),
        "sparsity": _told(parameters.sparsity, "share", "zeros among all elements", NOT_ASKED),
        "tensors": [_parameter(item) for item in parameters.tensors],
    }


def _parameter(item: Parameter) -> dict[str, Any]:
    stats, quality, place = item.stats, item.quality, item.placement
    why = item.unmeasured or (f"tied to {item.tied_to}" if item.tied_to else NOT_ASKED)
    alignment, locality = (
        (place.alignment, place.locality) if place is not None else no_placement(_NOT_PLACED)
    )
    spectrum = quality.spectrum if quality else None
    no_spectrum = (quality.spectrum_unavailable if quality else None) or why
    return {
        "name": item.name,
        "shape": list(item.shape),
        "dtype": item.dtype,
        "elements": item.elements,
        "bytes": item.size_bytes,
        "buffer": item.is_buffer,
        "tied_to": item.tied_to,
        "unmeasured": item.unmeasured,
        "sparsity": _told(item.sparsity, "share", _EVERY, why),
        **{
            name: _told(getattr(stats, name, None), unit, _EVERY, why)
            for name, unit in _STATISTICS.items()
        },
        # The norm of a tensor as one vector: for a matrix, what is called after Frobenius.
        "frobenius": _told(stats.l2 if stats else None, "1", f"{_EVERY}: the L2 norm", why),
        "nan": stats.nan if stats else None,
        "inf": stats.inf if stats else None,
        "histogram": list(stats.histogram) if stats else None,
        "edges": list(stats.edges) if stats and stats.edges else None,
        "spectral_norm": _told(
            spectrum.norm if spectrum else None,
            "1",
            f"{spectrum.method}, at most {spectrum.upper_bound:.6g}" if spectrum else "",
            no_spectrum,
        ),
        "spectral_norm_bound": _told(
            spectrum.upper_bound if spectrum else None,
            "1",
            "the norm itself, or the lesser of ‖A‖_F and √(‖A‖₁·‖A‖_∞)",
            no_spectrum,
        ),
        "stable_rank": _told(
            spectrum.stable_rank if spectrum else None, "1", "‖A‖_F² / norm²", no_spectrum
        ),
        "effective_rank": _told(
            spectrum.effective_rank if spectrum else None,
            "1",
            "exponential of the entropy of the singular values",
            (spectrum.effective_rank_unavailable if spectrum else None) or no_spectrum,
        ),
        "int8_sqnr": _told(int8_db(item), "dB", "a round trip, the better of both scales", why),
        "round_trips": {
            trip.format: {
                "tensor": _told(trip.sqnr_db, "dB", "a round trip, one scale", why),
                "channel": _told(
                    trip.channel_sqnr_db,
                    "dB",
                    "a round trip, a scale for each channel",
                    (quality.channels_unavailable if quality else None) or why,
                ),
            }
            for trip in (quality.round_trips if quality else ())
        },
        "pruning": [
            {"share": point.share, "threshold": point.threshold, "lost": point.lost}
            for point in (quality.pruning if quality else ())
        ],
        "pruning_potential": _told(
            pruning_potential(item), "share", "what loses at most 1 % of the squared norm", why
        ),
        "quantization_sensitivity": _told(
            quantization_sensitivity(item), "share", "0 at 50 dB of int8 and 1 at 10 dB", why
        ),
        "compressibility": compressibility(item).to_dict(),
        "compression_ratio": compression_ratio(item).to_dict(),
        "alignment": alignment.to_dict(),
        "locality": locality.to_dict(),
        "recommendations": [advice.to_dict() for advice in advice_for_parameter(item)],
    }


_STATISTICS = {
    "mean": "1",
    "std": "1",
    "min": "1",
    "max": "1",
    "l1": "1",
    "l2": "1",
    "skewness": "1",
    "kurtosis": "1",
    "entropy": "bits",
}


def _told(value: float | None, unit: str, source: str, why: str) -> dict[str, Any]:
    """Return a computed number, or why there is none."""
    if value is None:
        return unavailable(unit, why).to_dict()
    if not isfinite(value):
        # Nothing lost at all is no number of decibels.
        return unavailable(unit, "infinite: nothing is lost").to_dict()
    return Quantity(value, unit, "computed", source).to_dict()
