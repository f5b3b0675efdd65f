"""Nothing that a file contains reaches a terminal, a page or a report as more than plain letters.

Every command is run on a hostile file of every kind, with every format of output.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support import hostile_text, program
from support.hostile_text import FILE_NAME, harmful

RUNS = list(hostile_text.runs())
MAX_LINE_CHARS = 10_000
MAX_OUTPUT_CHARS = 2_000_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of hostile files; the names are hostile, too, and so is the directory's."""
    directory = tmp_path_factory.mktemp("hostile") / FILE_NAME
    directory.mkdir()
    for name, make in hostile_text.MAKERS.items():
        make(directory / f"{FILE_NAME}{name}")
    return directory


@pytest.mark.parametrize(
    ("file", "command", "options", "suffixes"),
    RUNS,
    ids=[f"{number}-{run[0]}-{run[1]}" for number, run in enumerate(RUNS)],
)
def test_what_leaves_the_program_is_harmless(
    file: str,
    command: str,
    options: tuple[str, ...],
    suffixes: tuple[str, ...],
    files: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = files / f"{FILE_NAME}{file}"
    outputs = [tmp_path / f"{FILE_NAME}{suffix}" for suffix in suffixes]
    named = {"FILE": path, "OTHER": files / f"{FILE_NAME}small.pickle"}
    chosen = [named.get(option, option) for option in options]
    for output in outputs:
        chosen += ["-o", output]

    ran = program.run_here(capsys, command, path, *chosen)

    assert ran.code in (0, 1), ran.err[-2000:]
    for printed in (ran.out, ran.err):
        assert harmful(printed)[:3] == []
        _assert_bounded(printed)
    if ran.code == 1:
        assert len(ran.err.splitlines()) == 1, ran.err
        assert os.listdir(tmp_path) == []
    else:
        for output in outputs:
            _assert_harmless_file(output)


def _assert_bounded(text: str) -> None:
    assert len(text) <= MAX_OUTPUT_CHARS
    assert max(map(len, text.splitlines()), default=0) <= MAX_LINE_CHARS


def _assert_harmless_file(output: Path) -> None:
    content = output.read_bytes()
    assert content
    if output.suffix in (".png", ".zip", ".pdf"):
        return
    text = content.decode()
    assert harmful(text)[:3] == []
    if output.suffix == ".json":
        json.loads(text)
        return
    _assert_bounded(text)
    assert output.suffix not in (".html", ".svg") or "<script>alert" not in text
