"""`make screenshots`: redraw the pictures of README and guide.

A demo snapshot in a real window on a virtual screen, reports in a real browser, a network that is
run and explored. Run it after a change of looks, and commit what it writes to `docs/pictures/`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "tests"))

import torch
from PIL import Image
from torchvision.models import resnet18

from snapviewer import cli, demo
from snapviewer.explorer import ExplorerConfig, record_torch_module_forward_stats
from snapviewer.explorer.explored_model import load_model
from snapviewer.gui.app import Window
from support.display import click, move, screenshot, xvfb
from support.explorer_driver import Driver, drive, normalised

PICTURES = DOCS / "pictures"
SNAPSHOT = demo.DemoOptions(events=20_000, leak=True, oom=True)
SIZE = (1500, 860)
BROWSER_SIZE = (1100, 900)


def main() -> None:
    """Make every picture."""
    with tempfile.TemporaryDirectory() as own, xvfb("-dpi", "96") as display:
        os.environ |= {"DISPLAY": display, "SNAPVIEWER_CONFIG": own, "SNAPVIEWER_CACHE": own}
        os.environ.pop("XAUTHORITY", None)
        os.chdir(own)
        demo.write_demo(Path("snap.pickle"), SNAPSHOT)
        draw_windows()
        draw_renders()
        draw_reports()
        (PICTURES / "explorer.svg").write_text(_explored(), encoding="utf-8")


def draw_windows() -> None:
    """Photograph the window in both themes, and what is alive at the cursor."""
    for theme in ("light", "dark"):
        window = Window(theme=theme)
        window.root.geometry("{}x{}+0+0".format(*SIZE))
        _rest(window)
        window.state.open(Path("snap.pickle"))
        _rest(window)
        if theme == "light":
            _photograph(window, "at-cursor")
        _show_an_allocation(window)
        _photograph(window, f"window-{theme}")
        window.close()


def draw_renders() -> None:
    """Draw the pictures of the pages on `render` and on leaks, as their commands do."""
    small = ["--res", "1200", "500"]
    forward = ["--range", "6600", "8200", "--filter", "forward size>=1MiB", "--dim"]
    for name, options in {
        "render": small,
        "forward": [*forward, "--order", "stack", "--theme", "dark", *small],
        "leak": ["--filter", "event=4000..17000 alive=19999", *small],
    }.items():
        _run("render", "snap.pickle", "-o", f"{name}.png", *options)
        _save(Image.open(f"{name}.png"), name)


def draw_reports() -> None:
    """Photograph the reports on a model and on a log, in a browser."""
    exported = torch.export.export(resnet18().eval(), (torch.zeros(1, 3, 224, 224),))
    torch.export.save(exported, "resnet18.pt2")
    _run("model", "resnet18.pt2", "-o", "model-report.html")
    guide = (DOCS / "guide" / "events.md").read_text(encoding="utf-8")
    (log,) = re.findall(r"^```json\n(\[.*?)^```", guide, re.MULTILINE | re.DOTALL)
    Path("memory_events.json").write_text(log, encoding="utf-8")
    _run("events", "memory_events.json", "--lang", "en", "-o", "events-report.html")
    for name in ("model-report", "events-report"):
        subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars",
             "--window-size={},{}".format(*BROWSER_SIZE), "--virtual-time-budget=2000",
             f"--screenshot={name}.png", Path(f"{name}.html").resolve().as_uri()],
            check=True, capture_output=True,
        )  # fmt: skip
        _save(Image.open(f"{name}.png"), name)


def _run(*arguments: str) -> None:
    if code := cli.main(arguments):
        raise SystemExit(code)


def _photograph(window: Window, name: str) -> None:
    bottom = window.root.winfo_rooty() + window.root.winfo_height()
    _save(screenshot().crop((0, 0, SIZE[0], bottom)), name)  # with the menus above


def _save(picture: Image.Image, name: str) -> None:
    """Save a picture in 256 colours, which is a third of the size and looks the same."""
    few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(PICTURES / f"{name}.png", optimize=True)


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

    drive(load_model(model), look, size=(124, 30), config=ExplorerConfig())
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
    _wait(window, lambda: state.allocation_details is not None)
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
