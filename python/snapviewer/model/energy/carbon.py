"""What the electricity of a run puts into the air."""

from __future__ import annotations

from snapviewer.model.quantity import Quantity, unavailable

WORLD_G_PER_KWH = 481.0
WORLD_SOURCE = "world average of 2023 (Ember, yearly electricity data, 2024)"

_JOULES_PER_KWH = 3.6e6


def carbon_of(energy: Quantity, intensity_g_per_kwh: float | None = None) -> Quantity:
    """Tell the carbon dioxide of an energy.

    Args:
        energy: Joules.
        intensity_g_per_kwh: Grams of CO2 for a kilowatt-hour, as where the program will run; the
            world's average if it is not given.

    Returns:
        Grams. They are an estimate even where the energy was measured, for an average is not what
        the socket had at that moment.

    Raises:
        ValueError: The intensity is negative or no number.

    >>> carbon_of(Quantity(3.6e6, "J", "measured", "RAPL"), 50).value
    50.0
    """
    if energy.value is None:
        return unavailable("g CO2", energy.source)
    intensity, source = WORLD_G_PER_KWH, WORLD_SOURCE
    if intensity_g_per_kwh is not None:
        intensity, source = intensity_g_per_kwh, "as given"
    if not 0 <= intensity < float("inf"):
        raise ValueError(f"a carbon intensity is at least 0 g/kWh, not {intensity}")
    grams = energy.value / _JOULES_PER_KWH * intensity
    return Quantity(grams, "g CO2", "estimated", f"energy × {intensity:g} g CO2/kWh, {source}")
