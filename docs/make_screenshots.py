"""`make screenshots`: the pictures in the README, made anew; the window on a virtual screen.

A demo snapshot, a real window, real clicks; a real network that is run and explored: whoever
changes how these look runs this and commits what it writes.
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

import torch
from torchvision.models import resnet18

from snapviewer import demo
from snapviewer.explorer import ExplorerConfig, record_torch_module_forward_stats
from snapviewer.explorer.app.opening import subject_of
from snapviewer.gui.app import Window
from support.display import click, move, screenshot, xvfb
from support.explorer_driver import Driver, drive, normalised

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
        (DOCS / "explorer.svg").write_text(_explored(), encoding="utf-8")


def _explored() -> str:
    """Draw the explorer on a network whose runs were recorded, sorted by time."""
    torch.set_num_threads(1)
    model, pictures = resnet18(), []
    with record_torch_module_forward_stats(model):
        for _ in range(5):
            model(torch.rand(4, 3, 160, 160)).sum().backward()

    async def look(driver: Driver) -> None:
        await driver.press(*"rrrrtjj4")
        await driver.pilot.pause(1)
        pictures.append(normalised(driver.app.export_screenshot()))

    drive(subject_of(model), look, size=(124, 30), config=ExplorerConfig())
    return pictures[0]


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
