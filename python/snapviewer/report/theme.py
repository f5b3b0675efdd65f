"""The colours of everything that is not data: greys for the interface, a few accents."""

from __future__ import annotations

from dataclasses import dataclass

Color = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours as (red, green, blue)."""

    background: Color
    text: Color
    secondary: Color
    grid: Color
    accent: Color
    peak: Color
    oom: Color


def _color(code: str) -> Color:
    red, green, blue = bytes.fromhex(code)
    return red, green, blue


THEMES = {
    "light": Theme(
        background=_color("ffffff"),
        text=_color("1f2328"),
        secondary=_color("59636e"),
        grid=_color("e5e8eb"),
        accent=_color("0969da"),
        peak=_color("bc4c00"),
        oom=_color("d1242f"),
    ),
    "dark": Theme(
        background=_color("16181d"),
        text=_color("e6e8eb"),
        secondary=_color("9198a1"),
        grid=_color("2b2f36"),
        accent=_color("4493f8"),
        peak=_color("f0883e"),
        oom=_color("ff6a69"),
    ),
}
