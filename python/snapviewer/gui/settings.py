"""What the window remembers from one run to the next, in a small JSON file.

If the file is missing, damaged or not writable, the window starts with its defaults.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from snapviewer.files.user_settings import read_user_settings, settings_path, write_user_settings

MAX_RECENT = 10
MAX_HISTORY = 50
_MAX_TEXT_BYTES = 10_000  # of a path or a query


@dataclass(slots=True)
class WindowSettings:
    """Theme, sizes, panes, recent files and queries."""

    theme: str = "light"
    width: int = 0
    height: int = 0
    side_width: int = 0
    dock_height: int = 0
    show_side: bool = True
    show_minimap: bool = True
    show_lanes: bool = True
    show_legend: bool = False
    show_dock: bool = False
    dock_tab: str = "map"
    show_lines: bool = False
    group_by: str = "line"
    recent: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)

    def recent_files(self) -> list[Path]:
        """Return the recent files that still exist, the newest first."""
        return [Path(name) for name in self.recent if os.path.exists(name)]

    def add_recent(self, path: Path) -> None:
        """Put a file at the top of the recent ones."""
        name = str(path)
        self.recent = [name, *(other for other in self.recent if other != name)][:MAX_RECENT]

    def add_query(self, sql: str) -> None:
        """Put a query at the top of the history."""
        self.queries = [sql, *(other for other in self.queries if other != sql)][:MAX_HISTORY]


def settings_file() -> Path:
    """Return where settings are kept."""
    return settings_path("window.json")


def load_settings(path: Path) -> WindowSettings:
    """Read the settings; an entry that is missing or not valid has its default."""
    document = read_user_settings(path)
    settings = WindowSettings()
    for one in fields(WindowSettings):
        value = document.get(one.name)
        if type(value) is not type(getattr(settings, one.name)):
            continue
        if isinstance(value, list):
            value = [text for text in value if isinstance(text, str) and _is_usable(text)]
            value = value[: MAX_RECENT if one.name == "recent" else MAX_HISTORY]
        setattr(settings, one.name, value)
    return settings


def _is_usable(text: str) -> bool:
    """Return whether a text can be shown and be the name of a file."""
    try:
        encoded = text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return len(encoded) <= _MAX_TEXT_BYTES and 0 not in encoded


def save_settings(settings: WindowSettings, path: Path) -> None:
    """Write the settings atomically."""
    write_user_settings(path, asdict(settings))
