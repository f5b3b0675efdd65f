"""`convert` and `convert_snap.py`: what they write, replace, keep and print."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import snapviewer
from snapviewer.cli import convert, convert_main
from snapviewer.demo import DemoOptions, write_demo
from snapviewer.text.units import format_bytes
from support.program import Ran, run_here

MEMBERS = ["allocations.json", "elements.db"]
Old = Callable[..., Ran]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot of two devices."""
    path = tmp_path_factory.mktemp("convert") / "small.pickle"
    write_demo(path, DemoOptions(events=300, devices=2, seed=3))
    return path


@pytest.fixture
def old_name(capsys: pytest.CaptureFixture[str]) -> Old:
    """Run `convert_snap.py` in this process."""

    def run(*arguments: str | Path) -> Ran:
        try:
            code = convert_main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else -1
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


def devices_of(bundle: Path) -> list[int]:
    return [device.index for device in snapviewer.load(bundle).devices]


@pytest.mark.promise("S01", "S02")
def test_the_name_of_the_output_decides_between_zip_and_directory(
    small: Path, tmp_path: Path, old_name: Old
) -> None:
    archive, directory = tmp_path / "snap.zip", tmp_path / "large"

    ran = old_name("-i", small, "-o", archive, "-o", directory)

    sizes = [archive.stat().st_size, sum(file.stat().st_size for file in directory.iterdir())]
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        f"{archive}: {format_bytes(sizes[0])}\n{directory}: {format_bytes(sizes[1])}\n"
    )
    assert sorted(file.name for file in directory.iterdir()) == MEMBERS
    assert devices_of(archive) == devices_of(directory) == [0, 1]


@pytest.mark.parametrize("option", ["-i", "--input"])
def test_an_input_may_be_named_with_and_without_an_option(
    option: str, small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = run_here(capsys, "convert", small, "-o", tmp_path / "a.zip")
    named = run_here(capsys, "convert", option, small, "-o", tmp_path / "b.zip")

    assert (plain.code, named.code) == (0, 0)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


@pytest.mark.promise("S01")
def test_one_device_is_converted_if_it_is_named(small: Path, tmp_path: Path, old_name: Old) -> None:
    ran = old_name("-i", small, "-o", tmp_path / "one.zip", "-d", "1")

    assert ran.code == 0
    assert devices_of(tmp_path / "one.zip") == [1]


def test_two_inputs_or_none_are_wrong_usage(small: Path, tmp_path: Path, old_name: Old) -> None:
    output = tmp_path / "out.zip"

    two = old_name(small, "-i", small, "-o", output)
    none = old_name("-o", output)
    nowhere = old_name("-i", small)

    assert (two.code, none.code, nowhere.code) == (2, 2, 2)
    assert two.err.endswith(": FILE and -i are the same: give one\n")
    assert none.err.endswith(": the following arguments are required: FILE\n")
    assert nowhere.err.endswith(": the following arguments are required: -o/--output\n")
    assert not output.exists()


@pytest.mark.promise("S15")
def test_only_the_old_name_replaces_the_bundle_that_it_made(
    small: Path, tmp_path: Path, old_name: Old, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.zip"
    old_name("-i", small, "-o", output)

    again = old_name("-i", small, "-o", output, "-d", "1")
    new_name = run_here(capsys, "convert", small, "-o", output)
    forced = run_here(capsys, "convert", small, "-o", output, "--force", "-d", "0")

    assert (again.code, again.err) == (0, "")
    assert new_name.code == 1
    assert "the output exists already" in new_name.err
    assert forced.code == 0
    assert devices_of(output) == [0]


@pytest.mark.promise("S15")
def test_what_is_no_bundle_is_kept_even_beside_one_that_is_replaced(
    small: Path, tmp_path: Path, old_name: Old
) -> None:
    bundle, notes = tmp_path / "out.zip", tmp_path / "notes.zip"
    old_name("-i", small, "-o", bundle)
    before = bundle.read_bytes()
    notes.write_text("my notes")

    ran = old_name("-i", small, "-o", bundle, "-o", notes, "-d", "1")

    assert ran.code == 1
    assert str(notes) in ran.err
    assert notes.read_text() == "my notes"
    assert bundle.read_bytes() == before, "outputs are refused before any is written"


def test_the_input_is_never_replaced(small: Path, tmp_path: Path, old_name: Old) -> None:
    copy = tmp_path / "copy.pickle"
    copy.write_bytes(small.read_bytes())

    ran = old_name("-i", copy, "-o", copy, "--force")

    assert ran.code == 1
    assert "the output is the input itself" in ran.err
    assert copy.read_bytes() == small.read_bytes()


def test_json_has_the_input_and_every_output(small: Path, tmp_path: Path, old_name: Old) -> None:
    archive, directory = tmp_path / "a.zip", tmp_path / "a"

    ran = old_name("-i", small, "-o", archive, "-o", directory, "--json")

    sizes = [archive.stat().st_size, sum(file.stat().st_size for file in directory.iterdir())]
    outputs = [
        {"output": str(path), "bytes": size}
        for path, size in zip((archive, directory), sizes, strict=True)
    ]
    assert json.loads(ran.out) == {"input": str(small), **outputs[0], "outputs": outputs}


def test_quiet_prints_nothing(small: Path, tmp_path: Path, old_name: Old) -> None:
    ran = old_name("-i", small, "-o", tmp_path / "a.zip", "-q")

    assert (ran.code, ran.out, ran.err) == (0, "", "")


@pytest.mark.promise("S10")
def test_the_conversion_reports_its_progress_under_its_name(
    small: Path, tmp_path: Path, old_name: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[str, int, int]] = []

    @contextmanager
    def bar(what: str) -> Any:
        yield lambda done, total: shown.append((what, done, total))

    monkeypatch.setattr(convert, "progress_bar", bar)
    old_name("-i", small, "-o", tmp_path / "a.zip")

    assert {what for what, _, _ in shown} == {"converting"}
    assert shown[-1][1] == shown[-1][2] > 0


def test_the_help_describes_input_output_and_device(
    old_name: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")

    helped = old_name("--help").out

    for words in (
        "usage: convert_snap.py [-h] [-i FILE] -o FILE ",
        "a snapshot: pickle, JSON, gzip of these, or a memory_viz page\n",
        " the same as FILE\n",
        " a zip if the name ends in .zip, otherwise a directory; may be repeated\n",
        " convert this device only; -1 is pinned host memory\n",
    ):
        assert words in helped
