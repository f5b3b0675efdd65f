"""Files that lie, break off, or try to run code, each a named case with what must come of it.

Every case is small on disk and made here; none holds anything that does harm when it is only
read.
"""

from __future__ import annotations

import base64
import copy
import gzip
import io
import json
import pickle
import random
import sqlite3
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

Verdict = Literal["refused", "accepted", "either"]

GIB = 2**30
TRUNCATED = "truncat|ends|end of|short|incomplete|cut off|missing"

PAGE = """
<!DOCTYPE html>
<html>
<head>
</head>
<body>
<script type="module">
import {add_local_files} from "https://example.invalid/MemoryViz.js"
const local_files = $SNAPSHOT
add_local_files(local_files, 'Active Memory Timeline')
</script>
</body>
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One bad file, and what a reader must make of it.

    `words` are patterns that the error has to match. `at_byte` is True where the fault is in the
    pickle, so that the error has to name a byte, and a number where there is only one right byte.
    """

    name: str
    content: bytes
    verdict: Verdict = "refused"
    words: tuple[str, ...] = ()
    at_byte: bool | int = False


# Good files to spoil


def falling_snapshot() -> Any:
    """A snapshot whose memory is highest before the first event."""
    frees = [
        {"action": "free_completed", "addr": 512 * (1 + n), "size": 400, "stream": 0, "frames": []}
        for n in range(3)
    ]
    block = {"address": 4096, "size": 512, "requested_size": 100, "state": "active_allocated"}
    segment = {"device": 0, "address": 4096, "total_size": 2**20, "stream": 0, "blocks": [block]}
    return {"segments": [segment], "device_traces": [frees]}


def small_snapshot() -> dict[str, Any]:
    """A valid snapshot with one of everything that a reader looks at."""
    base = 0x7F00_0000_0000
    inner = {"name": "forward", "filename": "model.py", "line": 7}
    outer = {"name": "main", "filename": "train.py", "line": 99}
    stack = [inner, outer]
    common = {"stream": 0, "time_us": 1_700_000_000_000_000, "frames": stack}
    trace = [
        {"action": "segment_alloc", "addr": base, "size": 2_097_152, **common},
        {"action": "alloc", "addr": base, "size": 1000, **common},
        {"action": "alloc", "addr": base + 1024, "size": 2000, **common},
        {"action": "free_requested", "addr": base, "size": 1000, **common},
        {"action": "free_completed", "addr": base, "size": 1000, **common},
        {"action": "oom", "size": 4096, "device_free": 512, **common},
        {"action": "snapshot", "addr": 0, "size": 2048, **common},
    ]
    blocks = [
        {"address": base, "size": 1024, "requested_size": 1000, "state": "inactive", "frames": []},
        {
            "address": base + 1024,
            "size": 2048,
            "requested_size": 2000,
            "state": "active_allocated",
            "frames": stack,
        },
    ]
    segment = {
        "device": 0,
        "address": base,
        "total_size": 2_097_152,
        "allocated_size": 2048,
        "active_size": 2048,
        "requested_size": 2000,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": stack,
        "blocks": blocks,
    }
    return {
        "segments": [segment],
        "device_traces": [trace],
        "allocator_settings": {"expandable_segments": False, "max_split_size": -1},
        "external_annotations": [{"name": "step", "stage": "START", "device": 0, "time_us": 1}],
    }


def page(payload: bytes) -> bytes:
    """The page that memory_viz writes around a pickle, zero padding included."""
    padded = payload + b"\0" * (3 - len(payload) % 3)
    files = [{"name": "snapshot.pickle", "base64": base64.b64encode(padded).decode()}]
    return PAGE.replace("$SNAPSHOT", json.dumps(files)).encode()


# Pickle by hand


def text(value: str | bytes) -> bytes:
    """SHORT_BINUNICODE, or BINUNICODE for a long string; bytes are taken as they are."""
    encoded = value.encode() if isinstance(value, str) else value
    if len(encoded) < 256:
        return b"\x8c" + bytes([len(encoded)]) + encoded
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def item(key: str, value: bytes) -> bytes:
    """Sets one item of the dict on top of the stack."""
    return text(key) + value + b"s"


def pickled(*parts: bytes) -> bytes:
    """A protocol 4 pickle of the opcodes given."""
    return b"\x80\x04" + b"".join(parts) + b"."


def snapshot_with(*, segments: bytes = b"]", frames: bytes = b"]", extra: bytes = b"N") -> bytes:
    """A snapshot whose parts are the opcodes given; `frames` belongs to its only event."""
    return pickled(_snapshot_until_frames(segments), frames, b"saas", item("extra", extra))


def _snapshot_until_frames(segments: bytes = b"]") -> bytes:
    event = b"}" + item("action", text("alloc")) + item("addr", b"K\x40") + item("size", b"K\x08")
    return (
        b"}" + item("segments", segments) + text("device_traces") + b"]]" + event + text("frames")
    )


def _frames(**fields: bytes) -> bytes:
    """A list with one frame, some of whose fields are the opcodes given."""
    usual = {"name": text("f"), "filename": text("a.py"), "line": b"K\x01"}
    items = (item(key, value) for key, value in {**usual, **fields}.items())
    return b"]}" + b"".join(items) + b"a"


# Cases


@lru_cache(maxsize=1)
def cases() -> tuple[Case, ...]:
    """Every bad file that is made without the product, with unique names."""
    made = (
        *_not_snapshots(),
        *_broken_off(),
        *_code(),
        *_memos_and_cycles(),
        *_lengths_and_depths(),
        *_strings_and_numbers(),
        *_machine_faults(),
        *_protocols_and_ends(),
        *_gzips(),
        *_pages_and_json(),
        *_zips(),
    )
    assert len({case.name for case in made}) == len(made)
    return made


def _not_snapshots() -> Iterator[Case]:
    yield Case("empty", b"", words=("empty",))
    yield Case("one-byte", b"\x80")
    yield Case("one-zero", b"\0")
    yield Case("one-newline", b"\n")
    yield Case("random", random.Random(4).randbytes(4096))
    yield Case("text", b"Dear reader,\nthis is a letter and no snapshot.\n")
    yield Case("elf", b"\x7fELF\x02\x01\x01" + b"\0" * 9 + struct.pack("<HHI", 3, 62, 1) * 64)
    yield Case("png", b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
    scalars: dict[str, Any] = {"none": None, "number": 7, "string": "text", "tuple": (1, 2)}
    for name, value in scalars.items():
        yield Case(f"pickle-of-{name}", pickle.dumps(value))
    others: dict[str, Any] = {"empty-dict": {}, "empty-list": [], "other-dict": {"weights": 1}}
    for name, value in others.items():
        yield Case(f"pickle-of-{name}", pickle.dumps(value), "either")
        yield Case(f"json-of-{name}", json.dumps(value).encode(), "either")


def _broken_off() -> Iterator[Case]:
    for protocol in (2, 3, 4, 5):
        whole = pickle.dumps(small_snapshot(), protocol=protocol)
        for share in (10, 50, 90):
            part = whole[: len(whole) * share // 100]
            yield Case(f"protocol-{protocol}-cut-at-{share}-percent", part, words=(TRUNCATED,))
        yield Case(
            f"protocol-{protocol}-without-stop", whole[:-1], words=(TRUNCATED,), at_byte=True
        )


# Opcodes that would run code: name, what they need on the stack, and the opcode itself.
CODE_OPCODES: tuple[tuple[str, bytes, bytes], ...] = (
    ("GLOBAL", b"", b"cos\nsystem\n"),
    ("STACK_GLOBAL", text("os") + text("system"), b"\x93"),
    ("REDUCE", text("x") + b")", b"R"),
    ("INST", b"(", b"ios\nsystem\n"),
    ("OBJ", b"(" + text("x"), b"o"),
    ("NEWOBJ", text("x") + b")", b"\x81"),
    ("NEWOBJ_EX", text("x") + b")}", b"\x92"),
    ("BUILD", b"}}", b"b"),
    ("EXT1", b"", b"\x82\x01"),
    ("EXT2", b"", b"\x83\x01\0"),
    ("EXT4", b"", b"\x84\x01\0\0\0"),
    ("PERSID", b"", b"P0\n"),
    ("BINPERSID", text("x"), b"Q"),
    ("NEXT_BUFFER", b"", b"\x97"),
    ("READONLY_BUFFER", text("x"), b"\x98"),
)


def _code() -> Iterator[Case]:
    touch = text("touch PWNED") + b"\x85R"
    call = b"cos\nsystem\n" + touch
    yield Case("exploit", pickled(call), words=("GLOBAL",), at_byte=2)
    yield Case("exploit-without-protocol", call + b".")
    yield Case("exploit-popped", pickled(call, b"0}"), words=("GLOBAL",), at_byte=2)
    yield Case("exploit-in-gzip", gzip.compress(pickled(call)), words=("GLOBAL",), at_byte=True)
    yield Case("exploit-in-page", page(pickled(call)), words=("GLOBAL",), at_byte=True)
    yield Case(
        "exploit-by-stack",
        pickled(text("os"), text("system"), b"\x93", touch),
        words=("STACK_GLOBAL",),
        at_byte=14,
    )
    until_frames = _snapshot_until_frames()
    until_extra = until_frames + b"]saas" + text("extra")
    for name, operands, opcode in CODE_OPCODES:
        places = {"top": b"", "in-frames": until_frames + b"]", "in-unknown-key": until_extra}
        endings = {"top": b"", "in-frames": b"asaas", "in-unknown-key": b"s"}
        for place, before in places.items():
            yield Case(
                f"{name.lower()}-{place}",
                pickled(before, operands, opcode, endings[place]),
                words=(rf"\b{name}\b",),
                at_byte=2 + len(before) + len(operands),
            )


def _doubled(times: int, seed: bytes = b"]") -> bytes:
    """A list that holds the same list twice, that many levels down: 2**times leaves."""
    levels = b"".join(b"0](h%ch%ce\x94" % (n, n) for n in range(times))
    return seed + b"\x94" + levels


def _memos_and_cycles() -> Iterator[Case]:
    small = pickle.dumps(small_snapshot(), protocol=2)
    yield Case("memo-slot-four-billion", b"\x80\x02}r\xff\xff\xff\xff.", "either")
    yield Case("memo-slot-in-snapshot", small[:2] + b"Nr\xff\xff\xff\xff0" + small[2:], "either")
    sparse = b"".join(b"r" + struct.pack("<I", n << 20) for n in range(4096))
    yield Case("memo-slots-far-apart", small[:2] + b"N" + sparse + b"0" + small[2:], "either")
    yield Case("memo-slot-negative", b"\x80\x02}p-1\n.")
    yield Case("memo-slot-in-words", b"\x80\x02}pfirst\n.")
    yield Case("memoize-a-million-times", pickled(b"}", b"\x94" * 1_000_000), "either")

    for name, opcodes in {
        "doubled-list": _doubled(200),
        "doubled-frame": _doubled(200, seed=_frames()[1:-1]),
        "list-in-itself": b"]\x94h\0a",
        "dict-in-itself": b"}\x94" + item("frames", b"h\0") + item("blocks", b"h\0"),
        "tuple-cycle": b"]\x94h\0\x85a",
    }.items():
        yield Case(f"{name}-on-top", pickled(opcodes), "either")
        for place in ("segments", "frames", "extra"):
            yield Case(f"{name}-in-{place}", snapshot_with(**{place: opcodes}), "either")
    yield Case("list-of-itself-as-blocks", snapshot_with(segments=_self_blocks()), "either")

    events = b"](" + (b"}" + item("action", text("alloc")) + b"2" * 999) + b"e\x94"
    yield Case("one-trace-for-many-devices", _many_devices(events, 100_000), "either")
    blocks = b"](" + b"}" + item("size", b"K\x08") + b"2" * 999 + b"e\x94"
    segment = b"}" + item("blocks", blocks) + b"2" * 100_000
    yield Case("one-block-list-for-many-segments", pickled(b"](", segment, b"e"), "either")
    frames = b"](" + _frames()[1:-1] + b"2" * 99_999 + b"e"
    yield Case("a-hundred-thousand-frames", snapshot_with(frames=frames), "either")


def _self_blocks() -> bytes:
    return b"]}\x94" + text("blocks") + b"]h\0asa"


def _many_devices(trace: bytes, devices: int) -> bytes:
    return pickled(b"}" + item("segments", b"]") + text("device_traces") + b"](", trace,
                   b"2" * (devices - 1), b"es")  # fmt: skip


def _lengths_and_depths() -> Iterator[Case]:
    huge = struct.pack("<Q", 2**62)
    for name, opcode in {
        "binunicode8": b"\x8d" + huge,
        "binbytes8": b"\x8e" + huge,
        "bytearray8": b"\x96" + huge,
        "binunicode": b"X\xff\xff\xff\xff",
        "binbytes": b"B\xff\xff\xff\xff",
        "long4": b"\x8b\xff\xff\xff\x7f",
        "negative-long4": b"\x8b\xff\xff\xff\xff",
        "negative-binstring": b"T\xff\xff\xff\xff",
    }.items():
        yield Case(f"huge-{name}", pickled(opcode), at_byte=True)
        yield Case(f"huge-{name}-in-snapshot", snapshot_with(extra=opcode), at_byte=True)
    yield Case(
        "huge-frame",
        b"\x80\x04\x95" + huge + pickle.dumps(small_snapshot(), protocol=4)[11:],
        "either",
    )

    deep = 1_000_000
    for name, opcodes in {
        "lists": b"]" * deep + b"a" * (deep - 1),
        "dicts": b"}" + (text("k") + b"}") * deep + b"s" * deep,
        "tuples": b")" + b"\x85" * deep,
        "marks": b"(" * deep + b"t" * deep,
    }.items():
        yield Case(f"deep-{name}", pickled(opcodes), "either")
        yield Case(f"deep-{name}-in-segments", snapshot_with(segments=opcodes), "either")
        yield Case(f"deep-{name}-in-frames", snapshot_with(frames=opcodes), "either")
        yield Case(f"deep-{name}-in-unknown-key", snapshot_with(extra=opcodes), "either")


def _strings_and_numbers() -> Iterator[Case]:
    for name, raw in {"stray-byte": b"f\xff", "overlong": b"\xc0\xaf", "cut": b"\xe2\x82"}.items():
        frames = _frames(name=text(raw))
        yield Case(f"invalid-utf8-{name}", snapshot_with(frames=frames), "either")
    lone = _frames(name=text(b"\xed\xa0\x80"))
    yield Case("lone-surrogate-in-name", snapshot_with(frames=lone), "accepted")
    surrogate = small_snapshot()
    surrogate["device_traces"][0][1]["frames"] = [{"name": "\udcff", "filename": "\ud800.py"}]
    yield Case("lone-surrogates-by-cpython", pickle.dumps(surrogate), "accepted")
    yield Case("lone-surrogates-in-json", json.dumps(surrogate).encode(), "either")
    nul = _frames(name=text("a\0b\x1b[31m\r\n\u202e"))
    yield Case("control-characters-in-name", snapshot_with(frames=nul), "accepted")

    for name, sizes in {
        "sizes-that-overflow-u64": [2**64 - 1] * 100,
        "sizes-that-overflow-i64": [2**62] * 3,
        "size-of-71-bits": [2**70],
        "negative-size": [-1],
        "lowest-size": [-(2**63)],
        "size-of-2000-bits": [2**2000],
    }.items():
        snapshot = small_snapshot()
        trace = snapshot["device_traces"][0]
        for number, size in enumerate(sizes):
            for action in ("alloc", "segment_alloc"):
                trace.append({"action": action, "addr": number << 20, "size": size, "frames": []})
            trace.append({"action": "free_completed", "addr": -number, "size": size})
        for block in snapshot["segments"][0]["blocks"]:
            block["requested_size"] = sizes[0]
        snapshot["segments"] *= 3
        snapshot["segments"][0]["total_size"] = sizes[0]
        yield Case(name, pickle.dumps(snapshot), "either")
        yield Case(f"{name}-in-json", json.dumps(snapshot).encode(), "either")
    yield Case("long1-of-255-bytes", snapshot_with(extra=b"\x8a\xff" + b"\x7f" * 255), "either")
    line = _frames(line=b"\x8a\xff" + b"\xff" * 255)
    yield Case("long1-of-255-bytes-as-line", snapshot_with(frames=line), "either")
    line = _frames(line=b"\x8a\x09" + b"\xff" * 8 + b"\0")
    yield Case("line-above-i64", snapshot_with(frames=line), "either")


def _machine_faults() -> Iterator[Case]:
    for name, opcode in {
        "append": b"a", "appends": b"e", "setitem": b"s", "setitems": b"u", "tuple": b"t",
        "tuple1": b"\x85", "tuple2": b"\x86", "tuple3": b"\x87", "list": b"l", "dict": b"d",
        "pop": b"0", "pop-mark": b"1", "dup": b"2", "put": b"p0\n", "binput": b"q\0",
        "long-binput": b"r\0\0\0\0", "memoize": b"\x94", "stop": b"", "additems": b"\x90",
        "frozenset": b"\x91",
    }.items():  # fmt: skip
        yield Case(f"underflow-{name}", pickled(opcode), at_byte=True)
    for name, opcodes in {
        "memo-get-absent": b"h\x07",
        "memo-long-get-absent": b"j\xff\xff\xff\xff",
        "memo-text-get-absent": b"g7\n",
        "appends-without-mark": b"]K\x01e",
        "setitems-without-mark": b"}K\x01K\x01u",
        "setitems-with-odd-count": b"}(K\x01u",
        "append-to-dict": b"}K\x01a",
        "append-to-number": b"K\x01K\x01a",
        "appends-to-number": b"K\x01(K\x01e",
        "setitem-on-list": b"]K\x01K\x01s",
        "append-across-mark": b"](K\x01a",
        "mark-as-result": b"(",
        "opcode-255": b"\xff",
        "opcode-0": b"\0",
        "opcode-99": b"\x99",
        "int-in-words": b"Iseven\n",
        "line-without-newline": b"I7",
    }.items():
        yield Case(name, pickled(opcodes), at_byte=True)
    for name, opcodes in {
        "unhashable-key": b"}]K\x01s",
        "none-as-key": b"}NK\x01s",
        "pop-of-mark": b"}(0",
        "dup-left-on-stack": b"}2",
        "duplicate-keys": b"}" + item("segments", b"]") + item("segments", b"K\x07"),
        "append-to-segments-after-use": b"}" + text("segments") + b"]\x94s" + b"h\0K\x01a0",
    }.items():
        yield Case(name, pickled(opcodes), "either")


def _protocols_and_ends() -> Iterator[Case]:
    small = small_snapshot()
    whole = pickle.dumps(small, protocol=4)
    yield Case("protocol-0", pickle.dumps(small, protocol=0), "either")
    yield Case("protocol-1", pickle.dumps(small, protocol=1), "either")
    yield Case("protocol-6", b"\x80\x06" + whole[2:], words=("protocol",))
    yield Case("protocol-255", b"\x80\xff" + whole[2:], words=("protocol",))
    yield Case("zeros-after-stop", whole + b"\0\0\0", "accepted")
    yield Case("many-zeros-after-stop", whole + b"\0" * 65_536, "accepted")
    yield Case("garbage-after-stop", whole + b"garbage", "either")
    yield Case("second-pickle-after-stop", whole + whole, "either")


def deflated(prefix: bytes, filler: bytes, length: int) -> bytes:
    """Raw deflate of `prefix` and then `length` bytes of one filler byte, in no time."""
    piece = 16 * 2**20
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = stream.compress(prefix) + stream.flush(zlib.Z_FULL_FLUSH)
    # After a full flush the stream is at a byte boundary with no history: pieces can be repeated.
    repeated = stream.compress(filler * piece) + stream.flush(zlib.Z_FULL_FLUSH)
    return start + repeated * (length // piece) + b"\x03\0"


def _bomb(prefix: bytes, filler: bytes) -> bytes:
    length = 10 * GIB
    header = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    trailer = struct.pack("<II", 0, (len(prefix) + length) % 2**32)
    return header + deflated(prefix, filler, length) + trailer


def _gzips() -> Iterator[Case]:
    whole = pickle.dumps(small_snapshot())
    packed = gzip.compress(whole)
    yield Case("gzip-cut", packed[: len(packed) // 2], words=(TRUNCATED,))
    yield Case("gzip-cut-in-header", packed[:5])
    yield Case("gzip-cut-in-trailer", packed[:-3], "either")
    yield Case("gzip-wrong-checksum", packed[:-8] + b"\0\0\0\0" + packed[-4:], "either")
    yield Case("gzip-garbled", packed[:40] + bytes(b ^ 0x55 for b in packed[40:60]) + packed[60:],
               "either")  # fmt: skip
    yield Case("gzip-with-trailing-garbage", packed + b"garbage", "either")
    yield Case("gzip-with-trailing-zeros", packed + b"\0" * 512, "either")
    yield Case(
        "gzip-of-two-members", gzip.compress(whole[:99]) + gzip.compress(whole[99:]), "either"
    )
    yield Case("gzip-in-gzip", gzip.compress(packed), "either")
    nested = whole
    for _ in range(200):
        nested = gzip.compress(nested)
    yield Case("gzip-in-gzip-two-hundred-times", nested, "either")
    yield Case("gzip-of-nothing", gzip.compress(b""))
    yield Case("gzip-of-text", gzip.compress(b"a letter"))
    yield Case("gzip-bomb-of-zeros", _bomb(b"", b"\0"))
    yield Case("gzip-bomb-after-stop", _bomb(whole, b"\0"), "either")
    yield Case("gzip-bomb-of-values", _bomb(b"\x80\x04(", b"N"))
    yield Case("gzip-bomb-of-lists", _bomb(b"\x80\x04", b"]"))
    in_string = b"\x80\x04}" + text("extra") + b"\x8e" + struct.pack("<Q", 9 * GIB)
    yield Case("gzip-bomb-in-a-string", _bomb(in_string, b"\0"))
    yield Case("gzip-bomb-of-json", _bomb(b'{"segments": [', b" "))


def _pages_and_json() -> Iterator[Case]:
    small = small_snapshot()
    whole = page(pickle.dumps(small))
    good = json.dumps(small).encode()
    yield Case("page-without-payload", b"<!DOCTYPE html>\n<html><body>Hello</body></html>\n")
    yield Case("page-with-broken-base64", whole.replace(b'"base64": "', b'"base64": "*!*'))
    yield Case("page-with-empty-base64", page(b"")[:300] + b'[{"name": "x", "base64": ""}]')
    yield Case("page-cut-in-base64", whole[: len(whole) // 2])
    yield Case("page-of-a-letter", page(b"Dear reader, this is no snapshot."))
    yield Case("page-in-page", page(whole), "either")

    yield Case("json-cut", good[: len(good) // 2], words=(TRUNCATED + "|EOF|expected",))
    yield Case("json-broken", good.replace(b":", b";", 1))
    yield Case("json-with-trailing-garbage", good + b" x")
    yield Case("json-trailing-comma", b'{"segments": [],}')
    yield Case(
        "json-duplicate-keys", b'{"segments": 7, "segments": [], "device_traces": []}', "either"
    )
    yield Case("json-utf16", good.decode().encode("utf-16"), "either")
    yield Case("json-bom", b"\xef\xbb\xbf" + good, "either")
    yield Case("json-invalid-utf8", good.replace(b"forward", b"for\xffard"), "either")
    for name, number in {
        "nan": b"NaN", "infinity": b"Infinity", "1e400": b"1e400", "minus-1e400": b"-1e400",
        "float": b"1000.0", "fraction": b"0.5", "huge": b"9" * 5000, "minus-zero": b"-0",
        "leading-zero": b"01000", "hex": b"0x10",
    }.items():  # fmt: skip
        spoiled = good.replace(b'"size": 1000', b'"size": ' + number)
        assert spoiled != good
        yield Case(f"json-number-{name}", spoiled, "either")
    deep = 1_000_000
    yield Case("json-deep-lists", b"[" * deep)
    yield Case("json-deep-lists-closed", b"[" * deep + b"]" * deep, "either")
    yield Case("json-deep-dicts", b'{"a":' * deep)
    closed = b'{"segments": [], "device_traces": [], "extra": ' + b"[" * deep + b"]" * deep + b"}"
    yield Case("json-deep-unknown-key", closed, "either")


# Zips and bundles


def zip_of(files: dict[str, bytes]) -> bytes:
    """A zip with the files given."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _zip_bomb(name: str, declared: int) -> bytes:
    """A zip whose files inflate to almost 4 GiB of zeros and declare the given sizes."""
    body = deflated(b"", b"\0", 4 * GIB - 16 * 2**20)
    local, central = b"", b""
    for file in (name, "elements.db"):
        fields = (20, 0, 8, 0, 0x21, 0, len(body), declared, len(file), 0)
        offset = len(local)
        local += b"PK\x03\x04" + struct.pack("<HHHHHIIIHH", *fields) + file.encode() + body
        central += b"PK\x01\x02" + struct.pack("<HHHHHHIIIHHHHHII", 20, *fields, 0, 0, 0, 0, offset)
        central += file.encode()
    end = struct.pack("<HHHHIIH", 0, 0, 2, 2, len(central), len(local), 0)
    return local + central + b"PK\x05\x06" + end


def _zips() -> Iterator[Case]:
    letter = {"letter.txt": b"Dear reader"}
    yield Case("zip-of-a-letter", zip_of(letter))
    yield Case("zip-of-nothing", zip_of({}))
    yield Case("zip-cut", zip_of(letter)[:40])
    yield Case("zip-only-magic", b"PK\x03\x04")
    yield Case("zip-of-empty-parts", zip_of({"allocations.json": b"", "elements.db": b""}))
    yield Case("zip-without-database", zip_of({"allocations.json": b"{}"}))
    yield Case("zip-without-allocations", zip_of({"elements.db": b"SQLite format 3\0"}))
    yield Case("zip-that-climbs-out", zip_of({"../PWNED": b"x", "/nonexistent/PWNED": b"x"}))
    yield Case("zip-of-a-snapshot", zip_of({"a.pickle": pickle.dumps(small_snapshot())}), "either")
    yield Case("zip-bomb", _zip_bomb("allocations.json", 4 * GIB - 16 * 2**20))
    yield Case("zip-bomb-that-lies", _zip_bomb("allocations.json", 100))


def bundle_cases(bundle: bytes) -> list[Case]:
    """Spoils a good bundle of the product in every part, knowing only its two files."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    document, database = json.loads(files["allocations.json"]), files["elements.db"]

    def with_json(name: str, value: Any, verdict: Verdict = "either", *words: str) -> Case:
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        return Case(name, zip_of({**files, "allocations.json": content}), verdict, words)

    def with_database(name: str, content: bytes, verdict: Verdict = "either") -> Case:
        return Case(name, zip_of({**files, "elements.db": content}), verdict)

    text_of = files["allocations.json"]
    made = [
        with_json("bundle-json-empty", b"", "refused"),
        with_json("bundle-json-cut", text_of[: len(text_of) // 2], "refused"),
        with_json("bundle-json-random", random.Random(5).randbytes(999), "refused"),
        with_json("bundle-json-null", None, "refused"),
        with_json("bundle-json-number", 7, "refused"),
        with_json("bundle-json-list", [1, 2, 3], "refused"),
        with_json("bundle-json-deep", b"[" * 1_000_000, "refused"),
        with_database("bundle-database-empty", b""),
        with_database("bundle-database-cut", database[: len(database) // 2]),
        with_database("bundle-database-random", random.Random(6).randbytes(len(database))),
        with_database("bundle-database-header-only", database[:100]),
        with_database("bundle-database-garbled", _garbled(database)),
        Case("bundle-cut", bundle[: len(bundle) // 2]),
        Case("bundle-garbled", _garbled(bundle), "either"),
        Case("bundle-without-database", zip_of({"allocations.json": text_of})),
        Case("bundle-without-allocations", zip_of({"elements.db": database})),
    ]
    if isinstance(document, dict):
        versions = [key for key in document if "version" in key]
        newer = {**document, **dict.fromkeys(versions, 1_000_000)}
        assert versions, "a bundle states the version of its format"
        made.append(with_json("bundle-of-a-newer-version", newer, "refused", "version|newer"))
    for number, (_, spoiled) in enumerate(_mutations(document, limit=400)):
        made.append(with_json(f"bundle-json-lie-{number}", spoiled))
    made.extend(with_database(name, content) for name, content in _database_lies(database))
    return made


def _garbled(content: bytes) -> bytes:
    spoiled = bytearray(content)
    for position in random.Random(7).sample(range(len(spoiled)), max(1, len(spoiled) // 50)):
        spoiled[position] ^= 0xA5
    return bytes(spoiled)


def _database_lies(database: bytes) -> Iterator[tuple[str, bytes]]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "elements.db"

        def altered(statement: str) -> bytes | None:
            path.write_bytes(database)
            connection = sqlite3.connect(path)
            try:
                with connection:
                    connection.execute(statement)
            except sqlite3.Error:
                return None  # a view, a key or a constraint forbids this lie
            finally:
                connection.close()
            return path.read_bytes()

        path.write_bytes(database)
        connection = sqlite3.connect(path)
        tables = connection.execute("select name, type from sqlite_master").fetchall()
        statements = {}
        for table, kind in tables:
            if kind not in ("table", "view") or table.startswith("sqlite_"):
                continue
            statements[f"bundle-database-without-{table}"] = f'drop {kind} "{table}"'
            if kind == "table":
                statements[f"bundle-{table}-halved"] = f'delete from "{table}" where rowid % 2'
                for column in connection.execute(f'pragma table_info("{table}")').fetchall():
                    for lie, value in {"text": "'lie'", "null": "null", "minus": "-7"}.items():
                        name = f"bundle-{table}-{column[1]}-{lie}"
                        statements[name] = f'update "{table}" set "{column[1]}" = {value}'
        connection.close()
        for name, statement in statements.items():
            content = altered(statement)
            if content is not None:
                yield name, content


# Wrong types and missing keys

WRONG_VALUES: dict[str, Any] = {
    "none": None,
    "number": 7,
    "minus": -1,
    "huge": 2**70,
    "float": 1.5,
    "true": True,
    "text": "text",
    "list": [],
    "nested-list": [[], [[]]],
    "dict": {},
    "bytes": b"bytes",
}
# Without these a reader may refuse; without any other key it must not.
NEEDED_KEYS = frozenset({"action", "addr", "size", "address", "state", "blocks"})


@lru_cache(maxsize=1)
def mutated_cases() -> tuple[Case, ...]:
    """The small snapshot with each value in turn replaced by every wrong type, or left out."""
    made = []
    for path, spoiled in _mutations(small_snapshot()):
        key = path.rsplit(".", 1)[-1].partition("=")[0]
        is_optional = path.endswith("=gone") and key not in NEEDED_KEYS
        verdict: Verdict = "accepted" if is_optional else "either"
        made.append(Case(f"pickle-{path}", pickle.dumps(spoiled), verdict))
        if "=bytes" not in path:
            made.append(Case(f"json-{path}", json.dumps(spoiled).encode(), verdict))
    return tuple(made)


def _mutations(document: Any, limit: int | None = None) -> Iterator[tuple[str, Any]]:
    """Yields the document with one value replaced or removed at a time, and where that was."""
    # A copy through JSON parts the frame lists that events share, so that one lie is one lie.
    plain = json.loads(json.dumps(document))
    paths = list(_paths(plain))
    if limit is not None:
        paths = paths[:: max(1, len(paths) * (len(WRONG_VALUES) + 1) // limit)]
    for path in paths:
        name = ".".join(str(step) for step in path)
        for label, value in WRONG_VALUES.items():
            if limit is None or label != "bytes":
                yield f"{name}={label}", _replaced(plain, path, value)
        yield f"{name}=gone", _removed(plain, path)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    steps: Any = ()
    if isinstance(value, dict):
        steps = value.items()
    elif isinstance(value, list):
        steps = list(enumerate(value))[:3]
    for step, child in steps:
        yield (*path, step)
        yield from _paths(child, (*path, step))


def _parent(document: Any, path: Sequence[Any]) -> tuple[Any, Any]:
    whole = copy.deepcopy(document)
    parent = whole
    for step in path[:-1]:
        parent = parent[step]
    return whole, parent


def _replaced(document: Any, path: Sequence[Any], value: Any) -> Any:
    whole, parent = _parent(document, path)
    parent[path[-1]] = value
    return whole


def _removed(document: Any, path: Sequence[Any]) -> Any:
    whole, parent = _parent(document, path)
    del parent[path[-1]]
    return whole
