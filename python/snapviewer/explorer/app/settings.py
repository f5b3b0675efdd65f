"""What the explorer remembers from one run to the next."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from snapviewer.explorer.config import ExplorerConfig
from snapviewer.explorer.view.pieces import PIECES
from snapviewer.files.user_settings import read_user_settings, settings_path, write_user_settings

NARROWEST_PANEL, WIDEST_PANEL = 20, 80  # percent
_FILE = "explorer.json"


@dataclass(frozen=True, slots=True)
class Settings:
    """What is remembered. `labels` has the order of all pieces, `switched_on` those shown."""

    theme: str = "dark"
    labels: tuple[str, ...] = tuple(PIECES)
    switched_on: tuple[str, ...] = ("params", "memory", "time", "shapes")
    is_aligned: bool = False
    has_bars: bool = True
    has_panel: bool = True
    panel: str = ""
    panel_percent: int = 42
    is_regex: bool = False

    @property
    def pieces(self) -> tuple[str, ...]:
        """The pieces that rows have, in their order."""
        return tuple(name for name in self.labels if name in self.switched_on)


def load_settings() -> Settings:
    """Read what is remembered; whatever is not as it should be is as in the beginning."""
    settings = Settings()
    document = read_user_settings(settings_path(_FILE))
    known: dict[str, Any] = {}
    for name, value in document.items():
        first = getattr(settings, name, None) if name in asdict(settings) else None
        if isinstance(first, tuple) and isinstance(value, list):
            known[name] = tuple(dict.fromkeys(one for one in value if one in tuple(PIECES)))
        elif first is not None and type(value) is type(first):
            known[name] = value
    settings = replace(settings, **known)
    rest = tuple(name for name in PIECES if name not in settings.labels)
    return replace(
        settings,
        theme="light" if settings.theme == "light" else "dark",
        labels=settings.labels + rest,
        panel_percent=max(NARROWEST_PANEL, min(settings.panel_percent, WIDEST_PANEL)),
    )


def save_settings(settings: Settings) -> None:
    """Write what to remember, whole or not at all."""
    write_user_settings(settings_path(_FILE), asdict(settings))


def settings_from(config: ExplorerConfig) -> Settings:
    """Return what a caller chose; the rest is as it is remembered."""
    chosen = {
        "params": config.show_parameter_counts,
        "memory": config.show_memory,
        "time": config.show_timing,
        "shapes": config.show_shapes,
    }
    settings = load_settings()
    return replace(
        settings,
        theme=config.color_scheme,
        switched_on=tuple(
            name for name in PIECES if chosen.get(name, name in settings.switched_on)
        ),
        has_bars=settings.has_bars and not config.compact_view,
        has_panel=settings.has_panel and not config.compact_view,
    )
