"""What all tests share. None of them touches the cache of whoever runs them."""

from __future__ import annotations

import gc
import importlib.util
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support import hostile, program
from support.display import display

if TYPE_CHECKING:
    from support.driver import Driver

# Looking for doctests in a file imports it.
_NEED_TORCH = [
    "support/checkpoint_cases.py",
    "support/explorer_models.py",
    "support/live_models.py",
    "support/recorded_models.py",
    "support/script_models.py",
]
collect_ignore = [] if importlib.util.find_spec("torch") else _NEED_TORCH

__all__ = ["cache", "collected", "demo", "display", "driver", "one_driver", "small"]


@pytest.fixture(scope="module", autouse=True)
def collected() -> None:
    """Nothing is left of the windows of earlier tests: Tcl aborts if a job's thread frees them."""
    gc.collect()


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, for this process and those that it starts."""
    path = tmp_path_factory.mktemp("cache") / "snapviewer"
    monkeypatch.setenv("SNAPVIEWER_CACHE", str(path))
    monkeypatch.delenv("SNAPVIEWER_CACHE_BYTES", raising=False)
    monkeypatch.setenv("COLUMNS", "")  # readline sets it behind Python's back
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A snapshot of which everything is known."""
    path = tmp_path / "small.pickle"
    path.write_bytes(pickle.dumps(hostile.small_snapshot()))
    return path


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot of two devices, where memory runs out and steps are annotated."""
    path = tmp_path_factory.mktemp("demo") / "demo.pickle"
    ran = program.run("demo", "-o", path, "--events", "9000", "--devices", "2", "--oom")
    assert ran.code == 0, ran.err
    return path


@pytest.fixture(scope="session")
def one_driver(display: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """The program's window: one for all tests, of which no second could take the keyboard."""
    from snapviewer.gui.app import Window
    from support.driver import Driver  # which needs Tk

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SNAPVIEWER_CONFIG", str(tmp_path_factory.mktemp("config")))
        driver = Driver(Window())
    driver.take_keyboard()
    yield driver
    driver.window.close()


@pytest.fixture
def driver(one_driver: Driver, demo: Path) -> Iterator[Driver]:
    """The window with the demo in it, as if it had just been opened."""
    one_driver.reset(demo)
    yield one_driver
    assert one_driver.bugs == []
