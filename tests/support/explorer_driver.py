"""Drives the explorer without a terminal."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widgets import Static

from snapviewer.explorer.app.panel import SidePanel
from snapviewer.explorer.app.program import ExplorerApp, Reading
from snapviewer.explorer.app.settings import ExplorerConfig
from snapviewer.explorer.app.tree_view import TreeView
from snapviewer.explorer.explored_model import ExploredModel
from snapviewer.explorer.tree import Tree
from snapviewer.explorer.view.browser import TreeBrowser


@dataclass
class Driver:
    """A running explorer and what can be seen of it."""

    app: ExplorerApp
    pilot: Pilot[None]

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    async def type(self, text: str) -> None:
        names = {"/": "slash", "(": "left_parenthesis", ".": "full_stop", "|": "vertical_line"}
        await self.press(*(names.get(letter, letter) for letter in text))

    async def settle(self) -> None:
        """Wait until nothing is under way."""
        for _ in range(2):
            await self.pilot.pause(0.004)  # longer than the panel waits, in tests
            await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    @property
    def browser(self) -> TreeBrowser:
        assert self.app.browser is not None
        return self.app.browser

    @property
    def path(self) -> str:
        """The path of what the cursor is on."""
        return self.browser.item.path

    @property
    def lines(self) -> list[str]:
        """The lines of the tree that are on the screen."""
        tree = self.app.query_one(TreeView)
        texts = [tree.render_line(y).text.rstrip() for y in range(tree.size.height)]
        return [text for text in texts if text]

    @property
    def title(self) -> str:
        return text_of(self.app.query_one("#title", Static))

    @property
    def panel(self) -> str:
        """The text of the panel."""
        return text_of(self.app.query_one(SidePanel).query_one("#content", Static))

    @property
    def panel_region(self) -> Any:
        return self.app.query_one(SidePanel).query_one(VerticalScroll).region

    def row_of(self, path: str) -> int:
        items = self.browser.outline.items
        return [items[place].path for place in self.browser.rows.places].index(path)


def text_of(widget: Static) -> str:
    width = max(widget.size.width, 1)
    lines = [widget.render_line(y).text.rstrip() for y in range(widget.size.height)]
    return "\n".join(lines) if width else ""


def drive(
    source: Tree | ExploredModel | Reading,
    script: Callable[[Driver], Awaitable[None]],
    *,
    size: tuple[int, int] = (100, 30),
    config: ExplorerConfig | None = None,
    name: str = "",
) -> ExplorerApp:
    """Run a script against the explorer; return the program as it was in the end."""
    app = ExplorerApp(
        ExploredModel(source) if isinstance(source, Tree) else source, config=config, name=name
    )

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            driver = Driver(app, pilot)
            if not callable(source):
                await driver.settle()
            await script(driver)

    asyncio.run(run())
    return app


def normalised(svg: str) -> str:
    """Take out the number that each picture has, and fonts that a browser would fetch."""
    svg = re.sub(r"terminal-\d+", "terminal", svg)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)
