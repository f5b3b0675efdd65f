"""Leaks: all that are there, with their slope, and none that is not."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import snapviewer
from support import leaks


def _device(case: leaks.Case, directory: Path) -> snapviewer.Device:
    path = directory / "run.pickle"
    path.write_bytes(pickle.dumps(leaks.snapshot(case)))
    return snapviewer.load(path).devices[0]


@pytest.mark.parametrize("case", leaks.cases_with(), ids=lambda case: f"seed{case.seed}")
def test_a_leak_is_found_with_its_slope(case: leaks.Case, tmp_path: Path) -> None:
    device = _device(case, tmp_path)

    found = device.leaks
    assert [leak.key for leak in found.leaks] == [leaks.LEAK]
    (leak,) = found.leaks
    assert leak.bytes_per_step == pytest.approx(case.slope, rel=0.05)
    assert abs(leak.first_step - max(case.first, 1)) <= case.every + 1
    assert 0.5 < leak.confidence <= 1
    assert any("leak.py" in frame for frame in leak.shared_frames)
    if case.leak == "list":
        shown = np.zeros(len(device.allocations), dtype=bool)
        shown[leak.allocations] = True
        assert device.alive(device.events - 1, "line", where=shown).groups[0].key == leaks.LEAK


@pytest.mark.parametrize("case", leaks.cases_without(), ids=lambda case: f"seed{case.seed}")
def test_what_only_looks_like_a_leak_is_none(case: leaks.Case, tmp_path: Path) -> None:
    device = _device(case, tmp_path)

    assert [(leak.key, leak.bytes_per_step) for leak in device.leaks.leaks] == []
    assert device.leaks.steps >= case.steps - 1


def test_a_few_steps_are_not_enough_to_see_growth(tmp_path: Path) -> None:
    device = _device(leaks.Case(seed=1, slope=10**6, steps=3), tmp_path)

    assert len(device.leaks) == 0
    assert device.leaks.missing is not None
    assert "steps" in device.leaks.missing
