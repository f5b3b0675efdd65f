"""A clone can be built and run as the original tool's document says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 cannot read TOML")

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.promise("S13")
def test_requirements_are_what_building_and_both_programs_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()

    required = [line for line in lines if not line.startswith("#")]

    assert required == project["build-system"]["requires"] + project["project"]["dependencies"]


@pytest.mark.promise("S13")
def test_pip_installs_the_requirements_from_the_root() -> None:
    # Everything is installed here: pip reads the file, and downloads nothing.
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--quiet"]

    done = subprocess.run(
        [*command, "-r", "requirements.txt"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.promise("S09")
def test_the_extension_is_built_by_maturin_develop_for_release() -> None:
    from snapviewer import _core

    command = ["make", "--dry-run", "--always-make", "build"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert re.search(r"-m maturin develop --release\b", done.stdout), done.stderr
    assert Path(_core.__file__ or "").parent == ROOT / "python" / "snapviewer"
