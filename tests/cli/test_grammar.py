"""The same option means the same in every command: outputs, JSON, devices, events, messages."""

from __future__ import annotations

import argparse
import json
import os
import re
import zipfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import snapviewer
from snapviewer import cli
from snapviewer.cli.errors import CheckFailed, CommandError
from snapviewer.text.units import format_bytes
from support.events_sample import write_log
from support.program import Ran, run_here
from support.pth_writer import T, write_pth

COMMANDS = (
    "open",
    "render",
    "info",
    "report",
    "diff",
    "query",
    "record",
    "predict",
    "demo",
    "convert",
    "pth",
    "model",
    "explore",
    "events",
)


@pytest.fixture
def folder(small: Path, demo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a small snapshot, another with two devices, two checkpoints."""
    monkeypatch.chdir(small.parent)
    os.symlink(demo, "demo.pickle")
    write_pth(Path("a.pth"), {"layer.weight": T("float32", (1024, 8)), "old": T("float32", (3,))})
    write_pth(Path("b.pth"), {"layer.weight": T("float32", (1024, 8)), "new": T("float32", (4,))})
    write_log(small.parent / "log.json")
    return small.parent


class Program:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Ran:
        return run_here(self._capsys, *arguments)

    def document(self, *arguments: str) -> Any:
        ran = self(*arguments, "--json")
        assert (ran.code, ran.err) == (0, "")
        return json.loads(ran.out)


@pytest.fixture
def program(folder: Path, capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


def parser_of(command: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"snapviewer {command}")
    module = {"open": "window"}.get(command, command)
    import_module(f"snapviewer.cli.{module}").add_options(parser)
    return parser


def options_of(command: str) -> dict[str, argparse.Action]:
    """The options that a command's help lists, by each of their spellings."""
    actions = [one for one in parser_of(command)._actions if one.help != argparse.SUPPRESS]
    return {spelling: one for one in actions for spelling in one.option_strings}


# Help


def test_the_help_lists_every_command_in_its_group(program: Program) -> None:
    ran = program("--help")

    groups = re.findall(r"^(\w+):\n((?:  \w.*\n)+)", ran.out, re.MULTILINE)
    listed = {title: re.findall(r"^  (\w+)", lines, re.MULTILINE) for title, lines in groups}
    assert listed == {
        "Look": ["open", "render"],
        "Explain": ["info", "report", "tree", "segments", "whatif", "diff", "query"],
        "Capture": ["record", "predict", "demo"],
        "Files": ["convert"],
        "Models": ["pth", "model", "explore", "events"],
    }
    assert all(len(line) <= 80 for line in ran.out.splitlines())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_says_what_it_does(command: str, program: Program) -> None:
    ran = program(command, "--help")

    assert (ran.code, ran.err) == (0, "")
    assert " ".join(ran.out.split()).count(cli.description_of(command)) == 1


def test_an_option_is_the_same_in_every_command() -> None:
    seen: dict[str, tuple[Any, ...]] = {}
    short = {"-o": "--output", "-d": "--device", "-q": "--quiet", "-h": "--help"}
    shared = {"--json", "--force", "--log", "--theme", "--event", "--filter", "--compare"}
    shared |= {"--baseline", *short, *short.values()}
    for command in COMMANDS:
        options = options_of(command)
        for spelling, action in options.items():
            if spelling in short:
                assert short[spelling] in action.option_strings, command
            if spelling in shared:
                kind = (type(action), action.dest, action.nargs, action.type, action.choices)
                assert seen.setdefault(spelling, kind) == kind, (command, spelling)
        assert ("--output" in options) == ("--force" in options) == (command != "open"), command
        assert ("--json" in options) == (command != "open"), command
        assert "--log" in options, command


# Outputs

WRITERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "info": (("small.pickle",), ("1.txt", "2.json")),
    "report": (("small.pickle",), ("1.txt", "2.json")),
    "diff": (("small.pickle", "demo.pickle"), ("1.txt", "2.json", "3.md", "4.html")),
    "query": (("small.pickle", "select 1"), ("1.txt", "2.json")),
    "render": (("small.pickle",), ("1.png", "2.png")),
    "demo": (("--events", "50"), ("1.pickle", "2.pickle")),
    "convert": (("small.pickle",), ("1", "2.zip")),
    "pth": (("a.pth",), ("1.txt", "2.json")),
    "model": (("a.pth",), ("1.html", "2.json", "3.xml", "4.md", "5.txt")),
    "explore": (("a.pth",), ("1.txt", "2.json", "3.html", "4.svg")),
    "events": (("log.json",), ("1.txt", "2.json", "3.html", "4.md")),
}


def outputs(names: Sequence[str]) -> list[str]:
    return [word for name in names for word in ("-o", name)]


@pytest.mark.parametrize("command", WRITERS)
def test_every_output_is_written_and_named(command: str, program: Program) -> None:
    arguments, names = WRITERS[command]

    ran = program(command, *arguments, *outputs(names))

    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert [line.partition(": ")[0] for line in lines] == list(names)
    for line, name in zip(lines, names, strict=True):
        files = [Path(name)] if Path(name).is_file() else list(Path(name).iterdir())
        assert line.endswith(format_bytes(sum(file.stat().st_size for file in files)))
    for name in names:
        if name.endswith(".json"):
            assert json.loads(Path(name).read_text())


@pytest.mark.parametrize("command", WRITERS)
def test_an_output_that_exists_is_kept_unless_forced(command: str, program: Program) -> None:
    arguments, names = WRITERS[command]
    kept = Path(names[-1])
    kept.write_text("mine")

    refused = program(command, *arguments, *outputs(names))
    others = [name for name in names[:-1] if Path(name).exists()]
    forced = program(command, *arguments, *outputs(names), "--force")

    assert (refused.code, refused.out) == (1, "")
    assert "the output exists already; choose another name, or replace it with --force" in (
        refused.err
    )
    assert others == []
    assert (forced.code, forced.err) == (0, "")
    assert kept.read_bytes() != b"mine"


@pytest.mark.parametrize(
    "command", ["info", "report", "diff", "query", "render", "pth", "model", "explore", "events"]
)
def test_the_input_is_never_an_output(command: str, program: Program) -> None:
    arguments, names = WRITERS[command]
    content = Path(arguments[0]).read_bytes()
    Path(names[0]).symlink_to(arguments[0])

    ran = program(command, *arguments, "-o", names[0], "--force")

    assert ran.code == 1
    assert "the output is the input itself" in ran.err
    assert Path(arguments[0]).read_bytes() == content


@pytest.mark.parametrize(
    "command", ["info", "report", "diff", "query", "pth", "model", "explore", "events"]
)
def test_a_suffix_that_is_no_format_is_wrong_usage(command: str, program: Program) -> None:
    ran = program(command, *WRITERS[command][0], "-o", "out.docx")

    assert ran.code == 2
    assert re.search(r"picks its format, .*\.txt.*: out\.docx$", ran.err, re.MULTILINE)


@pytest.mark.parametrize("command", WRITERS)
def test_an_output_given_twice_is_wrong_usage(command: str, program: Program) -> None:
    arguments, names = WRITERS[command]

    ran = program(command, *arguments, "-o", names[0], "-o", f"./{names[0]}")

    assert (ran.code, ran.out) == (2, "")
    assert f"the output is given twice: {names[0]}" in ran.err
    assert not Path(names[0]).exists()


@pytest.mark.parametrize("command", WRITERS)
def test_json_is_one_document_beside_outputs(command: str, program: Program) -> None:
    arguments, names = WRITERS[command]

    document = program.document(command, *arguments, *outputs(names))

    assert all(Path(name).exists() for name in names)
    if command in ("render", "demo", "convert"):
        assert [one["output"] for one in document["outputs"]] == list(names)
        assert document["output"] == names[0]


def test_quiet_leaves_out_what_was_written(program: Program) -> None:
    for command, (arguments, names) in WRITERS.items():
        ran = program(command, *arguments, "-o", f"quiet-{command}-{names[0]}", "-q")

        assert (ran.code, ran.out, ran.err) == (0, "", ""), command


def test_quiet_keeps_the_answer(program: Program) -> None:
    assert program("info", "small.pickle", "-q").out == program("info", "small.pickle").out


def test_many_checkpoints_are_written_as_text_and_json_in_one_go(program: Program) -> None:
    printed = program("pth", "a.pth", "b.pth").out
    document = program.document("pth", "a.pth", "b.pth")

    ran = program("pth", "a.pth", "b.pth", "-o", "all.txt", "-o", "all.json")

    assert ran.code == 0
    assert Path("all.txt").read_text() == printed
    assert json.loads(Path("all.json").read_text()) == document


# Files


def test_convert_takes_its_file_with_and_without_the_option(program: Program) -> None:
    for place, arguments in enumerate(
        (["small.pickle"], ["-i", "small.pickle"], ["--input", "small.pickle"])
    ):
        assert program("convert", *arguments, "-o", f"{place}.zip").code == 0
        assert zipfile.is_zipfile(f"{place}.zip")

    both = program("convert", "small.pickle", "-i", "small.pickle", "-o", "both.zip")
    assert both.code == 2


# Devices, events, filters, rows


def test_an_event_is_a_number_or_a_name(program: Program) -> None:
    device = max(snapviewer.load("demo.pickle").devices, key=lambda device: device.peak_bytes)

    def event(*arguments: str) -> int:
        document = program.document("report", "demo.pickle", *arguments)
        return int(document["event"])

    assert event() == event("--event", "peak") == device.peak_event
    assert event("--event", "end") == device.events - 1
    assert event("--event", "oom") == device.oom_at[0]
    assert event("--event", "17") == 17
    assert event("--event", "-1") == -1
    assert program("report", "demo.pickle", "--event", "lunch").code == 2
    outside = program("report", "demo.pickle", "--event", "999999")
    assert outside.code == 1
    assert "there is no event 999,999" in outside.err


def test_without_an_oom_there_is_no_such_event(program: Program) -> None:
    assert program("demo", "-o", "calm.pickle", "--events", "100").code == 0

    ran = program("report", "calm.pickle", "--event", "oom")

    assert (ran.code, ran.err) == (1, "snapviewer: device 0 did not run out of memory\n")


def test_a_filter_narrows_the_report(program: Program) -> None:
    everything = program.document("report", "demo.pickle")
    large = program.document("report", "demo.pickle", "--filter", "size>=1MiB")
    both = program.document(
        "report", "demo.pickle", "--filter", "size>=1MiB", "--filter", "size<2MiB"
    )
    wrong = program("report", "demo.pickle", "--filter", "size>=many")

    assert 0 < both["bytes"] < large["bytes"] < everything["bytes"]
    assert wrong.code == 2
    assert "size" in wrong.err
    assert (everything["filter"], both["filter"]) == (None, "size>=1MiB size<2MiB")
    assert everything["all_bytes"] == large["all_bytes"] == everything["bytes"]


def test_a_filtered_report_says_so(program: Program) -> None:
    whole = format_bytes(program.document("report", "demo.pickle")["bytes"])
    large = program.document("report", "demo.pickle", "--filter", "size>=1MiB")
    held = format_bytes(large["bytes"])

    text = program("report", "demo.pickle", "--filter", "size>=1MiB").out
    none = program("report", "demo.pickle", "--filter", "nowhere")

    assert f": {held} of {whole} match `size>=1MiB`, in " in text
    assert none.code == 0
    assert f"no allocation matches `nowhere`: 0 B of {whole} at the peak" in none.out
    assert not none.out.endswith("\n\n")


def test_top_0_is_all_rows(program: Program) -> None:
    few = program.document("report", "demo.pickle", "--top", "2")
    all_of_them = program.document("report", "demo.pickle", "--top", "0")

    assert len(few["lines"]) == 2
    assert len(all_of_them["lines"]) > 15
    assert all_of_them["others"] == {"bytes": 0, "allocations": 0}


# Comparing


@pytest.mark.parametrize("command", ["pth", "explore"])
def test_a_baseline_is_the_older_file(command: str, program: Program) -> None:
    forwards = program(command, "a.pth", "--compare", "b.pth")
    backwards = program(command, "b.pth", "--baseline", "a.pth")

    assert forwards.code == 0
    assert forwards == backwards
    assert program(command, "a.pth", "--compare", "b.pth", "--baseline", "b.pth").code == 2


def test_a_comparison_of_trees_is_json_too(program: Program) -> None:
    document = program.document("explore", "a.pth", "--compare", "b.pth")

    (root,) = document["changed"]
    assert {one["path"]: one["verdict"] for one in root["tensors"]} == {
        "old": "removed",
        "new": "added",
    }
    assert (document["is_equal"], document["more_parameters"], document["more_bytes"]) == (
        False,
        1,
        4,
    )
    assert program("explore", "a.pth", "--compare", "b.pth", "-o", "c.svg").code == 2


def test_older_words_still_work(program: Program) -> None:
    assert program("pth", "a.pth", "--diff", "b.pth").code == 0
    for sort in ("order", "memory", "file", "size"):
        assert program("explore", "a.pth", "--sort", sort).code == 0
    assert program("explore", "a.pth", "--light").code == 0


# Messages


@pytest.mark.parametrize(
    "arguments",
    [
        ("none.pt",),
        *[
            (name, "none.pt")
            for name in ("info", "report", "open", "pth", "model", "explore", "events")
        ],
        ("render", "none.pt", "-o", "new.png"),
        ("convert", "none.pt", "-o", "new.zip"),
        ("query", "none.pt", "select 1"),
        ("diff", "small.pickle", "none.pt"),
    ],
    ids=lambda given: " ".join(given[:-1]),
)
def test_a_missing_file_is_the_same_sentence_everywhere(
    arguments: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from support.program import run

    monkeypatch.delenv("DISPLAY", raising=False)
    ran = run(*arguments, directory=folder)
    assert (ran.code, ran.out, ran.err) == (1, "", "snapviewer: no such file: none.pt\n")


def test_an_output_in_a_missing_directory_names_the_directory(
    program: Program, folder: Path
) -> None:
    missing = folder / "none"
    for command, *others in (("demo",), ("convert", "demo.pickle"), ("info", "demo.pickle")):
        ran = program(command, *others, "-o", str(missing / "new.txt"))
        assert (ran.code, ran.err) == (1, f"snapviewer: no such directory: {missing}\n"), command


def test_the_size_of_an_output_is_in_binary_units(program: Program, folder: Path) -> None:
    ran = program("demo", "-o", "new.pickle", "--events", "50")
    assert re.fullmatch(r"new\.pickle: [\d.]+ (K|M)iB\n", ran.out)


def test_debug_prints_where_an_error_came_from(program: Program, folder: Path) -> None:
    from support.program import run

    usual = run("info", "missing.pickle", directory=folder)
    debug = run("info", "missing.pickle", "--log", "debug", directory=folder)

    assert usual.err == "snapviewer: no such file: missing.pickle\n"
    assert debug.err.endswith(f"\n{usual.err}")
    assert "Traceback" in debug.err
    assert (usual.code, debug.code) == (1, 1)


@pytest.mark.parametrize(
    ("error", "code"),
    [(CheckFailed("no"), 3), (CommandError("no"), 1), (OSError(2, "no"), 1), (MemoryError(), 1)],
)
def test_exit_codes_are_of_the_kind_of_failure(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        raise error

    assert cli.run(work) == code
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_bug_is_not_hidden() -> None:
    def work() -> None:
        raise KeyError("bug")

    with pytest.raises(KeyError):
        cli.run(work)


# Units and sizes


@pytest.mark.parametrize(
    "arguments",
    [("pth", "a.pth"), ("model", "a.pth"), ("model", "a.pth", "--full"), ("explore", "a.pth")],
)
def test_sizes_have_binary_units(arguments: tuple[str, ...], program: Program) -> None:
    ran = program(*arguments)

    assert "32.0 KiB" in ran.out
    assert not re.search(r"\d ?[kKMG]B\b", ran.out)


def test_a_model_is_a_screenful_unless_everything_is_asked_for(program: Program) -> None:
    brief, full = program("model", "a.pth"), program("model", "a.pth", "--full")

    assert len(brief.out.splitlines()) <= 24
    # A long path may break the line.
    assert "(torch zip; no code was run)" in " ".join(brief.out.split())
    assert "Recommendations" in brief.out
    assert "\nStatistics\n" not in brief.out
    assert "\nStatistics\n" in full.out
    assert "  layer.weight " in full.out


def test_only_pytorch_parser_uses_the_words_that_it_promises(program: Program) -> None:
    full = program("model", "a.pth", "--full")
    program("model", "a.pth", "-o", "report.txt")

    report = Path("report.txt").read_text(encoding="utf-8")
    for text in (full.out, report):
        assert "32.0 KiB" in text
        for word in ("Enterprise", "COMPREHENSIVE", "EXECUTIVE", "Analyzed parameter", " MB"):
            assert word not in text
