"""Checkpoints that lie in other files than zip: the legacy stream, tar, safetensors."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tarfile
from collections.abc import Iterator
from typing import Any

from support import hostile_checkpoints
from support.hostile import TRUNCATED, Case, pickled
from support.hostile_archives import small_files
from support.pth_writer import MAGIC, SYSTEM


def cases() -> tuple[Case, ...]:
    """Every such file, with unique names."""
    made = (*_tars(), *_streams(), *_safetensors())
    assert len({case.name for case in made}) == len(made)
    return made


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


def _in_header(file: bytes, at: int, value: bytes) -> bytes:
    """A tar file whose first header says something else, and adds up."""
    header = bytearray(file[:512])
    header[at : at + len(value)] = value
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + file[512:]


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
    for digits in (b"77777777777\0", b"\x80" + b"\xff" * 11, b"\xff" * 12, b"hello\0"):
        odd = _in_header(good, 124, digits.ljust(12, b"\0"))
        yield Case(f"tar-size-{digits.hex()}", odd, "either")
    yield Case("tar-of-links", _in_header(good, 156, b"2/etc/passwd"), "either")
    yield Case("tar-wrong-checksum", good[:100] + b"0000777\0" + good[108:], "either")
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
    for offsets in ([0], [0, 4, 8], [-4, 0], ["0", "4"], None, [0, 2**64], [2**63, 2**63 + 4]):
        lying = {"dtype": "U8", "shape": [4], "data_offsets": offsets}
        yield Case(f"safetensors-offsets-{offsets}", _safe({"a": lying}, bytes(4)))
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
