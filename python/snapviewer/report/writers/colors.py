"""The colours of a report by their use: greys for the page, colours for data."""

from __future__ import annotations

from typing import Literal, TypeAlias

from snapviewer.report.theme import THEMES, Color, color_of

Mode: TypeAlias = Literal["light", "dark"]
Ink: TypeAlias = str
"""The use of a colour: a key of `PALETTES`."""

SERIES_COUNT = 12

# Neighbours differ in hue and in lightness, so that the first few differ in grey print, too.
_SERIES = {
    "light": "0969da bc4c00 1a7f37 8250df c69026 0a8f9c bf3989 57606a 7cb518 3949ab a40e26 6f4e37",
    "dark": "4493f8 f0883e 3fb950 ab7df8 d9a62e 39c5cf f778ba 9ba5b0 a3d05a 8f9bff ff8f88 c9b458",
}
SERIES_HEX = tuple(f"#{digits}" for digits in _SERIES["light"].split())
"""For charts that Mermaid draws, on any background."""
_GREEN = {"light": "1a7f37", "dark": "3fb950"}
_PANEL = {"light": "f6f8fa", "dark": "1d2026"}
_CODE = {"light": "ebeef1", "dark": "2a2e36"}
_AXIS = {"light": "8c959f", "dark": "6e7681"}


def _palette(mode: Mode) -> dict[Ink, Color]:
    theme = THEMES[mode]
    greys = {
        "paper": theme.background,
        "panel": color_of(_PANEL[mode]),
        "code": color_of(_CODE[mode]),
        "text": theme.text,
        "secondary": theme.secondary,
        "grid": theme.grid,
        "axis": color_of(_AXIS[mode]),
    }
    tones = {
        "plain": theme.accent,
        "good": color_of(_GREEN[mode]),
        "warning": theme.peak,
        "bad": theme.oom,
    }
    series = {
        f"series{index}": color_of(digits) for index, digits in enumerate(_SERIES[mode].split())
    }
    return greys | tones | series


PALETTES: dict[Mode, dict[Ink, Color]] = {"light": _palette("light"), "dark": _palette("dark")}


def series_ink(index: int) -> Ink:
    """Return the ink of a series; after the last one they begin again.

    >>> series_ink(0), series_ink(12)
    ('series0', 'series0')
    """
    return f"series{index % SERIES_COUNT}"
