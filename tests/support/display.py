"""A screen for tests that nobody sees: a virtual X server, what is on it, and a hand to use it.

Tests that take the fixture `display` run on a server of this session, never on a person's screen.
Keys go to the window with the focus; there is no window manager, so a test takes it by
`focus_force()`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image, ImageGrab

SIZE = (2600, 1400)


@pytest.fixture(scope="session")
def display() -> Iterator[str]:
    """The name of the session's display, which is also in the environment."""
    with xvfb() as name, pytest.MonkeyPatch.context() as environment:
        environment.setenv("DISPLAY", name)
        environment.delenv("XAUTHORITY", raising=False)
        yield name


@contextmanager
def xvfb(*options: str, depth: int = 24, size: tuple[int, int] = SIZE) -> Iterator[str]:
    """A virtual X server, on a display that nobody uses."""
    program = shutil.which("Xvfb")
    if program is None:
        pytest.skip("Xvfb is not installed: apt-get install xvfb")
    reader, writer = os.pipe()
    screen = f"{size[0]}x{size[1]}x{depth}"
    command = [program, "-displayfd", str(writer), "-screen", "0", screen, "-nolisten", "tcp"]
    with subprocess.Popen(
        [*command, "-noreset", *options],
        pass_fds=[writer],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            os.close(writer)
            with open(reader) as file:
                number = file.readline().strip()
            assert number, "Xvfb did not start"
            yield f":{number}"
        finally:
            server.terminate()


def screenshot(path: Path | None = None) -> Image.Image:
    """What the display shows, also written to a file if one is named."""
    image = ImageGrab.grab(xdisplay=os.environ["DISPLAY"]).convert("RGB")
    if path is not None:
        image.save(path)
    return image


# What a person does. Places are pixels of the screen. Each returns when the server has heard of it.

LEFT, MIDDLE, RIGHT, WHEEL_UP, WHEEL_DOWN = range(1, 6)


def key(*names: str) -> None:
    """Press and release keys one after the other, such as "Home", "ctrl+f"."""
    _xdotool("key", "--delay", "2", *names)


def key_down(name: str) -> None:
    """Press a key and hold it; the server repeats it."""
    _xdotool("keydown", name)


def key_up(name: str) -> None:
    _xdotool("keyup", name)


def write(text: str) -> None:
    """Type a text."""
    _xdotool("type", "--delay", "2", "--", text)


def move(x: int, y: int) -> None:
    """Move the pointer."""
    _xdotool("mousemove", str(x), str(y))


def click(x: int, y: int, *, button: int = LEFT, times: int = 1) -> None:
    move(x, y)
    _xdotool("click", "--repeat", str(times), "--delay", "20", str(button))


def wheel(x: int, y: int, steps: int) -> None:
    """Turn the wheel by some steps, upwards if positive."""
    click(x, y, button=WHEEL_UP if steps > 0 else WHEEL_DOWN, times=abs(steps))


def drag(start: tuple[int, int], end: tuple[int, int], *, button: int = LEFT) -> None:
    """Press a button at a place and release it at another, by way of the middle."""
    middle = (start[0] + end[0]) // 2, (start[1] + end[1]) // 2
    move(*start)
    mouse_down(button)
    move(*middle)
    move(*end)
    mouse_up(button)


def mouse_down(button: int = LEFT) -> None:
    """Press a button and hold it."""
    _xdotool("mousedown", str(button))


def mouse_up(button: int = LEFT) -> None:
    _xdotool("mouseup", str(button))


def focus_window(title: str) -> None:
    """Wait for a window with this in its title, and give it the keyboard."""
    _xdotool("search", "--sync", "--onlyvisible", "--name", title, "windowfocus", "--sync")


def resize_window(title: str, width: int, height: int) -> None:
    """Give the window with this in its title another size."""
    size = (str(width), str(height))
    _xdotool("search", "--onlyvisible", "--name", title, "windowsize", "--sync", *size)


def _xdotool(*arguments: str) -> None:
    program = shutil.which("xdotool")
    if program is None:
        pytest.skip("xdotool is not installed: apt-get install xdotool")
    subprocess.run([program, *arguments], check=True, timeout=60)
