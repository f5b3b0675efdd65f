"""What people and attackers found in the checkpoint reader, so that it stays found."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from snapviewer import SnapshotError, _core
from snapviewer.pth_analyzer import analyze_pth_file
from support import program
from support.pth_writer import S, T, write_pth

EVIL = b"cposix\nsystem\n(X\x05\x00\x00\x00false\x85R."


@pytest.mark.parametrize("length", [640, 896, 1152, 1408, 123, 31520, 31498])
def test_a_safetensors_header_of_any_length_is_one(length: int, tmp_path: Path) -> None:
    header = b'{"x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}'.ljust(length)
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", length) + header + b"abc")

    checkpoint = _core.read_checkpoint(path)

    assert (checkpoint.format, [t.name for t in checkpoint.tensors]) == ("safetensors", ["x"])


@pytest.mark.parametrize("kind", [b"1", b"2", b"3", b"4", b"5", b"6"])
def test_a_tar_that_python_reads_otherwise_is_refused(kind: bytes, tmp_path: Path) -> None:
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w") as archive:
        for name in ("sys_info", "pickle", "tensors", "storages"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO(b""))
    hidden = tarfile.TarInfo("x")
    hidden.type, hidden.size = kind, len(inner.getvalue())
    path = tmp_path / "x.pth"
    path.write_bytes(hidden.tobuf() + inner.getvalue() + inner.getvalue())

    with pytest.raises(SnapshotError, match="can be read in two ways"):
        _core.read_checkpoint(path)


@pytest.mark.parametrize("content", [EVIL[:-1], b"\x80\x02" + EVIL[:-1] + b"\xff", b"N0" + EVIL])
def test_a_pickle_that_breaks_says_what_it_would_have_run(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    path.write_bytes(content)

    with pytest.raises(SnapshotError, match=r"posix\.system"):
        _core.read_checkpoint(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("archive/extra.bin", pickle.dumps(os.getcwd, 0)),
        ("archive/extra.bin", b"N0" + EVIL),
        ("archive/extra.bin", b"\x80\x01" + EVIL),
        ("archive/extra.pkl", b"cevil-mod\nrun\n)R."),
    ],
)
def test_pickles_of_any_protocol_are_found_in_other_members(
    name: str, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "x.pth"
    write_pth(path, {"x": T("float32", (2,))}, extra_members={name: content})

    assert _core.read_checkpoint(path).flagged_imports


def test_what_follows_the_pickle_in_its_member_is_looked_into(tmp_path: Path) -> None:
    path, longer = tmp_path / "x.pth", tmp_path / "longer.pth"
    write_pth(path, {"x": 1})
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(longer, "w") as new:
        for member in old.namelist():
            new.writestr(member, old.read(member) + (EVIL if member.endswith("data.pkl") else b""))

    checkpoint = _core.read_checkpoint(longer)

    assert checkpoint.flagged_imports == ("posix.system",)
    assert "bytes follow" in " ".join(checkpoint.warnings)


def test_the_tensor_that_does_not_fit_is_the_one_that_is_named(tmp_path: Path) -> None:
    storage = S("0", bytes(40))
    path = tmp_path / "x.pth"
    good, bad = T("float32", (10,), storage=storage), T("float32", (100,), storage=storage)
    write_pth(path, {"good": good, "bad": bad})

    (warning,) = _core.read_checkpoint(path).warnings

    assert warning == "bad reaches beyond the end of its storage 0"


def test_one_tensor_under_a_million_names_takes_little(tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    tensor = T("float32", (2,))
    write_pth(path, [tensor] * 300_000)

    checkpoint = _core.read_checkpoint(path)

    assert len(checkpoint.tensors) == 100_001
    assert "several names" in " ".join(checkpoint.warnings)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_among_many_files_fails_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pth")
    write_pth(tmp_path / "a.pth", {"x": 1})

    ran = program.run("pth", "--json", tmp_path / "*.pth", directory=tmp_path)

    document = json.loads(ran.out)
    assert ran.code == 1
    assert [Path(file["file"]).name for file in document["files"]] == ["a.pth"]
    assert "not a regular file" in document["failed"][0]["reason"]


def test_a_snapshot_is_sent_to_the_right_command(tmp_path: Path) -> None:
    path = tmp_path / "snap.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": []}))

    with pytest.raises(SnapshotError, match="snapviewer info"):
        _core.read_checkpoint(path)


def test_errors_and_documents_have_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    path = tmp_path / "x\x1b[31m\u202e.pth"
    path.write_bytes(b"")
    names = tmp_path / "names.pth"
    write_pth(names, {"a\x9b\u202e": T("float32", (2,))})

    failed = program.run("pth", path, directory=tmp_path)
    shown = program.run("pth", "--json", names, directory=tmp_path)

    assert "\x1b" not in failed.err
    assert "\u202e" not in failed.err
    assert "\u202e" not in shown.out
    assert json.loads(shown.out)["tensors"][0]["name"] == "a\x9b\u202e"


@pytest.mark.torch
def test_a_state_dict_has_as_many_variables_as_keys_and_a_module_its_parts(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    state, whole = tmp_path / "state.pth", tmp_path / "whole.pth"
    torch.save(model.state_dict(), state)
    torch.save(model, whole)

    found = analyze_pth_file(state, verbose=False)
    module = analyze_pth_file(whole, verbose=False)

    assert list(found["variables"]) == list(model.state_dict())
    assert found["total_size_bytes"] == sum(t.nbytes for t in model.state_dict().values())
    assert list(module["variables"]) == ["0", "1"]
    assert list(module["variables"]["0"]["contents"]) == ["weight", "bias"]


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_a_difference_is_also_in_places_conjugates_and_numbers_that_are_none(
    tmp_path: Path,
) -> None:
    torch = pytest.importorskip("torch")

    def difference(before: object, after: object) -> _core.Difference:
        paths = [tmp_path / "before.pth", tmp_path / "after.pth"]
        for path, tensor in zip(paths, (before, after), strict=True):
            torch.save({"x": tensor}, path)
        one, other = map(_core.read_checkpoint, paths)
        return one.difference(0, other, 0)

    eye = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    moved = torch.tensor([[1.0, 0.0], [2.0, 0.0]])
    z = torch.tensor([1 + 1j, 2 + 0j])
    nan = torch.tensor([1.0, float("nan")])
    nested = [torch.ones(2, 3), torch.ones(4, 3)]

    assert difference(eye.to_sparse(), eye.to_sparse()).is_equal
    assert not difference(eye.to_sparse(), moved.to_sparse()).is_equal
    assert difference(eye.to_sparse(), (eye * 2).to_sparse()).max_abs == 2
    assert not difference(z, z.conj()).is_equal
    assert difference(z.conj(), z.conj()).is_equal
    assert not difference(
        torch.nested.nested_tensor(nested), torch.nested.nested_tensor(nested[::-1])
    ).is_equal
    appeared, gone = difference(torch.ones(2), nan), difference(nan, torch.ones(2))
    assert (appeared.to_nonfinite, appeared.from_nonfinite) == (1, 0)
    assert (gone.to_nonfinite, gone.from_nonfinite) == (0, 1)
