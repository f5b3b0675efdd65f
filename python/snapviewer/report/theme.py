"""The colours of everything that is not data: greys for the interface, a few accents."""

from __future__ import annotations

from typing import NamedTuple

Color = tuple[int, int, int]


class Theme(NamedTuple):
    """Colours as (red, green, blue)."""

    background: Color
    text: Color
    secondary: Color
    grid: Color
    accent: Color
    peak: Color
    oom: Color


def color_of(code: str) -> Color:
    """Return a colour from its hexadecimal digits."""
    red, green, blue = bytes.fromhex(code)
    return red, green, blue


def _theme(codes: str) -> Theme:
    return Theme(*map(color_of, codes.split()))


THEMES = {
    "light": _theme("ffffff 1f2328 59636e e5e8eb 0969da bc4c00 d1242f"),
    "dark": _theme("16181d e6e8eb 9198a1 2b2f36 4493f8 f0883e ff6a69"),
}
