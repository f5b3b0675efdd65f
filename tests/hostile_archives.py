"""Archives of checkpoints that lie: zip, tar, the legacy stream, safetensors. All made here."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import hostile_checkpoints
from hostile import TRUNCATED, Case, pickled
from pth_writer import (
    MAGIC,
    SYSTEM,
    T,
    write_legacy,
    write_pth,
    write_safetensors,
    write_tar,
    zip_of,
)


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
    """Every archive that lies, with unique names."""
    made = (*_zips(), *_directories(), *_bombs(), *_tars(), *_streams(), *_safetensors())
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


# The legacy stream and the oldest archive


def _streams() -> Iterator[Case]:
    magic, version, system = (pickle.dumps(part, 2) for part in (MAGIC, 1001, SYSTEM))
    good = small_files()["legacy"]
    keys = good.rindex(b"\x80\x02]q\0")
    tail = good[keys:]
    raw = tail.index(b".") + 1
    yield Case("legacy-magic-only", magic, words=(TRUNCATED,))
    other = magic + pickle.dumps(999, 2) + system
    yield Case("legacy-other-version", other + pickled(b"N") + tail, "either")
    yield Case("legacy-odd-system", magic + version + pickled(b"N") * 2 + tail, "either")
    big = pickle.dumps({**SYSTEM, "little_endian": False}, 2)
    yield Case("legacy-big-endian", good.replace(system, big), "either")
    yield Case("legacy-keys-are-no-list", good[:keys] + pickled(b"K\1") + tail[raw:], "either")
    unknown = pickle.dumps(["nobody"], 2)
    yield Case("legacy-unknown-key", good[:keys] + unknown + tail[raw:], "either")
    yield Case("legacy-no-keys", good[:keys] + pickle.dumps([], 2) + tail[raw:], "either")
    many = pickle.dumps(["0"] * 10**5, 2)
    yield Case("legacy-same-key-often", good[:keys] + many + tail[raw:], "either")
    for value in (-1, 0, 2**62, -(2**63), 2**63 - 1):
        patched = tail[:raw] + struct.pack("<q", value) + tail[raw + 8 :]
        yield Case(f"legacy-elements-{value}", good[:keys] + patched, "either")
    yield Case("legacy-with-bytes-after", good + b"hello", "either")
    exploit = pickled(hostile_checkpoints.SYSTEM, hostile_checkpoints.ARGUMENTS, b"R")
    for place in range(5):
        parts = [magic, version, system, pickled(b"N"), pickled(b"]")]
        parts[place] = exploit
        yield Case(f"legacy-code-in-part-{place}", b"".join(parts), "either")


def _tar(**members: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


def _tars() -> Iterator[Case]:
    good, one = small_files()["tar"], pickle.dumps(1, 2)
    parts: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(good)) as tar:
        for member in tar.getmembers():
            file = tar.extractfile(member)
            assert file is not None
            parts[member.name] = file.read()
    for name in parts:
        rest = {key: data for key, data in parts.items() if key != name}
        yield Case(f"tar-without-{name}", _tar(**rest), "either")
        yield Case(f"tar-empty-{name}", _tar(**{**parts, name: b""}), "either")
        exploit = pickled(hostile_checkpoints.SYSTEM, hostile_checkpoints.ARGUMENTS, b"R")
        yield Case(f"tar-code-in-{name}", _tar(**{**parts, name: exploit}), "either")
    for count in (-1, 2**31, 2**70):
        for name in ("storages", "tensors"):
            lying = pickle.dumps(count, 2) + parts[name][len(one) :]
            yield Case(f"tar-{count}-{name}", _tar(**{**parts, name: lying}), "either")
    dimensions = parts["tensors"].index(struct.pack("<i4x", 2))
    for size in (-1, 65, 2**31 - 1):
        tensors = bytearray(parts["tensors"])
        tensors[dimensions : dimensions + 4] = struct.pack("<i", size)
        odd = _tar(**{**parts, "tensors": bytes(tensors)})
        yield Case(f"tar-of-{size}-dimensions", odd, "either")
    for size in (b"77777777777\0", b"\x80" + b"\xff" * 11, b"\xff" * 12, b"hello\0"):
        odd = good[:124] + size + good[136:]
        yield Case(f"tar-size-{size.hex()}", odd, "either")
    yield Case("tar-of-links", good[:156] + b"2/etc/passwd" + good[168:], "either")
    many = {f"m{number}": b"" for number in range(20_000)}
    yield Case("tar-many-members", _tar(**many), "either")


# safetensors


def _safe(header: Any, data: bytes = b"", *, length: int | None = None) -> bytes:
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(encoded) if length is None else length) + encoded + data


def _entry(start: int, end: int, *, dtype: str = "U8", shape: Any = None) -> dict[str, Any]:
    sizes = [end - start] if shape is None else shape
    return {"dtype": dtype, "shape": sizes, "data_offsets": [start, end]}


def _safetensors() -> Iterator[Case]:
    header = {"a": _entry(0, 4), "b": _entry(4, 8)}
    for length in (2**63, 2**64 - 1, 100_000_001, 10**6):
        yield Case(f"safetensors-header-of-{length}", _safe(header, bytes(8), length=length))
    yield Case("safetensors-cut-off", _safe(header, bytes(7)), words=(TRUNCATED,))
    yield Case("safetensors-overlap", _safe({"a": _entry(0, 4), "b": _entry(2, 6)}, bytes(6)))
    yield Case("safetensors-same-bytes", _safe({"a": _entry(0, 4), "b": _entry(0, 4)}, bytes(4)))
    yield Case(
        "safetensors-hole", _safe({"a": _entry(0, 4), "b": _entry(6, 8)}, bytes(8)), "either"
    )
    yield Case("safetensors-bytes-after", _safe(header, bytes(20)), "either")
    yield Case("safetensors-wrong-size", _safe({"a": _entry(0, 4, shape=[3])}, bytes(4)))
    yield Case("safetensors-backwards", _safe({"a": _entry(4, 0, shape=[4])}, bytes(4)))
    for odd in ([-1], [2**63, 2], [2**64], [1.5], ["4"], "4", True, [[4]], [4] * 10**5):
        name = str(odd)[:20].replace("/", "-")
        made = _safe({"a": _entry(0, 4, shape=odd)}, bytes(4))
        yield Case(f"safetensors-shape-{name}", made, "either")
    for odd in ([0], [0, 4, 8], [-4, 0], ["0", "4"], None, [0, 2**64], [2**63, 2**63 + 4]):
        lying = {"dtype": "U8", "shape": [4], "data_offsets": odd}
        yield Case(f"safetensors-offsets-{odd}", _safe({"a": lying}, bytes(4)))
    yield Case("safetensors-unknown-type", _safe({"a": _entry(0, 4, dtype="X9")}, bytes(4)))
    entry = json.dumps(_entry(0, 4)).encode()
    twice = b'{"a":' + entry + b',"a":' + entry + b"}"
    yield Case("safetensors-key-twice", _safe(twice, bytes(4)))
    yield Case("safetensors-deep", _safe(b'{"__metadata__":' + b"[" * 10**6 + b"]" * 10**6 + b"}"))
    yield Case("safetensors-metadata-of-numbers", _safe({"__metadata__": {"a": 1}}), "either")
    yield Case("safetensors-metadata-is-a-list", _safe({"__metadata__": []}), "either")
    yield Case("safetensors-list", _safe(b"[]"))
    yield Case("safetensors-not-utf-8", _safe(b'{"\xff":1}'))
    yield Case("safetensors-more-keys", _safe({"a": {**_entry(0, 4), "x": 1}}, bytes(4)), "either")
    nothing = _entry(0, 0, shape=[2**62, 2**62, 0])
    yield Case("safetensors-nothing-of-much", _safe({"a": nothing}), "either")
    many = {str(number): _entry(0, 0, shape=[0]) for number in range(100_000)}
    yield Case("safetensors-hundred-thousand", _safe(many), "either")
    odd_names = {"\x1b[2J\n": _entry(0, 1), "": _entry(1, 2), "\u202e": _entry(2, 3)}
    yield Case("safetensors-odd-names", _safe(odd_names, bytes(3)), "accepted")
