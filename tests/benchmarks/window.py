"""The window's benchmarks: from a key press to new pixels, from opening to the first picture.

A real window on a virtual X server. Presses are given to Tk's event queue; a frame counts as shown
when the server has its pixels. The engine's share and the screen's share of each are measured
apart; the rest is Tk: the key, the axes, the status line. The baseline of a frame is what Pillow's
`PhotoImage.paste` takes for one of the same size in the same run.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
import tkinter as tk
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from baseline import best, pickle_load

from snapviewer import demo
from snapviewer.gui.app import Window
from snapviewer.gui.plot.surface import PhotoSurface
from snapviewer.gui.viewport import Viewport
from support.display import xvfb

SIZE = (2400, 1000)
PRESSES = 200
MEDIAN_LIMIT_MS, MOST_LIMIT_MS = 20.0, 33.0
OPEN_LIMIT = 0.15
OPENINGS = 5
SMOOTH_LIMIT = 1.25
EVENTS = (100_000, 1_000_000, 5_000_000)
_WAIT_SECONDS = 0.5

# In and out, to both sides, up and down: what a person does, never twice the same picture.
_KEYS = ("plus", "d", "plus", "d", "w", "plus", "a", "s", "minus", "d", "d", "minus", "a", "plus")


@dataclass(frozen=True)
class Frame:
    """One press: from the key to the pixels, and the shares of engine and screen, in seconds."""

    whole: float
    engine: float
    screen: float


def run(folder: Path) -> None:
    """Print the tables."""
    with xvfb("-dpi", "96") as display, tempfile.TemporaryDirectory() as own:
        os.environ |= {"DISPLAY": display, "SNAPVIEWER_CONFIG": own, "SNAPVIEWER_CACHE": own}
        os.environ.pop("XAUTHORITY", None)
        _print_tables(folder)


def _print_tables(folder: Path) -> None:
    width, height = SIZE
    print(f"\nthe window, plot of {width} × {height}; milliseconds, median / 95th percentile")
    pans: dict[int, float] = {}
    held: dict[int, float] = {}
    for events in EVENTS:
        path = folder / f"demo-{events}.pickle"
        if not path.exists():
            demo.write_demo(path, demo.DemoOptions(events=events))
        window = Window(plot_size=SIZE)
        pump(window, 0.5)
        assert window.state.plot_px == SIZE, window.state.plot_px
        baseline = best(partial(pickle_load, path), repeats=2)
        openings = [_open(window, path) for _ in range(OPENINGS)]
        first, usual = openings[0], float(np.median(openings))
        is_over = events == 1_000_000 and usual / baseline > OPEN_LIMIT
        print(
            f"  {events:,} events: picture {1e3 * usual:.0f} ms after opening, "
            f"{usual / baseline:.3f}× of pickle.load (limit {OPEN_LIMIT})"
            f"{'   OVER' if is_over else ''}; the very first {1e3 * first:.0f}, "
            f"{first / baseline:.3f}×"
        )
        wait_for_jobs(window)
        frames = list(_press(window))
        _print_frames("key to pixels", frames, is_limited=events == 1_000_000)
        pans[events] = float(np.median([frame.whole for frame in frames]))
        held[events] = _frames_while_held(window)
        print(f"    a key held             {held[events]:.0f} frames a second")
        if events == 1_000_000:
            paste = _paste_seconds(window)
            ratio = pans[events] / paste
            print(
                f"    Pillow's paste alone   {1e3 * paste:.1f}; a whole press is {ratio:.2f}× that"
            )
        window.close()
    slower = held[EVENTS[0]] / held[EVENTS[-1]]
    verdict = "" if slower <= SMOOTH_LIMIT else "   OVER"
    print(
        f"  5M against 100k: frames while a key is held {slower:.2f}× as long (limit "
        f"{SMOOTH_LIMIT}){verdict}, a press {pans[EVENTS[-1]] / pans[EVENTS[0]]:.2f}×"
    )


def _print_frames(name: str, frames: list[Frame], *, is_limited: bool) -> None:
    whole = _percentiles([frame.whole for frame in frames])
    engine = _percentiles([frame.engine for frame in frames])
    screen = _percentiles([frame.screen for frame in frames])
    tk = _percentiles([frame.whole - frame.engine - frame.screen for frame in frames])
    limits = f"(limits {MEDIAN_LIMIT_MS:.0f} / {MOST_LIMIT_MS:.0f})" if is_limited else ""
    is_over = whole[0] > MEDIAN_LIMIT_MS or whole[1] > MOST_LIMIT_MS
    verdict = "   OVER" if is_limited and is_over else ""
    print(
        f"    {name:22} {whole[0]:.1f} / {whole[1]:.1f} {limits}{verdict}; engine "
        f"{engine[0]:.1f} / {engine[1]:.1f}, screen {screen[0]:.1f} / {screen[1]:.1f}, "
        f"Tk {tk[0]:.1f} / {tk[1]:.1f}",
        flush=True,
    )


def _percentiles(seconds: list[float]) -> tuple[float, float]:
    median, most = np.percentile(seconds, (50, 95))
    return 1e3 * float(median), 1e3 * float(most)


def _press(window: Window) -> Iterator[Frame]:
    """Press keys one after the other, each from rest."""
    plot = window.area.plot
    plot.widget.focus_force()
    pump(window, 0.2)
    for number in range(PRESSES):
        if number % 70 == 69:
            window.state.fit_all()
            pump(window, 0.1)
        key, before = _KEYS[number % len(_KEYS)], plot.drawn.number
        start = time.perf_counter()
        plot.widget.event_generate(f"<KeyPress-{key}>", when="tail")
        _until_drawn(window, before)
        drawn = plot.drawn
        plot.widget.event_generate(f"<KeyRelease-{key}>", when="tail")
        pump(window, 0.07)
        if drawn.number > before:  # at an edge of the trace, nothing moves
            yield Frame(drawn.at - start, drawn.engine_seconds, drawn.screen_seconds)


def _frames_while_held(window: Window) -> float:
    """Hold a key for a second, in the middle of the trace, and return the frames that it gave."""
    state, plot = window.state, window.area.plot
    width = state.world.right
    state.go(Viewport(0.3 * width, 0.32 * width, 0, state.world.high))
    pump(window, 0.3)
    before, start = plot.drawn.number, time.perf_counter()
    plot.widget.event_generate("<KeyPress-d>", when="tail")
    pump(window, 1.0)
    frames, spent = plot.drawn.number - before, time.perf_counter() - start
    plot.widget.event_generate("<KeyRelease-d>", when="tail")
    pump(window, 0.2)
    return frames / spent


def _open(window: Window, path: Path) -> float:
    """Open a file, and return the seconds until its first picture is on the screen."""
    wait_for_jobs(window)
    plot, seen = window.area.plot, []
    window.state.on(lambda: seen.append(plot.drawn.at), "document")
    gc.collect()
    start = time.perf_counter()
    window.state.open(path)
    _until(window, lambda: bool(seen))
    return seen[0] - start


def _paste_seconds(window: Window) -> float:
    """Time the portable way of showing a frame of the same size."""
    top = tk.Toplevel(window.root)
    surface = PhotoSurface(top)
    surface.widget.configure(width=SIZE[0], height=SIZE[1])
    surface.widget.pack()
    timeline = window.state.timeline
    assert timeline is not None
    seconds = []
    for shift in range(20):
        image = timeline.image(events=(shift * 100, 50_000), bytes=(0, 2**32), size=SIZE)
        start = time.perf_counter()
        surface.show(image, ())
        window.root.update()
        seconds.append(time.perf_counter() - start)
    top.destroy()
    return float(np.median(seconds))


def wait_for_jobs(window: Window) -> None:
    """Wait until nothing goes on aside."""
    _until(window, lambda: not window.jobs.running())


def pump(window: Window, seconds: float) -> None:
    """Let the window do what it does for a while."""
    end = time.perf_counter() + seconds
    _until(window, lambda: time.perf_counter() >= end)


def _until_drawn(window: Window, before: int) -> None:
    end = time.perf_counter() + _WAIT_SECONDS
    _until(window, lambda: window.area.plot.drawn.number > before or time.perf_counter() > end)


def _until(window: Window, is_done: Callable[[], bool]) -> None:
    """Handle events one by one, as the main loop does; `update` would go on while a key is held."""
    while not is_done():
        # So that something happens in any case: handling waits for it.
        tick = window.root.after(5, lambda: None)
        window.root.tk.dooneevent(0)
        window.root.after_cancel(tick)


if __name__ == "__main__":
    run(Path(__file__).resolve().parents[2] / "build" / "bench")
