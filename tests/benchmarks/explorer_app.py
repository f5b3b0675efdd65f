"""The explorer with 50,000 modules and 9,000 tensors: its first paint, and filtering while typing.

Beside it Textual's own `Tree` of the same modules. That has no filter: what matches is added anew.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from baseline import best
from rich.text import Text
from textual.app import App, ComposeResult
from textual.widgets import Tree as TextualTree

from snapviewer.explorer.app.program import ExplorerApp
from snapviewer.explorer.app.tree_view import TreeView
from snapviewer.explorer.explored_model import ExploredModel
from snapviewer.explorer.labels import label
from snapviewer.explorer.tree import ModuleNode, Tree
from snapviewer.explorer.view.search import Query

sys.path.append(str(Path(__file__).resolve().parents[1]))
from support import explorer_trees

MODULES = 50_000
SIZE = (120, 40)
PAINT_LIMIT_S = 0.5
PAINT_LIMIT = 0.5
KEY_LIMIT_S = 0.06
KEY_LIMIT = 0.2
TYPED = ("part5_proj", "4000", "l4p5", "weight")
REGEX = r"layers\.4.*part[57]"


def run() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SNAPVIEWER_CONFIG"] = folder
        _run(explorer_trees.wide(MODULES))


def _run(tree: Tree) -> None:
    ours = min(_first_paint(lambda: ExplorerApp(ExploredModel(tree)), TreeView) for _ in range(4))
    theirs = min(_first_paint(lambda: _Plain(tree), TextualTree) for _ in range(2))
    print(f"\nthe explorer: {tree.root.sums.modules:,} modules, {SIZE[0]} × {SIZE[1]} cells")
    print(f"  Textual's Tree, first paint  {theirs * 1e3:8.0f} ms")
    _row("first paint", ours, theirs, PAINT_LIMIT_S, PAINT_LIMIT)
    asyncio.run(_typing(tree))


def _first_paint(make: Callable[[], App[None]], widget: type[Any]) -> float:
    """Return the seconds from making a program until the last line of its tree was drawn."""
    drawn: list[float] = []
    render_line = widget.render_line

    def timed(self: Any, y: int) -> Any:
        strip = render_line(self, y)
        if strip.text.strip():
            drawn.append(time.perf_counter())
        return strip

    async def start() -> None:
        async with make().run_test(size=SIZE) as pilot:
            await pilot.pause()

    widget.render_line = timed
    try:
        begin = time.perf_counter()
        asyncio.run(start())
    finally:
        widget.render_line = render_line
    # The first frame ends where the next lines come much later, or not at all.
    ends = [
        now
        for now, later in zip(drawn, [*drawn[1:], float("inf")], strict=True)
        if later - now > 0.005
    ]
    return ends[0] - begin


class _Plain(App[None]):
    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self._model = tree

    def compose(self) -> ComposeResult:
        widget: TextualTree[None] = TextualTree(Text(label(self._model.root)))
        _add_all(widget, self._model, set())
        yield widget


def _add_all(widget: TextualTree[None], tree: Tree, kept: set[str]) -> None:
    """Add all modules, or those that are kept, unfolded."""
    widget.root.expand()
    waiting: list[tuple[ModuleNode, Any]] = [(tree.root, widget.root)]
    while waiting:
        node, parent = waiting.pop()
        for child in node.children:
            if kept and child.path not in kept:
                continue
            text = Text(label(child))
            added = parent.add(text, expand=True) if child.children else parent.add_leaf(text)
            waiting.append((child, added))


async def _typing(tree: Tree) -> None:
    """Time each key: the search, the rows, and the lines that are on the screen."""
    plain = _Plain(tree)
    async with plain.run_test(size=SIZE) as pilot:
        await pilot.pause()
        widget = plain.query_one(TextualTree)

        def anew() -> None:
            words = [node.path for node in tree.root.walk() if "part5" in label(node)]
            kept = {".".join(path.split(".")[:end]) for path in words for end in range(1, 4)}
            widget.clear()
            _add_all(widget, tree, kept)
            for y in range(SIZE[1]):
                widget.render_line(y)

        theirs = best(anew, repeats=2)
    print(f"  Textual's Tree, 4,545 matches{theirs * 1e3:8.0f} ms")
    app = ExplorerApp(ExploredModel(tree))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        for text in TYPED:
            _row(
                f"worst key of {text!r}",
                await _worst_key(app, text),
                theirs,
                KEY_LIMIT_S,
                KEY_LIMIT,
            )
        regex = best(lambda: _searched(app, Query(REGEX, is_regex=True)), repeats=4)
        _row("a regex", regex, theirs, KEY_LIMIT_S, KEY_LIMIT)


async def _worst_key(app: ExplorerApp, text: str) -> float:
    slowest = []
    for _ in range(8):
        _searched(app, Query())
        times = []
        for end in range(1, len(text) + 1):
            begin = time.perf_counter()
            _searched(app, Query(text[:end]))
            times.append(time.perf_counter() - begin)
        slowest.append(max(times))
    return min(slowest)


def _searched(app: ExplorerApp, query: Query) -> None:
    app.search_for(query)
    tree = app.query_one(TreeView)
    for y in range(tree.size.height):
        tree.render_line(y)


def _row(name: str, seconds: float, baseline: float, limit_s: float, limit: float) -> None:
    ratio = seconds / baseline
    verdict = "" if seconds <= limit_s and ratio <= limit else "   OVER"
    print(
        f"  {name:28} {seconds * 1e3:8.1f} ms (limit {limit_s * 1e3:.0f})"
        f"   {ratio:.3f}× (limit {limit}){verdict}",
        flush=True,
    )


if __name__ == "__main__":
    run()
