"""A profiler's trace beside a snapshot: recorded in one run, and written by strangers."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snapviewer
from snapviewer import _core
from snapviewer.report.snapshot import perfetto
from snapviewer.snapshot.profile import ProfilerTrace, clock_fit, open_trace
from support import program
from support.recorded import recorded

RUN = """
import torch
from pathlib import Path
from torch.profiler import ProfilerActivity, profile, record_function

model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU()).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with profile(activities=[ProfilerActivity.CPU]) as profiler:
    for step in range(3):
        with record_function(f"## step {step} ##"):
            with record_function("forward"):
                loss = model(torch.randn(64, 512, device="cuda")).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
profiler.export_chrome_trace(str(Path(__file__).with_name("trace.json.gz")))
"""


@pytest.fixture(scope="module")
def run() -> Any:
    pytest.importorskip("torch")
    return recorded(RUN)


@pytest.mark.torch
def test_annotations_of_one_run_lie_on_each_other(run: Any) -> None:
    snapshot = snapviewer.load(run.path)

    trace = open_trace(run.path.with_name("trace.json.gz"), snapshot)

    shared = {name for name, *_ in snapshot.annotations}
    assert {"## step 0 ##", "forward"} <= shared
    assert trace.fit.shared >= 12, "starts and ends of three steps and three forwards"
    # Both clocks have microseconds; the profiler writes its mark just before or after.
    assert abs(trace.fit.offset_us) <= 50
    assert trace.fit.spread_us <= 500
    assert not trace.fit.is_far
    assert "clocks agree to" in trace.fit.sentence()


@pytest.mark.torch
def test_an_allocation_has_the_operator_that_made_it(run: Any) -> None:
    snapshot = snapviewer.load(run.path)
    device = snapshot.devices[0]
    clock = device.clock()
    assert clock is not None
    trace = open_trace(run.path.with_name("trace.json.gz"), snapshot)

    named = {}
    for which in np.flatnonzero(device.allocations.alloc_event >= 0).tolist():
        event = int(device.allocations.alloc_event[which])
        operator, kernel = trace.at(clock.start_us + clock.at(event))
        assert kernel is None, "the null device runs none"
        named[which] = operator

    operators = [name for name in named.values() if name is not None]
    assert len(operators) >= 10
    assert {"aten::empty", "aten::empty_strided", "aten::addmm"} & set(operators)
    spans = trace.spans(device, clock)
    assert {"annotations", "operators"} <= set(spans)
    for lane in {span.lane for span in spans["operators"][:2000]}:
        ends = [(one.start_us, one.end_us) for one in spans["operators"] if one.lane == lane]
        if lane < 7:  # the last lane has all that are deeper
            assert all(end <= start for (_, end), (start, _) in pairwise(ends))


def _written(path: Path, events: list[Any], **top: Any) -> Path:
    text = json.dumps({"traceEvents": events, **top}).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def _event(cat: str, name: str, start: float, long: float) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": start, "dur": long, "pid": 1, "tid": 2}


def test_clocks_that_are_apart_are_told(tmp_path: Path) -> None:
    events = [_event("user_annotation", "step", 1000.0 * n, 500.0) for n in range(3)]
    profile = _core.read_profile(_written(tmp_path / "t.json", events))
    annotations = [
        (name, stage, None, 7000 + 1000 * n + (500 if stage == "END" else 0))
        for n in range(3)
        for name, stage in (("step", "START"), ("step", "END"))
    ]

    fit = clock_fit(annotations, profile)

    assert (fit.shared, fit.offset_us, fit.spread_us) == (6, 7000.0, 0.0)
    assert fit.is_far
    assert clock_fit([], profile).shared == 0
    assert "not known" in clock_fit([], profile).sentence()


def test_the_innermost_of_what_ran_is_named(tmp_path: Path) -> None:
    events = [
        _event("cpu_op", "outer", 10, 50),
        _event("cpu_op", "inner\x1b[31m", 20, 5),
        _event("kernel", "sgemm", 40, 10),
        _event("python_function", "ignored", 0, 99),
    ]
    profile = _core.read_profile(_written(tmp_path / "t.json.gz", events))
    trace = ProfilerTrace(profile, clock_fit([], profile))

    assert [trace.at(time) for time in (5, 22, 30, 45, 99)] == [
        (None, None),
        ("inner?[31m", None),
        ("outer", None),
        ("outer", "sgemm"),
        (None, None),
    ]
    assert (len(profile), profile.skipped) == (3, 1)
    with pytest.raises(IndexError):
        profile.text(profile.names)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"not json",
        b'{"traceEvents": [' + b"[" * 100_000,
        b'{"traceEvents": [{"ts": 1}',
        gzip.compress(b"{}", mtime=0),
        gzip.compress(b'{"traceEvents": []}', mtime=0)[:-6],
    ],
)
def test_what_is_no_trace_is_refused_in_a_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    path.write_bytes(content)

    with pytest.raises(snapviewer.SnapshotError) as refused:
        _core.read_profile(path)

    assert len(str(refused.value).splitlines()) == 1


def test_odd_events_are_left_out(tmp_path: Path) -> None:
    odd: list[Any] = [
        {"cat": "cpu_op"},
        {"cat": 3, "name": "a", "ts": 1, "dur": 1},
        {"cat": "cpu_op", "name": ["a"], "ts": {}, "dur": None},
        {"cat": "cpu_op", "name": "text", "ts": "12.5", "dur": "2"},
    ]

    profile = _core.read_profile(_written(tmp_path / "t.json", odd, baseTimeNanoseconds=100))

    assert (len(profile), profile.skipped) == (1, 3)
    assert profile.start_ns.tolist() == [12_600]


def _perfetto(path: Path) -> Any:
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = protos.Trace()
    trace.ParseFromString(path.read_bytes())
    return trace


@pytest.mark.torch
def test_perfettos_counters_are_our_curves(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    binary, text = tmp_path / "memory.perfetto-trace", tmp_path / "memory.json"

    ran = program.run_here(capsys, "render", run.path, "-o", binary, "-o", text)

    assert ran.code == 0, ran.err
    snapshot = snapviewer.load(run.path)
    device = snapshot.devices[0]
    memory = perfetto.memory_of(snapshot, device)
    assert (np.diff(memory.times_ns) >= 0).all()
    trace = _perfetto(binary)
    tracks = {
        one.track_descriptor.uuid: one.track_descriptor
        for one in trace.packet
        if one.HasField("track_descriptor")
    }
    found: dict[str, list[tuple[int, int]]] = {}
    depth: dict[int, int] = {}
    names = set()
    for packet in trace.packet:
        event = packet.track_event
        if event.type == event.TYPE_COUNTER:
            name = tracks[event.track_uuid].name
            found.setdefault(name, []).append((packet.timestamp, event.counter_value))
        elif event.type in (event.TYPE_SLICE_BEGIN, event.TYPE_SLICE_END):
            step = 1 if event.type == event.TYPE_SLICE_BEGIN else -1
            depth[event.track_uuid] = depth.get(event.track_uuid, 0) + step
            assert depth[event.track_uuid] >= 0, "an end without a beginning"
            names |= {event.name} if event.name else set()
    assert set(depth.values()) == {0}
    assert "forward" in names
    _assert_curves(device, memory.times_ns, found)
    counters: dict[str, list[tuple[int, int]]] = {}
    for one in json.loads(text.read_text())["traceEvents"]:
        if one["ph"] == "C":
            sample = (round(one["ts"] * 1000), one["args"]["bytes"])
            counters.setdefault(one["name"], []).append(sample)
    assert {name: [size for _, size in of] for name, of in counters.items()} == {
        name: [size for _, size in of] for name, of in found.items()
    }


def _assert_curves(device: Any, times: Any, found: dict[str, list[tuple[int, int]]]) -> None:
    """Whoever reads the counters at the time of an event gets the curve after it."""
    assert set(found) == {"requested", "allocated", "active", "reserved"}
    for name, samples in found.items():
        at = np.array([time for time, _ in samples])
        values = np.array([size for _, size in samples])
        shown = values[np.searchsorted(at, times, side="right") - 1]
        assert (shown == getattr(device.curves, name)).all(), name
