"""Puts pictures on the screen: through shared memory where the system has it, else through Tk.

Tk's own way takes 20 to 30 ms for 2400 × 1000 pixels, most of it conversions and copies on one
thread. On X11 the pixels can be handed to the server in shared memory, over a connection of our
own, into a window that Tk made: about 4 ms. Either shows a picture with its marks, and a widget to
bind events to and to place tips on.
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
    """An area of the window that shows pictures; `parts` lie on it and have the mouse's events."""

    widget: tk.Frame
    parts: Sequence[tk.Misc]

    def prepare(self, width: int, height: int) -> None:
        """Be ready for a first picture of this size."""

    def show(self, image: Image, marks: Sequence[PixelMark]) -> None:
        """Put a picture on the screen."""


class SharedSurface:
    """Pixels go to the X server in shared memory.

    Raises:
        OSError: Not on this system, or not on this display.
    """

    def __init__(self, parent: tk.Misc) -> None:
        # Without a background, the server does not clear what we draw.
        self.widget = tk.Frame(parent, background="", borderwidth=0, highlightthickness=0)
        self.widget.configure(takefocus=True)
        self.parts: Sequence[tk.Misc] = ()
        self._last: tuple[Image, Sequence[PixelMark]] | None = None
        self._again: str | None = None
        # Asking where the pointer is makes the server hear of the new window first.
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
        """Get the memory now: new memory takes the system as long as a picture."""
        with suppress(OSError, OverflowError):
            self._screen.prepare(width, height)

    def show(self, image: Image, marks: Sequence[PixelMark]) -> None:
        self._last = image, marks
        if self._again is not None:
            self.widget.after_cancel(self._again)
            self._again = None
        # A window that is being closed has nothing to show.
        with suppress(OSError):
            self._screen.show(image, marks)

    def _show_again_soon(self, _: tk.Event[tk.Misc]) -> None:
        """Show the picture once more where something lay over it: once for many such places."""
        if self._last is not None and self._again is None:
            self._again = self.widget.after_idle(self._show_again)

    def _show_again(self) -> None:
        self._again = None
        if self._last is not None:
            # A picture that was given up meanwhile is about to be followed by a newer one.
            with suppress(ValueError):
                self.show(*self._last)


class PhotoSurface:
    """Pixels go through Pillow and Tk: everywhere, and slower."""

    def __init__(self, parent: tk.Misc) -> None:
        self.widget = tk.Frame(parent, borderwidth=0, highlightthickness=0)
        self.widget.configure(takefocus=True)
        self._label = tk.Label(self.widget, borderwidth=0, highlightthickness=0, padx=0, pady=0)
        self._label.place(x=0, y=0)
        self.parts: Sequence[tk.Misc] = (self._label,)
        self._photo: ImageTk.PhotoImage | None = None

    def prepare(self, width: int, height: int) -> None:
        """Do nothing: Tk gets its memory with the first picture."""

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
    """Make the quickest surface that there is here."""
    try:
        return SharedSurface(parent)
    except OSError as error:
        log.info("pictures go through Tk, which is slower: %s", error)
        return PhotoSurface(parent)
