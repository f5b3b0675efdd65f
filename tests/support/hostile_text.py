"""One file of each kind that the product reads, in which every text tries to paint the terminal.

Each text has escape sequences, a carriage return, NUL, C1 controls, marks that turn the direction
of writing, invisible characters, and markup; one text of each file is very long.
"""

from __future__ import annotations

import copy
import json
import pickle
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support.events_sample import rich_log
from support.hostile import small_snapshot
from support.pt2_writer import program, write_pt2
from support.pth_writer import Call, G, Obj, T, write_legacy, write_pth, write_safetensors
from support.torchscript_writer import module, write_torchscript

WORD = (
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred\rback\x00nul\x08\x9b2J\x7f\u202eesrever\u2066\u200b\u2028"
    "</td><script>alert(1)</script>![x](http://example.invalid)<!--]]>&amp;"
)
LONG = WORD + "A" * 300_000

# What a file's name can have; the system allows all but `/` and NUL.
FILE_NAME = "\x1b[31mred\rback\x9b2J\u202eesrever\udcff"


def is_harmless(character: str) -> bool:
    """Whether a character only shows itself, in a terminal as in a browser."""
    return character in "\n\t" or unicodedata.category(character) not in (
        "Cc",
        "Cf",
        "Cs",
        "Zl",
        "Zp",
    )


def harmful(text: str) -> list[str]:
    """The harmful characters of a text, each with some text around it."""
    return [
        text[max(0, at - 40) : at + 40]
        for at, character in enumerate(text)
        if not character.isascii() or not character.isprintable()
        if not is_harmless(character)
    ]


def renamed(value: Any, word: str = WORD) -> Any:
    """A document with hostile text after each of its texts; keys stay."""
    if isinstance(value, dict):
        return {key: renamed(inner, word) for key, inner in value.items()}
    if isinstance(value, list):
        return [renamed(inner, word) for inner in value]
    return value + word if isinstance(value, str) else value


def hostile_snapshot(long: str = LONG) -> dict[str, Any]:
    """A snapshot with unknown actions and fields, and stacks, marks and settings in its words."""
    base = 0x7F00_0000_0000
    frame = {"name": WORD, "filename": WORD, "line": 7}
    stack = [frame, {"name": long, "filename": "a", "line": 1}]
    common = {"stream": 0, "time_us": 1_700_000_000_000_000, "frames": [frame]}
    more = {"category": WORD, "compile_context": WORD, "user_metadata": WORD, "frames": stack}
    trace = [
        {"action": "alloc", "addr": base, "size": 1000, **common, **more, f"field{WORD}": 1},
        {"action": "alloc", "addr": base + 1024, "size": 10**7, **common, f"f{long}": WORD},
        *({"action": f"{n}{WORD}", "addr": 1, "size": 1, **common} for n in range(1000)),
        {"action": f"a{long}", "addr": 1, "size": 1, **common},
        {"action": "free_completed", "addr": base + 8192, "size": 5, **common},
        {"action": "oom", "size": 4096, "device_free": 512, **common},
    ]
    annotation = {"stage": "START", "device": 0, "time_us": 1_700_000_000_000_000}
    segment = {"device": 0, "address": base, "total_size": 2**24, "stream": 0, "frames": stack}
    block = {"address": base, "size": 1024, "requested_size": 3, "state": WORD, "frames": stack}
    return {
        "segments": [{**segment, "segment_type": WORD, "blocks": [block], f"s{WORD}": WORD}],
        "device_traces": [trace],
        "allocator_settings": {f"setting{WORD}": WORD, "long": long},
        "external_annotations": [{**annotation, "name": WORD}, {**annotation, "name": long}],
        f"key{WORD}": {WORD: WORD},
    }


def _small(path: Path) -> None:
    path.write_bytes(pickle.dumps(small_snapshot()))


def _pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps(hostile_snapshot(), protocol=4))


def _json(path: Path) -> None:
    path.write_text(json.dumps(hostile_snapshot()))


def _bundle(path: Path) -> None:
    from snapviewer import _core

    source = path.with_name("source.pickle")
    _pickled(source)
    _core.convert(source, path)
    source.unlink()


def _module_state() -> dict[str, Any]:
    weight = T("float32", (2, 3), is_parameter=True)
    state = {WORD: weight, LONG: T("float32", (4,)), "note": WORD, "long": LONG, f"n{WORD}": 1.5}
    inner = Obj(G(f"m{WORD}", f"C{WORD}"), {"_parameters": {WORD: weight}, "_modules": {}})
    return {**state, "inner": inner, "call": Call(G(f"x{WORD}", f"y{WORD}"), (WORD,))}


def _zip(path: Path) -> None:
    write_pth(path, _module_state(), extra_members={f"extra{FILE_NAME}": b"1"})


def _legacy(path: Path) -> None:
    write_legacy(path, _module_state())


def _safetensors(path: Path) -> None:
    tensors = {f"a.{WORD}": T("float32", (2, 3)), f"b.{LONG}": T("float32", (2,))}
    write_safetensors(path, tensors, {WORD: WORD, "long": LONG})


def _torchscript(path: Path) -> None:
    text = json.dumps(WORD)
    code = module(f"a = {text}\nops.prim.RaiseException({text}, a)\nreturn torch.{'f' * 999}(x, a)")
    state = {"training": False, f"w{WORD}": T("float32", (2, 3)), "long": LONG, "t": WORD}
    write_torchscript(path, code, state=state, more={f"code/{FILE_NAME}.py": WORD.encode()})


def _exported(path: Path) -> None:
    made = renamed(program())
    made["graph_module"]["graph"]["nodes"][0]["target"] = LONG
    write_pt2(path, made)


def _good_exported(path: Path) -> None:
    """A program that is followed, with hostile names."""
    made = program()
    node = made["graph_module"]["graph"]["nodes"][0]
    node["metadata"]["nn_module_stack"] = f"L__self__,,a.{WORD};L__self__fc,{WORD},b.{LONG}"
    other = {**copy.deepcopy(node), "target": f"torch.ops.aten.{WORD}.default"}
    made["graph_module"]["graph"]["nodes"].append(other)
    write_pt2(path, made)


def _events(path: Path) -> None:
    entries = [*renamed(rich_log()), *rich_log(), {"event": LONG, "peak_memory": 7, WORD: WORD}]
    entries += [{"event": f"{WORD}_loaded", "incremental_memory": 5, "model_name": LONG}]
    path.write_text(json.dumps(entries))


MAKERS: dict[str, Callable[[Path], None]] = {
    "snap.pickle": _pickled,
    "snap.json": _json,
    "snap.zip": _bundle,
    "check.pth": _zip,
    "legacy.pth": _legacy,
    "check.safetensors": _safetensors,
    "script.pt": _torchscript,
    "strange.pt2": _exported,
    "exported.pt2": _good_exported,
    "events.json": _events,
    "small.pickle": _small,
}

_SNAPSHOT = ("snap.pickle", "snap.json", "snap.zip")
_CHECKPOINT = ("check.pth", "legacy.pth", "check.safetensors", "script.pt")
_MODEL = (*_CHECKPOINT, "strange.pt2", "exported.pt2")
# For each command: the files, its options, and the suffixes of the outputs that it writes. FILE is
# the file again, OTHER a small snapshot.
COMMANDS: tuple[tuple[tuple[str, ...], str, tuple[str, ...], tuple[str, ...]], ...] = (
    (_SNAPSHOT, "info", (), (".txt", ".json")),
    (_SNAPSHOT, "report", (), (".txt", ".json")),
    (_SNAPSHOT, "report", ("--top", "0", "--event", "end"), ()),
    (("snap.pickle", "snap.json"), "segments", (), (".txt", ".json")),
    (
        _SNAPSHOT,
        "tree",
        ("--top", "0", "--event", "end"),
        (".txt", ".json", ".html", ".svg", ".folded", ".speedscope.json"),
    ),
    (_SNAPSHOT, "tree", ("--frames", "all", "--callers", "--measure", "time"), (".txt",)),
    (_SNAPSHOT, "diff", ("FILE",), (".txt", ".json")),
    (_SNAPSHOT, "diff", ("OTHER", "--event", "end"), (".txt", ".json", ".md", ".html")),
    (
        _SNAPSHOT,
        "diff",
        ("OTHER", "--by", "stack", "--top", "0"),
        (".txt", ".json", ".md", ".html"),
    ),
    (_SNAPSHOT, "render", ("--color", "category"), (".png",)),
    (_SNAPSHOT, "query", ("select * from actions",), (".txt", ".json")),
    (_SNAPSHOT, "query", ("select * from frames",), ()),
    (("snap.pickle", "snap.json"), "convert", (), (".zip",)),
    (_MODEL, "pth", ("--stats",), (".txt", ".json")),
    (_CHECKPOINT, "pth", ("--compare", "FILE"), (".txt",)),
    (_MODEL, "model", ("--full",), (".txt", ".json", ".html", ".md", ".pdf", ".xml")),
    (_MODEL, "explore", (), (".txt", ".json", ".html", ".svg")),
    (_CHECKPOINT, "explore", ("--compare", "FILE"), (".txt", ".json")),
    (("events.json",), "events", ("--lang", "en"), (".txt", ".json", ".md", ".html", ".pdf")),
    (("events.json",), "events", ("--lang", "zh", "--baseline", "FILE"), (".txt", ".md")),
    # Of the wrong kind: what is refused is refused in clean words.
    (("events.json", "check.pth"), "info", (), ()),
    (("snap.pickle", "events.json"), "pth", (), ()),
    (("snap.pickle", "events.json"), "model", (), ()),
    (("snap.pickle", "check.pth"), "events", (), ()),
)


def runs() -> Iterator[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """Every file with every command: (file, command, options, suffixes of outputs)."""
    for files, command, options, suffixes in COMMANDS:
        for file in files:
            if command not in ("render", "convert"):  # these only write files
                yield file, command, options, ()
            if suffixes:
                yield file, command, options, suffixes
