"""`snapviewer events` and `analyze_memory.py`: what they write and refuse, and their exit codes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from snapviewer.cli import analyze_memory_main
from snapviewer.events import REPORT_FORMAT, to_json
from snapviewer.text.units import format_bytes
from support.events_sample import GIB, SAMPLE, Entry, analysis_of, rich_log, write_log
from support.program import Ran, run, run_here

PEAK = 25893642240
CHINESE = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")


class Here:
    """The command in a directory of its own, with the sample in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys
        self.log = write_log(folder / "log.json")

    def __call__(self, *arguments: str | Path) -> Ran:
        return run_here(self.capsys, "events", *arguments)

    def script(self, *arguments: str | Path) -> Ran:
        try:
            code = analyze_memory_main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = int(str(end.code))
        captured = self.capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    def json(self, *arguments: str | Path) -> Any:
        ran = self(*arguments, "--json")
        assert ran.code == 0, ran.err

        def refuse(word: str) -> object:
            raise AssertionError(f"{word} is no JSON")

        return json.loads(ran.out, parse_constant=refuse)

    def peak(self, name: str, size: int) -> Path:
        return write_log(self.folder / name, [{"event": "model_loaded", "peak_memory": size}])

    @property
    def files(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Here:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("COLUMNS", "")
    return Here(tmp_path, capsys)


# Where reports go


def test_without_an_output_a_screenful_is_printed_and_nothing_is_written(here: Here) -> None:
    ran = here("log.json")

    assert (ran.code, ran.err) == (0, "")
    assert "  - The measured peak is 24.1 GiB (first at inference_end).\n" in ran.out
    assert "Memory grows by 16.0 MiB per step: this may be a memory leak." in ran.out
    assert "Fix the memory leak" not in ran.out
    assert "  1. High priority: T5 encoder: release it after encoding (up to 10.6 GiB)" in ran.out
    assert ran.out.endswith("Recommended GPU: RTX 5090 (32GB) or A100 (40GB)\n")
    assert len(ran.out.splitlines()) < 24
    assert here.files == {"log.json"}


def test_the_screenful_names_unknown_events_and_the_memory_of_a_process(here: Here) -> None:
    events = [
        {"event": "init", "memory_source": "process", "peak_memory": 2**30},
        {"event": "lunch", "peak_memory": 2**30},
    ]
    Path("process.json").write_text(json.dumps(events))

    out = " ".join(here("process.json").out.split())

    assert "The log has 1 kind of unknown event: lunch." in out
    assert "The log has the memory of a process, not of a GPU" in out
    assert "appendix" not in out


def test_the_suffix_decides_what_is_written_and_several_are_written_at_once(here: Here) -> None:
    pytest.importorskip("typst")
    names = ("a.md", "b.HTML", "c.pdf", "d.txt", "e.json")

    ran = here("log.json", *(word for name in names for word in ("-o", name)))

    assert (ran.code, ran.err) == (0, "")
    assert Path("a.md").read_text().startswith("# GPU memory report\n")
    assert Path("b.HTML").read_text().lower().startswith("<!doctype html>")
    assert Path("c.pdf").read_bytes().startswith(b"%PDF-")
    assert Path("d.txt").read_text().startswith("GPU memory report\n\nOverview\n")
    assert json.loads(Path("e.json").read_text()) == here.json("log.json")
    sizes = [f"{name}: {format_bytes(Path(name).stat().st_size)}" for name in names]
    assert ran.out.splitlines() == sizes


def test_an_existing_report_is_kept_unless_it_is_to_be_replaced(here: Here) -> None:
    Path("a.md").write_text("mine")

    kept = here("log.json", "-o", "a.md", "-o", "b.md")

    assert kept.code == 1
    assert "a.md" in kept.err
    assert "--force" in kept.err
    assert Path("a.md").read_text() == "mine"
    assert here.files == {"log.json", "a.md"}
    assert here("log.json", "-o", "a.md", "--force").code == 0
    assert Path("a.md").read_text().startswith("# GPU memory report")


@pytest.mark.parametrize(
    ("locale", "language"),
    [
        ({"LC_ALL": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_ALL": "", "LC_MESSAGES": "zh_TW", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_ALL": "", "LC_MESSAGES": "", "LANG": "zh_CN"}, "zh"),
        ({"LC_ALL": "en_GB.UTF-8", "LC_MESSAGES": "zh_CN", "LANG": "zh_CN"}, "en"),
        ({"LC_ALL": "", "LC_MESSAGES": "", "LANG": ""}, "en"),
        ({"LC_ALL": "de_DE.UTF-8"}, "en"),
    ],
)
def test_the_command_speaks_the_language_of_the_locale(
    here: Here, monkeypatch: pytest.MonkeyPatch, locale: dict[str, str], language: str
) -> None:
    for name, value in locale.items():
        monkeypatch.setenv(name, value)

    shown = [here("log.json"), here("log.json", "--json"), here("no.json")]
    chosen = here("log.json", "--lang", "en" if language == "zh" else "zh")

    assert all(bool(CHINESE.search(ran.out + ran.err)) == (language == "zh") for ran in shown)
    assert bool(CHINESE.search(chosen.out)) == (language == "en")


def test_the_script_is_chinese_names_its_model_and_replaces_its_report(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    Path("memory_analysis_report.md").write_text("the report of yesterday")

    ran = here.script("--log", "log.json")

    assert ran.code == 0
    assert ran.out.endswith("报告已保存至: memory_analysis_report.md\n")
    assert "24.12 GB" in ran.out
    report = Path("memory_analysis_report.md").read_text()
    assert report.startswith("# Wan2.1-Enhanced 显存消耗分析报告\n")
    assert "GiB" not in report.replace("1 GB = 1 GiB", "")


def test_the_format_of_the_script_can_be_chosen_and_names_the_usual_file(here: Here) -> None:
    assert here.script("log.json", "--format", "html", "-o", "a.md").code == 0
    assert here.script("log.json", "--format", "html").code == 0
    assert here.script("log.json").code == 0

    assert Path("a.md").read_text().lower().startswith("<!doctype html>")
    assert here.files == {
        "log.json",
        "a.md",
        "memory_analysis_report.html",
        "memory_analysis_report.md",
    }


def test_a_dash_is_standard_output_of_the_script_and_nothing_else_is_printed(here: Here) -> None:
    ran = here.script("log.json", "-o", "-", "-o", "a.md")

    assert ran.out == Path("a.md").read_text()
    assert ran.err == ""


def test_the_command_never_invents_the_name_of_a_model(here: Here) -> None:
    write_log(here.folder / "rich.json", rich_log())

    for language in ("en", "zh"):
        for arguments in (["log.json"], ["rich.json"], ["log.json", "rich.json"]):
            for name in ("a.md", "a.html", "a.txt", "a.json"):
                assert here(*arguments, "--lang", language, "-o", name, "--force").code == 0
                assert "Wan2.1" not in Path(name).read_text()


@pytest.mark.parametrize("logged", [list(SAMPLE), rich_log(), [{"event": "odd"}, 5]])
def test_in_english_no_letter_is_chinese(here: Here, logged: list[Entry]) -> None:
    write_log(here.log, logged)
    other = here.peak("other.json", GIB)

    one = here.script("log.json", "--lang", "en", "-o", "-", "--baseline", other)
    many = here.script("log.json", other, "--lang", "en", "-o", "-")
    page = here.script("log.json", "--lang", "en", "-o", "-", "--format", "html")
    shown = here("log.json")
    record = here("log.json", "--json")

    for ran in (one, many, page, shown, record):
        assert ran.code == 0
        assert CHINESE.findall(ran.out) == []


@pytest.mark.parametrize("name", ["log.md", "link.md", "log2.md"])
def test_a_log_is_never_written_over(here: Here, name: str) -> None:
    log = here.log.rename("log.md")
    Path("link.md").symlink_to("log.md")
    os.link("log.md", "log2.md")
    before = log.read_bytes()
    other = here.peak("other.json", 5)

    for program, force in ((here, ["--force"]), (here.script, [])):
        ran = program("log.md", "-o", name, *force)
        as_baseline = program(other, "--baseline", "log.md", "-o", name, *force)

        assert (ran.code, as_baseline.code) == (1, 1)
        assert "the output is the input itself" in ran.err
    assert log.read_bytes() == before
    assert Path("link.md").is_symlink()


def test_what_is_no_file_is_not_replaced(here: Here) -> None:
    Path("folder.md").mkdir()
    os.mkfifo("pipe.md")
    Path("null.md").symlink_to("/dev/null")
    names = ("folder.md", "pipe.md", "null.md")

    by_script = [here.script("log.json", "-o", name).code for name in (*names, "/dev/null")]
    by_command = [here("log.json", "-o", name, "--force").code for name in names]

    assert by_script == [1, 1, 1, 0], "the last is how to ask for no report"
    assert by_command == [1, 1, 1]
    assert Path("/dev/null").is_char_device()
    assert here.files == {"log.json", *names}


def test_a_directory_that_is_not_there_is_an_error_in_a_sentence(here: Here) -> None:
    ran = here("log.json", "-o", "no/such/report.md")

    assert ran.code == 1
    assert ran.err.count("\n") == 1
    assert ran.err == "snapviewer: no such directory: no/such\n"


@pytest.mark.parametrize("outputs", [["a.md"], ["a.md", "b.html"]])
def test_a_log_that_cannot_be_read_makes_no_report_and_leaves_nothing(
    here: Here, outputs: list[str]
) -> None:
    Path("bad.json").write_text("{")
    Path("a.md").write_text("the report of yesterday")

    options = [word for output in outputs for word in ("-o", output)]
    ran = here.script("log.json", "bad.json", *options)
    english = here("bad.json", "--force", *options)

    assert (ran.code, english.code) == (1, 1)
    assert "无法读取或解析文件 bad.json" in ran.err
    assert "cannot read or parse the file bad.json" in english.err
    assert Path("a.md").read_text() == "the report of yesterday"
    assert here.files == {"log.json", "bad.json", "a.md"}


def test_without_what_a_pdf_takes_a_sentence_says_so_and_nothing_is_written(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "typst", None)

    ran = here("log.json", "-o", "a.md", "-o", "a.pdf")

    assert ran.code == 1
    assert "pip install typst" in ran.err
    assert ran.err.count("\n") == 1
    assert here.files == {"log.json"}


# Several logs


def test_a_baseline_is_compared_figure_by_figure(here: Here) -> None:
    write_log(here.folder / "rich.json", rich_log())

    assert here("rich.json", "--baseline", "log.json", "-o", "a.md").code == 0

    report = Path("a.md").read_text()
    table = re.sub(" +", " ", report.partition("### Compared with the baseline")[2])
    assert "the peak changed by −2.12 GiB (−8.8 %)." in table
    assert "\n| T5 encoder | 10.6 GiB | 10.0 GiB | −596 MiB (−5.5 %) |\n" in table
    assert "\n| Growth per step | 16.0 MiB | 0 B | −16.0 MiB (−100.0 %) |\n" in table
    assert "\n| CLIP | not recorded | 1.00 GiB | – |\n" in table


def test_many_logs_make_one_report_in_which_each_has_its_name(here: Here) -> None:
    names = [f"run{number}/log.json" for number in range(9)]
    for number, name in enumerate(names):
        here.peak(name, (number + 1) * GIB)

    report = here.script("--log", *names, "-o", "-", "--lang", "en").out
    screen = here(*names).out

    assert report.startswith("# Memory comparison\n")
    for number, name in enumerate(names):
        assert f"**{name}**: peak {number + 1}.00 GB" in report
        assert f"  - {name}: peak {number + 1}.00 GiB" in screen
    assert "(+800.0 %)" in report


def test_the_same_log_twice_is_compared_with_itself(here: Here) -> None:
    ran = here("log.json", "log.json")

    assert "  - 1. log.json: peak" in ran.out
    assert "  - 2. log.json: peak" in ran.out
    assert here.json("log.json", "log.json")["comparison"][0]["changes"] == [0, 0]


# Checks


@pytest.mark.parametrize(
    ("limit", "code"),
    [("25GB", 0), (str(PEAK), 0), (str(PEAK - 1), 3), ("24GB", 3), ("0", 3), ("24.2 GiB", 0)],
)
def test_a_peak_over_the_limit_fails_and_one_at_it_does_not(
    here: Here, limit: str, code: int
) -> None:
    ran = here("log.json", "--fail-over", limit, "-o", "a.md")

    assert (ran.code, here.script("log.json", "--fail-over", limit).code) == (code, code)
    assert bool(ran.err) == bool(code)
    assert Path("a.md").exists(), "the report is written all the same"


def test_the_sentence_of_a_failed_check_has_both_numbers(here: Here) -> None:
    over = here("log.json", "--fail-over", "24GB")
    by_a_byte = here("log.json", "--fail-over", str(PEAK - 1))

    assert over.err == "snapviewer: the peak of 24.1 GiB is over 24.0 GiB: log.json\n"
    assert "25,893,642,240 B is over 25,893,642,239 B" in by_a_byte.err


@pytest.mark.parametrize(
    ("before", "after", "allowed", "code"),
    [
        (100, 102, "2%", 0),
        (100, 103, "2%", 3),
        (100, 115, "15", 0),
        (100, 116, "15", 3),
        (1000, 1007, "0.7 %", 0),
        (1000, 1008, "0.7 %", 3),
        (100, 100, "0%", 0),
        (100, 101, "0%", 3),
        (100, 5, "0", 0),
        (0, 1, "100%", 3),
    ],
)
def test_a_regression_fails_above_what_is_allowed_and_not_at_it(
    here: Here, before: int, after: int, allowed: str, code: int
) -> None:
    old, new = here.peak("old.json", before), here.peak("new.json", after)

    with_baseline = here(new, "--baseline", old, "--fail-regression", allowed)
    two_logs = here(old, new, "--fail-regression", allowed)

    assert (with_baseline.code, two_logs.code) == (code, code)


def test_a_log_without_a_peak_keeps_to_no_limit(here: Here) -> None:
    write_log(here.folder / "none.json", SAMPLE[1:4])

    assert here("none.json", "--fail-over", "1TB").code == 3
    assert here("none.json", "--baseline", "log.json", "--fail-regression", "5%").code == 3
    assert here("log.json", "--baseline", "none.json", "--fail-regression", "5%").code == 3


# Usage


@pytest.mark.parametrize(
    "line",
    [
        "",
        "log.json --fail-regression 2%",
        "log.json --fail-over much",
        "log.json --fail-over -5",
        "log.json --fail-over nan",
        "log.json --fail-over 99999999999EB",
        "log.json --baseline log.json --fail-regression=-1%",
        "log.json --baseline log.json --fail-regression nan",
        "log.json -o report.docx",
        "log.json -o report",
        "log.json --lang fr",
        "log.json --steps both",
        "log.json --log loud",
    ],
)
def test_wrong_usage_is_exit_code_2_and_writes_nothing(here: Here, line: str) -> None:
    ran = here(*shlex.split(line))

    assert ran.code == 2
    assert "usage:" in ran.err
    assert here.files == {"log.json"}


@pytest.mark.parametrize("line", ["", "log.json --format docx", "log.json --json -o -"])
def test_wrong_usage_of_the_script_is_exit_code_2(here: Here, line: str) -> None:
    ran = here.script(*shlex.split(line))

    assert ran.code == 2
    assert "usage:" in ran.err
    assert here.files == {"log.json"}


# JSON


def test_json_is_the_analysis_that_the_report_renders(here: Here) -> None:
    record = here.json("log.json")

    assert record == json.loads(json.dumps(to_json(analysis_of(SAMPLE), language="en"))) | {
        "file": "log.json"
    }
    assert record["report_format"] == REPORT_FORMAT
    assert record["peak"]["bytes"] == sum(part["bytes"] for part in record["peak"]["parts"])
    assert record["peak"]["unaccounted_bytes"] == 24824987648 - record["components_bytes"]
    assert record["steps"]["growth"]["per_step_bytes"] == 16773120
    assert record["steps"]["growth"]["verdict"] == "leak-signature"
    assert record["gpu"]["recommended"] == "RTX 5090 (32GB)"
    assert sum(item["share"] for item in record["components"]) == pytest.approx(1)
    assert here.files == {"log.json"}, "it goes to standard output, and no report with it"


def test_json_of_several_logs_has_each_the_comparison_and_the_checks(here: Here) -> None:
    old, new = here.peak("old.json", 100), here.peak("new.json", 101)

    both = here.json(old, new, "--fail-over", "200")
    one = here.json(new, "--baseline", old, "--fail-regression", "1%")

    assert [log["peak"]["bytes"] for log in both["logs"]] == [100, 101]
    assert both["comparison"][0]["values"] == [100, 101]
    assert [check["passed"] for check in both["checks"]] == [True, True]
    assert (one["peak"]["bytes"], one["baseline"]["peak"]["bytes"]) == (101, 100)
    assert one["checks"][0]["limit_bytes"] == 101


def test_json_goes_with_reports_and_a_failed_check(here: Here) -> None:
    ran = here("log.json", "--json", "-o", "a.md", "--fail-over", "1GB")

    assert ran.code == 3
    assert json.loads(ran.out)["checks"][0]["passed"] is False
    assert here.files == {"log.json", "a.md"}


def test_odd_numbers_make_strict_json(here: Here) -> None:
    here.log.write_text(
        '[{"event": "step_0", "incremental_memory": NaN, "duration": Infinity},'
        '{"event": "model_loaded", "peak_memory": 1e999, "timestamp": -Infinity},'
        '{"event": "t5_loaded", "incremental_memory": 0}]'
    )

    record = here.json("log.json")

    assert record["oddities"]["count"] == 4
    assert record["peak"] is None


def test_debug_goes_beside_the_json(here: Here) -> None:
    ran = here.script("log.json", "--json", "--debug")

    assert json.loads(ran.out)["events"]["count"] == 11
    assert ran.err.startswith("解析到的事件数量: 11\n")


def test_what_the_steps_are_can_be_said(here: Here) -> None:
    record = here.json("log.json", "--steps", "increments")

    assert record["steps"]["because"] == "asked-for"
    assert record["steps"]["highest_level_bytes"] == 35122176 + 51903488 + 68668416


# As a process


def test_a_reader_that_has_had_enough_is_no_error(here: Here) -> None:
    steps = [{"event": f"other{n}_end", "duration": n, "peak_memory": n} for n in range(5000)]
    write_log(here.log, [*SAMPLE, *steps])
    command = f"{shlex.quote(sys.executable)} -m snapviewer.events log.json"

    for options in ("-o - --format html", "--json"):
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command} {options} | head -1"],
            capture_output=True,
            timeout=60,
            check=False,
        )

        assert (done.returncode, done.stderr) == (0, b""), options
        assert done.stdout.count(b"\n") == 1


def test_names_that_terminals_obey_are_not_printed(here: Here) -> None:
    name = "log\x1b[31m\n.json"
    write_log(here.folder / name, [{"event": "a\x1b]0;b\x07\u202e", "peak_memory": 5}])

    said = run(name, program=("-m", "snapviewer.events"), directory=here.folder)
    failed = run("no\x1b[31m", program=("-m", "snapviewer.events"), directory=here.folder)
    over = run(name, "--fail-over", "1", program=("-m", "snapviewer.events"), directory=here.folder)

    assert [said.code, failed.code, over.code] == [0, 1, 3]
    for ran in (said, failed, over):
        assert "\x1b" not in ran.out + ran.err
        assert "\u202e" not in ran.out + ran.err
    assert "\x1b" not in Path("memory_analysis_report.md").read_text()
