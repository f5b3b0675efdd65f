"""Categories against the truth: programs on the null device, where addresses show what is what."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import categories
from support.category_programs import HELD_OUT, LAST, PROGRAMS

pytestmark = pytest.mark.torch

LEAST = {"beginning": 0.97, "model": 0.90, "training": 0.75}
"""The share of the bytes at the peak in the right category, by where the recording began.

In the middle of training, parameters and states of equal size differ by address only."""


@pytest.mark.parametrize("program", [*PROGRAMS, *HELD_OUT, *LAST])
@pytest.mark.parametrize("start", categories.STARTS)
@pytest.mark.parametrize("stacks", ["all", "python", "cpp"])
def test_the_bytes_at_the_peak_are_in_the_right_category(
    program: str, start: str, stacks: str, tmp_path: Path
) -> None:
    known = categories.known(program, stacks, start, tmp_path)

    score, wrong = known.score()
    assert score >= LEAST[start], wrong
    assert any(known.truth), "the truth is known"
