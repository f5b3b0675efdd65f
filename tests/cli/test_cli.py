"""The commands, as somebody calls them: what they print and where, and how they end."""

from __future__ import annotations

import json
import os
import pickle
import pty
import re
import select
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

import snapviewer
from snapviewer.text.units import format_bytes
from support import hostile
from support.program import Ran, run, run_here

ROOT = Path(__file__).resolve().parents[2]
CONVERT_SNAP = (str(ROOT / "convert_snap.py"),)
DEVICE_KEYS = {
    "device",
    "events",
    "allocations",
    "peak_bytes",
    "peak_event",
    "final_bytes",
    "reserved_peak_bytes",
    "oom_events",
    "reconciles",
    "warnings",
}
ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n"
MEMBERS = ["allocations.json", "elements.db"]


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a snapshot of two devices and pinned memory, and bundles of it."""
    directory = tmp_path_factory.mktemp("demos")
    options = ("--events", "2000", "--devices", "2", "--host", "--seed", "7")
    ran = run("demo", "-o", "demo.pickle", *options, directory=directory)
    assert ran.code == 0, ran.err
    for bundle in ("demo.zip", "demo"):
        ran = run("convert", "-i", "demo.pickle", "-o", bundle, directory=directory)
        assert ran.code == 0, ran.err
    return directory


def _refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def _document(ran: Ran) -> Any:
    """The one JSON document of a run that said nothing else."""
    assert ran.code == 0, ran.err
    assert ran.err == ""
    return json.loads(ran.out, parse_constant=_refuse_constant)


def _assert_refused(ran: Ran, *words: str) -> None:
    assert ran.code == 1, ran
    assert ran.out == ""
    assert ran.err.startswith("snapviewer: ")
    assert len(ran.err.splitlines()) == 1, ran.err
    assert [word for word in words if word not in ran.err] == [], ran.err


def _info(path: Path) -> dict[str, Any]:
    """What `info` says of a file, apart from where it is and how it is packed."""
    document: dict[str, Any] = _document(run("info", path, "--json"))
    return {key: value for key, value in document.items() if key not in ("file", "format")}


# Help and usage


def test_the_program_is_installed_under_its_name() -> None:
    program = Path(sys.executable).with_name("snapviewer")

    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"snapviewer {snapviewer.__version__}\n"


@pytest.mark.parametrize("command", ["convert", "info", "render", "query", "pth", "demo"])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = run_here(capsys, command, "--help")
    overview = run_here(capsys, "--help")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"usage: snapviewer {command} ")
    assert "--json" in ran.out
    assert re.search(rf"^ +{command} +\w", overview.out, re.MULTILINE)


def test_the_old_name_of_the_converter_explains_itself() -> None:
    ran = run("--help", program=CONVERT_SNAP)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("usage: convert_snap.py ")
    for option in ("-i", "-o", "-d", "--device", "--force"):
        assert option in ran.out


@pytest.mark.parametrize(
    "words",
    [
        "--nonsense",
        "info",
        "info a b",
        "info a --nonsense",
        "convert -i a",
        "convert -o a",
        "convert -i a -o b -d zero",
        "convert -i a -o b -d -2",
        "convert -i a -o b -d 99999999999",
        "query a",
        "query a b --max-rows 0",
        "query a b --max-rows 1e3",
        "query a b --max-rows 99999999999999999999",
        "query a b --max-seconds 0",
        "query a b --max-seconds -1",
        "query a b --max-seconds nan",
        "query a b --max-seconds soon",
        "pth a --bins 3",
        "render a",
        "render -o a.png",
        "demo",
        "demo -o a --events 0",
        "demo -o a --events -5",
        "demo -o a --events many",
        "demo -o a --devices 0",
        "demo -o a --streams 0",
        "demo -o a --live 0",
        "demo -o a --protocol 3",
        "demo -o a --seed x",
    ],
)
def test_wrong_usage_ends_with_2_and_touches_nothing(
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)

    ran = run_here(capsys, *words.split())

    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("usage: snapviewer")
    assert "error: " in ran.err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_word_is_refused_with_what_to_do(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    ran = run_here(capsys, "nonsense")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("snapviewer: no such file or command: nonsense; ")
    assert "`snapviewer --help`" in ran.err
    assert len(ran.err.splitlines()) == 1
    for file in ("missing.pickle", "absent/snapshot"):
        ran = run_here(capsys, file)

        assert (ran.code, ran.out, ran.err) == (1, "", f"snapviewer: no such file: {file}\n")
    assert run_here(capsys, "reprot").err.endswith("; did you mean report?\n")


def test_bare_without_a_display_is_the_help(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)

    bare, helped = run_here(capsys), run_here(capsys, "--help")

    assert (bare.code, bare.err) == (0, "")
    assert bare.out == helped.out


def test_a_file_alone_is_opened_in_the_window(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []
    monkeypatch.setattr(
        "snapviewer.cli.window.open_window", lambda files, **how: opened.append((files, how))
    )

    for arguments in ([small], ["--theme", "dark", small], ["open", small]):
        assert run_here(capsys, *arguments).code == 0

    usual = {"size": None, "theme": None, "profile": None}
    dark = {**usual, "theme": "dark"}
    assert opened == [([small], usual), ([small], dark), ([small], usual)]


# demo


def test_a_demo_is_the_same_bytes_for_the_same_seed(tmp_path: Path) -> None:
    for name, seed in (("one", "3"), ("two", "3"), ("other", "4")):
        ran = run("demo", "-o", tmp_path / name, "--events", "500", "--seed", seed)
        assert (ran.code, ran.err) == (0, "")
        size = (tmp_path / name).stat().st_size
        assert ran.out == f"{tmp_path / name}: {format_bytes(size)}\n"

    one, two, other = ((tmp_path / name).read_bytes() for name in ("one", "two", "other"))
    assert one == two
    assert one != other


def test_a_demo_describes_in_json_what_it_made(tmp_path: Path) -> None:
    path = tmp_path / "demo.pickle"
    options = ("--leak", "--compiled", "--expandable", "--private-pools", "--ring", "--host")

    document = _document(run("demo", "-o", path, "--events", "300", "--json", *options))

    written = {"output": str(path), "bytes": path.stat().st_size}
    assert document == {**written, "outputs": [written], "events": 300}
    assert _info(path)["devices"][0]["events"] == 300


@pytest.mark.parametrize("protocol", ["2", "4", "5"])
def test_a_demo_of_any_protocol_is_read(
    protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "demo.pickle"

    made = run_here(capsys, "demo", "-o", path, "--events", "300", "--protocol", protocol)
    ran = run_here(capsys, "info", path, "--json")

    assert made.code == 0
    assert path.read_bytes()[:2] == bytes([0x80, int(protocol)])
    (device,) = json.loads(ran.out)["devices"]
    assert (device["events"], device["reconciles"]) == (300, True)


@pytest.mark.parametrize("output", ["absent/demo.pickle", "."])
def test_a_demo_that_cannot_be_written_is_one_sentence(output: str, tmp_path: Path) -> None:
    ran = run("demo", "-o", tmp_path / output, "--events", "10")

    _assert_refused(ran)
    assert ran.err.endswith((f"{tmp_path / output}\n", f"{(tmp_path / output).parent}\n"))
    assert list(tmp_path.iterdir()) == []


# convert


@pytest.mark.promise("S01")
def test_a_zip_has_exactly_its_two_members(demos: Path) -> None:
    with zipfile.ZipFile(demos / "demo.zip") as archive:
        assert sorted(archive.namelist()) == MEMBERS
        assert archive.testzip() is None


@pytest.mark.promise("S02", "S14")
def test_an_unpacked_zip_is_the_directory(demos: Path, tmp_path: Path) -> None:
    if shutil.which("unzip"):
        command = ["unzip", "-q", str(demos / "demo.zip"), "-d", str(tmp_path / "large")]
        subprocess.run(command, check=True, timeout=60)
    else:
        with zipfile.ZipFile(demos / "demo.zip") as archive:
            archive.extractall(tmp_path / "large")

    assert sorted(path.name for path in (tmp_path / "large").iterdir()) == MEMBERS
    for name in MEMBERS:
        theirs = (demos / "demo" / name).read_bytes()
        assert (tmp_path / "large" / name).read_bytes() == theirs
    assert _info(tmp_path / "large") == _info(demos / "demo.zip") == _info(demos / "demo.pickle")


@pytest.mark.promise("S01")
def test_the_old_name_of_the_converter_converts(demos: Path, tmp_path: Path) -> None:
    arguments = ("-i", demos / "demo.pickle", "-o", "out.zip")

    ran = run(*arguments, program=CONVERT_SNAP, directory=tmp_path)
    wrong = run("-i", "a", program=CONVERT_SNAP, directory=tmp_path)

    size = (tmp_path / "out.zip").stat().st_size
    assert (ran.code, ran.out, ran.err) == (0, f"out.zip: {format_bytes(size)}\n", "")
    assert (tmp_path / "out.zip").read_bytes() == (demos / "demo.zip").read_bytes()
    assert wrong.code == 2


@pytest.mark.promise("S01")
@pytest.mark.parametrize("option", [("-d", "1"), ("--device", "-1"), ()])
def test_the_old_name_of_the_converter_takes_a_device(
    option: tuple[str, ...], demos: Path, tmp_path: Path
) -> None:
    file = demos / "demo.pickle"

    ran = run("-i", file, "-o", "out.zip", *option, program=CONVERT_SNAP, directory=tmp_path)

    assert ran.code == 0, ran.err
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert sorted(archive.namelist()) == MEMBERS
    devices = [one["device"] for one in _info(tmp_path / "out.zip")["devices"]]
    assert devices == ([int(option[1])] if option else [0, 1, -1])


@pytest.mark.promise("S15")
@pytest.mark.parametrize("name", ["out.zip", "out"])
def test_the_old_name_of_the_converter_can_be_run_again(
    name: str, demos: Path, small: Path, tmp_path: Path
) -> None:
    output = tmp_path / name
    first = run("-i", small, "-o", output, program=CONVERT_SNAP)

    again = run("-i", demos / "demo.pickle", "-o", output, program=CONVERT_SNAP)

    assert (first.code, again.code, again.err) == (0, 0, "")
    assert _info(output) == _info(demos / "demo.pickle")
    assert [path.name for path in tmp_path.glob("*out*")] == [name], "nothing is left beside it"


@pytest.mark.promise("S15")
@pytest.mark.parametrize("kind", ["text", "zip", "more", "directory", "document", "added"])
def test_the_old_name_of_the_converter_keeps_what_is_no_bundle(
    kind: str, small: Path, tmp_path: Path
) -> None:
    output = tmp_path / ("out" if kind in ("directory", "document", "added") else "out.zip")
    if kind == "text":
        output.write_text("my notes")
    elif kind in ("zip", "more"):
        run("convert", small, "-o", output)
        with zipfile.ZipFile(output, "a" if kind == "more" else "w") as archive:
            archive.writestr("thesis.tex", "ten years")
    elif kind == "directory":
        output.mkdir()
    elif kind == "document":
        output.mkdir()
        for member in MEMBERS:
            (output / member).write_text('{"format": "another"}')
    else:
        run("convert", small, "-o", output)
        (output / "thesis.tex").write_text("ten years")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    ran = run("-i", small, "-o", output, program=CONVERT_SNAP)

    _assert_refused(ran, output.name, "exists", "--force")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.promise("S02")
@pytest.mark.parametrize(
    ("name", "is_zip"),
    [("a.zip", True), ("b.ZIP", True), ("c", False), ("d.zip.d", False), ("é 雪.zip", True)],
)
def test_the_name_decides_between_zip_and_directory(
    name: str, is_zip: bool, small: Path, tmp_path: Path
) -> None:
    output = tmp_path / name

    document = _document(run("convert", "-i", small, "-o", output, "--json"))

    files = [output] if is_zip else list(output.iterdir())
    assert output.is_dir() == (not is_zip)
    written = {"output": str(output), "bytes": sum(file.stat().st_size for file in files)}
    assert document == {"input": str(small), **written, "outputs": [written]}


@pytest.mark.promise("S01")
@pytest.mark.parametrize("device", [0, 1, -1])
def test_one_device_only(device: int, demos: Path, tmp_path: Path) -> None:
    option = ("-d", str(device)) if device else ("--device", "0")
    bundle = tmp_path / "one.zip"

    ran = run("convert", "-i", demos / "demo.pickle", "-o", bundle, *option)

    assert ran.code == 0, ran.err
    everything = _info(demos / "demo.zip")["devices"]
    assert [one["device"] for one in everything] == [0, 1, -1]
    assert _info(bundle)["devices"] == [one for one in everything if one["device"] == device]
    assert snapviewer.query(bundle, "select distinct device from allocations")[1] == [(device,)]
    assert snapviewer.query(bundle, "select distinct device from events")[1] == [(device,)]


@pytest.mark.promise("S15")
@pytest.mark.parametrize("name", ["out.zip", "out"])
def test_force_replaces_a_bundle_by_another(
    name: str, demos: Path, small: Path, tmp_path: Path
) -> None:
    output = tmp_path / name
    assert run("convert", "-i", small, "-o", output).code == 0

    refused = run("convert", "-i", demos / "demo.pickle", "-o", output)
    kept = _info(output)
    forced = run("convert", "-i", demos / "demo.pickle", "-o", output, "--force")

    _assert_refused(refused, str(output), "exists")
    assert kept == _info(small)
    assert forced.code == 0, forced.err
    assert _info(output) == _info(demos / "demo.pickle")
    assert sorted(tmp_path.iterdir()) == sorted([small, output])


def test_a_snapshot_does_not_replace_itself(small: Path) -> None:
    content = small.read_bytes()

    ran = run("convert", "-i", small, "-o", small, "--force")

    _assert_refused(ran, "the output is the input itself", str(small))
    assert small.read_bytes() == content


@pytest.mark.parametrize("kind", ["demo.zip", "demo"])
def test_a_bundle_is_not_converted_again(kind: str, demos: Path, tmp_path: Path) -> None:
    ran = run("convert", "-i", demos / kind, "-o", tmp_path / "out.zip")

    _assert_refused(ran, "bundle already", str(demos / kind))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("S11")
@pytest.mark.parametrize("command", ["info", "query", "convert"])
def test_a_directory_of_the_older_program_is_refused_with_the_way_out(
    command: str, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    old.mkdir()
    polygon = {"timesteps": [0, 1, 5], "offsets": [0, 0, 512], "size": 512}
    (old / "allocations.json").write_text(json.dumps([polygon, polygon]))
    with sqlite3.connect(old / "elements.db") as database:
        database.execute("create table allocs(idx, size, start_time, end_time, callstack)")
        database.execute("insert into allocs values (0, 512, 0, 5, 'f')")
    database.close()
    arguments: dict[str, tuple[str | Path, ...]] = {
        "info": (old,),
        "query": (old, "select * from allocs"),
        "convert": ("-i", old, "-o", tmp_path / "out.zip"),
    }

    ran = run(command, *arguments[command])

    _assert_refused(ran, str(old))
    assert command == "convert" or "convert_snap.py" in ran.err


# info


def test_info_in_json_is_the_contract(demos: Path) -> None:
    path = demos / "demo.pickle"

    document = _document(run("info", path, "--json"))

    assert {"file", "format", "devices"} <= set(document)
    assert (document["file"], document["format"]) == (str(path), "pickle")
    assert [device["device"] for device in document["devices"]] == [0, 1, -1]
    for one, device in zip(document["devices"], snapviewer.load(path).devices, strict=True):
        assert set(one) >= DEVICE_KEYS
        numbers = DEVICE_KEYS - {"reconciles", "warnings"}
        assert all(type(one[key]) is int for key in numbers)
        assert one["reconciles"] is True
        assert one["warnings"] == []
        assert one["events"] == len(device.events)
        assert one["allocations"] == len(device.allocations)
        assert one["peak_bytes"] == device.totals.max()
        assert one["peak_event"] == device.totals.argmax()
        assert one["final_bytes"] == device.totals[-1]
        assert one["reserved_peak_bytes"] == device.reserved_peak_bytes
        assert one["oom_events"] == device.oom_events
        unknown = device.timeline(where=f"stack=0 alive={device.peak_event}")
        assert one["no_stack_bytes"] == unknown.peak_bytes


def test_info_in_text_is_for_people(demos: Path) -> None:
    path = demos / "demo.pickle"
    ran = run("info", path)

    lines = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "")
    assert lines[0] == f"{path}  (pickle)"
    assert sum(line.startswith(("device ", "pinned host memory: ")) for line in lines) == 3
    assert re.search(r"^device 0: 2,000 events, [\d,]+ allocations$", ran.out, re.MULTILINE)
    assert re.search(r"peak +[\d.]+ [GM]iB +at event [\d,]+$", ran.out, re.MULTILINE)
    assert ran.out.count("trace matches memory") == 3


def test_info_notes_a_trace_as_long_as_a_full_ring_buffer(tmp_path: Path) -> None:
    full, other = tmp_path / "full.pickle", tmp_path / "other.pickle"
    assert run("demo", "-o", full, "--events", "10000", "--ring").code == 0
    assert run("demo", "-o", other, "--events", "9999", "--ring").code == 0
    note = "note: the trace has exactly 10,000 events: older ones were probably dropped"

    assert note in run("info", full).out
    assert "probably dropped" not in run("info", other).out
    assert [_info(path)["devices"][0]["is_probably_cut_off"] for path in (full, other)] == [
        True,
        False,
    ]


def test_info_says_where_memory_ran_out(small: Path) -> None:
    (device,) = _info(small)["devices"]

    assert device["oom_events"] == 1
    assert "  out of memory at event 5\n" in run("info", small).out


def test_info_says_what_does_not_add_up(tmp_path: Path) -> None:
    snapshot = hostile.small_snapshot()
    snapshot["segments"][0]["blocks"][1]["requested_size"] = 1999
    path = tmp_path / "off.pickle"
    path.write_bytes(pickle.dumps(snapshot))

    (device,) = _info(path)["devices"]
    ran = run("info", path)

    assert device["reconciles"] is False
    assert device["warnings"]
    assert ran.code == 0
    assert "agree to the byte" not in ran.out
    for warning in device["warnings"]:
        assert f"note: {warning}" in ran.out


def test_a_file_name_that_is_no_text_does_not_stop_info(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8:strict")  # as in most people's locales
    odd = small.with_name(os.fsdecode(b"\xff.pickle"))
    small.rename(odd)

    document = _document(run("info", odd, "--json"))
    ran = run("info", odd)

    assert document["file"] == str(odd)
    assert (ran.code, ran.err) == (0, "")


def test_a_terminal_without_unicode_does_not_stop_a_query(
    demos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    sql = "select 'é 雪 😀' as text"

    ran = run("query", demos / "demo", sql)

    assert (ran.code, ran.err) == (0, "")
    assert _document(run("query", demos / "demo", sql, "--json"))["rows"] == [["é 雪 😀"]]


# query


def _sqlite_rows(database: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


@pytest.mark.promise("S12")
def test_the_view_gives_sqlite_what_it_gives_us(demos: Path) -> None:
    sql = "select idx, size, start_time, end_time, callstack from allocs order by idx"

    document = _document(run("query", demos / "demo.zip", sql, "--json", "--max-rows", "100000"))

    theirs = _sqlite_rows(demos / "demo" / "elements.db", sql)
    assert document["columns"] == ["idx", "size", "start_time", "end_time", "callstack"]
    assert document["truncated"] is False
    assert [tuple(row) for row in document["rows"]] == theirs
    snap = snapviewer.load(demos / "demo.pickle")
    assert [row[1:4] for row in theirs] == [
        row
        for dev in snap.devices
        for row in zip(
            dev.allocations.size.tolist(),
            dev.allocations.alloc_event.tolist(),
            dev.allocations.free_event.tolist(),
            strict=True,
        )
    ]
    stack = snap.frames(int(snap.devices[0].allocations.stack[0]))
    assert theirs[0][4] == "\n".join(f"{f.name} ({f.filename}:{f.line})" for f in stack)


@pytest.mark.parametrize(
    "table", ["devices", "frames", "stacks", "segments", "blocks", "annotations", "settings"]
)
def test_tables_give_sqlite_what_they_give_us(table: str, demos: Path) -> None:
    sql = f"select * from {table} order by rowid"

    _, rows, _ = snapviewer.query(demos / "demo.zip", sql, max_rows=10**6)

    assert rows == _sqlite_rows(demos / "demo" / "elements.db", sql)
    assert rows


def test_a_query_in_text_is_a_table(demos: Path) -> None:
    sql = "select size, callstack from allocs order by size desc limit 5"

    ran = run("query", demos / "demo.zip", sql)

    lines = ran.out.splitlines()
    sizes = [row[0] for row in snapviewer.query(demos / "demo.zip", sql)[1]]
    assert (ran.code, ran.err) == (0, "")
    assert re.fullmatch(r" *size  callstack", lines[0])
    assert re.fullmatch(r"-+  -+", lines[1])
    assert [int(line.split()[0]) for line in lines[2:] if line[:1] != " "] == sizes


def test_an_empty_answer_is_an_answer(demos: Path) -> None:
    sql = "select size from allocs where size < 0"

    ran = run("query", demos / "demo", sql)

    assert (ran.code, ran.out, ran.err) == (0, "size\n----\n", "")
    assert _document(run("query", demos / "demo", sql, "--json")) == {
        "columns": ["size"],
        "rows": [],
        "truncated": False,
    }


def test_values_of_all_kinds_are_json(demos: Path) -> None:
    sql = "select null, 1, -9223372036854775807, 1.5, 'é', x'00ff', ''"

    (row,) = _document(run("query", demos / "demo", sql, "--json"))["rows"]

    assert row == [None, 1, -9223372036854775807, 1.5, "é", "00ff", ""]


def test_an_infinite_value_is_json_too(demos: Path) -> None:
    _document(run("query", demos / "demo", "select 9e999", "--json"))


@pytest.mark.promise("S12")
@pytest.mark.parametrize(
    "sql",
    [
        "insert into allocations(idx) values (1)",
        "update allocations set size = 0",
        "delete from allocations",
        "drop table allocations",
        "create table t(a)",
        "create temp table t(a)",
        "attach 'other.db' as other",
        "attach ':memory:' as other",
        "detach main",
        "pragma journal_mode = wal",
        "pragma query_only = off",
        "pragma writable_schema = on",
        "vacuum",
        "vacuum into 'copy.db'",
        "reindex",
        "begin",
        "select load_extension('x')",
        "select 1; delete from allocations",
        "",
        "nonsense",
        "select * from nowhere",
        "select ?1",
    ],
)
def test_anything_but_reading_is_refused(
    sql: str,
    demos: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {name: (demos / "demo" / name).read_bytes() for name in MEMBERS}

    for bundle in (demos / "demo", demos / "demo.zip"):
        _assert_refused(run_here(capsys, "query", bundle, sql), "query: ")

    assert {path.name: path.read_bytes() for path in (demos / "demo").iterdir()} == before
    assert list(tmp_path.iterdir()) == []


def test_more_rows_than_asked_for_are_cut_off_and_said(demos: Path) -> None:
    sql = "select idx from allocations"

    ran = run("query", demos / "demo", sql, "--max-rows", "3")
    document = json.loads(run("query", demos / "demo", sql, "--max-rows", "3", "--json").out)
    usual = run("query", demos / "demo", sql)

    assert ran.code == 0
    assert ran.out == "idx\n---\n  0\n  1\n  2\n"
    assert ran.err.startswith("snapviewer: more than 3 rows")
    assert len(ran.err.splitlines()) == 1
    assert (document["rows"], document["truncated"]) == ([[0], [1], [2]], True)
    assert len(usual.out.splitlines()) == 1002
    assert "more than 1000 rows" in usual.err


def test_exactly_as_many_rows_as_asked_for_are_all(demos: Path) -> None:
    sql = "select idx from allocations limit 3"

    ran = run("query", demos / "demo", sql, "--max-rows", "3")

    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize("sql", [ENDLESS, "select count(*) from events a, events b, events c"])
def test_an_endless_query_ends(sql: str, demos: Path) -> None:
    started = time.monotonic()

    ran = run("query", demos / "demo", sql, "--max-seconds", "0.3")

    _assert_refused(ran, "longer than", "300ms")
    assert time.monotonic() - started < 10


@pytest.mark.promise("S04")
def test_a_snapshot_is_converted_once_and_then_found(small: Path, cache: Path) -> None:
    sql = "select size, start_time, end_time from allocs order by size"
    expected = {
        "columns": ["size", "start_time", "end_time"],
        "rows": [[1000, 1, 4], [2000, 2, 7]],
        "truncated": False,
    }

    assert _document(run("query", small, sql, "--json")) == expected
    files = {path: path.stat() for path in cache.glob("*.bundle/*")}
    assert _document(run("query", small, sql, "--json")) == expected

    assert sorted(path.name for path in files) == MEMBERS
    for path, stat in files.items():
        assert (path.stat().st_ino, path.stat().st_mtime_ns) == (stat.st_ino, stat.st_mtime_ns)
    assert len(list(cache.iterdir())) == 2
    assert list(small.parent.iterdir()) == [small]


@pytest.mark.parametrize("command", ["info", "query"])
def test_a_file_that_is_not_there_is_one_sentence(command: str, tmp_path: Path) -> None:
    sql = () if command == "info" else ("select 1",)

    ran = run(command, tmp_path / "missing", *sql, "--json")

    _assert_refused(ran, "no such file", str(tmp_path / "missing"))


# Pipes and terminals


def _shell(script: str, **values: str | Path) -> Ran:
    """Run a line of shell in which `snapviewer` is the program."""
    program = f"{shlex.quote(sys.executable)} -m snapviewer"
    quoted = {name: shlex.quote(str(value)) for name, value in values.items()}
    done = subprocess.run(
        ["bash", "-c", "set -o pipefail; " + script.format(snapviewer=program, **quoted)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def test_a_closed_pipe_ends_it_quietly(demos: Path) -> None:
    sql = "select * from events"

    ran = _shell(
        "{snapviewer} query {f} {sql} --max-rows 9999 | head -n 1", f=demos / "demo", sql=sql
    )
    gone = _shell("{snapviewer} info {f} --json | true", f=demos / "demo.zip")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.split()[:3] == ["device", "event", "action"]
    assert (gone.code, gone.err) == (0, "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_closed_streams_are_no_reason_to_fail(closed: str, small: Path) -> None:
    ran = _shell(f"{{snapviewer}} info {{f}} {closed}", f=small)
    failed = _shell(f"{{snapviewer}} info {{f}} {closed}", f=small.parent / "missing")

    assert (ran.code, ran.err) == (0, "")
    assert ("device 0" in ran.out) == (">&-" not in closed.split())
    assert failed.code == 1
    assert "Traceback" not in failed.err


# The bar waits a moment before it shows itself, and small files do not take that long.
AT_ONCE = """
import sys
import snapviewer.text.progress
snapviewer.text.progress._SECONDS_BEFORE = snapviewer.text.progress._SECONDS_BETWEEN = 0
from snapviewer.text.units import format_bytes
from snapviewer.cli import main
sys.exit(main(sys.argv[1:]))
"""
ERASED = "\r\x1b[K"


def _on_terminal(*arguments: str | Path) -> Ran:
    """Run with a terminal for stderr and a pipe for stdout."""
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-c", AT_ONCE, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while select.select([terminal], [], [], 60)[0]:
            try:
                chunk = os.read(terminal, 65536)
            except OSError:  # Linux's way to say that nobody has the other end open
                break
            if not chunk:
                break
            shown += chunk
        out, _ = process.communicate(timeout=60)
    os.close(terminal)
    return Ran(process.returncode, out.decode(), shown.decode())


@pytest.mark.promise("S10")
@pytest.mark.parametrize("command", ["info", "convert", "query", "demo"])
def test_a_bar_is_drawn_and_erased_on_a_terminal(command: str, demos: Path, tmp_path: Path) -> None:
    source, output = demos / "demo.pickle", tmp_path / "out.zip"
    arguments: dict[str, tuple[str | Path, ...]] = {
        "info": (source,),
        "convert": ("-i", source, "-o", output),
        "query": (source, "select 1"),
        "demo": ("-o", output, "--events", "500"),
    }

    ran = _on_terminal(command, *arguments[command], "--json")

    bars = re.findall(r"\r(\w+) ([█░]{30}) +(\d+)% ", ran.err)
    assert ran.code == 0
    assert json.loads(ran.out)
    assert len(bars) >= 1
    shares = [int(share) for _, _, share in bars]
    assert shares == sorted(shares)
    assert all(bar.count("█") == round(0.3 * int(share)) for _, bar, share in bars[-1:])
    assert ran.err.endswith(ERASED)
    assert ran.err.count("\n") == 0


def test_a_failure_on_a_terminal_erases_the_bar_first(demos: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pickle"
    content = (demos / "demo.pickle").read_bytes()
    cut.write_bytes(content[: len(content) // 2])

    ran = _on_terminal("convert", "-i", cut, "-o", tmp_path / "out.zip")

    assert ran.code == 1
    assert ran.err.rpartition(ERASED)[2].startswith("snapviewer: ")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("command", ["info", "convert", "demo"])
def test_no_bar_where_nobody_watches(command: str, demos: Path, tmp_path: Path) -> None:
    source, output = demos / "demo.pickle", tmp_path / "out.zip"
    arguments: dict[str, tuple[str | Path, ...]] = {
        "info": (source,),
        "convert": ("-i", source, "-o", output),
        "demo": ("-o", output, "--events", "500"),
    }

    ran = run(command, *arguments[command], program=("-c", AT_ONCE))

    assert (ran.code, ran.err) == (0, "")
    assert "\r" not in ran.out
