"""The window's icon: a small timeline."""

from __future__ import annotations

import tkinter as tk

from PIL import Image, ImageDraw, ImageTk

_BARS = (
    (0.0, 0.30, "#4c78c8"),
    (0.2, 0.52, "#e0823d"),
    (0.42, 0.80, "#4fa56b"),
    (0.6, 0.62, "#9467bd"),
)


def icon_of(root: tk.Misc) -> tk.PhotoImage:
    """Draw the icon."""
    size = 64
    image = Image.new("RGBA", (size, size), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    width = size * 0.32
    for left, height, color in _BARS:
        x = left * size + 2
        draw.rounded_rectangle((x, size * (1 - height), x + width, size - 2), 4, fill=color)
    return ImageTk.PhotoImage(image, master=root)  # type: ignore[return-value]
