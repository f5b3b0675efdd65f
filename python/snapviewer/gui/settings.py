"""What the window remembers from one run to the next: a small JSON file of the user's.

A file that is missing, damaged or not writable costs nobody anything: the window then begins as it
did the first time.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from snapviewer.files.user_settings import read_user_settings, settings_path, write_user_settings

MOST_RECENT = 10
MOST_HISTORY = 50
_MOST_BYTES = 10_000  # of a name or a query


@dataclass(slots=True)
class Settings:
    """What is remembered."""

    theme: str = "light"
    width: int = 0
    height: int = 0
    side_width: int = 0
    show_side: bool = True
    show_minimap: bool = True
    show_lanes: bool = True
    recent: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)

    def opened(self, path: Path) -> None:
        """Put a file at the top of the recent ones."""
        name = str(path)
        self.recent = [name, *(other for other in self.recent if other != name)][:MOST_RECENT]

    def asked(self, sql: str) -> None:
        """Put a query at the top of the earlier ones."""
        self.queries = [sql, *(other for other in self.queries if other != sql)][:MOST_HISTORY]


def settings_file() -> Path:
    """Return where settings are kept."""
    return settings_path("window.json")


def load_settings(path: Path) -> Settings:
    """Read what is remembered; whatever is not as it should be is as in the beginning."""
    document = read_user_settings(path)
    settings = Settings()
    for one in fields(Settings):
        value = document.get(one.name)
        if type(value) is not type(getattr(settings, one.name)):
            continue
        if isinstance(value, list):
            value = [text for text in value if isinstance(text, str) and _is_usable(text)]
            value = value[: MOST_RECENT if one.name == "recent" else MOST_HISTORY]
        setattr(settings, one.name, value)
    return settings


def _is_usable(text: str) -> bool:
    """Tell whether a text can be shown, and be the name of a file."""
    try:
        encoded = text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return len(encoded) <= _MOST_BYTES and 0 not in encoded


def save_settings(settings: Settings, path: Path) -> None:
    """Write what to remember, whole or not at all."""
    write_user_settings(path, asdict(settings))
