"""The `console` blocks of README and guide are run, and print what the pages show.

In `sh` blocks, commands that make files of the demo are run too; the others are only parsed.

`SNAPVIEWER_UPDATE_SNAPSHOTS=1` writes the output into the pages; look at the difference before it
is committed. A line `...` in a page stands for any lines.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NoReturn
from unittest.mock import Mock

import pytest

from snapviewer import cli
from snapviewer.demo import DemoOptions, write_demo

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MAKES_FILES = {"convert", "demo", "render"}
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the pages use."""
    folder = tmp_path_factory.mktemp("samples")
    write_demo(folder / "snap.pickle", DemoOptions(events=20_000, leak=True, oom=True))
    write_demo(folder / "before.pickle", DemoOptions(events=20_000, oom=True))
    write_checkpoints(folder)
    write_model(folder)
    guide = (ROOT / "docs" / "guide" / "events.md").read_text(encoding="utf-8")
    (log,) = re.findall(r"^```json\n(\[.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (folder / "memory_events.json").write_text(log, encoding="utf-8")
    return folder


def write_checkpoints(folder: Path) -> None:
    """Write a small language model with tied weights and a view, and the same trained on."""
    torch.manual_seed(0)
    embedding = torch.randn(5000, 256)
    tensors = {"wte.weight": embedding}
    for layer in range(2):
        tensors[f"h.{layer}.attn.weight"] = torch.randn(256, 768).bfloat16()
        tensors[f"h.{layer}.attn.bias"] = torch.zeros(768)
    tensors["lm_head.weight"] = embedding
    view = torch.randn(1_000_000)[:1000]
    torch.save({"model": tensors, "step": 1000, "sample": view}, folder / "model.pth")
    torch.save({"model": tensors, "step": 1000}, folder / "before.pth")
    changed = {**tensors, "h.1.attn.bias": torch.full((768,), 0.5)}
    del changed["h.0.attn.bias"]
    torch.save({"model": changed, "step": 2000}, folder / "after.pth")


def write_model(folder: Path) -> None:
    """Write a network as `torch.export` does."""
    models = pytest.importorskip("torchvision.models")
    torch.manual_seed(0)
    network = models.resnet18().eval()
    exported = torch.export.export(network, (torch.zeros(1, 3, 224, 224),))
    torch.export.save(exported, folder / "resnet18.pt2")


@pytest.fixture
def here(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with copies of the files, where the commands run."""
    for file in samples.iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "92")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.usefixtures("here")
def test_commands_print_what_the_page_shows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if os.environ.get("SNAPVIEWER_UPDATE_SNAPSHOTS"):
        text = BLOCK.sub(lambda block: f"```console\n{rerun(block[1])}```", text)
        page.write_text(text, encoding="utf-8")
        return

    for block in BLOCK.findall(text):
        for command, expected in commands_of(block):
            assert_shows(run(command), expected, command)


class ParsedError(BaseException):
    """The arguments of a command were accepted."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.usefixtures("here")
def test_commands_that_are_not_run_are_spelled_right(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse = ArgumentParser.parse_args

    def only_parse(parser: ArgumentParser, arguments: Sequence[str]) -> NoReturn:
        parse(parser, arguments)
        raise ParsedError

    monkeypatch.setattr(ArgumentParser, "parse_args", only_parse)

    for arguments in shell_commands(page):
        with pytest.raises(ParsedError):
            cli.main(arguments)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.usefixtures("here")
def test_commands_that_make_files_work_on_the_demo(page: Path) -> None:
    for arguments in shell_commands(page):
        if arguments[0] in MAKES_FILES:
            run(shlex.join(["snapviewer", *arguments]))


@pytest.mark.parametrize("page", ["python", "checkpoints", "models", "events"])
@pytest.mark.usefixtures("here")
def test_python_of_the_guide_runs(page: str) -> None:
    text = (ROOT / f"docs/guide/{page}.md").read_text(encoding="utf-8")
    names = {"module": torch.nn.Linear(3, 4), "images": torch.zeros(1, 3)}
    names |= {"build": Mock(), "optimizer": Mock(), "pipe": Mock()}

    for example in PYTHON.findall(text):
        exec(compile(example, f"{page}.md", "exec"), names)


def shell_commands(page: Path) -> Iterator[list[str]]:
    """The arguments of the program in the `sh` blocks of a page."""
    for block in SHELL.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", "").splitlines():
            program, *arguments = shlex.split(line, comments=True)
            if program == "snapviewer" and arguments:
                yield arguments


def commands_of(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with the output below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        count = 1
        while lines[count - 1].endswith("\\\n") or "".join(lines[:count]).count('"') % 2:
            count += 1
        yield "".join(lines[:count]), "".join(lines[count:])


def run(command: str) -> str:
    """Run a command in this process; standard output and error together, as a terminal shows."""
    program, *arguments = shlex.split(command, comments=True)
    assert program == "snapviewer", command
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        code = cli.main(arguments)
    assert code == 0, output.getvalue()
    return re.sub(r"[ \t]+$", "", output.getvalue(), flags=re.MULTILINE)


def rerun(block: str) -> str:
    """Return the block with the output of today; what leaves lines out stays as it is."""
    parts = []
    for command, expected in commands_of(block):
        has_gaps = re.search(r"^\.\.\.$", expected, re.MULTILINE) is not None
        printed = run(command)
        parts.append(f"$ {command}{expected if has_gaps else printed}")
    return "".join(parts)


def assert_shows(printed: str, expected: str, command: str) -> None:
    """Compare output with a page, where a line `...` stands for any lines."""
    pieces = re.split(r"^\.\.\.\n", expected, flags=re.MULTILINE)
    if len(pieces) == 1:
        assert printed == expected, command
        return
    assert printed.startswith(pieces[0]), command
    at = len(pieces[0])
    for piece in pieces[1:]:
        found = printed.find(piece, at)
        assert found >= 0, f"{command}: {piece}"
        at = found + len(piece)
    assert not pieces[-1] or printed.endswith(pieces[-1]), command
