"""The cache of bundles: found by content, whole or made again, limited, and shared by processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import snapviewer
from snapviewer import _core
from snapviewer.demo import DemoOptions, write_demo
from snapviewer.files.cache import cached_bundle
from snapviewer.files.directories import cache_directory
from support import program

DAY = 24 * 60 * 60


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Snapshots of different content and about the same size."""
    directory = tmp_path_factory.mktemp("sources")
    paths = [directory / f"{seed}.pickle" for seed in range(4)]
    for seed, path in enumerate(paths):
        write_demo(path, DemoOptions(events=500, seed=seed))
    return paths


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What was really converted, rather than found."""
    made: list[Path] = []
    convert = _core.convert

    def counted(source: Path, output: Path, **options: object) -> None:
        made.append(source)
        convert(source, output, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("snapviewer.files.cache._core.convert", counted)
    return made


def _sum_file(entry: Path) -> Path:
    return entry.with_suffix(".sum")


def _names(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir()}


def _names_of(*entries: Path) -> set[str]:
    return {entry.name for entry in entries} | {_sum_file(entry).name for entry in entries}


def _totals(path: Path) -> list[int]:
    return [int(total) for total in snapviewer.load(path).devices[0].totals]


# Found by content


def test_a_second_look_converts_nothing(
    sources: list[Path], cache: Path, conversions: list[Path]
) -> None:
    first = cached_bundle(sources[0])
    second = cached_bundle(sources[0])

    assert first == second
    assert first.parent == cache
    assert conversions == [sources[0]]
    assert _totals(first) == _totals(sources[0])
    assert _names(cache) == _names_of(first)
    assert _names(first) == {"allocations.json", "elements.db"}


@pytest.mark.promise("S04")
def test_a_renamed_copy_is_found(
    sources: list[Path], tmp_path: Path, conversions: list[Path]
) -> None:
    copy = tmp_path / "of another name"
    shutil.copyfile(sources[0], copy)

    assert cached_bundle(copy) == cached_bundle(sources[0])
    assert conversions == [copy]


@pytest.mark.promise("S04")
def test_other_content_under_the_same_name_is_not_found(
    sources: list[Path], tmp_path: Path, conversions: list[Path]
) -> None:
    path = tmp_path / "snap.pickle"
    content = sources[0].read_bytes()
    path.write_bytes(content)
    first = cached_bundle(path)
    stat = path.stat()

    # One letter of a name, with the size and the time that it had.
    path.write_bytes(content.replace(b"forward", b"forwarb", 1))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    second = cached_bundle(path)

    assert first != second
    assert len(conversions) == 2
    assert "forwarb" not in str(snapviewer.query(first, "select name from frames"))
    assert "forwarb" in str(snapviewer.query(second, "select name from frames"))


# Damage


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _replace_by_file(entry: Path) -> None:
    shutil.rmtree(entry)
    entry.write_text("not a directory")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a flipped byte in elements.db": lambda entry: _flip(entry / "elements.db"),
    "a flipped byte in allocations.json": lambda entry: _flip(entry / "allocations.json"),
    "a short allocations.json": lambda entry: _truncate(entry / "allocations.json"),
    "an empty elements.db": lambda entry: (entry / "elements.db").write_bytes(b""),
    "no elements.db": lambda entry: (entry / "elements.db").unlink(),
    "no allocations.json": lambda entry: (entry / "allocations.json").unlink(),
    "no sum": lambda entry: _sum_file(entry).unlink(),
    "a wrong sum": lambda entry: _sum_file(entry).write_text("0" * 64),
    "a sum of no text": lambda entry: _sum_file(entry).write_bytes(b"\xff\xfe"),
    "no bundle": shutil.rmtree,
    "a file for a bundle": _replace_by_file,
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_entry_is_made_again(
    sources: list[Path], cache: Path, conversions: list[Path], how: str
) -> None:
    entry = cached_bundle(sources[0])
    DAMAGE[how](entry)

    again = cached_bundle(sources[0])
    third = cached_bundle(sources[0])

    assert again == third == entry
    assert len(conversions) == 2
    assert _totals(again) == _totals(sources[0])
    assert snapviewer.query(again, "select count(*) from events")[1] == [(500,)]
    assert _names(cache) == _names_of(entry)


# The limit


def _age(entry: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(_sum_file(entry), (then, then))


def test_what_was_not_used_for_longest_goes_first(sources: list[Path], cache: Path) -> None:
    entries = [cached_bundle(source) for source in sources[:3]]
    for entry, seconds in zip(entries, (300, 200, 100), strict=True):
        _age(entry, seconds)
    cached_bundle(sources[0])  # used again, so now the second is the oldest
    size = sum(file.stat().st_size for entry in entries for file in entry.iterdir())

    last = cached_bundle(sources[3], limit_bytes=size + size // 10)

    assert _names(cache) == _names_of(entries[0], entries[2], last)


def test_the_entry_just_made_stays_whatever_the_limit(sources: list[Path], cache: Path) -> None:
    for source in sources:
        entry = cached_bundle(source, limit_bytes=0)

        assert _names(cache) == _names_of(entry)
        assert _totals(entry) == _totals(source)


@pytest.mark.parametrize(("limit", "kept"), [("1", 1), ("1 KiB", 1), ("1GiB", 2), ("", 2)])
def test_the_environment_sets_the_limit(
    sources: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch, limit: str, kept: int
) -> None:
    monkeypatch.setenv("SNAPVIEWER_CACHE_BYTES", limit)

    for source in sources[:2]:
        cached_bundle(source)

    assert len(list(cache.glob("*.bundle"))) == kept


@pytest.mark.parametrize("limit", ["plenty", "8 gigs", "nan", "inf"])
def test_a_limit_that_is_no_size_is_one_sentence(
    sources: list[Path], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setenv("SNAPVIEWER_CACHE_BYTES", limit)

    with pytest.raises(snapviewer.SnapshotError, match="SNAPVIEWER_CACHE_BYTES.*" + limit):
        cached_bundle(sources[0])


def test_files_that_are_not_ours_survive_in_the_cache(sources: list[Path], cache: Path) -> None:
    mine = ["data.sum", "thesis.bundle", "film.mkv.part", "a.new", ".hidden.part"]
    cache.mkdir()
    for name in mine:
        (cache / name).write_text("mine")
        os.utime(cache / name, (1, 1))

    entry = cached_bundle(sources[0], limit_bytes=0)

    assert _names(cache) == _names_of(entry) | set(mine)


def test_what_killed_processes_left_goes_after_a_day(sources: list[Path], cache: Path) -> None:
    key, token = "ab" * 32, "cd" * 16
    left = [f"{key}.{token}.new", f".{key[:50]}.1234567.{token[:16]}.part", f"{key}.bundle"]
    for name in left:
        (cache / name).mkdir(parents=True)
        (cache / name / "elements.db").write_bytes(b"half")
    (cache / f"{key}.{token}.part").write_text("half")

    first = cached_bundle(sources[0])
    young = _names(cache) - _names_of(first)
    for name in young:
        then = time.time() - DAY - 60
        os.utime(cache / name, (then, then))
    second = cached_bundle(sources[1])

    assert young == {*left, f"{key}.{token}.part"}, "another process may still be at work on them"
    assert _names(cache) == _names_of(first, second)


# Where it is


def test_the_environment_says_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNAPVIEWER_CACHE", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    named = cache_directory()
    monkeypatch.delenv("SNAPVIEWER_CACHE")
    users = cache_directory()
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    usual = cache_directory()

    assert named == tmp_path / "mine"
    assert users == tmp_path / "xdg" / "snapviewer"
    assert usual == tmp_path / "home" / ".cache" / "snapviewer"
    assert list(tmp_path.iterdir()) == [], "asking makes nothing"


def test_entries_are_made_in_the_users_cache(
    sources: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SNAPVIEWER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "deep" / "xdg"))

    entry = cached_bundle(sources[0])

    assert entry.parent == tmp_path / "deep" / "xdg" / "snapviewer"


def test_a_cache_that_cannot_be_made_is_one_sentence(
    sources: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SNAPVIEWER_CACHE", str(tmp_path / "file" / "cache"))

    ran = program.run("query", sources[0], "select 1")

    assert ran.code == 1
    assert ran.out == ""
    assert ran.err == f"snapviewer: Not a directory: {tmp_path / 'file' / 'cache'}\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_cache_that_cannot_be_written_to_is_one_sentence(
    sources: list[Path], cache: Path
) -> None:
    cache.mkdir(mode=0o500)

    ran = program.run("query", sources[0], "select 1")

    assert ran.code == 1
    assert ran.err.startswith("snapviewer: Permission denied: ")
    assert len(ran.err.splitlines()) == 1


def test_a_whole_entry_is_used_where_its_time_cannot_be_set(
    sources: list[Path], conversions: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("read-only")

    entry = cached_bundle(sources[0])
    monkeypatch.setattr("snapviewer.files.cache.os.utime", refuse)

    assert cached_bundle(sources[0]) == entry
    assert len(conversions) == 1


# What fails


def test_a_cancelled_conversion_leaves_no_entry(sources: list[Path], cache: Path) -> None:
    cancel = threading.Event()

    def stop(done: int, total: int) -> None:
        if done * 2 >= total:
            cancel.set()

    with pytest.raises(snapviewer.CancelledError):
        cached_bundle(sources[0], progress=stop, cancel=cancel)
    assert _names(cache) == set()


def test_a_failed_conversion_leaves_no_entry(tmp_path: Path, cache: Path) -> None:
    bad = tmp_path / "bad.pickle"
    bad.write_bytes(b"\x80\x04bad")

    with pytest.raises(snapviewer.SnapshotError, match=r"bad\.pickle"):
        cached_bundle(bad)
    assert _names(cache) == set()
    with pytest.raises(FileNotFoundError):
        cached_bundle(tmp_path / "missing.pickle")
    assert _names(cache) == set()


def test_an_interrupt_after_the_conversion_leaves_no_entry(
    sources: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("snapviewer.files.cache._place", interrupt)

    with pytest.raises(KeyboardInterrupt):
        cached_bundle(sources[0])
    assert _names(cache) == set()


def test_progress_is_passed_on(sources: list[Path]) -> None:
    calls: list[tuple[int, int]] = []

    cached_bundle(sources[0], progress=lambda *call: calls.append(call))

    assert calls[-1][0] == calls[-1][1] > 0


# Several at once

WORKER = """
import sys, time
from pathlib import Path
from snapviewer import query
from snapviewer.files.cache import cached_bundle
start = float(sys.argv[2])
for turn in range(int(sys.argv[3])):
    time.sleep(max(0, start + turn * 0.1 - time.time()))
    entry = cached_bundle(Path(sys.argv[1]) / f"{turn % 4}.pickle")
    assert query(entry, "select count(*) from events")[1] == [(500,)]
"""


def test_processes_at_once_all_succeed(sources: list[Path], cache: Path) -> None:
    start = time.time() + 1
    arguments = [sys.executable, "-c", WORKER, str(sources[0].parent), str(start), "8"]
    workers = [
        subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    said = [worker.communicate(timeout=60)[1].decode() for worker in workers]

    assert said == ["", "", ""]
    entries = [cached_bundle(source) for source in sources]
    assert _names(cache) == _names_of(*entries)


def test_threads_at_once_all_succeed(
    sources: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert, barrier = _core.convert, threading.Barrier(4)

    def together(source: Path, output: Path, **options: object) -> None:
        barrier.wait(30)  # all have found that there is no entry
        convert(source, output, **options)  # type: ignore[arg-type]
        barrier.wait(30)

    monkeypatch.setattr("snapviewer.files.cache._core.convert", together)
    with ThreadPoolExecutor(4) as pool:
        entries = list(pool.map(cached_bundle, [sources[0]] * 4))

    assert len(set(entries)) == 1
    assert _totals(entries[0]) == _totals(sources[0])
    assert _names(cache) == _names_of(entries[0])


def test_an_entry_that_another_process_makes_meanwhile_is_taken(
    sources: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert = _core.convert
    theirs: list[tuple[Path, int]] = []

    def overtaken(source: Path, output: Path, **options: object) -> None:
        convert(source, output, **options)  # type: ignore[arg-type]
        if not theirs:
            monkeypatch.setattr("snapviewer.files.cache._core.convert", convert)
            entry = cached_bundle(source)
            theirs.append((entry, entry.stat().st_ino))

    monkeypatch.setattr("snapviewer.files.cache._core.convert", overtaken)
    ours = cached_bundle(sources[0])

    assert theirs == [(ours, ours.stat().st_ino)], "whoever has it open keeps it"
    assert _names(cache) == _names_of(ours)


def test_the_same_snapshot_makes_the_same_bytes(sources: list[Path], tmp_path: Path) -> None:
    # What makes it right to take another process's bundle with one's own sum.
    for name in ("one", "two"):
        _core.convert(sources[0], tmp_path / name)

    for file in ("allocations.json", "elements.db"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
