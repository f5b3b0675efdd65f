"""Where the user's files are, on every system."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """Return the directory of converted snapshots: $SNAPVIEWER_CACHE, or the user's cache."""
    if chosen := os.environ.get("SNAPVIEWER_CACHE"):
        return Path(chosen)
    import platformdirs  # 10 ms, which most commands do not need

    return platformdirs.user_cache_path("snapviewer", appauthor=False)


def settings_directory() -> Path:
    """Return the directory of settings: $SNAPVIEWER_CONFIG, or the user's configuration."""
    if chosen := os.environ.get("SNAPVIEWER_CONFIG"):
        return Path(chosen)
    import platformdirs

    return platformdirs.user_config_path("snapviewer", appauthor=False)
