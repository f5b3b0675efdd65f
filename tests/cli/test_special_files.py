"""Pipes and devices are refused by their kind, whoever is asked to read them; nothing waits."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from support import program

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")

SECONDS = 30
READERS: tuple[tuple[str, ...], ...] = (
    ("info", "FILE"),
    ("report", "FILE"),
    ("segments", "FILE"),
    ("diff", "FILE", "FILE"),
    ("render", "FILE", "-o", "out.png"),
    ("query", "FILE", "select 1"),
    ("convert", "FILE", "-o", "out.zip"),
    ("pth", "FILE"),
    ("pth", "FILE", "FILE"),
    ("model", "FILE"),
    ("explore", "FILE"),
    ("events", "FILE"),
)


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("arguments", READERS, ids=" ".join)
def test_a_special_file_is_refused(arguments: tuple[str, ...], kind: str, tmp_path: Path) -> None:
    path, work = tmp_path / f"it.{kind}", tmp_path / "work"
    work.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    chosen = [path if word == "FILE" else word for word in arguments]

    ran = program.run(*chosen, directory=work, timeout=SECONDS)

    assert ran.code == 1, ran
    assert "not a regular file" in ran.err + ran.out
    assert list(work.iterdir()) == []


@pytest.mark.parametrize("name", ["sum", "elements.db", "allocations.json"])
def test_a_pipe_in_the_cache_is_replaced(name: str, small: Path, cache: Path) -> None:
    command = ("query", small, "select count(*) from allocations", "--json")
    first = program.run(*command)
    (entry,) = cache.glob("*.bundle")
    path = entry.with_suffix(".sum") if name == "sum" else entry / name
    path.unlink()
    os.mkfifo(path)

    second = program.run(*command, timeout=SECONDS)

    assert (second.code, second.out) == (0, first.out), second.err
    assert path.is_file()


@pytest.mark.parametrize("kind", ["pipe", "device", "directory", "nested", "list", "not text"])
def test_settings_that_are_none_are_ignored(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "window.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "directory":
        path.mkdir()
    else:
        content = {"nested": b"[" * 10**6, "list": b"[1]", "not text": b'{"a": "\xff\x00'}
        path.write_bytes(content[kind])
    code = (
        "import sys, pathlib; from snapviewer.files.user_settings import read_user_settings;"
        "print(read_user_settings(pathlib.Path(sys.argv[1])))"
    )

    ran = program.run(code, path, program=("-c",), timeout=SECONDS)

    assert ran.out == "{}\n", ran.err


def test_a_directory_that_cannot_be_written_is_named(small: Path, tmp_path: Path) -> None:
    directory = tmp_path / "file"
    directory.write_bytes(b"")  # no directory: root may write to read-only ones
    shutil.copy(small, tmp_path / "s.pickle")
    for arguments in (("report", "-o", "out.txt"), ("render", "-o", "out.png")):
        command, option, name = arguments

        ran = program.run(command, small, option, directory / name)

        assert ran.code == 1
        assert f"{directory / name}" in ran.err, ran.err


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
@pytest.mark.parametrize("command", ["convert", "render", "report", "demo"])
def test_a_file_size_limit_is_a_sentence(command: str, demo: Path, tmp_path: Path) -> None:
    output = tmp_path / {"convert": "out.zip", "render": "out.png"}.get(command, "out.txt")
    source = [] if command == "demo" else [demo]
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200));"
        "from snapviewer.cli import main; sys.exit(main(sys.argv[1:]))"
    )

    ran = program.run(code, command, *source, "-o", output, program=("-c",))

    assert ran.code == 1, ran
    assert output.name in ran.err
    assert os.listdir(tmp_path) == []
