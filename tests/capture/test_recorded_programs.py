"""Programs on the null device: PyTorch's own figures are the oracle."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import snapviewer
from snapviewer import _core
from snapviewer.capture.ranks import rank_environment
from support.recorded import Recorded, recorded
from support.torch_marks import torch_marks

pytestmark = [
    *torch_marks(),
    pytest.mark.slow,
    pytest.mark.skipif(_core.null_device() is None, reason="no null device on this system"),
]


@dataclass(frozen=True)
class Case:
    program: str
    conf: str = ""
    devices: int = 1
    rank: tuple[int, int] | None = None


SIZE = 256  # of recorded_programs

PROGRAMS = [
    "sgd",
    "adamw_loop",
    "adamw_foreach",
    "adamw_fused",
    "adafactor",
    "grad_scaler",
    "autocast",
    "attention_flash",
    "attention_efficient",
    "attention_math",
    "attention_cudnn",
    "checkpointing",
    "convolution",
    "batch_norm",
    "lstm",
    "embedding",
    "mixture_of_experts",
    "cuda_graph",
    "memory_pool",
    "streams",
    "empty_cache",
    "pinned",
    "ragged",
    "out_of_memory",
]
CASES = [
    *map(Case, PROGRAMS),
    Case("two_devices", devices=2),
    Case("compiled"),
    Case("data_parallel", rank=(0, 4)),
    Case("fully_sharded", rank=(3, 8)),
    Case("adamw_foreach", "expandable_segments:True"),
    Case("out_of_memory", "expandable_segments:True"),
    Case("ragged", "expandable_segments:True"),
    Case("ragged", "max_split_size_mb:21"),
    Case("ragged", "roundup_power2_divisions:4"),
    Case("ragged", "garbage_collection_threshold:0.5"),
    Case("pinned", "pinned_use_cuda_host_register:True"),
]


def record(case: Case) -> Recorded:
    variables, devices = rank_environment(*case.rank) if case.rank else ({}, case.devices)
    gpu = "h100" if case.program == "attention_cudnn" else "a100-40gb"
    return recorded(case.program, conf=case.conf, gpu=gpu, devices=devices, variables=variables)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.program}-{case.conf}".strip("-"))
def test_the_peaks_that_we_find_are_the_ones_that_pytorch_counted(case: Case) -> None:
    run = record(case)

    snapshot = snapviewer.load(run.path)

    assert run.devices, "the program allocated nothing"
    assert snapshot.warnings == ()
    for counted in run.devices:
        device = snapshot.devices[counted["device"]]
        assert device.reconciles
        assert device.peak_bytes == counted["peak_requested_bytes"]
        assert device.reserved_peak_bytes == counted["peak_reserved_bytes"]
        assert device.oom_events == counted["ooms"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.program}-{case.conf}".strip("-"))
def test_the_replay_puts_every_allocation_where_pytorch_put_it(case: Case) -> None:
    run = record(case)

    for counted in run.devices:
        device = snapviewer.load(run.path).devices[counted["device"]]
        allocator, peaks = device.allocator, device.curves.peaks
        assert allocator.contradictions == {}
        assert allocator.as_recorded == allocator.placements > 0
        assert peaks["allocated"] == counted["peak_allocated_bytes"]
        assert peaks["reserved"] == counted["peak_reserved_bytes"]


def test_the_allocators_settings_are_in_the_recording() -> None:
    run = recorded("ragged", conf="expandable_segments:True")

    actions = {event.action for event in snapviewer.load(run.path).devices[0].event_rows(0, 200)}

    assert "segment_map" in actions
    assert "segment_alloc" not in actions


def test_two_runs_have_the_same_events() -> None:
    source = 'import sys\nsys.argv = ["", "autocast"]\nimport recorded_programs\n'
    source += "recorded_programs.autocast()\n"
    runs = [recorded(source + comment) for comment in ("# once\n", "# twice\n")]

    first, second = (
        [(event.action, event.size, event.address) for event in rows]
        for rows in (snapviewer.load(run.path).devices[0].event_rows(0, 10_000) for run in runs)
    )

    assert first == second


def test_an_out_of_memory_leaves_a_snapshot_from_before_anything_was_freed() -> None:
    run = recorded("out_of_memory")

    oom, end = run.results

    assert (oom["cause"], end["cause"]) == ("oom", "end")
    assert "snap_step0_oom" in oom["file"]
    device = snapviewer.load(oom["file"]).devices[0]
    assert device.oom_at[-1] >= int(device.events) - 2
    assert oom["oom"]["requested_bytes"] > 1 << 30


def test_what_a_value_decided_is_reported_with_its_line() -> None:
    run = recorded("mixture_of_experts")

    (read,) = [read for read in run.facts["reads"] if read["kind"] == "size"]

    assert read["expression"] == "(chosen == number).nonzero()"
    assert read["count"] == 4
    assert read["stack"][0]["name"] == "mixture_of_experts"


def test_guesses_of_cudnn_are_counted() -> None:
    guessed = {guess["what"]: guess["calls"] for guess in recorded("convolution").facts["guessed"]}

    assert guessed["workspace of a convolution, forward"] == 2  # PyTorch remembers the answer


def test_a_workspace_of_cudnn_is_allocated_at_each_call() -> None:
    without, with_it = (
        recorded("convolution", workspace_bytes=size).devices[0]["peak_allocated_bytes"]
        for size in (0, 100 << 20)
    )

    assert without < 30 << 20
    assert 100 << 20 < with_it < without + (101 << 20)


def test_a_shard_is_a_part_of_the_model() -> None:
    """Two linear layers of each of four blocks; a gradient and two moments beside each weight."""
    run = recorded("fully_sharded", devices=8, variables=rank_environment(3, 8)[0])

    assert run.facts["rank"] == 3
    assert run.path.name == "snap_rank3.pickle"
    alive = [
        int(event.size)
        for event in snapviewer.load(run.path).devices[0].event_rows(0, 10_000)
        if event.action == "alloc" and "phase=optimizer" in (event.user_metadata or "")
    ]
    whole = SIZE * SIZE * 4 * 4  # bytes of a layer's weight
    assert whole // 8 in alive
    assert whole not in alive


def test_a_compiled_module_has_the_name_of_the_module() -> None:
    events = snapviewer.load(recorded("compiled").path).devices[0].event_rows(0, 10_000)

    modules = {mark for event in events if "module=" in (mark := event.user_metadata or "")}

    assert modules
    assert not any("_orig_mod" in each for each in modules)


def test_marks_name_the_step_the_phase_and_the_module() -> None:
    events = snapviewer.load(recorded("sgd").path).devices[0].event_rows(0, 10_000)

    marks = {event.user_metadata for event in events}

    assert "step=1 phase=forward module=2" in marks
    assert "step=1 phase=backward" in marks
    assert "step=0 phase=optimizer" in marks
