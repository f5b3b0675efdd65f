"""The explorer's settings: those a caller passes, and those remembered between runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from snapviewer.explorer.view.row_labels import ROW_LABELS
from snapviewer.files.user_settings import read_user_settings, settings_path, write_user_settings

MIN_PANEL_PERCENT, MAX_PANEL_PERCENT = 20, 80
_FILE = "explorer.json"


@dataclass(frozen=True, slots=True)
class ExplorerConfig:
    """The initial settings; keys change them, and the explorer remembers the changes.

    `max_depth` is how deep the tree is unfolded, None for as deep as fits the screen.
    """

    show_parameter_counts: bool = True
    show_shapes: bool = True
    show_timing: bool = True
    show_memory: bool = True
    compact_view: bool = False
    color_scheme: Literal["dark", "light"] = "dark"
    max_depth: int | None = None


@dataclass(frozen=True, slots=True)
class ExplorerSettings:
    """Remembered settings. `labels` is the order of all labels, `switched_on` those shown."""

    theme: str = "dark"
    labels: tuple[str, ...] = tuple(ROW_LABELS)
    switched_on: tuple[str, ...] = ("params", "memory", "time", "shapes")
    is_aligned: bool = False
    has_bars: bool = True
    has_panel: bool = True
    panel: str = ""
    panel_percent: int = 42
    is_regex: bool = False

    @property
    def shown_labels(self) -> tuple[str, ...]:
        """The labels that rows have, in order."""
        return tuple(name for name in self.labels if name in self.switched_on)


def load_settings() -> ExplorerSettings:
    """Read the remembered settings; invalid ones get their defaults."""
    settings = ExplorerSettings()
    document = read_user_settings(settings_path(_FILE))
    known: dict[str, Any] = {}
    for name, value in document.items():
        default = getattr(settings, name, None) if name in asdict(settings) else None
        if isinstance(default, tuple) and isinstance(value, list):
            known[name] = tuple(dict.fromkeys(one for one in value if one in tuple(ROW_LABELS)))
        elif default is not None and type(value) is type(default):
            known[name] = value
    settings = replace(settings, **known)
    rest = tuple(name for name in ROW_LABELS if name not in settings.labels)
    return replace(
        settings,
        theme="light" if settings.theme == "light" else "dark",
        labels=settings.labels + rest,
        panel_percent=max(MIN_PANEL_PERCENT, min(settings.panel_percent, MAX_PANEL_PERCENT)),
    )


def save_settings(settings: ExplorerSettings) -> None:
    """Write the settings atomically."""
    write_user_settings(settings_path(_FILE), asdict(settings))


def settings_from(config: ExplorerConfig) -> ExplorerSettings:
    """Return a caller's settings; the rest as remembered."""
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
            name for name in ROW_LABELS if chosen.get(name, name in settings.switched_on)
        ),
        has_bars=settings.has_bars and not config.compact_view,
        has_panel=settings.has_panel and not config.compact_view,
    )
