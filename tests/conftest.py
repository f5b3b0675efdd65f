"""What all tests share. None of them touches the cache of whoever runs them."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path

import pytest

import hostile
from display import display

__all__ = ["cache", "display", "small"]


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
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A snapshot of which everything is known."""
    path = tmp_path / "small.pickle"
    path.write_bytes(pickle.dumps(hostile.small_snapshot()))
    return path
