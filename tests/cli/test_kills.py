"""A process that is killed while it writes leaves the old file or the new one.

`SNAPVIEWER_KILLS` sets how many kills have to hit in `make test-exhaustive`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import kills

KILLS = int(os.environ.get("SNAPVIEWER_KILLS", "100"))
FEW_KILLS = 4

NAMES = (
    "convert out.zip again",
    "convert out again",
    "cache",
    "settings",
    "report out.txt again",
    "model out.html again",
    "render out.png again",
)
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "count",
    [
        pytest.param(FEW_KILLS, id="few"),
        pytest.param(KILLS, id="many", marks=pytest.mark.exhaustive),
    ],
)
def test_a_killed_write_leaves_the_old_file_or_the_new_one(
    name: str, count: int, tmp_path: Path
) -> None:
    command = [sys.executable, kills.__file__, str(tmp_path), name, str(count)]

    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)

    assert done.returncode == 0, done.stdout + done.stderr
