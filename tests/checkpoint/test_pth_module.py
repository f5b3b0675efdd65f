"""`python -m snapviewer.pth_analyzer`, run in this process: what it prints, and how it ends."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from snapviewer.pth_analyzer import __main__ as module
from support.program import Ran
from support.pth_writer import T, write_pth


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.pth"
    write_pth(path, {"w": T("float32", (256,)), "deep": {"a": {"b": {"c": {"d": 1}}}}})
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Ran:
    try:
        code = module.main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else -1
    captured = capsys.readouterr()
    return Ran(code, captured.out, captured.err)


@pytest.mark.promise("P18", "P23")
def test_the_table_is_printed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = run(capsys, file)

    assert (ran.code, ran.err) == (0, "")
    assert f"PTH File Analysis: {file}\n" in ran.out
    assert "Tensor(256)" in ran.out


@pytest.mark.promise("P19")
def test_quiet_prints_one_line_for_each_file(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run(capsys, "--quiet", file)

    size, _, rest = ran.out.removeprefix(f"{file}: ").partition(", ")
    assert (ran.code, ran.err) == (0, "")
    assert rest == "2 variables\n"
    assert size.endswith(" KB")


@pytest.mark.promise("P20")
@pytest.mark.parametrize(
    ("depth", "shown", "hidden"),
    [((), "b", "c"), (("--max-depth", "1"), "deep", "a"), (("--max-depth", "10"), "d", "e")],
)
def test_levels_are_shown_down_to_the_depth(
    depth: tuple[str, ...],
    shown: str,
    hidden: str,
    file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = [line.split()[0] for line in run(capsys, file, *depth).out.splitlines() if line.strip()]

    assert shown in names, "3 levels are shown by default"
    assert hidden not in names


@pytest.mark.promise("P20")
@pytest.mark.parametrize(
    ("depth", "sentence"),
    [
        ("0", "must be 1 or more"),
        ("-1", "must be 1 or more"),
        ("many", "must be a whole number, such as 3"),
    ],
)
def test_a_depth_that_is_none_is_wrong_usage(
    depth: str, sentence: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run(capsys, file, f"--max-depth={depth}")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(f"error: argument --max-depth: {sentence}\n")


def test_without_a_file_the_usage_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    ran = run(capsys)

    assert ran.code == 2
    assert ran.err.startswith("usage: python -m snapviewer.pth_analyzer [-h] [--quiet]")
    assert ran.err.endswith("the following arguments are required: FILE\n")


def test_the_help_describes_every_option(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")

    ran = run(capsys, "--help")

    helped = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert ran.code == 0
    assert "List the variables of a .pth file and their memory." in helped
    assert (
        "FILE a checkpoint (.pth, .pt, .safetensors, …), a directory, or a quoted wildcard"
        in helped
    )
    assert "--quiet print one line, not the table" in helped
    assert "--max-depth N number of levels (default 3)" in helped


@pytest.mark.promise("P23", "P28")
def test_one_failure_among_many_files_is_told_and_ends_with_1(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = file.with_name("b.pth")
    broken.write_bytes(b"no\x1b[31m checkpoint")

    ran = run(capsys, "--quiet", broken, file.with_name("none.pth"), file)

    failures = ran.err.splitlines()
    assert ran.code == 1
    assert ran.out.startswith(f"{file}: "), "the others are still analyzed"
    assert [line.startswith("Failed to load file: ") for line in failures] == [True, True]
    assert str(broken) in failures[0]
    assert "No such file or directory" in failures[1]


@pytest.mark.promise("P22", "P23")
def test_names_without_files_are_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wildcard = tmp_path / "*.pth"

    ran = run(capsys, wildcard, tmp_path)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        f"Failed to load file: no matching file: {wildcard}\n"
        f"Failed to load file: no checkpoint in this directory: {tmp_path}\n"
    )


def test_a_missing_and_a_broken_file_are_two_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "b.pth"
    broken.write_bytes(b"no checkpoint")

    ran = run(capsys, tmp_path / "*.safetensors", broken)

    assert ran.code == 1
    assert len(ran.err.splitlines()) == 2


@pytest.mark.promise("P22")
def test_a_wildcard_and_a_directory_stand_for_their_files(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.with_name("b.pth").write_bytes(file.read_bytes())

    for name in (file.parent, file.with_name("*.pth")):
        lines = run(capsys, "--quiet", name).out.splitlines()
        assert [line.split(": ")[0] for line in lines] == [str(file), str(file.with_name("b.pth"))]


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (MemoryError(), 1, "Failed to load file: MemoryError\n"),
        (PermissionError(13, "Permission denied"), 1, "Failed to load file: [Errno 13] Per"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_what_goes_wrong_has_its_exit_code(
    error: BaseException,
    code: int,
    sentence: str,
    file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise error

    closed: list[bool] = []
    monkeypatch.setattr(module, "analyze_pth_file", fail)
    monkeypatch.setattr(module, "close_output", lambda: closed.append(True))

    ran = run(capsys, file)

    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(sentence)
    assert closed == [True] * isinstance(error, BrokenPipeError)


def test_a_directory_that_cannot_be_listed_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> Any:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr(module, "expand_names", refuse)

    ran = run(capsys, tmp_path)

    assert ran.code == 1
    assert ran.err == f"Failed to load file: [Errno 13] Permission denied: '{tmp_path}'\n"


def test_a_reason_is_one_line_that_paints_nothing(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise OSError("two\nlines \x1b[31m red \udcff")

    monkeypatch.setattr(module, "analyze_pth_file", fail)
    stream = Undecoded()
    monkeypatch.setattr(sys, "stderr", stream)

    module.main([str(file)])

    assert stream.text.startswith("Failed to load file: two lines ")
    assert "\x1b" not in stream.text
    assert "\udcff" in stream.text, "a name that is no text is printed as its bytes"


class Undecoded:
    """A stream that takes text which cannot be encoded."""

    text = ""

    def write(self, text: str) -> None:
        self.text += text
