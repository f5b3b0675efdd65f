"""Pictures in windows of a real X server: what is on the screen is compared pixel by pixel."""

from __future__ import annotations

import gc
import subprocess
import sys
import tkinter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random

import numpy as np
import pytest

from snapviewer import Image, Screen, Timeline
from snapviewer.report.picture.marks import PixelMark
from support.display import screenshot, xvfb
from support.marked_pictures import Pixels, any_marks, picture
from support.timeline_cases import crowd, loaded

pytestmark = [
    pytest.mark.gui,
    pytest.mark.skipif(sys.platform != "linux", reason="pictures go through Tk elsewhere"),
]

WIDTH, HEIGHT = 320, 200
MARKS = [
    PixelMark(0, 20, WIDTH, 1, (200, 10, 30)),
    PixelMark(-5, 30, 100, 100, (10, 200, 30), 90, over=True),
    PixelMark(300, 0, 50, HEIGHT, (1, 2, 3), over=True),
]


@pytest.fixture(scope="module")
def timeline(tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    snapshot = loaded(crowd(1), tmp_path_factory.mktemp("screen"))
    timeline: Timeline = snapshot.devices[0].timeline()
    return timeline


@pytest.fixture
def root(display: str) -> Iterator[tkinter.Tk]:
    root = tkinter.Tk(screenName=display)
    root.geometry("+40+30")
    yield root
    root.destroy()


@pytest.fixture
def window(root: tkinter.Tk) -> tkinter.Frame:
    """A part of a window that Tk leaves alone."""
    return _window(root)


@pytest.fixture
def screen(window: tkinter.Frame) -> Iterator[Screen]:
    screen = Screen(window.winfo_id())
    yield screen
    screen.close()


def _window(root: tkinter.Misc, **options: object) -> tkinter.Frame:
    frame = tkinter.Frame(root, width=WIDTH, height=HEIGHT, background="", **options)  # type: ignore[arg-type]
    frame.pack(side="left", padx=10)
    root.update()
    return frame


def _shown(window: tkinter.Misc) -> Pixels:
    """What the screen has where the window is."""
    left, top = window.winfo_rootx(), window.winfo_rooty()
    box = (left, top, left + window.winfo_width(), top + window.winfo_height())
    return np.asarray(screenshot().crop(box))


def _whole(timeline: Timeline) -> Image:
    return picture(timeline, (WIDTH, HEIGHT))


def test_the_screen_has_every_pixel_of_the_picture_and_its_marks(
    timeline: Timeline, window: tkinter.Frame, screen: Screen
) -> None:
    image = _whole(timeline)

    screen.show(image, MARKS)

    assert (_shown(window) == image.marked(MARKS)[:, :, :3]).all()
    screen.show(image)
    assert (_shown(window) == image.rgb).all()


@pytest.mark.parametrize("seed", range(8))
def test_any_picture_anywhere_covers_what_it_should(
    timeline: Timeline, window: tkinter.Frame, screen: Screen, seed: int
) -> None:
    random = Random(seed)
    below = _whole(timeline)
    # Larger than before, smaller, beyond the window, and too long for a coordinate of X11.
    size = random.choice([(400, 300), (30, 40), (WIDTH, HEIGHT), (700, 400), (40_000, 3)])
    image = picture(timeline, size, theme="dark")
    marks = any_marks(random, size)
    x = random.choice([0, 10, -15, WIDTH - 1, 5 - size[0], WIDTH // 2])
    y = random.choice([0, 10, -15, HEIGHT - 1, 2 - size[1], HEIGHT // 2])

    screen.show(below)
    screen.show(image, marks, x=x, y=y)

    expected = below.rgb.copy()
    top, left = max(y, 0), max(x, 0)
    part = image.marked(marks)[top - y :, left - x :, :3][: HEIGHT - top, : WIDTH - left]
    expected[top : top + part.shape[0], left : left + part.shape[1]] = part
    assert (_shown(window) == expected).all()


FAR = 2**63 - 1


@pytest.mark.parametrize(
    ("x", "y"),
    [(WIDTH, 0), (-WIDTH, 0), (0, HEIGHT), (0, -HEIGHT), (FAR, 0), (0, -FAR - 1), (65_536, 0)],
)
def test_a_picture_outside_of_the_window_changes_nothing(
    timeline: Timeline, window: tkinter.Frame, screen: Screen, x: int, y: int
) -> None:
    image = _whole(timeline)
    screen.show(image)

    screen.show(picture(timeline, (WIDTH, HEIGHT), theme="dark"), x=x, y=y)

    assert (_shown(window) == image.rgb).all()


def test_pictures_follow_the_window_when_it_grows(
    timeline: Timeline, window: tkinter.Frame, screen: Screen
) -> None:
    for width, height in [(100, 50), (900, 700), (901, 701), (20, 10), (1500, 900)]:
        window.configure(width=width, height=height)
        window.update()
        image = picture(timeline, (width, height))

        screen.show(image)

        assert (_shown(window) == image.rgb).all()


def test_windows_inside_of_the_window_are_not_painted_over(
    timeline: Timeline, window: tkinter.Frame, screen: Screen
) -> None:
    image = _whole(timeline)
    tip = tkinter.Frame(window, width=50, height=20, background="#123456")
    tip.place(x=60, y=40)
    window.update()

    screen.show(image)

    expected = image.rgb.copy()
    expected[40:60, 60:110] = (0x12, 0x34, 0x56)
    assert (_shown(window) == expected).all()


def test_a_window_with_an_alpha_channel_gets_opaque_pixels(
    timeline: Timeline, root: tkinter.Tk
) -> None:
    if ("truecolor", 32) not in root.winfo_visualsavailable():
        pytest.skip("the server has no visual of depth 32")
    window = _window(root, visual=("truecolor", 32))
    image = _whole(timeline)

    Screen(window.winfo_id()).show(image, MARKS)

    assert window.winfo_depth() == 32
    assert (_shown(window) == image.marked(MARKS)[:, :, :3]).all()


def test_two_windows_have_a_screen_each(timeline: Timeline, root: tkinter.Tk, display: str) -> None:
    windows = [_window(root), _window(root)]
    root.update()
    screens = [Screen(window.winfo_id(), display) for window in windows]
    images = [_whole(timeline), picture(timeline, (WIDTH, HEIGHT), theme="dark")]

    for screen, image in zip(screens, images, strict=True):
        screen.show(image)
    screens[0].close()

    for window, image in zip(windows, images, strict=True):
        assert (_shown(window) == image.rgb).all()


def test_threads_may_share_a_screen(
    timeline: Timeline, window: tkinter.Frame, screen: Screen
) -> None:
    halves = [picture(timeline, (WIDTH // 2, HEIGHT), theme=theme) for theme in ("light", "dark")]

    def show(number: int) -> None:
        for _ in range(50):
            screen.show(halves[number], x=number * WIDTH // 2)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(show, range(2)))

    assert (_shown(window) == np.hstack([half.rgb for half in halves])).all()


def _segments() -> int:
    """How many pieces of memory this process shares with X servers."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    return sum("memfd:snapviewer" in line for line in maps.splitlines())


def test_memory_is_given_back(timeline: Timeline, window: tkinter.Frame) -> None:
    window.configure(width=900, height=700)
    window.update()
    gc.collect()
    before = _segments()
    screens = [Screen(window.winfo_id()) for _ in range(2)]

    for size in [(50, 50), (500, 400), (900, 700)]:
        for screen in screens:
            screen.show(picture(timeline, size))

    assert _segments() == before + 2
    screens[0].close()
    assert _segments() == before + 1
    screens.clear()
    del screen
    gc.collect()
    assert _segments() == before


def test_a_closed_screen_refuses_pictures(
    timeline: Timeline, window: tkinter.Frame, screen: Screen
) -> None:
    screen.show(_whole(timeline))

    screen.close()
    screen.close()

    with pytest.raises(OSError, match="closed"):
        screen.show(_whole(timeline))


def test_a_window_that_is_gone_is_reported(timeline: Timeline, root: tkinter.Tk) -> None:
    window = _window(root)
    ident = window.winfo_id()
    screen = Screen(ident)
    screen.show(_whole(timeline))

    window.destroy()
    root.update()

    for _ in range(2):
        with pytest.raises(OSError, match="the window is gone"):
            screen.show(_whole(timeline))
    with pytest.raises(OSError, match="the window is gone"):
        Screen(ident)


def test_a_picture_that_was_given_up_is_not_shown(timeline: Timeline, screen: Screen) -> None:
    old = _whole(timeline)
    picture(timeline, (WIDTH, HEIGHT), previous=old)

    with pytest.raises(ValueError, match="given up"):
        screen.show(old)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (":64000", "does not answer"),
        ("nonsense", "no X11 display"),
        ("localhost:10.0", "another machine"),
        ("192.0.2.1:0", "another machine"),
        ("", "no X11 display"),
    ],
)
def test_a_display_that_cannot_share_memory_is_reported(name: str, reason: str) -> None:
    with pytest.raises(OSError, match=reason):
        Screen(1, name)


def test_no_display_at_all_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)

    with pytest.raises(OSError, match="no X11 display"):
        Screen(1)


def test_what_is_not_a_window_is_reported(display: str) -> None:
    for number in (0, 1, 2**32 - 1, 2**40):
        with pytest.raises(OSError, match="window"):
            Screen(number, display)


ELSEWHERE = """
import sys, tkinter
root = tkinter.Tk(screenName=sys.argv[1])
root.update()
print(root.winfo_id(), flush=True)
root.mainloop()
"""


@contextmanager
def _elsewhere(display: str) -> Iterator[int]:
    """A window of another process: Tk ends its own when the server goes."""
    with subprocess.Popen(
        [sys.executable, "-c", ELSEWHERE, display],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def test_a_server_without_shared_memory_is_reported() -> None:
    with (
        xvfb("-extension", "MIT-SHM") as display,
        _elsewhere(display) as window,
        pytest.raises(OSError, match="cannot share memory"),
    ):
        Screen(window, display)


@pytest.mark.parametrize("depth", [8, 16])
def test_a_server_with_other_pixels_is_reported(depth: int) -> None:
    with (
        xvfb(depth=depth) as display,
        _elsewhere(display) as window,
        pytest.raises(OSError, match="32 bits per pixel"),
    ):
        Screen(window, display)


def test_a_server_that_ends_is_reported(timeline: Timeline) -> None:
    with xvfb() as display, _elsewhere(display) as window:
        screen = Screen(window, display)
        screen.show(_whole(timeline))

    for _ in range(2):
        with pytest.raises(OSError, match="lost"):
            screen.show(_whole(timeline))
    screen.close()


def test_memory_can_be_made_ready_before_the_first_picture(
    timeline: Timeline, window: tkinter.Frame, screen: Screen
) -> None:
    image = _whole(timeline)

    screen.prepare(2 * WIDTH, 2 * HEIGHT)
    screen.prepare(WIDTH, HEIGHT)
    screen.show(image, MARKS)

    assert (_shown(window) == image.marked(MARKS)[:, :, :3]).all()
    screen.close()
    with pytest.raises(OSError, match="closed"):
        screen.prepare(WIDTH, HEIGHT)
    with pytest.raises(OverflowError):
        screen.prepare(70_000, 1)
