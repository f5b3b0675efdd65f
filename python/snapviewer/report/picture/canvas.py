"""Text, lines and boxes of a picture, at whole pixels.

Pillow's own font makes a picture the same on every machine. It has ASCII and few other characters,
and all its digits have one width.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from PIL import Image, ImageDraw, ImageFont

from snapviewer.report.theme import Color

Align = Literal["left", "middle", "right"]
_ANCHORS: dict[Align, str] = {"left": "ls", "middle": "ms", "right": "rs"}
_BEYOND_ASCII = "…·°±"
_TAIL = 8  # characters at the end of a shortened text
_INSTEAD = str.maketrans({"µ": "u", "×": "x", "–": "-", "—": "-", "−": "-", "’": "'", "ß": "ss"})


@lru_cache(maxsize=16)
def _font(size_px: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size_px)
    if not isinstance(font, ImageFont.FreeTypeFont):  # a Pillow that was built without FreeType
        raise OSError("this Pillow cannot draw text; reinstall it from a wheel")
    return font


def text_width(text: str, size_px: int) -> int:
    """Return the width of a text."""
    return round(_font(size_px).getlength(printable(text)))


def printable(text: str) -> str:
    r"""Replace the characters that the font lacks.

    >>> printable("é 雪\n3 µs")
    'e ? 3 us'
    """
    text = " ".join(text.split())
    if text.isascii() and text.isprintable():
        return text
    plain = unicodedata.normalize("NFKD", text.translate(_INSTEAD))
    letters = (letter for letter in plain if not unicodedata.combining(letter))
    return "".join(
        letter if " " <= letter <= "~" or letter in _BEYOND_ASCII else "?" for letter in letters
    )


def shorten_to_width(text: str, size_px: int, room_px: int) -> str:
    """Shorten a text near its end, which stays: names that begin alike often differ there."""
    if len(text) <= room_px and text_width(text, size_px) <= room_px:
        return text
    tail = text[-_TAIL:] if len(text) > 3 * _TAIL else ""
    # No character is narrower than a pixel, so that a huge text takes no longer.
    text = text[: len(text) - len(tail)][:room_px]
    fits = bisect_right(
        range(1, len(text) + 1),
        room_px,
        key=lambda count: text_width(f"{text[:count]}…{tail}", size_px),
    )
    return f"{text[:fits].rstrip()}…{tail}" if fits else ""


@lru_cache(maxsize=8192)
def text_coverage(text: str, size_px: int, room_px: int) -> tuple[int, int, bytes]:
    """Draw a text, shortened to a room.

    Returns:
        Its width and height, and how far it covers each pixel, row by row; nothing where not even
        a few letters have room.
    """
    short = shorten_to_width(text, size_px, room_px)
    if len(short) < min(3, len(text)):
        return 0, 0, b""
    width, height = min(text_width(short, size_px) + 1, room_px), round(size_px * 1.3)
    image = Image.new("L", (max(width, 1), height))
    ImageDraw.Draw(image).text(
        (0, size_px), printable(short), fill=255, font=_font(size_px), anchor="ls"
    )
    return image.width, height, image.tobytes()


def wrap_facts(facts: Sequence[str], size_px: int, room_px: int) -> list[str]:
    """Join facts to lines, with a dot between two on the same line."""
    lines: list[str] = []
    for fact in facts:
        longer = f"{lines[-1]}  ·  {fact}" if lines else fact
        if lines and text_width(longer, size_px) <= room_px:
            lines[-1] = longer
        else:
            lines.append(shorten_to_width(fact, size_px, room_px))
    return lines


class Canvas:
    """A picture to draw on. Places are in pixels, from the left and from the top."""

    def __init__(self, image: Image.Image) -> None:
        self.image = image
        self._draw = ImageDraw.Draw(image)

    def text(
        self,
        place: tuple[int, int],
        text: str,
        *,
        size_px: int,
        color: Color,
        align: Align = "left",
    ) -> None:
        """Draw a line of text; `place` is the start, the middle or the end of its baseline."""
        x, y = place
        if align == "middle":  # at a whole pixel, so that equal texts look equal
            x -= text_width(text, size_px) // 2
            align = "left"
        anchor = _ANCHORS[align]
        self._draw.text((x, y), printable(text), fill=color, font=_font(size_px), anchor=anchor)

    def box(self, left: int, top: int, width: int, height: int, color: Color) -> None:
        """Fill a rectangle."""
        if width > 0 and height > 0:
            self._draw.rectangle((left, top, left + width - 1, top + height - 1), fill=color)

    def polygon(self, points: Sequence[tuple[int, int]], color: Color) -> None:
        """Fill a shape."""
        self._draw.polygon(points, fill=color)

    def line(self, start: tuple[int, int], end: tuple[int, int], width: int, color: Color) -> None:
        """Draw a line."""
        self._draw.line((start, end), fill=color, width=width)
