"""No checkpoint, however broken or malicious, runs anything; it gets one clear sentence at most."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from snapviewer import _core
from support import hostile_archives, hostile_checkpoints, hostile_streams, program
from support.hostile import Case
from support.patience import PATIENT
from support.pth_writer import T, write_safetensors

CODE = {made.name: made for made in hostile_checkpoints.code()}
FORMATS = tuple(hostile_archives.small_files())


# All in a few processes, under a limit of memory and time


@pytest.mark.parametrize(
    "cases", [hostile_checkpoints.cases, hostile_archives.cases, hostile_streams.cases]
)
def test_a_bad_checkpoint_is_refused_with_one_sentence_or_read(
    cases: Callable[[], tuple[Case, ...]], tmp_path: Path
) -> None:
    files, work = tmp_path / "files", tmp_path / "work"
    for made in (files, work):
        made.mkdir()
    numbered = {f"{number:04}": case for number, case in enumerate(cases())}
    for number, case in numbered.items():
        (files / number).write_bytes(case.content)

    loaded = program.load_all(files, work, "checkpoint")

    shutil.rmtree(files)
    found = [_fault(case, loaded[number]) for number, case in numbered.items()]
    assert [fault for fault in found if fault] == []
    assert [path.name for path in work.iterdir()] == ["listing.json"], "nothing ran"


def _fault(case: Case, loaded: program.Loaded) -> str | None:
    """What is wrong with the way a case went, or None."""
    allowed = ("accepted", "refused") if case.verdict == "either" else (case.verdict,)
    if loaded.outcome not in allowed:
        return f"{case.name}: {loaded.outcome}, not {' or '.join(allowed)}: {loaded.message}"
    sentence = loaded.message
    if loaded.outcome == "accepted":
        return None
    if not sentence.strip() or not sentence.isprintable():
        return f"{case.name}: not one clean line: {sentence!r}"
    missing = [word for word in case.words if not re.search(word, sentence, re.IGNORECASE)]
    return f"{case.name}: does not say {missing}: {sentence}" if missing else None


# Code


@pytest.mark.parametrize("name", CODE)
def test_what_would_run_is_flagged_and_does_not_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.pth"
    path.write_bytes(CODE[name].content)

    checkpoint = _core.read_checkpoint(path)

    assert set(CODE[name].imports) <= set(checkpoint.flagged_imports)
    assert not set(CODE[name].imports) & set(checkpoint.allowed_imports)
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.pth"], "nothing ran"


# Cut off and damaged


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_cut_anywhere_is_refused(name: str, tmp_path: Path) -> None:
    content, path = hostile_archives.small_files()[name], tmp_path / "x"
    # The end of a tar file is zeros that nobody needs.
    ends = len(content.rstrip(b"\0")) if name == "tar" else len(content)

    for length in range(0, ends, 1 if ends < 5000 else 3):
        path.write_bytes(content[:length])
        with pytest.raises(_core.SnapshotError) as refusal:
            _core.read_checkpoint(path)
        assert str(refusal.value).isprintable()


@given(st.data())
@settings(PATIENT)
def test_damage_anywhere_is_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(data.draw(st.sampled_from(list(hostile_archives.small_files().values()))))
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damage") / "x"
    path.write_bytes(content)

    _assert_read_or_refused(path)


@given(st.binary(max_size=300))
@example(b"")
@example(b"PK\5\6" + b"\0" * 18)
@settings(PATIENT)
def test_any_bytes_as_a_pickle_are_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("bytes") / "x"
    for made in (content, hostile_checkpoints.zipped(b"\x80\x04" + content + b".")):
        path.write_bytes(made)

        _assert_read_or_refused(path)


def _assert_read_or_refused(path: Path) -> None:
    loaded = program._load(program._checkpoint, _core.SnapshotError, path)
    assert loaded.outcome in ("accepted", "refused"), loaded.message
    assert loaded.message.isprintable()


# Shards


def _index(folder: Path, weight_map: object) -> Path:
    write_safetensors(folder / "one.safetensors", {"a": T("float32", (2,))})
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return index


@pytest.mark.parametrize(
    "shard",
    [
        "../one.safetensors",
        "/etc/passwd",
        "a/../one.safetensors",
        "..",
        ".",
        "",
        "a\\b",
        "C:\\x",
        "one.safetensors\0",
        "nowhere.safetensors",
        "model.safetensors.index.json",
        "a" * 5000,
        "\x1b[2J",
    ],
)
def test_an_index_leads_to_no_other_place(shard: str, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    write_safetensors(tmp_path / "one.safetensors", {"a": T("float32", (2,))})
    index = _index(inner, {"a": "one.safetensors", "b": shard})

    with pytest.raises((_core.SnapshotError, FileNotFoundError)) as refusal:
        _core.read_checkpoint(index)

    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("weight_map", [None, [], "a", {"a": 1}, {"a": None}, {"a": ["x"]}])
def test_an_index_that_is_none_is_refused(weight_map: object, tmp_path: Path) -> None:
    with pytest.raises(_core.SnapshotError):
        _core.read_checkpoint(_index(tmp_path, weight_map))


def test_an_index_and_its_shards_that_disagree_get_a_warning(tmp_path: Path) -> None:
    index = _index(tmp_path, {"b": "one.safetensors"})

    checkpoint = _core.read_checkpoint(index)

    assert any("b" in warning for warning in checkpoint.warnings)
    assert any("a" in warning for warning in checkpoint.warnings)


# Not files at all


def test_what_is_no_file_is_named_by_its_kind(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        _core.read_checkpoint(tmp_path / "nowhere.pth")
    with pytest.raises((IsADirectoryError, _core.SnapshotError)):
        _core.read_checkpoint(tmp_path)


# Through the program


@pytest.mark.parametrize("name", ["reduce", "hidden-pickle"])
@pytest.mark.parametrize("option", ["--json", "--stats"])
def test_the_program_lists_what_would_run(name: str, option: str, tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    path.write_bytes(CODE[name].content)

    ran = program.run("pth", path, option, directory=tmp_path)

    assert ran.code == 0, ran.err
    assert "os.system" in ran.out
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.pth"]


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\3\4", b"\x80\x02}"])
def test_the_program_ends_with_1_where_it_could_not_read(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    path.write_bytes(content)

    ran = program.run("pth", path, directory=tmp_path)

    assert ran.code == 1
    assert len(ran.err.strip().splitlines()) == 1
    assert "x.pth" in ran.err
