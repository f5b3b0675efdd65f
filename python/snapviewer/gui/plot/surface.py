"""Puts pictures on the screen: through shared memory where there is any, else through Tk.

Tk takes 20 to 30 ms for 2400 × 1000 pixels, most of it conversions and copies on one thread. On X11
the server can read the pixels from shared memory, over a connection of our own, into a window that
Tk made: about 4 ms.
"""

from __future__ import annotations

import logging
import tkinter as tk
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from PIL import Image as Pictures
from PIL import ImageTk

from snapviewer import Image
from snapviewer._core import Screen
from snapviewer.report.picture.marks import PixelMark

log = logging.getLogger(__name__)


class Surface(Protocol):
    """An area that shows pictures; `parts` are widgets on it that receive the mouse's events."""

    widget: tk.Frame
    parts: Sequence[tk.Misc]

    def prepare(self, width: int, height: int) -> None:
        """Prepare for a first picture of this size."""

    def show(self, image: Image, marks: Sequence[PixelMark]) -> None:
        """Put a picture on the screen."""


class SharedSurface:
    """Hands pixels to the X server in shared memory.

    Raises:
        OSError: This system or this display does not support it.
    """

    def __init__(self, parent: tk.Misc) -> None:
        # Without a background, the server does not clear what we draw.
        self.widget = tk.Frame(parent, background="", borderwidth=0, highlightthickness=0)
        self.widget.configure(takefocus=True)
        self.parts: Sequence[tk.Misc] = ()
        self._last: tuple[Image, Sequence[PixelMark]] | None = None
        self._again: str | None = None
        # Asking for the pointer makes sure that the server knows the new window.
        window = self.widget.winfo_id()
        self.widget.winfo_pointerxy()
        try:
            self._screen = Screen(window, self.widget.winfo_screen())
        except OSError:
            self.widget.destroy()
            raise
        self.widget.bind("<Expose>", self._show_again_soon, add=True)
        self.widget.bind("<Destroy>", lambda _: self._screen.close(), add=True)

    def prepare(self, width: int, height: int) -> None:
        """Allocate the memory now, which takes as long as drawing a picture."""
        with suppress(OSError, OverflowError):
            self._screen.prepare(width, height)

    def show(self, image: Image, marks: Sequence[PixelMark]) -> None:
        self._last = image, marks
        if self._again is not None:
            self.widget.after_cancel(self._again)
            self._again = None
        # The window may be closing.
        with suppress(OSError):
            self._screen.show(image, marks)

    def _show_again_soon(self, _: tk.Event[tk.Misc]) -> None:
        """Repaint areas that were covered, all at once."""
        if self._last is not None and self._again is None:
            self._again = self.widget.after_idle(self._show_again)

    def _show_again(self) -> None:
        self._again = None
        if self._last is not None:
            # If the picture has been reused meanwhile, a newer one follows.
            with suppress(ValueError):
                self.show(*self._last)


class PhotoSurface:
    """Hands pixels to Tk through Pillow: slower, but on every system."""

    def __init__(self, parent: tk.Misc) -> None:
        self.widget = tk.Frame(parent, borderwidth=0, highlightthickness=0)
        self.widget.configure(takefocus=True)
        self._label = tk.Label(self.widget, borderwidth=0, highlightthickness=0, padx=0, pady=0)
        self._label.place(x=0, y=0)
        self.parts: Sequence[tk.Misc] = (self._label,)
        self._photo: ImageTk.PhotoImage | None = None

    def prepare(self, width: int, height: int) -> None:
        """Do nothing: Tk allocates its memory with the first picture."""

    def show(self, image: Image, marks: Sequence[PixelMark]) -> None:
        pixels = image.marked(marks)
        height, width, _ = pixels.shape
        picture = Pictures.frombuffer("RGB", (width, height), pixels, "raw", "RGBX", 0, 1)
        if self._photo is None or (self._photo.width(), self._photo.height()) != (width, height):
            self._photo = ImageTk.PhotoImage(picture, master=self.widget)
            self._label.configure(image=self._photo)
        else:
            self._photo.paste(picture)


def make_surface(parent: tk.Misc) -> Surface:
    """Make the fastest surface that this display supports."""
    try:
        return SharedSurface(parent)
    except OSError as error:
        log.info("drawing through Tk, which is slower: %s", error)
        return PhotoSurface(parent)
