"""The window's colours for the terminal."""

from __future__ import annotations

from rich.terminal_theme import TerminalTheme
from textual.theme import Theme

from snapviewer.report.theme import THEMES, Color

PREFIX = "snapviewer-"


def hex_of(color: Color) -> str:
    """Write a colour as style sheets do."""
    return "#{:02x}{:02x}{:02x}".format(*color)


def textual_theme(name: str) -> Theme:
    """Return the theme "dark" or "light" as Textual has it."""
    colors = THEMES[name]
    background, text, accent = map(hex_of, (colors.background, colors.text, colors.accent))
    quiet, grid = hex_of(colors.secondary), hex_of(colors.grid)
    return Theme(
        name=f"{PREFIX}{name}",
        primary=accent,
        secondary=quiet,
        accent=accent,
        warning=hex_of(colors.peak),
        error=hex_of(colors.oom),
        success=_GOOD[name],
        foreground=text,
        background=background,
        surface=background,
        panel=grid,
        dark=name == "dark",
        variables={
            **variables(name),
            "border": accent,
            "border-blurred": grid,
            "footer-background": background,
            "footer-foreground": quiet,
            "footer-item-background": background,
            "footer-key-background": background,
            "footer-key-foreground": accent,
            "footer-description-background": background,
            "footer-description-foreground": quiet,
            "scrollbar": grid,
            "scrollbar-hover": quiet,
            "scrollbar-active": accent,
            "scrollbar-background": background,
            "scrollbar-background-hover": background,
            "scrollbar-background-active": background,
            "scrollbar-corner-color": background,
            "input-selection-background": f"{accent} 35%",
        },
    )


def variables(name: str) -> dict[str, str]:
    """Return the names that our styles use beside Textual's own."""
    colors = THEMES[name]
    return {
        "quiet": hex_of(colors.secondary),
        "grid": hex_of(colors.grid),
        "good": _GOOD[name],
        "guide": _mixed(colors.secondary, colors.background, 0.5),
        "cursor": _mixed(colors.accent, colors.background, 0.28),
        "same": _mixed(colors.accent, colors.background, 0.1),
    }


def _mixed(color: Color, background: Color, share: float) -> str:
    """Lay a colour thinly over another; styles of single letters know no transparency."""
    red, green, blue = (
        round(share * over + (1 - share) * under)
        for over, under in zip(color, background, strict=True)
    )
    return hex_of((red, green, blue))


def ansi_theme(name: str) -> TerminalTheme:
    """Return what a terminal's sixteen colours, which panels use, are in a theme."""
    colors = THEMES[name]
    basic = [_rgb(code) for code in _ANSI[name].split()]
    return TerminalTheme(colors.background, colors.text, basic[:8], basic[8:])


def _rgb(code: str) -> Color:
    red, green, blue = bytes.fromhex(code)
    return red, green, blue


_GOOD = {"dark": "#3fb950", "light": "#1a7f37"}
# Black, red, green, yellow, blue, magenta, cyan, white; then the bright ones.
_ANSI = {
    "dark": "484f58 ff6a69 3fb950 f0883e 4493f8 bc8cff 56c2d6 c9d1d9"
    " 6e7681 ff8a89 56d364 e3b341 79c0ff d2a8ff 79d7e6 ffffff",
    "light": "24292f d1242f 1a7f37 bc4c00 0969da 8250df 1b7c83 6e7781"
    " 57606a a40e26 2da44e 9a6700 218bff a475f9 3192aa 8c959f",
}
