"""Small snapshots that name something large again and again: a text, a list, a stack.

A pickle does so in two bytes. Every case would take gigabytes, or minutes, if it were taken at its
word.
"""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from typing import Any

_BASE = 0x7F00_0000_0000
_TEXT = "x" * 1_000_000
_SEGMENT_BYTES = 2 << 20


def _snapshot(trace: list[Any], **more: Any) -> dict[str, Any]:
    return {"segments": [], "device_traces": [trace], **more}


def _event(action: str, number: int, frames: list[Any], size: int = 512) -> dict[str, Any]:
    return {"action": action, "addr": _BASE + number * size, "size": size, "frames": frames}


def _frames() -> dict[str, Any]:
    """Frames whose names are all the same megabyte."""
    line = {"name": _TEXT, "filename": _TEXT}
    return _snapshot([_event("alloc", n, [{**line, "line": n}]) for n in range(3000)])


def _marks() -> dict[str, Any]:
    mark = {"name": _TEXT, "stage": "START", "device": 0}
    return _snapshot([], external_annotations=[{**mark, "time_us": n} for n in range(20_000)])


def _segment_types() -> dict[str, Any]:
    segment = {"device": 0, "total_size": 512, "blocks": [], "segment_type": _TEXT}
    return {"segments": [{**segment, "address": 512 * n} for n in range(20_000)]}


def _settings() -> dict[str, Any]:
    return _snapshot([], allocator_settings={f"k{n}": _TEXT for n in range(5000)})


def _nested_settings() -> dict[str, Any]:
    """Settings whose dotted names have megabytes each."""
    settings: dict[str, Any] = {f"k{n}": 1 for n in range(50_000)}
    for _ in range(12):
        settings = {_TEXT: settings}
    return _snapshot([], allocator_settings=settings)


def _entries() -> dict[str, Any]:
    numbers = list(range(90_000))
    return _snapshot([], **{f"k{n}": numbers for n in range(3000)})


def _releases(frames: list[Any]) -> dict[str, Any]:
    """Each release is looked up in its stack: was it `empty_cache`?"""
    trace = []
    for n in range(20_000):
        trace += [_event("segment_free", n, frames, _SEGMENT_BYTES), _event("alloc", n, [])]
    return _snapshot(trace)


def _devices() -> dict[str, Any]:
    segment = {"total_size": 512, "blocks": []}
    return {"segments": [{**segment, "device": n, "address": 512 * n} for n in range(60_000)]}


def _traces() -> dict[str, Any]:
    trace = [_event("alloc", 0, [])] * 1000
    return {"segments": [], "device_traces": [trace] * 1000}


def _blocks() -> dict[str, Any]:
    """A list of what are no blocks, for each of many segments."""
    blocks = [{"size": 8}] * 1000
    segment = {"device": 0, "total_size": 512, "blocks": blocks}
    return {"segments": [{**segment, "address": 512 * n} for n in range(50_000)]}


# What makes the snapshot, and words of the sentence that refuses it; None if it is read.
COPIES: dict[str, tuple[Callable[[], dict[str, Any]], str | None]] = {
    "frames of a megabyte": (_frames, "repeat long texts over and over"),
    "marks of a megabyte": (_marks, "repeat long texts over and over"),
    "segment types of a megabyte": (_segment_types, "repeat long texts over and over"),
    "settings of a megabyte": (_settings, None),
    "settings with names of a megabyte": (_nested_settings, None),
    "entries of one long list": (_entries, None),
    "releases with a long name": (
        lambda: _releases([{"name": _TEXT, "filename": "a", "line": 1}]),
        None,
    ),
    "releases with a long stack": (
        lambda: _releases([{"name": "f", "filename": "a", "line": n} for n in range(50_000)]),
        None,
    ),
    "many devices": (_devices, "more than 1024 devices"),
    "one trace for many devices": (_traces, "list the same events over and over"),
    "one list of blocks": (_blocks, "list the same blocks over and over"),
}


def content(name: str) -> bytes:
    """The file of a case."""
    return pickle.dumps(COPIES[name][0](), protocol=4)


def bomb() -> bytes:
    """A gzip stream of 3 MB that unpacks to 600 MB."""
    return gzip.compress(b"\x80\x04(" + b"N" * (600 << 20), 1)
