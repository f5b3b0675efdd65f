"""What all tests share: none of them touches the cache of whoever runs them."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, for this process and those that it starts."""
    path = tmp_path_factory.mktemp("cache") / "snapviewer"
    monkeypatch.setenv("SNAPVIEWER_CACHE", str(path))
    monkeypatch.delenv("SNAPVIEWER_CACHE_BYTES", raising=False)
    return path
