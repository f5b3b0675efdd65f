"""Whichever write fails, a file is the old one or the new one, and a sentence names it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from support import faults
from support.writing_jobs import JOBS

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="preloads a library"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that lets writes fail."""
    return faults.build(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize(
    "lasts",
    [
        pytest.param(True, id="from-then-on"),
        pytest.param(False, id="once", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize("name", JOBS)
def test_a_failed_write_leaves_the_old_file_or_the_new_one(
    name: str, lasts: bool, library: Path, tmp_path: Path
) -> None:
    job = JOBS[name]

    before, whole, *runs = faults.runs_of(library, tmp_path, name, lasts=lasts)

    assert whole["code"] == 0, whole["words"]
    assert len(runs) >= 3, "some calls were seen"
    output = job.arguments[job.arguments.index("-o") + 1] if "-o" in job.arguments else "cache"
    for run in runs:
        assert run["state"] in (before["state"], whole["state"]), run
        if run["code"] == 0:
            assert job.may_succeed or run["state"] == whole["state"], run
        else:
            assert run["code"] == 1, run
            (sentence,) = run["words"].rpartition("\r")[2].splitlines()
            assert sentence.startswith("snapviewer: "), run
            assert output in sentence, run
