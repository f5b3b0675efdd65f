"""What the explorer looks like: pictures that are kept in `snapshots`.

`SNAPVIEWER_UPDATE_SNAPSHOTS=1` draws them anew; look at each before it is committed.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from snapviewer.explorer.app import panel as panel_module
from snapviewer.explorer.explored_model import ExploredModel
from snapviewer.explorer.tree import Tree
from support import explorer_trees as trees
from support.explorer_driver import Driver, drive, normalised

FOLDER = Path(__file__).resolve().parent / "snapshots"
MAX_BYTES = 60_000


def tuned() -> ExploredModel:
    """A network beside the one that was made of it."""
    before = trees.resnet()
    kept = [child for child in before.root.children if child.name not in ("maxpool", "fc")]
    parts = [*kept, trees.linear("fc", 2048, 10), trees.linear("head", 10, 2)]
    after = Tree("tuned", "", trees.module("", "ResNet", children=parts))
    return ExploredModel(before, other=after)


CASES = {
    "dark": (ExploredModel(trees.resnet()), (80, 24), ["down"]),
    "light": (ExploredModel(trees.resnet()), (80, 24), ["T", "down", "down"]),
    "beside": (ExploredModel(trees.resnet()), (110, 16), ["end", "A"]),
    "search": (ExploredModel(trees.resnet()), (80, 20), ["v", "slash", *"bn1"]),
    "names": (ExploredModel(trees.tied()), (80, 24), ["v", "Z", "down"]),
    "compare": (tuned(), (80, 24), ["6", "D", "D"]),
    "labels": (ExploredModel(trees.resnet()), (80, 18), ["L", "down"]),
}


@pytest.mark.parametrize("name", CASES)
def test_it_looks_as_it_did(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNAPVIEWER_CONFIG", str(tmp_path))
    monkeypatch.setattr(panel_module, "SECONDS_BEFORE", 0.001)
    explored, size, keys = CASES[name]
    pictures = []

    async def script(driver: Driver) -> None:
        await driver.press(*keys)
        await driver.settle()
        pictures.append(normalised(driver.app.export_screenshot()))

    drive(replace(explored), script, size=size)

    path = FOLDER / f"explorer-{name}.svg"
    if os.environ.get("SNAPVIEWER_UPDATE_SNAPSHOTS"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(pictures[0], encoding="utf-8")
    assert len(pictures[0].encode()) < MAX_BYTES
    assert pictures[0] == path.read_text(encoding="utf-8")
