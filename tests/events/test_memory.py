"""The numbers of a recording are those of the device, or of this process."""

from __future__ import annotations

import json
import mmap
import os
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from snapviewer.events import EventRecorder
from snapviewer.events import memory as memories
from snapviewer.events.memory import CudaMemory, ProcessMemory, Reading, memory_source
from support import recorded_runs
from support.fake_memory import events_of

MB = 2**20


class FakeDevice:
    """What `torch.device` makes of a name."""

    index: int | None

    def __init__(self, name: object) -> None:
        if isinstance(name, int):
            self.type, self.index = "cuda", name
            return
        if not isinstance(name, str) or not name.startswith(("cuda", "cpu")):
            raise RuntimeError("Expected one of cpu, cuda, … device type")
        self.type, _, index = name.partition(":")
        self.index = int(index) if index else None


def fake_torch(*, is_available: bool = True, **changes: Any) -> SimpleNamespace:
    """The parts of PyTorch that are used, with two devices of which 1 is the current."""
    stats = {
        "allocated_bytes.all.current": 100,
        "allocated_bytes.all.peak": 900,
        "reserved_bytes.all.peak": 2 * MB,
    }
    cuda: dict[str, Any] = {
        "is_available": lambda: is_available,
        "device_count": lambda: 2,
        "current_device": lambda: 1,
        "memory_stats": lambda index: stats if index == 1 else {},
        "mem_get_info": lambda index: (6 * MB, 10 * MB),
        "get_device_properties": lambda index: SimpleNamespace(
            name=f"Card {index}", total_memory=24 * 2**30
        ),
        "reset_peak_memory_stats": lambda index: None,
        "synchronize": lambda index: None,
    }
    cuda |= changes
    return SimpleNamespace(device=FakeDevice, cuda=SimpleNamespace(**cuda), __version__="2.9.9+cu1")


def test_cuda_is_read_if_there_is_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch())
    path = tmp_path / "log.jsonl"

    with EventRecorder(path):
        pass

    first = json.loads(path.read_text().splitlines()[0])
    assert first["memory_source"] == "cuda"
    assert (first["device_name"], first["device_index"]) == ("Card 1", 1)
    assert first["device_total_memory"] == 24 * 2**30
    assert first["torch_version"] == "2.9.9+cu1"
    assert (first["memory_allocated"], first["peak_memory"]) == (100, 900)
    assert (first["cuda_runtime_peak"], first["pytorch_runtime_peak"]) == (4.0, 2.0)


@pytest.mark.parametrize(
    ("device", "index"), [(None, 1), ("cuda", 1), ("cuda:0", 0), (0, 0), (1, 1)]
)
def test_a_device_is_named_as_pytorch_does(
    monkeypatch: pytest.MonkeyPatch, device: object, index: int
) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch())

    assert memory_source("cuda", device).facts()["device_index"] == index


@pytest.mark.parametrize("device", ["cpu", "cuda:2", 7, "tpu"])
def test_a_device_that_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch, device: object
) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch())

    with pytest.raises(ValueError, match="no CUDA device"):
        memory_source("auto", device)


def test_a_driver_that_hides_how_full_a_device_is_is_no_obstacle() -> None:
    def refuse(index: int) -> None:
        raise RuntimeError("operation not supported")

    source = CudaMemory(fake_torch(mem_get_info=refuse), 1)

    assert source.read() == Reading(100, 900, 2 * MB, None)


def test_before_anything_was_allocated_a_device_holds_nothing() -> None:
    assert CudaMemory(fake_torch(), 0).read() == Reading(0, 0, 0, 4 * MB)


@pytest.mark.parametrize(
    ("torch", "reason"),
    [(None, "not installed"), (fake_torch(is_available=False), "sees no CUDA device")],
)
def test_without_cuda_the_process_is_read_and_asking_for_cuda_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch: object, reason: str
) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch)
    log = tmp_path / "log.jsonl"
    log.write_text("an earlier log\n")

    assert memory_source("auto").name == "process"
    with pytest.raises(RuntimeError, match=f"{reason}.*memory='process'"):
        EventRecorder(log, memory="cuda").__enter__()
    assert log.read_text() == "an earlier log\n"


def test_a_kind_of_memory_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="'gpu'"):
        memory_source("gpu")  # type: ignore[arg-type]


# The process


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_psutil_and_the_system_report_the_same_of_a_process() -> None:
    psutil = pytest.importorskip("psutil")

    own, other = memories.read_proc(), memories.psutil_reader(psutil)()

    assert own.level_bytes == pytest.approx(other.level_bytes, rel=0.1)
    assert other.peak_bytes >= other.level_bytes


@pytest.mark.skipif(sys.platform == "win32", reason="needs the module `resource`")
def test_where_nothing_else_is_known_the_peak_stands_for_the_level() -> None:
    held = bytearray(b"x") * (16 * MB)

    reading = memories.read_usage()

    assert reading.level_bytes == reading.peak_bytes > len(held)
    facts = ProcessMemory(memories.read_usage).facts()
    assert "psutil" in str(facts["note"]), "the log says so"
    assert not ProcessMemory(memories.read_usage).reset_peak()


def pages(size_bytes: int) -> mmap.mmap:
    """New memory: what Python frees, it may keep and reuse."""
    memory = mmap.mmap(-1, size_bytes)
    for start in range(0, size_bytes, mmap.PAGESIZE):
        memory[start] = 1
    return memory


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_what_a_process_holds_is_seen_at_once_and_its_peak_afterwards() -> None:
    source = ProcessMemory(memories.read_proc)
    before = source.read()

    held = pages(64 * MB)
    during = source.read()
    held.close()
    after = source.read()

    assert during.level_bytes - before.level_bytes > 60 * MB
    assert after.level_bytes < during.level_bytes - 60 * MB
    assert after.peak_bytes > after.level_bytes + 55 * MB


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="needs Linux")
def test_the_peak_of_a_process_begins_anew() -> None:
    source = ProcessMemory(memories.read_proc)
    pages(64 * MB).close()
    before = source.read()

    assert source.reset_peak()

    assert source.read().peak_bytes < before.peak_bytes


@pytest.mark.parametrize("status", [b"", b"Name:\tx\n", b"VmRSS:\tmuch kB\n"])
def test_a_system_that_reports_nothing_is_not_believed(status: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - either sentence will do
        memories.reading_of_status(status)


# Real runs


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory may be compressed")
def test_a_run_that_leaks_shows_it_in_every_step(tmp_path: Path) -> None:
    path = tmp_path / "leak.jsonl"

    recorded_runs.record("leak", path)

    levels = [event["incremental_memory"] for event in events_of(path)[1:-1]]
    rises = [after - before for before, after in pairwise(levels)]
    assert rises == pytest.approx([recorded_runs.LEAK_BYTES] * 9, rel=0.1)


@pytest.mark.torch
def test_a_training_loop_is_recorded(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "memory_events.jsonl"

    for _ in range(3):  # a system short of memory drops pages of torch's libraries meanwhile
        path.unlink(missing_ok=True)
        recorded_runs.record("training", path)
        events = events_of(path)
        if min(event["incremental_memory"] for event in (events[2], events[7])) > 0:
            break

    assert [event["event"] for event in events] == [
        *("init", "mlp_load_start", "mlp_loaded", "model_loaded", "forward_start", "forward_end"),
        *("before_generate", *(f"step_{number}" for number in range(10)), "inference_end"),
    ]
    assert events[0]["memory_source"] == ("cuda" if torch.cuda.is_available() else "process")
    assert events[0]["torch_version"] == torch.__version__
    assert events[2]["incremental_memory"] > 30 * MB, "the weights"
    peaks = [event["peak_memory"] for event in events]
    assert peaks == sorted(peaks)
    assert all(event["memory_allocated"] <= event["peak_memory"] for event in events)
    steps = events[7:17]
    assert steps[0]["incremental_memory"] > 3 * 30 * MB, "the gradients and two moments"
    assert all(step["duration"] > 0 for step in steps)
