"""A checkpoint is chosen from a list with a search."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from textual.widgets import Input, OptionList, Static

from snapviewer.checkpoint.paths import below
from snapviewer.explorer.app.chooser import ChooserApp
from support.pth_writer import T, write_pth


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    names = ["last.pth", "runs/a/step-10.pt", "runs/b/Llama.safetensors.index.json"]
    for name in [*names, "runs/b/one.safetensors", ".hidden/no.pth", "notes.txt"]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_pth(path, {"weight": T("float32", (2, 3))})
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


FOUND = ["last.pth", "runs/a/step-10.pt", "runs/b/Llama.safetensors.index.json"]


@pytest.mark.promise("X31")
def test_files_here_and_below_are_found_near_ones_first(folder: Path) -> None:
    assert [path.replace(os.sep, "/") for path in below(".")] == FOUND


def test_a_directory_that_is_gone_has_none(tmp_path: Path) -> None:
    assert below(str(tmp_path / "gone")) == []


def chosen(*keys: str) -> tuple[list[list[str]], str, str | None]:
    """Press keys; return what was listed after each, the title, and what was chosen."""

    async def run() -> tuple[list[list[str]], str, str | None]:
        app = ChooserApp(".")
        listed = []
        async with app.run_test(size=(80, 12)) as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            title = str(app.query_one("#title", Static).render())
            for key in keys:
                await pilot.press(key)
                await pilot.pause()
                if app.is_running:
                    listed.append(list(app.shown))
        return listed, title, app.return_value

    return asyncio.run(run())


@pytest.mark.promise("X31")
def test_enter_opens_the_first_file(folder: Path) -> None:
    _, title, path = chosen("enter")

    assert title == f"3 checkpoints in {folder} and below"
    assert path == "last.pth"


def test_arrows_move(folder: Path) -> None:
    assert chosen("down", "down", "up", "enter")[2] == os.path.join("runs", "a", "step-10.pt")


@pytest.mark.promise("X31")
def test_words_of_the_path_filter_the_list(folder: Path) -> None:
    listed, _, path = chosen(*"llama", "space", *"b/", "enter")

    assert [len(files) for files in listed[:2]] == [2, 1], "l is in last.pth too"
    assert path == os.path.join("runs", "b", "Llama.safetensors.index.json")


def test_nothing_is_opened_when_nothing_matches_or_on_escape(folder: Path) -> None:
    assert chosen(*"xyz", "enter", "escape")[2] is None
    assert chosen("escape")[2] is None


def test_rows_show_sizes_and_harmless_names(folder: Path) -> None:
    (folder / "a\x1b[31m.pth").write_bytes(bytes(3 << 20))

    async def run() -> list[str]:
        app = ChooserApp(".")
        async with app.run_test(size=(60, 12)) as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert app.focused is app.query_one(Input)
            files = app.query_one(OptionList)
            return [str(files.get_option_at_index(row).prompt) for row in range(4)]

    assert asyncio.run(run())[0] == "    3.00 MiB  a?[31m.pth"


def explore(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snapviewer", "explore"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.promise("X31")
def test_without_a_terminal_the_files_are_listed(folder: Path) -> None:
    done = explore(folder)

    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == FOUND


def test_without_any_file_the_command_says_what_to_do(tmp_path: Path) -> None:
    done = explore(tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "snapviewer: no checkpoint here or below; name one: snapviewer explore FILE\n"
    )
