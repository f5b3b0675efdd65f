"""No file, however broken or malicious, gets more out of the program than one clear sentence."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import hostile, program
from support.hostile import Case
from support.oracle import SNAPSHOTS
from support.program import Loaded

NAMES = [case.name for case in hostile.cases()]
BY_NAME = {case.name: case for case in hostile.cases()}

# One of each kind for the command line, where every case costs two processes.
REPRESENTATIVES = (
    "empty",
    "random",
    "text",
    "exploit",
    "reduce-in-frames",
    "protocol-4-cut-at-50-percent",
    "protocol-4-without-stop",
    "underflow-append",
    "huge-binunicode8",
    "doubled-list-in-frames",
    "deep-lists-in-unknown-key",
    "sizes-that-overflow-u64",
    "one-trace-for-many-devices",
    "gzip-bomb-of-values",
    "json-broken",
    "page-without-payload",
    "zip-of-a-letter",
    "zip-bomb",
)


# Through the Python API, all in a few processes


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Loaded]:
    """What came of every case that needs no product to be made."""
    return _load_cases(list(hostile.cases()), tmp_path_factory.mktemp("hostile"))


def _load_cases(cases: list[Case], directory: Path) -> dict[str, Loaded]:
    files, work = directory / "files", directory / "work"
    for made in (files, work):
        made.mkdir()
    for case in cases:
        (files / case.name).write_bytes(case.content)

    loaded = program.load_all(files, work)

    litter = sorted(path.name for path in work.iterdir() if path.name != "listing.json")
    assert litter == [], "loading leaves nothing behind, and runs nothing"
    assert sorted(path.name for path in files.iterdir()) == sorted(case.name for case in cases)
    shutil.rmtree(files)
    return loaded


def _fault(case: Case, loaded: Loaded) -> str | None:
    """What is wrong with the way a case went, or None."""
    allowed = ("accepted", "refused") if case.verdict == "either" else (case.verdict,)
    if loaded.outcome not in allowed:
        return f"{case.name}: {loaded.outcome}, not {' or '.join(allowed)}: {loaded.message}"
    if loaded.outcome == "refused":
        return _sentence_fault(case, loaded.message)
    return None


def _sentence_fault(case: Case, sentence: str) -> str | None:
    """What is missing from the sentence that refuses a case, or None."""
    if not sentence.strip() or len(sentence.splitlines()) != 1:
        return f"{case.name}: not one line: {sentence!r}"
    if case.verdict != "refused":
        return None
    if case.at_byte is not False:
        offset = r"\d+" if case.at_byte is True else str(case.at_byte)
        if not re.search(rf"\bbyte {offset}\b", sentence):
            return f"{case.name}: does not name byte {offset}: {sentence}"
    missing = [word for word in case.words if not re.search(word, sentence, re.IGNORECASE)]
    return f"{case.name}: does not say {missing}: {sentence}" if missing else None


@pytest.mark.parametrize("name", NAMES)
def test_a_bad_file_is_refused_with_one_sentence_or_read(
    name: str, loaded: dict[str, Loaded]
) -> None:
    assert _fault(BY_NAME[name], loaded[name]) is None


def test_no_wrong_type_and_no_missing_key_breaks_the_reader(tmp_path: Path) -> None:
    cases = list(hostile.mutated_cases())

    loaded = _load_cases(cases, tmp_path)

    assert [fault for case in cases if (fault := _fault(case, loaded[case.name]))] == []


def test_no_spoiled_bundle_breaks_the_reader(tmp_path: Path) -> None:
    source, bundle = tmp_path / "small.pickle", tmp_path / "small.zip"
    source.write_bytes(pickle.dumps(hostile.small_snapshot()))
    ran = program.run("convert", "-i", source, "-o", bundle)
    assert ran.code == 0, ran.err
    cases = hostile.bundle_cases(bundle.read_bytes())

    loaded = _load_cases(cases, tmp_path)

    assert [fault for case in cases if (fault := _fault(case, loaded[case.name]))] == []


def test_a_lone_surrogate_in_a_name_is_replaced(tmp_path: Path) -> None:
    import snapviewer

    path = tmp_path / "surrogate.pickle"
    path.write_bytes(BY_NAME["lone-surrogate-in-name"].content)

    snapshot = snapviewer.load(path)
    (device,) = snapshot.devices
    (stack,) = device.allocations.stack.tolist()

    name = snapshot.frames(stack)[0].name
    assert set(name) == {"\N{REPLACEMENT CHARACTER}"}


# Through the command line


@pytest.mark.parametrize("name", REPRESENTATIVES)
@pytest.mark.parametrize("command", ["info", "convert"])
def test_a_command_on_a_bad_file_fails_cleanly_or_works(
    name: str, command: str, tmp_path: Path
) -> None:
    case = BY_NAME[name]
    path, work = tmp_path / "bad-file", tmp_path / "work"
    path.write_bytes(case.content)
    work.mkdir()
    output = work / "out.zip"
    options = ("--json",) if command == "info" else ("-o", output)
    source = (path,) if command == "info" else ("-i", path)

    ran = program.run(command, *source, *options, directory=work)

    assert "Traceback" not in ran.err
    assert "panicked" not in ran.err
    if case.verdict == "refused" or ran.code != 0:
        _assert_refused(ran, "bad-file")
        assert _sentence_fault(case, ran.err) is None
        assert list(work.iterdir()) == []
    else:
        assert list(work.iterdir()) == ([output] if command == "convert" else [])
        assert command == "convert" or json.loads(ran.out)["devices"]


def _assert_refused(ran: program.Ran, *words: str) -> None:
    """The run failed with exit code 1 and one line that has the words, and said nothing else."""
    assert ran.code == 1, ran
    assert ran.out == ""
    assert ran.err.startswith("snapviewer: ")
    assert ran.err.endswith("\n")
    assert len(ran.err.splitlines()) == 1, ran.err
    assert [word for word in words if word not in ran.err] == [], ran.err


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A small file that there is nothing wrong with."""
    path = tmp_path / "good.pickle"
    path.write_bytes(pickle.dumps(hostile.small_snapshot()))
    return path


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """An empty directory to write to."""
    path = tmp_path / "work"
    path.mkdir()
    return path


def test_a_device_that_is_not_there_is_refused(good: Path, work: Path) -> None:
    ran = program.run("convert", "-i", good, "-o", work / "out.zip", "-d", "7")

    _assert_refused(ran, "7")
    assert list(work.iterdir()) == []


@pytest.mark.promise("S15")
@pytest.mark.parametrize("name", ["out.zip", "out"])
def test_an_output_that_exists_is_only_replaced_by_force(name: str, good: Path, work: Path) -> None:
    output = work / name
    arguments = ("convert", "-i", good, "-o", output)
    assert program.run(*arguments).code == 0
    before = _contents(work)

    again = program.run(*arguments)

    _assert_refused(again, "--force", name)
    assert _contents(work) == before
    assert program.run(*arguments, "--force").code == 0
    assert _contents(work).keys() == before.keys()


def test_an_output_that_is_something_else_survives(good: Path, work: Path) -> None:
    output = work / "out"
    output.mkdir()
    (output / "thesis.tex").write_text("ten years of work")

    ran = program.run("convert", "-i", good, "-o", output)

    _assert_refused(ran, "out")
    assert _contents(work) == {"out/thesis.tex": b"ten years of work"}


def test_an_output_in_a_directory_that_is_not_there_is_refused(good: Path, work: Path) -> None:
    ran = program.run("convert", "-i", good, "-o", work / "nowhere" / "out.zip")

    if ran.code != 0:
        _assert_refused(ran, "nowhere")
        assert list(work.iterdir()) == []
    else:
        assert list(_contents(work)) == ["nowhere/out.zip"]


def _contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@contextlib.contextmanager
def _small_disk(directory: Path) -> Iterator[Path]:
    """A file system with room for almost nothing, or a skipped test where we may not mount."""
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(directory)]
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a disk that is full")
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no tmpfs here: {mounted.stderr.decode().strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)


@pytest.mark.parametrize("name", ["out.zip", "out"])
def test_a_full_disk_is_one_sentence_and_no_litter(name: str, tmp_path: Path) -> None:
    snapshot: dict[str, Any] = hostile.small_snapshot()
    frames = [{"name": os.urandom(4).hex(), "filename": "a.py", "line": n} for n in range(9_999)]
    snapshot["device_traces"][0][1]["frames"] = frames
    source = tmp_path / "good.pickle"
    source.write_bytes(pickle.dumps(snapshot))

    with _small_disk(tmp_path / "full") as full:
        ran = program.run("convert", "-i", source, "-o", full / name)
        left = list(full.iterdir())

    _assert_refused(ran, "space")
    assert left == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_output_that_nobody_can_take_is_one_sentence(good: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "snapviewer", "info", str(good), "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )

    err = done.stderr.decode()
    assert done.returncode == 1
    assert err.startswith("snapviewer: ")
    assert len(err.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_an_unreadable_file_is_refused(good: Path) -> None:
    good.chmod(0)

    _assert_refused(program.run("info", good, "--json"), "good.pickle")


def test_a_missing_file_is_refused(work: Path) -> None:
    ran = program.run("info", work / "absent.pickle", "--json")

    _assert_refused(ran, "absent.pickle")


def test_a_directory_that_is_no_bundle_is_refused(work: Path) -> None:
    (work / "letter.txt").write_text("Dear reader")

    _assert_refused(program.run("info", work, "--json"), work.name)


def test_an_empty_directory_is_refused(work: Path) -> None:
    _assert_refused(program.run("info", work, "--json"), work.name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_that_nobody_writes_to_does_not_hang(work: Path) -> None:
    os.mkfifo(work / "pipe")

    _assert_refused(program.run("info", work / "pipe", "--json", timeout=30), "pipe")


# Every way to break off or flip a bit of a good file


def _is_read(path: Path) -> bool:
    """Whether the file is read; any end but that and a refusal by name fails the test."""
    import snapviewer

    try:
        snapviewer.load(path)
    except snapviewer.SnapshotError:
        return False
    return True


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_snapshot_cut_at_any_byte_is_refused(protocol: int, tmp_path: Path) -> None:
    whole = pickle.dumps(hostile.small_snapshot(), protocol=protocol)
    path = tmp_path / "cut.pickle"

    read = []
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        if _is_read(path):
            read.append(length)

    assert read == []


def test_a_real_snapshot_cut_anywhere_is_refused(tmp_path: Path) -> None:
    source = SNAPSHOTS / "t23-py38-before-train.pickle"
    if not source.exists():
        pytest.skip(f"{SNAPSHOTS} is absent")
    whole = source.read_bytes()
    path = tmp_path / "cut.pickle"
    # Each byte of the first and the last 2,000, and a prime step between.
    lengths = {*range(2_000), *range(2_000, len(whole), 97), *range(len(whole) - 2_000, len(whole))}

    read = []
    for length in sorted(lengths):
        path.write_bytes(whole[:length])
        if _is_read(path):
            read.append(length)

    assert read == []


WHOLE = {
    "pickle": pickle.dumps(hostile.small_snapshot(), protocol=4),
    "old-pickle": pickle.dumps(hostile.small_snapshot(), protocol=2),
    "json": json.dumps(hostile.small_snapshot()).encode(),
    "gzip": gzip.compress(pickle.dumps(hostile.small_snapshot(), protocol=4), mtime=0),
    "page": hostile.page(pickle.dumps(hostile.small_snapshot(), protocol=4)),
}
FLIPS = st.lists(st.tuples(st.integers(0, 2**16), st.integers(1, 255)), min_size=1, max_size=4)


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(kind=st.sampled_from(sorted(WHOLE)), flips=FLIPS)
def test_a_file_with_flipped_bytes_is_refused_or_read(
    kind: str, flips: list[tuple[int, int]], tmp_path: Path
) -> None:
    spoiled = bytearray(WHOLE[kind])
    for position, mask in flips:
        spoiled[position % len(spoiled)] ^= mask
    path = tmp_path / "flipped"
    path.write_bytes(spoiled)

    _is_read(path)


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(start=st.sampled_from([b"", b"\x80\x04", b"\x80\x02}", b"{", b"["]), rest=st.binary())
def test_any_bytes_at_all_are_refused_or_read(start: bytes, rest: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(start + rest)

    _is_read(path)
