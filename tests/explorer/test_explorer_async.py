"""Analysis that others need not wait for."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from snapviewer import CancelledError
from snapviewer.explorer import (
    analyze_model_async,
    get_forward_stats,
    module_info,
    record_torch_module_forward_stats,
)
from snapviewer.explorer.explored_model import ExploredModel
from support import explorer_trees as trees


@pytest.mark.promise("X17")
def test_every_module_is_analyzed_and_others_get_their_turns() -> None:
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
    assert reports == [(done, len(found)) for done in range(0, len(found), 100)]
    assert all(info.name == path for path, info in found.items())
    assert {len(reports) - 1, 1} <= set(turns), "others had a turn after every hundred"


@pytest.mark.promise("X09", "X17")
@pytest.mark.torch
def test_recorded_times_are_there_under_their_names() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    with record_torch_module_forward_stats(model):
        for _ in range(3):
            model(torch.ones(2, 3)).sum().backward()

    found = asyncio.run(analyze_model_async(model))

    timing = get_forward_stats(model).timings["0"]
    assert timing.backward is not None
    assert found["0"].timing_stats == {
        "calls": 3.0,
        "forward": timing.total.median_s,
        "forward_own": timing.own.median_s,
        "forward_sum": timing.total.sum_s,
        "backward": timing.backward.median_s,
    }


@pytest.mark.promise("X17")
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
