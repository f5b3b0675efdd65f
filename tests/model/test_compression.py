"""How small a parameter could be stored, at every limit, without torch and without a file."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from snapviewer.model.compression import (
    FORMULA,
    compressibility,
    compression_of,
    compression_ratio,
    pruning_potential,
    quantization_sensitivity,
    why_unknown,
)
from snapviewer.model.quantity import Quantity


def stand_in(
    *,
    bits: int = 32,
    elements: int = 100,
    zeros: int | None = 0,
    entropy: float | None = 7.0,
    int8: float | None = 29.9,
    int4: float | None = 19.9,
    lost: float = 0.5,
    max_abs: float = 1.0,
    has_quality: bool = True,
) -> Any:
    """A parameter of which a tenth can be pruned with this loss."""
    trips = [
        SimpleNamespace(format="int8", sqnr_db=int8, channel_sqnr_db=None),
        SimpleNamespace(format="int4", sqnr_db=None, channel_sqnr_db=int4),
    ]
    quality = SimpleNamespace(
        max_abs=max_abs,
        round_trips=trips,
        pruning=[SimpleNamespace(share=0.1, lost=lost), SimpleNamespace(share=0.2, lost=1.0)],
    )
    return SimpleNamespace(
        elements=elements,
        size_bytes=elements * bits // 8,
        sparsity=None if zeros is None else zeros / 100,
        stats=None if zeros is None else SimpleNamespace(entropy=entropy),
        quality=quality if has_quality else None,
        tied_to=None,
        unmeasured=None,
    )


@pytest.mark.promise("M21")
@pytest.mark.parametrize(
    ("known", "bits", "way"),
    [
        ({}, 32.0, "as stored"),
        ({"lost": 0.01}, 32 * 0.9 + 1, "pruned (10 %), with a mask"),
        ({"lost": 0.011}, 32.0, "as stored"),
        ({"lost": 0.01, "zeros": 10}, 32 * 0.9 + 1, "zeros left out (10 %), with a mask"),
        ({"lost": 0.01, "zeros": 50}, 17.0, "zeros left out (50 %), with a mask"),
        ({"int8": 30.0}, 8.0, "int8, entropy coded"),
        ({"int8": 30.0, "entropy": 3.5}, 5.5, "int8, entropy coded"),
        ({"int8": 30.0, "entropy": None}, 8.0, "int8, entropy coded"),
        ({"int4": 20.0}, 4.0, "int4"),
        ({"bits": 16}, 16.0, "as stored"),
        ({"bits": 4, "int8": 60.0, "int4": 60.0}, 4.0, "as stored"),
        ({"has_quality": False, "zeros": 50}, 17.0, "zeros left out (50 %), with a mask"),
    ],
)
def test_the_fewest_bits_that_keep_a_tensor_good_enough(
    known: dict[str, Any], bits: float, way: str
) -> None:
    item = stand_in(**known)
    stored = known.get("bits", 32)

    found = compression_of(item)

    assert found is not None
    assert (found.stored_bits, found.way) == (stored, way)
    assert found.bits == pytest.approx(bits)
    source = f"{FORMULA}; here: {way}"
    source += "" if item.quality else "; fewer bits and pruning were not tried"
    assert compressibility(item) == Quantity(found.score, "share", "computed", source)
    ratio = Quantity(found.ratio, "×", "computed", f"stored bits / bits: {way}")
    assert compression_ratio(item) == ratio
    assert found.score == pytest.approx(1 - bits / stored)
    assert found.ratio == pytest.approx(stored / bits)


@pytest.mark.promise("M21")
@pytest.mark.parametrize("known", [{"zeros": None}, {"elements": 0}, {"bits": 0}])
def test_without_elements_there_is_no_answer_but_a_reason(known: dict[str, Any]) -> None:
    item = stand_in(**known)

    assert compression_of(item) is None
    for unit, found in (("share", compressibility(item)), ("×", compression_ratio(item))):
        expected = (None, unit, "unavailable", "the elements were not read")
        assert (found.value, found.unit, found.status, found.source) == expected


@pytest.mark.promise("M21")
@pytest.mark.parametrize(
    ("decibels", "share"), [(60.0, 0.0), (50.0, 0.0), (30.0, 0.5), (10.0, 1.0), (-80.0, 1.0)]
)
def test_sensitivity_goes_from_harmless_to_useless(decibels: float, share: float) -> None:
    assert quantization_sensitivity(stand_in(int8=decibels)) == share


@pytest.mark.promise("M21")
def test_what_cannot_be_pruned_has_no_potential_and_what_loses_too_much_has_0() -> None:
    assert pruning_potential(stand_in(lost=0.5)) == 0.0
    assert pruning_potential(stand_in(lost=0.0)) == 0.1
    assert pruning_potential(stand_in(max_abs=0.0)) is None
    assert pruning_potential(stand_in(has_quality=False)) is None


@pytest.mark.promise("M21")
def test_what_is_unknown_has_its_reason() -> None:
    tied, failed = stand_in(), stand_in(has_quality=False)
    tied.tied_to, failed.unmeasured = "embedding.weight", "its file ends early"

    assert why_unknown(tied) == "tied to embedding.weight"
    assert why_unknown(failed) == "its file ends early"
    assert why_unknown(stand_in(max_abs=0.0)) == "all of its elements are zero"
    assert why_unknown(stand_in(has_quality=False)) == "the elements were not read"
