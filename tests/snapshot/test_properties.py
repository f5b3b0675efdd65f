"""Any trace, with any segments, in any encoding, reads as the slow, obvious model says.

The traces have few addresses, so that every pairing of allocations and frees comes up soon, and
the files are written in every way that a producer might: shared and unshared lists, dicts filled
one item or all items at a time, with and without a memo. `SNAPVIEWER_EXAMPLES` sets how many.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support import hostile, oracle, program
from support.patience import PATIENT
from support.random_snapshots import Plain, snapshots

# Encodings

_PurePickler: Any = pickle._Pickler  # type: ignore[attr-defined,unused-ignore]


class OneByOne(_PurePickler):  # type: ignore[misc]
    """Fills containers with APPEND and SETITEM only."""

    def _batch_appends(self, items: Any, *_: Any) -> None:
        for value in items:
            self.save(value)
            self.write(pickle.APPEND)

    def _batch_setitems(self, items: Any, *_: Any) -> None:
        for key, value in items:
            self.save(key)
            self.save(value)
            self.write(pickle.SETITEM)


class AllAtOnce(_PurePickler):  # type: ignore[misc]
    """Puts a whole list or dict on the stack before it fills the container, as C++ does."""

    def _batch_appends(self, items: Any, *_: Any) -> None:
        self.write(pickle.MARK)
        for value in items:
            self.save(value)
        self.write(pickle.APPENDS)

    def _batch_setitems(self, items: Any, *_: Any) -> None:
        self.write(pickle.MARK)
        for key, value in items:
            self.save(key)
            self.save(value)
        self.write(pickle.SETITEMS)


class OldContainers(_PurePickler):  # type: ignore[misc]
    """Makes containers with LIST and DICT, and memoizes them only when they are full."""

    dispatch: ClassVar[dict[type, Any]] = dict(_PurePickler.dispatch)

    def _save_list(self, values: list[Any]) -> None:
        self.write(pickle.MARK)
        for value in values:
            self.save(value)
        self.write(pickle.LIST)
        self.memoize(values)

    def _save_dict(self, items: dict[Any, Any]) -> None:
        self.write(pickle.MARK)
        for key, value in items.items():
            self.save(key)
            self.save(value)
        self.write(pickle.DICT)
        self.memoize(items)

    dispatch[list] = _save_list
    dispatch[dict] = _save_dict


def _with(pickler: Any, *, is_fast: bool = False) -> Callable[[Any, int], bytes]:
    def dumps(plain: Any, protocol: int) -> bytes:
        buffer = io.BytesIO()
        writer = pickler(buffer, protocol=protocol)
        writer.fast = is_fast
        writer.dump(plain)
        return buffer.getvalue()

    return dumps


PICKLERS: dict[str, Callable[[Any, int], bytes]] = {
    "as CPython does": lambda plain, protocol: pickle.dumps(plain, protocol=protocol),
    "optimized": lambda plain, protocol: pickletools.optimize(pickle.dumps(plain, protocol)),
    "one by one": _with(OneByOne),
    "all at once": _with(AllAtOnce),
    "old containers": _with(OldContainers),
    "without memo": _with(pickle.Pickler, is_fast=True),
}


@st.composite
def encoders(draw: st.DrawFn) -> Callable[[Any], bytes]:
    """A way to write a snapshot to a file."""
    way = draw(st.sampled_from([*PICKLERS, *PICKLERS, "json", "indented json"]))
    protocol = draw(st.sampled_from([2, 3, 4, 5]))
    packing = draw(st.sampled_from(["plain", "plain", "plain", "gzip", "page"]))
    is_ascii = draw(st.booleans())

    def encode(plain: Any) -> bytes:
        if "json" in way:
            indent = 2 if way == "indented json" else None
            content = json.dumps(plain, ensure_ascii=is_ascii, indent=indent).encode()
        else:
            content = PICKLERS[way](plain, protocol)
            if packing == "page":
                return hostile.page(content)
        return gzip.compress(content) if packing == "gzip" else content

    encode.__qualname__ = f"{way}, protocol {protocol}, {packing}"
    return encode


# Properties


def _assert_as_modelled(path: Path, content: bytes) -> None:
    """Loads the path and compares every answer with the model's for the content."""
    import snapviewer

    models = {model.device: model for model in oracle.describe(oracle.plain_from_bytes(content))}

    snapshot = snapviewer.load(path)

    devices = {device.index: device for device in snapshot.devices}
    assert sorted(devices) == sorted(models)
    for index, model in models.items():
        device = devices[index]
        ours = oracle.product_allocations(snapshot, device)
        assert ours == oracle.comparable(model.allocations)
        assert oracle.product_answers(device) == oracle.expected_answers(model)
        if model.has_segments:
            assert device.reconciles == model.reconciles
        if model.has_segments and model.reserved_lowest_bytes >= 0:
            assert device.reserved_peak_bytes == model.reserved_peak_bytes


@PATIENT
@given(plain=snapshots(), encode=encoders())
def test_any_snapshot_reads_as_the_model_says(
    plain: Plain, encode: Callable[[Any], bytes], tmp_path: Path
) -> None:
    content = encode(plain)
    path = tmp_path / "any"
    path.write_bytes(content)

    _assert_as_modelled(path, content)


@settings(PATIENT, max_examples=50)
@given(plain=snapshots(), encode=encoders())
def test_a_bare_list_of_segments_reads_as_the_model_says(
    plain: Plain, encode: Callable[[Any], bytes], tmp_path: Path
) -> None:
    assume(plain.get("segments"))
    content = encode(plain["segments"])
    path = tmp_path / "segments"
    path.write_bytes(content)

    _assert_as_modelled(path, content)


@pytest.mark.parametrize("output", ["out.zip", "out"])
@settings(PATIENT, max_examples=6)
@given(plain=snapshots())
def test_a_bundle_of_any_snapshot_reads_as_the_model_says(
    output: str, plain: Plain, tmp_path: Path
) -> None:
    content = pickle.dumps(plain)
    source, bundle = tmp_path / "any.pickle", tmp_path / output
    source.write_bytes(content)

    ran = program.run("convert", "-i", source, "-o", bundle, "--force")

    assert ran.code == 0, ran.err
    _assert_as_modelled(bundle, content)


# The model itself


@settings(PATIENT, max_examples=50)
@given(plain=snapshots(), encode=encoders())
def test_the_model_says_the_same_of_every_encoding(
    plain: Plain, encode: Callable[[Any], bytes]
) -> None:
    assert oracle.describe(oracle.plain_from_bytes(encode(plain))) == oracle.describe(plain)


@settings(PATIENT, max_examples=50)
@given(plain=snapshots())
def test_the_totals_of_the_model_are_the_sizes_of_what_is_live(plain: Plain) -> None:
    for model in oracle.describe(plain):
        live = [
            sum(a.size for a in model.allocations if a.alloc_event <= event < a.free_event)
            for event in range(-1, model.events)
        ]

        assert [model.initial_bytes, *model.totals] == live
        assert model.final_bytes == live[-1]
        # The state before the first event counts; where both are as high, an event is the peak.
        assert model.peak_bytes == max(live)
        assert model.peak_event == (live.index(max(live), 1) - 1 if max(live) in live[1:] else -1)
