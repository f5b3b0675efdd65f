"""Analysis that others need not wait for (X17)."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from snapviewer import CancelledError
from snapviewer.explorer import analyze_model_async, module_info
from snapviewer.explorer.explored_model import ExploredModel
from support import explorer_trees as trees


def test_every_module_is_told_of_and_others_get_their_turns() -> None:
    reports: list[tuple[int, int]] = []
    turns: list[int] = []

    async def others() -> None:
        while True:
            turns.append(len(reports))
            await asyncio.sleep(0)

    async def run() -> dict[str, Any]:
        ticking = asyncio.create_task(others())
        found = await analyze_model_async(
            trees.wide(1000), progress=lambda *done: reports.append(done)
        )
        ticking.cancel()
        return dict(found)

    found = asyncio.run(run())

    tree = trees.wide(1000)
    assert list(found) == [node.path for node in tree.root.walk()]
    assert found[""].parameter_count == tree.root.sums.parameters
    assert found["layers.3.part0_proj"].module_type == "Linear"
    assert found["layers.3.part0_proj"].shapes == {"weight": (8, 11)}
    assert [done for done, _ in reports] == list(range(0, len(found), 100))
    assert {len(reports) - 1, 1} <= set(turns), "others had a turn after every hundred"


def test_reading_ends_when_the_analysis_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    began, ended = threading.Event(), threading.Event()

    def read(_model: Any, _progress: object, cancel: threading.Event) -> ExploredModel:
        began.set()
        assert cancel.wait(10)
        ended.set()
        raise CancelledError("cancelled")

    monkeypatch.setattr(module_info, "load_model", read)

    async def run() -> None:
        task = asyncio.create_task(analyze_model_async(object()))
        await asyncio.to_thread(began.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())

    assert ended.wait(10)
