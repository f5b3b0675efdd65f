"""`gui.py` as it is, but for a window that prints what it shows and closes itself.

`python tests/support/watched_window.py ARGUMENTS…` prints one JSON document.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from snapviewer.gui import app  # noqa: E402
from snapviewer.gui.theme import px  # noqa: E402
from support.driver import Driver, cut_off  # noqa: E402

_LOOK_MS = 50


class Watched(app.Window):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.driver = Driver(self)
        self.root.after(_LOOK_MS, self._look)

    def _look(self) -> None:
        """Wait until all is there, then print and close."""
        state = self.state
        if state.jobs.running() or (state.document is None and state.notice is None):
            self.root.after(_LOOK_MS, self._look)
            return
        self.driver.settle()
        shown = {
            "plot": state.plot_px,
            "differing": self.driver.differing() if state.timeline is not None else 0,
            "unit": px(self.root, 100) / 100,
            "title": self.root.title(),
            "theme": state.look.theme,
            "outer": self._outer(),
            "size": (self.root.winfo_width(), self.root.winfo_height()),
            "has_minimap": bool(self.area._minimap.winfo_ismapped()),
            "side_width": self.side.winfo_width() if self.side.winfo_ismapped() else 0,
            "recent": state.settings.recent,
            "notice": self.driver.notice,
            "cut_off": cut_off(self.toolbar, self.root) + cut_off(self.status, self.root),
            "bugs": [repr(bug) for bug in self.driver.bugs],
        }
        print(json.dumps(shown))
        self.close()

    def _outer(self) -> tuple[int, int, int, int]:
        """The corners of the window on the screen, with its menu and its frame."""
        root = self.root
        left, top = (int(place) for place in root.wm_geometry().split("+")[1:])
        right = root.winfo_rootx() + root.winfo_width()
        return left, top, right, root.winfo_rooty() + root.winfo_height()


if __name__ == "__main__":
    app.Window = Watched  # type: ignore[misc]
    sys.argv[0] = str(ROOT / "gui.py")
    runpy.run_path(sys.argv[0], run_name="__main__")
