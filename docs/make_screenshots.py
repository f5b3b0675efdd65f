"""`make screenshots`: the pictures of the window in the README, made anew on a virtual screen.

A demo snapshot, a real window, real clicks: whoever changes how the window looks runs this and
commits what it writes.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "tests"))

from display import click, move, screenshot, xvfb
from snapviewer import demo
from snapviewer.gui.app import Window

SNAPSHOT = demo.DemoOptions(events=12_000, seed=3, leak=True, oom=True)
SIZE = (1500, 860)


def main() -> None:
    """Make every picture."""
    with tempfile.TemporaryDirectory() as own, xvfb("-dpi", "96") as display:
        os.environ |= {"DISPLAY": display, "SNAPVIEWER_CONFIG": own, "SNAPVIEWER_CACHE": own}
        os.environ.pop("XAUTHORITY", None)
        path = Path(own) / "training.pickle"
        demo.write_demo(path, SNAPSHOT)
        for theme in ("light", "dark"):
            window = Window(theme=theme)
            window.root.geometry("{}x{}+0+0".format(*SIZE))
            _rest(window)
            window.state.open(path)
            _rest(window)
            _show_an_allocation(window)
            bottom = window.root.winfo_rooty() + window.root.winfo_height()
            picture = screenshot().crop((0, 0, SIZE[0], bottom))  # with the menus above
            picture.save(DOCS / f"window-{theme}.png", optimize=True)
            window.close()


def _show_an_allocation(window: Window) -> None:
    """Select the largest allocation at the peak, as a person would, and point at another."""
    plot, state = window.area.plot.widget, window.state
    assert state.timeline is not None
    assert state.device is not None
    window.state.go_to_peak()
    _rest(window)
    ids, offsets = state.timeline.stack(state.device.peak_event)
    sizes = state.device.allocations.size[ids]
    largest = int(sizes.argmax())
    middle = int(offsets[largest]) + int(sizes[largest]) // 2
    x, y = state.pixel_of(state.device.peak_event + 0.5, middle)
    left, top = plot.winfo_rootx(), plot.winfo_rooty()
    click(left + round(x), top + round(y))
    _wait(window, lambda: state.facts is not None)
    move(left + round(x) - 150, top + round(y) + 140)
    _rest(window)


def _rest(window: Window) -> None:
    end = time.monotonic() + 0.5
    _wait(window, lambda: time.monotonic() > end and not window.jobs.running())


def _wait(window: Window, is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not is_done() and time.monotonic() < end:
        window.root.update()
        time.sleep(0.005)


if __name__ == "__main__":
    main()
