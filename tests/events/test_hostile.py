"""Broken, endless and malicious logs of memory events end with a sentence."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from snapviewer.events import log as log_module
from snapviewer.events.log import read_log
from snapviewer.events.reader import LogError, read_entries
from support.program import run

EVENT = '{"event": "init", "peak_memory": 5}'
LARGE = 64 * 2**20  # bytes: 64 times what an entry may have


def _refusal(path: str | os.PathLike[str]) -> str:
    with pytest.raises(LogError) as caught:
        read_log(path)
    for said in (caught.value.sentence("zh"), caught.value.sentence("en"), str(caught.value)):
        assert len(said.splitlines()) == 1
        assert all(c.isprintable() or "\ud800" <= c <= "\udfff" for c in said)
    return caught.value.sentence("en")


# Large files: the sentence that refuses them, the beginning and what is repeated.
LARGE_FILES = {
    "nested deeper": {
        "lists": ("", "["),
        "objects": ("", '{"a":'),
        "lists in a list": (f"[{EVENT},", "["),
        "torn nests": (EVENT, '\n{"a":'),
        "torn lists": (EVENT, '\n{"a":[{},'),
    },
    "larger than any event": {
        "string": ('"', "a"),
        "string in a list": (f'[{EVENT}, "', "a"),
        "string of quotes": ('["', '\\"'),
        "string in a line": (f'{EVENT}\n{{"event": "', "a"),
        "digits": ("", "1"),
        "digits in a list": (f"[{EVENT}, ", "1"),
        "minus": ("[-", "1"),
        "decimals": ("[0.", "1"),
        "keys": ("{", '"k": 1,'),
        "keys in a list": (f"[{EVENT}, {{", '"k": 1,'),
        "keys after events": (f'{{"events": [{EVENT}], ', '"k": 1,'),
        "key": ('{"', "k"),
    },
    "no events": {
        "spaces": ("", " "),
        "lines": ("", "\n"),
    },
    "ends before": {
        "spaces in a list": (f"[{EVENT}", " "),
    },
    "none of its first 100,000 entries": {
        "numbers": ("[", "1,"),
        "numbers one after another": ("", "1 "),
        "empty objects": ("", "{}"),
    },
    "more than 1,000,000 entries": {
        "numbers after an event": (f"[{EVENT},", "1,"),
    },
    "too many of its lines are torn": {
        "torn lines": (EVENT, "\n{"),
    },
    "not JSON": {
        "nothing": ("", "\0"),
        "marks": ("", "\ufeff"),
        "no text": ("", "\udcff"),
    },
}

# The high-water mark of this program alone; that of `resource` includes its parent.
READS_IT = """
import re, sys
from pathlib import Path
from snapviewer.events.log import read_log
from snapviewer.events.reader import LogError

try:
    said = f"{len(read_log(sys.argv[1]).events)} events"
except LogError as error:
    said = error.sentence("en")
most_kib = re.search("VmHWM:\\s*([0-9]+)", Path("/proc/self/status").read_text())[1]
print(int(most_kib) // 1024, said)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system has no /proc")
@pytest.mark.parametrize(
    ("reason", "beginning", "repeated"),
    [
        pytest.param(reason, *parts, id=name)
        for reason, files in LARGE_FILES.items()
        for name, parts in files.items()
    ],
)
def test_a_large_file_ends_with_a_sentence_and_takes_little_memory(
    tmp_path: Path, reason: str, beginning: str, repeated: str
) -> None:
    path = tmp_path / "large.json"
    block = (repeated * (2**20 // len(repeated))).encode(errors="surrogateescape")
    with path.open("wb") as file:
        file.write(beginning.encode())
        for _ in range(LARGE // len(block)):
            file.write(block)

    ran = run(path, program=("-c", READS_IT))

    assert (ran.code, ran.err) == (0, "")
    mib, _, said = ran.out.partition(" ")
    assert reason in said
    assert int(mib) < LARGE // 2**20, "less than the file, with all of Python"


def test_torn_lines_that_are_noticed_late_are_not_read_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(EVENT + '\n{"a": [' * 400 + "{}," * 200_000 + "oops")

    # Each of the 400 lines would be read to the end, and then the next one.
    assert _refusal(path).endswith("too many of its lines are torn")


def test_a_gigabyte_of_nul_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "nul.json"
    path.touch()
    os.truncate(path, 2**30)

    assert "not JSON" in _refusal(path)


def test_what_a_crash_of_the_machine_left_at_the_end_is_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "nul.jsonl"
    path.write_text(f"{EVENT}\n{EVENT}\n")
    os.truncate(path, 2**24)

    log = read_log(path)

    assert len(log.events) == 2
    assert [odd.kind for odd in log.oddities] == ["torn-line"]


def test_more_entries_than_a_log_may_have_are_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "MAX_ENTRIES", 3)
    path = tmp_path / "log.jsonl"
    path.write_text(f"{EVENT}\n" * 3)
    assert len(read_log(path).events) == 3
    path.write_text(f"{EVENT}\n" * 4)

    assert _refusal(path).endswith("more than 3 entries in it; split it into parts")


def test_events_that_would_fill_the_memory_are_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "MAX_KEPT_BYTES", 100_000)
    path = tmp_path / "log.json"
    path.write_text(json.dumps([{"event": "a", "x": "😀" * 250}] * 50))
    assert len(read_log(path).events) == 50
    path.write_text(json.dumps([{"event": "a", "x": "😀" * 250}] * 100))

    assert _refusal(path).endswith("GiB of memory; split it into parts")


@pytest.mark.parametrize("digits", [400, 401, 5000, 500_000])
def test_a_number_with_very_many_digits_is_a_bad_value(tmp_path: Path, digits: int) -> None:
    path = tmp_path / "log.json"
    number = "9" * digits
    path.write_text(f'[{{"event": "a", "peak_memory": {number}, "duration": -{number}}}]')

    log = read_log(path)

    assert log.events[0].peak_bytes is None
    assert [odd.field for odd in log.oddities] == ["peak_memory", "duration"]


def test_an_unknown_number_with_very_many_digits_is_kept_as_text(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(f'[{{"event": "a", "x": {"9" * 350}, "y": {"9" * 5000}}}]')

    (event,) = read_log(path).events

    assert event.more == (("x", f"{'9' * 299}…"), ("y", "Infinity"))


TEXTS = ["\x1b[31m", "\u202egnp.exe", "\ud800", "\0", "<script>", "a\r\nb", "|", "\x85", "字" * 999]


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_untrusted_texts_are_shortened_and_printable(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.json"
    entry = {"event": f"a{text}", "model_name": f"m{text}", f"k{text}": text, "duration": text}
    path.write_text(json.dumps([entry, text, [text]]))

    log = read_log(path)

    (event,) = log.events
    shown = [event.name, str(event.model_name), *(word for pair in event.more for word in pair)]
    shown += [odd.shown for odd in log.oddities]
    assert len(shown) == 7
    assert all(word.isprintable() and len(word) <= 300 for word in shown)
    assert all(len(odd.shown) <= 60 for odd in log.oddities)


def test_of_very_many_unknown_fields_the_first_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps([{"event": "a", **{f"k{n}": n for n in range(50_000)}}]))

    (event,) = read_log(path).events

    assert event.more == tuple((f"k{n}", str(n)) for n in range(20))


def test_entries_just_deep_enough_to_be_read_can_be_shown(tmp_path: Path) -> None:
    path = tmp_path / "log.json"

    def is_read(depth: int) -> bool:
        path.write_text(f"[{EVENT}, {'[' * depth}{']' * depth}, {EVENT}]")
        try:
            log = read_log(path)
        except LogError:
            return False
        (odd,) = log.oddities
        return odd.shown in (f"{'[' * 59}…", "…")

    # The limit depends on the version of Python.
    least, most = 100, 400_000
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if is_read(middle) else (least, middle)

    assert least > 100
    for depth in range(least - 20, least):  # not in a generator, which would be a call deeper
        assert is_read(depth)


def test_what_is_no_file_is_refused_in_the_words_of_the_system(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    assert _refusal(tmp_path).endswith(f"{tmp_path}: Is a directory")
    assert _refusal(tmp_path / "none.json") == f"no such file: {tmp_path / 'none.json'}"
    assert _refusal(tmp_path / "pipe").endswith("it is not a regular file")
    assert _refusal("/dev/zero").endswith("it is not a regular file")
    assert _refusal(tmp_path / "loop").endswith("Too many levels of symbolic links")
    assert _refusal(tmp_path / ("a" * 5000)).endswith("File name too long")
    assert _refusal("a\0b").endswith("a?b: this is not a file name")
    assert _refusal("\ud800").endswith("\ud800: this is not a file name")
    assert _refusal("") == "no such file: "


def test_a_missing_file_is_reported_in_chinese_too(tmp_path: Path) -> None:
    with pytest.raises(LogError) as caught:
        read_log(tmp_path / "none.json")

    said = "文件不存在 (No such file or directory)"
    assert str(caught.value) == f"无法读取或解析文件 {tmp_path / 'none.json'}: {said}"


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="this system has no /proc")
def test_a_file_that_fails_while_it_is_read_is_refused() -> None:
    # A regular file whose first byte cannot be read.
    assert _refusal("/proc/self/mem").endswith("Input/output error")


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is allowed to root")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(EVENT)
    path.chmod(0)

    assert _refusal(path).endswith("Permission denied")


def test_a_name_of_bytes_that_are_no_text_can_be_read_and_shown(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b.json"))
    assert _refusal(path).endswith("/\udcff?.json")
    path.write_text(EVENT)

    assert read_log(path).path == str(path)


def test_a_file_is_closed_when_its_reader_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f"{EVENT}\n" * 10)
    opened = len(os.listdir("/dev/fd"))

    entries = read_entries(path)
    next(entries)
    del entries

    assert len(os.listdir("/dev/fd")) == opened


CHANGES: list[Callable[[random.Random, bytes], bytes]] = [
    lambda luck, text: text[: luck.randrange(len(text))],
    lambda luck, text: text[luck.randrange(len(text)) :],
    lambda luck, text: text.replace(luck.choice([b'"', b",", b":", b"{", b"}", b"\n"]), b"", 1),
    lambda luck, text: text.replace(b"5", luck.choice([b"NaN", b"1e999", b"-", b"[", b"\xff"]), 1),
    lambda luck, text: text + luck.choice([b"\0", b"]", b"}", b"{", b"\xef\xbb", b"\xff\xfe"]),
    lambda luck, text: luck.choice([b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\n"]) + text,
    lambda luck, text: bytes(
        luck.randrange(256) if luck.random() < 0.02 else byte for byte in text
    ),
]


@pytest.mark.parametrize("seed", range(8))
def test_a_log_with_random_damage_is_read_or_refused(tmp_path: Path, seed: int) -> None:
    luck = random.Random(seed)
    whole = json.dumps([json.loads(EVENT), {"event": "步骤", "x": [{}, {"y": None}]}] * 3, indent=1)
    lines = "\n".join([EVENT] * 6)
    path = tmp_path / "log"
    for _ in range(150):
        text = luck.choice([whole, lines, f'{{"events": {whole}}}']).encode()
        for change in luck.choices(CHANGES, k=luck.randint(1, 3)):
            text = change(luck, text) or b" "
        path.write_bytes(text)

        # Anything else that is raised fails the test.
        with contextlib.suppress(LogError):
            assert read_log(path).events


def test_reading_needs_the_standard_library_only() -> None:
    code = "import sys, snapviewer.events.log; print('numpy' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert done.stdout == "False\n"
