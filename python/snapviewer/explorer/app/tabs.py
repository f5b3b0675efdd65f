"""The panels as tabs: each with its name, and shorter ones for where there is little room."""

from __future__ import annotations

from dataclasses import dataclass

from snapviewer.explorer.panels import PANELS, Panel

_SHORTER = {
    "Module Details": ("Details", "Details"),
    "Performance Stats": ("Performance", "Perf"),
    "Source Code": ("Source", "Source"),
    "Tensor Flow": ("Flow", "Flow"),
    "Attributes": ("Attributes", "Attrs"),
    "Comparison": ("Compare", "Compare"),
}


@dataclass(frozen=True, slots=True)
class Tab:
    """A panel and its titles, the longest first."""

    panel: Panel
    titles: tuple[str, str, str]


TABS = tuple(
    Tab(panel, (panel.name, *_SHORTER.get(panel.name, (panel.name, panel.name))))
    for panel in PANELS
)
