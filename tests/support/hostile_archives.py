"""Zip archives of checkpoints that lie, and a right file of each format to spoil. All made here."""

from __future__ import annotations

import io
import json
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from support.hostile import TRUNCATED, Case, pickled
from support.pth_writer import T, write_legacy, write_pth, write_safetensors, write_tar, zip_of


def small() -> dict[str, Any]:
    """What the small files below hold."""
    return {"w": T("float32", (3, 2)), "list": [T("int64", (2,)), 1, "a"]}


@lru_cache
def small_files() -> dict[str, bytes]:
    """A right file of each format."""
    tensors = {"a": T("float32", (2, 2)), "b": T("int8", (3,)), "none": T("float32", (0,))}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        files = {}
        for name, write in (("zip", write_pth), ("legacy", write_legacy), ("tar", write_tar)):
            write(path, small())
            files[name] = path.read_bytes()
        write_pth(path, small(), deflate=True)
        files["deflated"] = path.read_bytes()
        write_safetensors(path, tensors, {"k": "v"})
        files["safetensors"] = path.read_bytes()
    return files


def cases() -> tuple[Case, ...]:
    """Every zip file that lies, with unique names."""
    made = (*_zips(), *_directories(), *_bombs(), *_exported())
    assert len({case.name for case in made}) == len(made)
    return made


# Zip files


def _zips() -> Iterator[Case]:
    good, nothing = small_files()["zip"], pickled(b"N")
    members = [("x/data.pkl", nothing), ("x/version", b"3\n")]
    yield Case("zip-empty", zip_of([]))
    yield Case("zip-without-pickle", zip_of([("x/version", b"3\n")]))
    yield Case("zip-with-two-pickles", zip_of([*members, ("y/data.pkl", nothing)]), "either")
    yield Case("zip-same-name-twice", zip_of([*members, members[0]]))
    yield Case("zip-same-name-in-capitals", zip_of([*members, ("X/DATA.PKL", nothing)]), "either")
    names = ("/data.pkl", "../data.pkl", "x\\data.pkl", "data.pkl", "a/b/c/data.pkl", "x/data.pkl/")
    for name in names:
        plain = "-" + name.replace("/", "-").replace("\\", "+")
        yield Case(f"zip-pickle-at{plain}", zip_of([(name, nothing), members[1]]), "either")
    odd = [(f"x/data/{name}", b"abc") for name in ("\x1b[2J", "é", "\udcff", "a" * 60_000)]
    yield Case("zip-odd-names", zip_of([*members, *odd]), "either")
    yield Case("zip-with-bytes-before", b"#!/bin/sh\n" + good, "either")
    yield Case("zip-with-bytes-after", good + b"hello", "either")
    yield Case("zip-twice", good + good, "either")
    yield Case("zip-comment-with-an-end-in-it", good[:-2] + b"\x16\0" + good[-22:], "either")
    first = good.index(b"PK\3\4")
    yield Case("zip-other-local-name", good.replace(b"archive/data.pkl", b"archive/data.pk_", 1))
    yield Case("zip-no-local-header", b"XXXX" + good[first + 4 :])
    yield Case("zip-local-name-past-the-end", good[:26] + b"\xff\xff" + good[28:])
    yield Case("zip-local-extra-past-the-end", good[:28] + b"\xff\xff" + good[30:])
    for method in (12, 14, 93, 99):
        yield Case(f"zip-method-{method}", _in_directory(good, 10, struct.pack("<H", method)))
    yield Case("zip-encrypted", _in_directory(good, 8, b"\x09\x08"))
    yield Case("zip-stored-in-two-sizes", _in_directory(good, 24, struct.pack("<I", 10**6)))
    yield Case("zip-member-past-the-end", _in_directory(good, 20, struct.pack("<II", 2**31, 2**31)))
    yield Case("zip-member-of-four-gigabytes", _in_directory(good, 20, b"\xfe\xff\xff\xff" * 2))
    yield Case("zip-64-without-sizes", _in_directory(good, 20, b"\xff" * 8))
    yield Case("zip-header-past-the-end", _in_directory(good, 42, struct.pack("<I", 2**31)))
    yield Case("zip-name-past-the-end", _in_directory(good, 28, b"\xff\xff"))
    yield Case("zip-extra-past-the-end", _in_directory(good, 30, b"\xff\xff"))
    yield Case("zip-on-another-disk", _in_directory(good, 34, b"\7\0"), "either")
    yield Case("zip-members-overlap", _overlapping(good))
    yield Case("zip-member-inside-another", _nested())


def _in_directory(file: bytes, at: int, value: bytes) -> bytes:
    """A file whose first record of the directory says something else."""
    start = file.index(b"PK\1\2") + at
    return file[:start] + value + file[start + len(value) :]


def _overlapping(file: bytes) -> bytes:
    """A second record of the directory that leads to the first member's bytes."""
    records = [place for place in range(len(file)) if file.startswith(b"PK\1\2", place)]
    one, other = (records[number] + 42 for number in (4, 5))
    return file[:other] + file[one : one + 4] + file[other + 4 :]


def _nested() -> bytes:
    """A member whose data is another member of the same archive, header and all."""
    inner = zip_of([("x/data/0", bytes(100))], align=1)
    inner = inner[: inner.index(b"PK\1\2")]
    file = zip_of([("x/data.pkl", pickled(b"N")), ("x/data/1", inner)], align=1)
    start, directory = file.index(inner), file.index(b"PK\1\2")
    size = struct.pack("<III", zlib.crc32(bytes(100)), 100, 100)
    record = b"PK\1\2" + struct.pack("<HHHHHH", 0, 0, 0x808, 0, 0, 0) + size
    record += struct.pack("<HHHHHII", 8, 0, 0, 0, 0, 0, start) + b"x/data/0"
    records = file[directory : file.index(b"PK\6\6")] + record
    end = struct.pack("<HHHHIIH", 0, 0, 3, 3, len(records), directory, 0)
    return file[:directory] + records + b"PK\5\6" + end


def _directories() -> Iterator[Case]:
    """Ends of archives that lie about where the directory is and how much is in it."""
    good = small_files()["zip"]
    large, small_end = good.index(b"PK\6\6"), good.index(b"PK\5\6")
    ends = {"entries": (10, "<H"), "bytes": (12, "<I"), "start": (16, "<I"), "comment": (20, "<H")}
    larges = {"size": 4, "entries-here": 24, "entries": 32, "bytes": 40, "start": 48}
    without = good[:large] + good[small_end:]
    for what, (at, form) in ends.items():
        size, place = struct.calcsize(form), without.index(b"PK\5\6") + at
        for value in (0, 1, 2 ** (8 * size) - 1, 2 ** (8 * size - 1)):
            patched = without[:place] + struct.pack(form, value) + without[place + size :]
            yield Case(f"end-{what}-{value}", patched, "either")
    for what, at in larges.items():
        for value in (0, 1, 2**31, 2**63, 2**64 - 1):
            place = large + at
            patched = good[:place] + struct.pack("<Q", value) + good[place + 8 :]
            yield Case(f"end-64-{what}-{value}", patched, "either")
            both = patched[:small_end] + b"PK\5\6" + b"\0" * 4 + b"\xff" * 12 + b"\0\0"
            yield Case(f"end-64-only-{what}-{value}", both, "either")
    locator = good.index(b"PK\6\7") + 8
    for value in (0, 2**63, 2**64 - 1, len(good)):
        patched = good[:locator] + struct.pack("<Q", value) + good[locator + 8 :]
        yield Case(f"end-64-elsewhere-{value}", patched, "either")
    yield Case("end-missing", good[:large], words=(TRUNCATED,))
    yield Case("end-only", good[small_end:], "refused")


def _bombs() -> Iterator[Case]:
    nothing = b"\x80\x02" + b"N0" * (100 << 20) + b"N."
    yield Case("bomb-pickle", zip_of([("x/data.pkl", nothing)], deflate=True))
    held = b"\x80\x02](" + b"K\1" * (100 << 20) + b"e."
    yield Case("bomb-pickle-of-values", zip_of([("x/data.pkl", held)], deflate=True))
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", bytes(200 << 20))
    members = [("x/data.pkl", pickled(b"N")), ("x/inner.pt", inner.getvalue())]
    yield Case("bomb-in-an-archive-inside", zip_of(members), "either")
    hidden = [("x/data.pkl", pickled(b"N")), ("x/extra", b"\x80\x02" + b"N0" * (50 << 20))]
    yield Case("bomb-hidden-pickle", zip_of(hidden, deflate=True), "either")
    first = ("x/data.pkl", pickled(b"N"))
    many = [(f"x/data/{number}", b"") for number in range(60_000)]
    yield Case("sixty-thousand-members", zip_of([first, *many]), "either")
    hiding = [(f"x/{number}", pickled(b"N")) for number in range(30_000)]
    yield Case("thirty-thousand-hidden-pickles", zip_of([first, *hiding]), "either")
    deflated = small_files()["deflated"]
    start = deflated.index(b"PK\3\4")
    data = start + 30 + sum(struct.unpack("<HH", deflated[start + 26 : start + 30]))
    yield Case("deflated-nonsense", deflated[:data] + b"\xff" * 20 + deflated[data + 20 :])
    for what, size in (("less", 10), ("more", 10**6), ("much-more", 2**32 - 2)):
        lying = _in_directory(deflated, 24, struct.pack("<I", size))
        yield Case(f"deflated-is-{what}-than-it-is", lying)


def _exported() -> Iterator[Case]:
    """What torch.export writes, with configurations that lie."""
    sizes: dict[str, Any] = {"sizes": [{"as_int": 2}], "strides": [{"as_int": 1}]}
    meta = {**sizes, "dtype": 7, "requires_grad": False, "device": {"type": "cpu", "index": None}}
    meta |= {"storage_offset": {"as_int": 0}, "layout": 7}
    entry = {"path_name": "weight_0", "is_param": True, "use_pickle": False, "tensor_meta": meta}
    lies: dict[str, Any] = {
        "nothing": None,
        "list": [],
        "no-config": {},
        "text": {"config": {"w": "weight_0"}},
        "no-meta": {"config": {"w": {**entry, "tensor_meta": None}}},
        "elsewhere": {"config": {"w": {**entry, "path_name": "../../../etc/passwd"}}},
        "nowhere": {"config": {"w": {**entry, "path_name": "weight_1"}}},
        "pickled": {"config": {"w": {**entry, "use_pickle": True}}},
        "good": {"config": {"w": entry}},
    }
    for key, odd in (
        ("dtype", 99),
        ("dtype", "float"),
        ("sizes", [{"as_int": -1}]),
        ("sizes", [{"as_int": 2**63}]),
        ("sizes", [{"as_int": 2**40}] * 3),
        ("sizes", [{"as_expr": {"expr_str": "s0"}}]),
        ("sizes", "2"),
        ("strides", []),
        ("strides", [{"as_int": -1}]),
        ("storage_offset", {"as_int": 2**62}),
        ("device", None),
        ("requires_grad", "yes"),
    ):
        lies[f"{key}-{odd}"] = {"config": {"w": {**entry, "tensor_meta": {**meta, key: odd}}}}
    for name, config in lies.items():
        members = [
            ("m/archive_format", b"pt2"),
            ("m/archive_version", b"0"),
            ("m/models/model.json", b"{}"),
            ("m/data/weights/weight_0", bytes(8)),
            ("m/data/weights/model_weights_config.json", json.dumps(config).encode()),
        ]
        yield Case(f"exported-{name}", zip_of(members), "accepted" if name == "good" else "either")
    deep = b"[" * 10**6
    yield Case("exported-deep", zip_of([*members[:-1], (members[-1][0], deep)]), "either")
    inside = ("m/data/sample_inputs/model.pt", members[0][1])
    yield Case("exported-inputs-are-nothing", zip_of([*members, inside]), "either")
    itself = zip_of(members)
    for _ in range(20):
        itself = zip_of([*members, (inside[0], itself)])
    yield Case("exported-inside-itself", itself, "either")
