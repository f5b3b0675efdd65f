"""A command imports what it uses. Times are measured by `make bench`; here are the reasons."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.pth_writer import T, write_pth

# Runs a command, and prints to stderr what was imported meanwhile.
_IMPORTED = """
import sys
before = set(sys.modules)
from snapviewer.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
print(*sorted(set(sys.modules) - before), file=sys.stderr)
sys.exit(code)
"""

# Each takes a noticeable part of the time of a command on a small file.
_HEAVY = {
    "asyncio",
    "http",
    "logging",
    "multiprocessing",
    "numpy",
    "PIL",
    "psutil",
    "rich",
    "sqlite3",
    "textual",
    "tkinter",
    "torch",
    "typst",
    "unittest",
}


def imported(*arguments: str | Path) -> set[str]:
    """The modules that a command imports, by their full names."""
    command = [sys.executable, "-c", _IMPORTED, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    return set(done.stderr.split())


def heavy(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} & _HEAVY


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_import_nothing_of_any_command(option: str) -> None:
    modules = imported(option)

    ours = {name for name in modules if name.startswith("snapviewer")}
    assert ours == {
        "snapviewer",
        "snapviewer._lazy",
        "snapviewer.cli",
        "snapviewer.text",
        "snapviewer.text.streams",
    }
    assert not modules & {"argparse", "dataclasses", "json", "pathlib", "re", "typing", *_HEAVY}


def test_small_commands_import_nothing_heavy(small: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "a.pth"
    write_pth(checkpoint, {"weight": T("float32", (2, 3))})

    commands: list[tuple[str | Path, ...]] = [
        ("info", small),
        ("report", small),
        ("convert", "-i", small, "-o", tmp_path / "a.zip"),
        ("query", small, "select 1"),
        ("pth", checkpoint),
        ("demo", "-o", tmp_path / "demo.pickle", "--events", "100"),
        ("explore", checkpoint),
    ]
    for arguments in commands:
        assert heavy(imported(*arguments)) == set(), arguments


def test_a_command_imports_no_other(small: Path) -> None:
    ours = {name for name in imported("info", small) if name.startswith("snapviewer.")}

    assert {name for name in ours if name.startswith("snapviewer.cli.")} == {
        "snapviewer.cli.errors",
        "snapviewer.cli.info",
        "snapviewer.cli.options",
        "snapviewer.cli.outputs",
    }
    rooms = {name.split(".")[1] for name in ours}
    assert rooms.isdisjoint({"checkpoint", "demo", "events", "explorer", "gui", "model"})


def test_render_imports_pictures_only(small: Path, tmp_path: Path) -> None:
    modules = imported("render", small, "-o", tmp_path / "a.png")

    # Pillow imports logging.
    assert heavy(modules) <= {"logging", "PIL"}
    assert modules.isdisjoint({"PIL.GifImagePlugin", "PIL.JpegImagePlugin"})
