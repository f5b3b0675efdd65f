"""Checkpoints that would run code, lie about their tensors, or grow when they are read.

Each is small on disk and made here. What would run, if anything ran, makes a file called `canary`.
Files that lie are in hostile_archives.py (zip) and hostile_streams.py (all others).
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from support.hostile import Case, pickled, text
from support.pth_writer import Call, G, Obj, S, T, pickle_of, zip_of

COMMAND = "touch canary"
SYSTEM = b"cos\nsystem\n"
ARGUMENTS = text(COMMAND) + b"\x85"


@dataclass(frozen=True, slots=True)
class Code:
    """A checkpoint that would import something when torch loads it, and what that is."""

    name: str
    content: bytes
    imports: tuple[str, ...] = ("os.system",)


def zipped(data: bytes, members: dict[str, bytes] | None = None) -> bytes:
    """A checkpoint with this pickle and further members."""
    named = [(f"x/{name}", data) for name, data in (members or {}).items()]
    return zip_of([("x/data.pkl", data), *named, ("x/version", b"3\n")])


def of(value: object, *, protocol: int = 2, deflate: bool = False) -> bytes:
    """A checkpoint of a value."""
    data, storages = pickle_of(value, protocol=protocol)
    members = [("x/data.pkl", data)]
    members += [(f"x/data/{storage.key}", storage.data) for storage in storages]
    return zip_of([*members, ("x/version", b"3\n")], deflate=deflate)


# Code


def code() -> Iterator[Code]:
    """One for each way to make something run."""
    exploit = pickled(SYSTEM, ARGUMENTS, b"R")
    for name, opcodes in _calls().items():
        yield Code(name, zipped(pickled(opcodes)))
    for name, module, imported in (
        ("dotted-name", "torch", "serialization.os.system"),
        ("dotted-allowed-name", "torch._utils", "_rebuild_tensor_v2.__globals__"),
        ("not-the-allowed-module", "Torch._utils", "_rebuild_tensor_v2"),
        ("old-name-of-eval", "builtins", "eval"),
    ):
        made = text(module) + text(imported) + b"\x93" + ARGUMENTS + b"R"
        yield Code(name, zipped(pickled(made)), (f"{module}.{imported}",))
    old = b"\x80\x02c__builtin__\neval\n" + ARGUMENTS + b"R."
    yield Code("python-2-name", zipped(old), ("builtins.eval",))
    oldest = SYSTEM + b"(V" + COMMAND.encode() + b"\ntR."
    yield Code("oldest-protocol", zipped(oldest))
    for name, member, hidden in (
        ("pickle", "extra", exploit),
        ("in-a-folder", "a/b/c.txt", exploit),
        ("old-pickle", "extra", oldest),
        ("constants", "constants.pkl", exploit),
        ("storage", "data/7", exploit),
    ):
        yield Code(f"hidden-{name}", zipped(pickled(b"N"), {member: hidden}))
    call = Call(G("os", "system"), (COMMAND,))
    storage = Call(G("torch._utils", "_rebuild_tensor_v2"), (call, 0, (1,), (1,), False, {}))
    yield Code("as-a-storage", of({"x": storage}))
    typed = Call(G("torch._tensor", "_rebuild_from_type_v2"), (call, G("a", "B"), (), {}))
    yield Code("as-a-type", of([typed]), ("a.B", "os.system"))
    yield Code("as-a-state", of(Obj(G("a", "B"), {"x": call})), ("a.B", "os.system"))
    hooked = Call(G("torch._utils", "_rebuild_parameter"), (T("float32", (1,)), True, call))
    yield Code("as-hooks", of(hooked))


def _calls() -> dict[str, bytes]:
    """Opcodes that call `os.system`."""
    stacked = text("os") + text("system") + b"\x93"
    framed = SYSTEM + ARGUMENTS + b"R"
    return {
        "reduce": SYSTEM + ARGUMENTS + b"R",
        "stack-global": stacked + ARGUMENTS + b"R",
        "newobj": SYSTEM + ARGUMENTS + b"\x81",
        "newobj-ex": SYSTEM + ARGUMENTS + b"}\x92",
        "obj": b"(" + SYSTEM + text(COMMAND) + b"o",
        "inst": b"(" + text(COMMAND) + b"ios\nsystem\n",
        "build": SYSTEM + ARGUMENTS + b"R}" + text("x") + b"Nsb",
        "as-a-key": b"}" + SYSTEM + ARGUMENTS + b"RNs",
        "in-a-set": b"\x8f(" + SYSTEM + ARGUMENTS + b"R\x90",
        "as-a-persistent-id": SYSTEM + ARGUMENTS + b"RQ",
        "thrown-away": SYSTEM + ARGUMENTS + b"R0N",
        "name-from-the-memo": text("os") + b"\x940" + text("system") + b"\x940h\0h\1\x93"
        + ARGUMENTS + b"R",
        "memo-written-twice": text("x") + b"q\x000" + text("os") + b"q\x000h\0" + text("system")
        + b"\x93" + ARGUMENTS + b"R",
        "in-a-frame": b"\x95" + struct.pack("<Q", len(framed) + 1) + framed,
        "only-imported": SYSTEM,
    }  # fmt: skip


# Tensors that lie


def cases() -> tuple[Case, ...]:
    """Every checkpoint that is no archive's fault, with unique names."""
    made = (*_pickles(), *_rebuilds(), *_storages(), *_growth())
    assert len({case.name for case in made}) == len(made)
    return made


def _pickles() -> Iterator[Case]:
    yield Case("pickle-empty", zipped(b""))
    yield Case("pickle-without-stop", zipped(b"\x80\x02}"))
    yield Case("pickle-of-protocol-9", zipped(b"\x80\x09N."))
    yield Case("pickle-of-text", zipped(b"hello"))
    yield Case("pickle-underflow", zipped(pickled(b"R")))
    yield Case("pickle-unknown-memo", zipped(pickled(b"h\x07")))
    yield Case("pickle-memo-of-four-billion", zipped(pickled(b"Nr\xff\xff\xff\xff")), "either")
    yield Case("pickle-huge-text", zipped(b"\x80\x02X\xff\xff\xff\x7fabc."))
    yield Case("pickle-huge-bytes", zipped(b"\x80\x04\x8e" + b"\xff" * 8 + b"."))
    yield Case("pickle-not-utf-8", zipped(pickled(text(b"\xff\xfe"))), "either")
    yield Case("pickle-lone-surrogate", zipped(pickled(text(b"\xed\xa0\x80"))), "either")
    yield Case("pickle-with-a-second-one", zipped(pickled(b"N") + pickled(b"N")), "either")
    yield Case("pickle-extension-code", zipped(pickled(b"\x82\x01")), "either")
    yield Case("pickle-of-buffers", zipped(b"\x80\x05\x97\x98."), "either")
    controls = {"\x1b[31m\r\n\0": T("float32", (1,)), "\u202e": 1, "": T("float32", (1,))}
    yield Case("control-characters", of(controls), "accepted")
    twice = b"}(" + text("a") + b"K\1" + text("a") + b"K\2u"
    yield Case("same-key-twice", zipped(pickled(twice)), "either")
    yield Case("list-as-a-key", zipped(pickled(b"}]Ns")), "either")
    yield Case("itself-as-a-key", zipped(pickled(b"}q\0h\0h\0s")), "either")
    yield Case("tuple-of-itself", zipped(pickled(b"]q\0h\0\x85q\1ah\1")), "accepted")
    deep = {
        "lists": b"]" * 10**6 + b"a" * (10**6 - 1),
        "marks": b"(" * 10**6 + b"t" * 10**6,
        "tuples": b"N" + b"\x85" * 10**6,
        "dicts": b"}" + (text("a") + b"}") * 10**6 + b"s" * 10**6,
    }
    for name, opcodes in deep.items():
        yield Case(f"million-deep-{name}", zipped(pickled(opcodes)), "either")
    calls = (SYSTEM + b"(") * 10**5 + b"N" + b"tR" * 10**5
    yield Case("hundred-thousand-calls-deep", zipped(pickled(calls)), "either")


def _rebuild(*arguments: Any, function: str = "_rebuild_tensor_v2") -> bytes:
    """A checkpoint with a good tensor of 16 numbers, and a call with its storage and these."""
    storage = S("0", bytes(64))
    good = T("float32", (16,), storage=storage)
    return of({"good": good, "bad": Call(G("torch._utils", function), (storage, *arguments))})


_ODD: dict[str, Any] = {
    "negative": -1,
    "large": 2**62,
    "of-64-bits": 2**64 - 1,
    "enormous": 2**1000,
    "text": "1",
    "float": 1.5,
    "nothing": None,
    "list": [1],
}


def _rebuilds() -> Iterator[Case]:
    """Arguments of every wrong kind in every place."""
    good: tuple[Any, ...] = (0, (2,), (1,), False, {})
    for what, odd in _ODD.items():
        for place, name in ((0, "offset"), (3, "requires-grad"), (4, "hooks")):
            arguments = (*good[:place], odd, *good[place + 1 :])
            yield Case(f"{name}-{what}", _rebuild(*arguments), "either")
        for place, name in ((1, "shape"), (2, "stride")):
            for form, inside in (("", (odd,)), ("-bare", odd), ("-twice", (odd, odd))):
                arguments = (*good[:place], inside, *good[place + 1 :])
                yield Case(f"{name}-{what}{form}", _rebuild(*arguments), "either")
    full = tuple([2**32] * 2)
    yield Case("numel-of-2-to-the-64", _rebuild(0, full, (0, 0), False, {}), "either")
    yield Case("numel-of-2-to-the-63", _rebuild(0, (2**31, 2**32), (0, 0), False, {}), "either")
    yield Case("too-many-dimensions", _rebuild(0, (1,) * 10**5, (1,) * 10**5, False, {}), "either")
    yield Case("zero-times-huge", _rebuild(0, (0, 2**62, 2**62), (1, 1, 1), False, {}), "either")
    yield Case("past-the-end", _rebuild(15, (2,), (1,), False, {}), "either")
    yield Case("far-past-the-end", _rebuild(2**61, (2,), (2**61,), False, {}), "either")
    yield Case("overlapping-itself", _rebuild(0, (2**40, 8), (0, 1), False, {}), "either")
    yield Case("no-arguments", _rebuild(), "either")
    yield Case("too-many-arguments", _rebuild(*good, *range(1000)), "either")
    for function in (
        "_rebuild_tensor", "_rebuild_tensor_v3", "_rebuild_qtensor", "_rebuild_sparse_tensor",
        "_rebuild_nested_tensor", "_rebuild_parameter", "_rebuild_parameter_with_state",
        "_rebuild_meta_tensor_no_storage", "_rebuild_wrapper_subclass",
        "_rebuild_device_tensor_from_numpy", "_rebuild_device_tensor_from_cpu_tensor",
    ):  # fmt: skip
        yield Case(f"wrong-arguments-of{function}", _rebuild(*good, function=function), "either")
        nothing = Call(G("torch._utils", function), ())
        yield Case(f"no-arguments-of{function}", of([nothing]), "either")
        inner: Any = T("float32", (1,))
        for _ in range(100):
            inner = Call(G("torch._utils", function), (inner, True, {}))
        yield Case(f"deep{function}", of({"x": inner}), "either")
    # The opcodes of a call that is its own argument.
    itself = b"]q\0ctorch._utils\n_rebuild_parameter\nh\0\x85Rq\1ah\1"
    yield Case("parameter-of-itself", zipped(pickled(itself)), "either")
    shape = b"ctorch._utils\n_rebuild_tensor_v2\n(NK\0]q\0h\0ah\0\x89}tR"
    yield Case("shape-of-itself", zipped(pickled(shape)), "either")


def _storages() -> Iterator[Case]:
    """Persistent ids of every wrong kind."""
    kind = G("torch", "FloatStorage")
    ids: dict[str, Any] = {
        "no-tuple": b"N",
        "empty": (),
        "short": ("storage", kind),
        "other": ("module", kind, "a", "b"),
        "unknown": ("blob", kind, "0", "cpu", 4),
        "missing": ("storage", kind, "nowhere", "cpu", 4),
        "outside": ("storage", kind, "../version", "cpu", 4),
        "number": ("storage", kind, 0, "cpu", 4),
        "no-type": ("storage", None, "0", "cpu", 4),
        "other-type": ("storage", G("os", "system"), "0", "cpu", 4),
        "larger": ("storage", kind, "0", "cpu", 10**9),
        "smaller": ("storage", kind, "0", "cpu", 1),
        "negative": ("storage", kind, "0", "cpu", -4),
        "huge": ("storage", kind, "0", "cpu", 2**63),
        "enormous": ("storage", kind, "0", "cpu", 2**2000),
        "nowhere": ("storage", kind, "0", None, 4),
        "odd-place": ("storage", kind, "0", "\x1b[2J", 4),
        "long": ("storage", kind, "0", "cpu", 4, *range(99)),
    }
    member = {"data/0": bytes(16)}
    for name, value in ids.items():
        opcodes = value if isinstance(value, bytes) else pickle_of(value)[0][2:-1]
        tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + opcodes + b"QK\0K\4\x85K\1\x85\x89}tR"
        yield Case(f"storage-id-{name}", zipped(pickled(tensor), member), "either")
        yield Case(f"storage-alone-{name}", zipped(pickled(opcodes + b"Q"), member), "either")
    short = T("float64", (2,), storage=S("0", bytes(13)))
    yield Case("storage-of-odd-length", of([short]), "either")
    shared = S("0", bytes(16))
    two = [T("float32", (4,), storage=shared), T("int64", (2,), storage=shared)]
    yield Case("storage-of-two-types", of(two), "accepted")


# Small files that grow


def _growth() -> Iterator[Case]:
    laughs: Any = T("float32", (1,))
    for _ in range(100):
        laughs = [laughs, laughs]
    yield Case("billion-laughs", of(laughs), "either")
    wide: Any = [T("float32", (1,)) for _ in range(10)]
    for _ in range(9):
        wide = {str(number): wide for number in range(10)}
    yield Case("billion-tensors", of(wide), "either")
    doubled: Any = ("x",)
    for _ in range(64):
        doubled = (doubled, doubled)
    yield Case("billion-tuples", of(doubled), "either")
    shared = S("0", bytes(64))
    many = {"k" * 10**6: [T("float32", (1,), storage=shared) for _ in range(10**4)]}
    yield Case("long-key-above-many-tensors", of(many), "either")
    rebuild = pickle_of(T("float32", (1,), storage=shared))[0][2:-1]
    deep = b"}" + (text("t") + rebuild + b"s" + text("d") + b"}") * 30_000 + b"s" * 30_000
    yield Case("tensors-at-every-depth", zipped(pickled(deep), {"data/0": bytes(64)}), "either")
    views = S("0", bytes(8 * 10**6))
    comb = [
        T("uint8", (4 * 10**6 - step,), storage=views, offset=step % 2, stride=(2,))
        for step in range(20_000)
    ]
    yield Case("many-views-in-steps", of(comb, deflate=True), "either")
    square = T("uint8", (10**6, 10**6), storage=views, stride=(3, 1))
    yield Case("view-that-overlaps-itself", of([square], deflate=True), "either")
    digits = b"\x8b" + struct.pack("<i", 4 * 10**6) + b"\x7f" * (4 * 10**6)
    yield Case("integer-of-four-megabytes", zipped(pickled(digits)), "either")
    yield Case("text-of-ten-megabytes", of({"a" * 10**7: "\0" * 10**7}), "accepted")
    yield Case("million-items", zipped(pickle.dumps(dict.fromkeys(range(10**6)), 2)), "accepted")
    dtype = Call(G("numpy", "dtype"), ("f8", False, True))
    made = (G("numpy", "ndarray"), (0,), b"b")
    state = (1, (2**40, 2**40), dtype, False, b"")
    array = Call(G("numpy._core.multiarray", "_reconstruct"), made, state)
    yield Case("array-of-2-to-the-83", of({"x": array}), "either")
