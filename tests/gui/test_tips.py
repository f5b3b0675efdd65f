"""A tip can be read, wherever the pointer is and whatever happens to the window."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Iterator

import pytest

from snapviewer.gui.theme import apply_theme, palette_of
from snapviewer.gui.tips import Tip


@pytest.fixture
def frame(display: str) -> Iterator[tk.Frame]:
    root = tk.Tk()
    apply_theme(root, "light")
    frame = tk.Frame(root, width=600, height=300)
    frame.place(x=0, y=0)
    root.geometry("800x400")
    root.update()
    yield frame
    root.destroy()


@pytest.mark.gui
def test_a_tip_stays_inside_when_its_parent_becomes_smaller(frame: tk.Frame) -> None:
    tip = Tip(frame)
    tip.show("6.25 MiB · alive throughout the trace", 280, 100, palette_of("light"))
    frame.update()
    assert tip.label.winfo_x() > 280

    frame.configure(width=320)
    frame.update()

    assert tip.label.winfo_x() + tip.label.winfo_width() <= 320
