"""A model that runs is timed in the order of its operations, and left as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer import CancelledError, SnapshotError
from snapviewer.model.graph import Graph, Node, TensorSpec, Unknown, Value
from snapviewer.model.inference.environment import read_environment
from snapviewer.model.inference.memory import Change, summarize
from snapviewer.model.inference.result import matched
from snapviewer.model.inference.timing import timing_of
from snapviewer.model.inference.trials import thread_counts
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.work import totals_of
from snapviewer.report.model.console import performance
from support.promised_model import made_up_roof
from support.torch_marks import torch_marks

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import Tensor, nn  # noqa: E402 (after the line that skips)
from torch.nn.modules import module as torch_module  # noqa: E402

from snapviewer.model.inference import (  # noqa: E402
    Profile,
    example_inputs,
    load_pt2,
    load_torchscript,
    loading,
    profile,
    running,
    torch_profiler,
)
from snapviewer.model.inference import result as result_module  # noqa: E402
from snapviewer.model.inference.dispatch import record_run, time_by_dispatch  # noqa: E402
from snapviewer.model.live import record  # noqa: E402
from snapviewer.model.live.inputs import Inputs  # noqa: E402
from snapviewer.model.torchscript import read_torchscript  # noqa: E402
from snapviewer.report.model.json import profile_json  # noqa: E402

# What torch says of its own ways to save.
pytestmark = torch_marks(":DeprecationWarning", ":FutureWarning")


ROOF = made_up_roof(peak=1e11, bandwidth=1e10)


class Small(nn.Module):  # type: ignore[misc] # its base is torch's
    """A convolution, a branch that is added, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.side = nn.Conv2d(4, 4, 1)
        self.head = nn.Linear(4 * 64, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = x + self.side(x)
        return self.head(x.flatten(1))


IMAGE = TensorSpec((2, 3, 8, 8), "float32")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTORCH_PROFILER_LEVEL", "OMP_NUM_THREADS", "PYTORCH_CUDA_MEMORY_FRACTION"):
        monkeypatch.delenv(name, raising=False)
    torch.manual_seed(8)


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by a microsecond whenever someone looks at it."""
    now = 0

    def look() -> int:
        nonlocal now
        now += 1000
        return now

    monkeypatch.setattr(running, "clock_ns", look)
    # The profiler of torch has a clock of its own.
    monkeypatch.setattr(torch_profiler, "time_by_profiler", time_by_dispatch)


def run(module: Any, inputs: Any = IMAGE, **options: Any) -> Profile:
    """A short profile."""
    usual: dict[str, Any] = {"repeats": 2, "budget_s": 0.01, "warmups": 2, "roof": ROOF}
    return profile(module, inputs, **usual | options)


# What is timed


def test_nodes_are_those_of_the_graph_in_the_order_in_which_they_run() -> None:
    module = Small()

    result = run(module)

    graph = record(module, IMAGE)
    assert [node.node.op for node in result.nodes] == [node.op for node in graph.nodes]
    assert [node.module for node in result.nodes] == [node.module for node in graph.nodes]
    assert [node.node.outputs for node in result.nodes] == [node.outputs for node in graph.nodes]
    assert result.nodes[0].module == "stem.0"
    assert all(node.time.runs == result.profiled.runs for node in result.nodes)


@pytest.mark.usefixtures("ticks")
def test_the_time_of_a_run_is_that_of_its_nodes_and_of_what_lies_between_them() -> None:
    result = run(Small(), budget_s=0.0)

    count = len(result.nodes)
    assert result.plain.median.value == pytest.approx(1e-6)
    assert result.in_nodes.median.value == pytest.approx(count * 1e-6)
    # The clock is looked at before the run, twice for each operation, and after the run.
    assert result.profiled.median.value == pytest.approx((2 * count + 1) * 1e-6)
    assert result.outside.median.value == pytest.approx((count + 1) * 1e-6)
    assert result.overhead.value == pytest.approx(2 * count * 100)
    assert result.accounted.value == pytest.approx(count * 100)
    assert sum(node.share.value or 0 for node in result.nodes) == pytest.approx(100)


@pytest.mark.usefixtures("ticks")
def test_the_work_of_a_node_over_its_time_is_its_rate() -> None:
    result = run(Small(), budget_s=0.0)

    convolution = result.nodes[0]
    assert convolution.macs.value == 2 * 4 * 64 * 27
    assert convolution.rate.value == pytest.approx((convolution.flops.value or 0) * 1e6)
    moved = (convolution.read.value or 0) + (convolution.written.value or 0)
    assert convolution.bandwidth.value == pytest.approx(moved * 1e6)
    assert convolution.intensity.value == pytest.approx((convolution.flops.value or 0) / moved)
    totals = totals_of(node.node for node in result.nodes)
    assert result.flops.value == totals.work.flops
    assert sum(node.flops.value or 0 for node in result.nodes) == totals.work.flops


def test_a_node_is_bound_by_the_side_of_the_ridge_on_which_it_lies() -> None:
    result = run(nn.Sequential(nn.Linear(512, 512), nn.ReLU()), TensorSpec((512, 512), "float32"))

    linear, relu = result.nodes
    assert (linear.bound, relu.bound) == ("compute-bound", "memory-bound")
    assert (linear.intensity.value or 0) > (ROOF.ridge.value or 0) > (relu.intensity.value or 0)


def test_every_number_has_its_unit_and_says_where_it_is_from() -> None:
    document = profile_json(run(Small()))

    json.dumps(document, allow_nan=False)
    units = {"time": "s", "rate": "FLOP/s", "bandwidth": "B/s", "intensity": "FLOP/B"}
    for node in document["nodes"]:
        for name, unit in units.items():
            number = node[name]["median"] if name == "time" else node[name]
            assert number["unit"] == unit
            assert number["source"]
            assert (number["value"] is None) == (number["status"] == "unavailable")


def test_an_operation_without_a_formula_is_timed_and_says_why_it_is_not_counted() -> None:
    class Odd(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return torch.special.airy_ai(x)

    result = run(Odd(), TensorSpec((4,), "float32"))

    uncounted = [node for node in result.nodes if node.flops.value is None]
    assert uncounted
    assert all(node.time.median.value is not None and node.flops.source for node in uncounted)
    assert "not counted" in result.flops.source


def test_the_first_runs_stand_apart() -> None:
    result = run(Small(), warmups=3)

    assert len(result.warmups) == 3
    assert 1 <= result.plain.runs <= 2


def test_the_lines_of_the_models_code_are_known() -> None:
    result = run(Small())

    added = next(node for node in result.nodes if node.node.op == "aten::add")
    assert Path(__file__).name in added.line
    assert added.line.endswith("in forward")


def test_a_module_of_torch_alone_has_no_lines_of_its_own() -> None:
    assert [node.line for node in run(nn.ReLU()).nodes] == [""]


def test_the_profiler_and_the_listener_see_the_same_operations() -> None:
    module = Small().eval()
    runner = running.Runner(module, Inputs((torch.ones(2, 3, 8, 8),), {}), "cpu", lambda: None)

    with torch.inference_mode():
        like = record_run(runner, has_lines=False)
        runs = [way(runner, like) for way in (torch_profiler.time_by_profiler, time_by_dispatch)]

    assert [run.is_like for run in runs] == [True, True]
    for one in runs:
        assert len(one.node_ns) == len(like.nodes)
        assert all(time_ns > 0 for time_ns in one.node_ns)


def test_where_the_profiler_fails_the_listener_takes_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("there is a profiler already")

    monkeypatch.setattr(torch_profiler, "run_profiled", fail)

    result = run(Small())

    assert result.profiled.runs == result.plain.runs
    assert result.nodes[0].time.median.source.startswith("clock, ")


# What is left as it was


class Breaks(nn.Module):  # type: ignore[misc] # its base is torch's
    """Runs a few times, and then no more."""

    def __init__(self, *, runs: int, error: type[BaseException]) -> None:
        super().__init__()
        self.left, self.error = runs, error

    def forward(self, x: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise self.error("broken")
        return x.relu()


@pytest.mark.parametrize(
    ("runs", "sentence"), [(0, "failed with these inputs"), (1, "but failed later")]
)
@pytest.mark.parametrize("error", [AttributeError, SystemExit])
def test_a_module_that_breaks_is_reported_in_a_sentence(
    runs: int, sentence: str, error: type[BaseException]
) -> None:
    with pytest.raises(SnapshotError, match=f"{sentence}.*broken"):
        run(Breaks(runs=runs, error=error))


def test_a_module_is_left_as_it_was() -> None:
    module = Small()
    module.stem.eval()
    modes = [part.training for part in module.modules()]
    state = {name: value.clone() for name, value in module.state_dict().items()}
    threads, random = torch.get_num_threads(), torch.random.get_rng_state()
    hooks = [len(torch_module._global_forward_hooks), len(torch_module._global_forward_pre_hooks)]

    run(module, threads=2)

    assert [part.training for part in module.modules()] == modes
    assert all(torch.equal(value, state[name]) for name, value in module.state_dict().items())
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), random)
    assert not torch.is_inference_mode_enabled()
    assert hooks == [
        len(torch_module._global_forward_hooks),
        len(torch_module._global_forward_pre_hooks),
    ]
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


def test_inputs_are_left_as_they_were() -> None:
    given = torch.randn(3, 4)
    before = given.clone()

    run(nn.ReLU(inplace=True), given)

    assert torch.equal(given, before)


def test_a_module_that_writes_into_its_buffers_gets_them_back() -> None:
    class Counter(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return x + self.calls

    module = Counter()

    run(module)

    assert module.calls.item() == 0


def test_a_lazy_module_stays_lazy() -> None:
    module = nn.LazyLinear(3)

    result = run(module, TensorSpec((2, 5), "float32"))

    assert result.nodes[0].macs.value == 2 * 5 * 3
    assert module.has_uninitialized_params()


def test_a_model_that_refuses_its_inputs_is_quoted_and_left_as_it_was() -> None:
    module = Small()
    threads = torch.get_num_threads()

    with pytest.raises(SnapshotError, match=r"failed with these inputs: .*channels"):
        run(module, TensorSpec((2, 7, 8, 8), "float32"), threads=2)

    assert module.training
    assert torch.get_num_threads() == threads
    assert not torch.is_inference_mode_enabled()


# What goes wrong on the way


@pytest.mark.parametrize(("profiled", "expected"), [(1.5, 50.0), (1.0, 0.0), (0.9, None)])
def test_profiling_that_costs_less_than_runs_differ_has_no_cost_below_zero(
    profiled: float, expected: float | None
) -> None:
    plain = Quantity(1.0, "s", "measured", "clock")

    found = result_module._overhead(plain, replace(plain, value=profiled))

    assert found.value == (None if expected is None else pytest.approx(expected))
    assert (found.status == "unavailable") == (expected is None)


def test_a_single_run_is_shown_without_a_spread() -> None:
    result = run(Small(), budget_s=0.0, repeats=1)

    (line,) = [line for line in performance(result) if line.startswith("Run time")]

    assert line.endswith("(a single run)")


def test_a_model_that_cannot_be_listened_to_is_timed_as_a_whole() -> None:
    class Shy(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            if torch.utils._python_dispatch._get_current_dispatch_mode() is not None:
                raise RuntimeError("someone\x1b[31m listens")
            return x + 1

    result = run(Shy())

    assert result.plain.median.value is not None
    assert result.nodes == ()
    assert result.overhead.status == "unavailable"
    assert any(note.endswith("someone?[31m listens") for note in result.notes)


def test_a_run_with_other_operations_is_left_out_and_noted() -> None:
    class Moody(nn.Module):  # type: ignore[misc]
        calls = 0

        def forward(self, x: Any) -> Any:
            self.calls += 1
            for _ in range(self.calls):
                x = x + 1
            return x * 2

    result = run(Moody(), warmups=1)

    assert result.profiled.runs == 0
    assert result.nodes[0].time.median.status == "unavailable"
    assert any("other operations than the first" in note for note in result.notes)


def test_a_model_that_needs_gradients_runs_with_them() -> None:
    class Slope(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            x = x.detach().requires_grad_()
            return torch.autograd.grad((x * x).sum(), x)[0]

    result = run(Slope())

    assert any("gradients" in note for note in result.notes)
    assert result.nodes


def test_a_module_without_weights_says_so() -> None:
    with pytest.raises(SnapshotError, match="no weights"):
        run(Small().to("meta"))


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(SnapshotError, match=r"object is not a torch\.nn\.Module"):
        run(object())


def test_it_stops_when_it_is_cancelled() -> None:
    cancel = Event()
    module = Small()

    def stop(done: int, _: int) -> None:
        if done >= 2:
            cancel.set()

    with pytest.raises(CancelledError):
        run(module, progress=stop, cancel=cancel)

    assert module.training


def test_progress_only_goes_on_and_ends_at_the_end() -> None:
    seen: list[tuple[int, int]] = []

    run(Small(), progress=lambda done, total: seen.append((done, total)))

    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == seen[-1][1]
    assert len({total for _, total in seen}) == 1


@pytest.mark.parametrize("options", [{"repeats": 0}, {"threads": 0}])
def test_less_than_one_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        run(Small(), **options)


# Threads


@given(st.integers(1, 300))
def test_thread_counts_go_from_one_to_the_most(most: int) -> None:
    counts = thread_counts(most)

    assert (counts[0], counts[-1]) == (1, most)
    assert list(counts) == sorted(set(counts))
    assert all(after <= 2 * before for before, after in pairwise(counts))


def test_threads_are_tried_up_to_what_the_environment_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    before = torch.get_num_threads()

    result = run(Small())

    assert [one.threads for one in result.thread_runs] == [1, 2, 3]
    assert result.thread_runs[0].efficiency.value == 100
    for one in result.thread_runs:
        assert one.efficiency.value == pytest.approx((one.speed_up.value or 0) / one.threads * 100)
    assert torch.get_num_threads() == before


def test_a_profile_runs_with_the_threads_it_is_given() -> None:
    class Asking(nn.Module):  # type: ignore[misc]
        seen: list[int] = []  # noqa: RUF012 (the test looks into it)

        def forward(self, x: Any) -> Any:
            self.seen.append(torch.get_num_threads())
            return x + 1

    result = run(Asking(), threads=1, warmups=2)

    assert result.threads == 1
    assert set(Asking.seen[:3]) == {1}


# The environment


def test_level_0_gives_totals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_PROFILER_LEVEL", "0")

    result = run(Small())

    assert result.plain.median.value is not None
    assert (result.nodes, result.thread_runs, result.memory) == ((), (), None)
    assert result.rate.source == "PYTORCH_PROFILER_LEVEL is 0: totals only"
    assert result.energy is not None


def test_level_1_gives_nodes_without_memory_and_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_PROFILER_LEVEL", "1")

    result = run(Small())

    assert result.nodes
    assert result.memory is None
    assert all(not node.line and node.allocated.value is None for node in result.nodes)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PYTORCH_PROFILER_LEVEL", "3"),
        ("PYTORCH_PROFILER_LEVEL", "1.5"),
        ("OMP_NUM_THREADS", "many\x1b[2J"),
        ("OMP_NUM_THREADS", "0"),
        ("PYTORCH_CUDA_MEMORY_FRACTION", "nan"),
        ("PYTORCH_CUDA_MEMORY_FRACTION", "2"),
    ],
)
def test_a_setting_that_makes_no_sense_is_left_out_and_noted(name: str, text: str) -> None:
    settings = read_environment({name: text})

    assert (settings.level, settings.max_threads, settings.memory_fraction) == (2, None, None)
    assert len(settings.notes) == 1
    assert settings.notes[0].startswith(name)
    assert settings.notes[0].isprintable()


def test_hidden_gpus_leave_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    result = run(Small(), device="cuda")

    assert result.device == "cpu"
    assert "CUDA_VISIBLE_DEVICES hides the GPUs: the model ran on the processor" in result.notes


def test_the_share_of_a_gpus_memory_is_limited_as_the_environment_says() -> None:
    asked: list[tuple[float, Any]] = []
    cuda = SimpleNamespace(
        is_available=lambda: True,
        set_per_process_memory_fraction=lambda share, device: asked.append((share, device)),
    )
    notes: list[str] = []

    device = running.device_for(
        SimpleNamespace(cuda=cuda, device=str),
        Small(),
        "cuda:1",
        read_environment({"PYTORCH_CUDA_MEMORY_FRACTION": "0.25"}),
        notes,
    )

    assert device == "cuda:1"
    assert asked == [(0.25, "cuda:1")]
    assert "25 %" in notes[0]


def test_on_a_gpu_its_own_events_take_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class FakeEvent:
        count = 0

        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            FakeEvent.count += 1
            self.moment_ms = FakeEvent.count

        def elapsed_time(self, other: FakeEvent) -> float:
            return float(other.moment_ms - self.moment_ms)

    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    waits: list[None] = []
    module = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).eval()
    runner = running.Runner(
        module, Inputs((torch.ones(1, 2),), {}), "cuda:0", lambda: waits.append(None)
    )

    with torch.inference_mode():
        result = torch_profiler.time_run(runner, record_run(runner, has_lines=False))

    assert result.node_ns == (1_000_000, 1_000_000)
    assert len(waits) == 2


# Memory


def test_memory_knows_what_each_node_asked_for() -> None:
    result = run(nn.Sequential(nn.Linear(64, 128), nn.ReLU()), TensorSpec((16, 64), "float32"))

    memory = result.memory
    assert memory is not None
    relu = result.nodes[1]
    assert relu.allocated.value == 16 * 128 * 4
    assert relu.allocations.value == 1
    assert (memory.peak.value or 0) >= 2 * 16 * 128 * 4
    assert (memory.total.value or 0) >= (memory.peak.value or 0)
    assert memory.kept.value == 0
    assert memory.device_peak.status == "unavailable"
    assert sum(count for _, count in memory.sizes) == memory.allocations.value


def test_the_profiler_of_torch_says_nothing_to_the_terminal() -> None:
    code = (
        "import torch\n"
        "from snapviewer.model.inference import profile\n"
        "result = profile(torch.nn.ReLU(), torch.ones(2), repeats=1, budget_s=0.0)\n"
        "assert result.memory is not None\n"
    )

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@st.composite
def changes(draw: st.DrawFn) -> list[Change]:
    """Memory that is taken and given back, and some that was there before."""
    live: dict[int, int] = {}
    made: list[Change] = []
    for time_ns in range(draw(st.integers(0, 30))):
        call = draw(st.none() | st.integers(0, 5))
        address = draw(st.integers(0, 6))
        if address in live:
            made.append(Change(time_ns, address, -live.pop(address), call))
        elif draw(st.booleans()):
            live[address] = draw(st.integers(1, 1000))
            made.append(Change(time_ns, address, live[address], call))
        else:
            made.append(Change(time_ns, address + 100, -draw(st.integers(1, 9)), call))
    return made


@given(changes())
def test_memory_is_followed_as_a_slow_count_does(made: list[Change]) -> None:
    numbers = [0, None, 1, 2, None, 3]

    memory, by_node = summarize(made, numbers, unavailable("B", "made up"))

    taken = [change for change in made if change.size_bytes > 0]
    alive_bytes = [
        sum(change.size_bytes for change in made[: end + 1] if change.address < 100)
        for end in range(len(made))
    ]
    assert memory.peak.value == max(alive_bytes, default=0)
    assert memory.kept.value == (alive_bytes[-1] if alive_bytes else 0)
    assert memory.allocations.value == len(taken)
    assert memory.total.value == sum(change.size_bytes for change in taken)
    assert memory.largest.value == max((change.size_bytes for change in taken), default=0)
    assert memory.reused.value == sum(
        any(before.address == one.address for before in taken if before.time_ns < one.time_ns)
        for one in taken
    )
    for number, call in ((0, 0), (1, 2), (2, 3), (3, 5)):
        own = [change.size_bytes for change in taken if change.call == call]
        assert by_node.get(number, (0, 0)) == (len(own), sum(own))


# Energy and the machine


def test_energy_is_that_of_one_run_and_says_how_it_is_known() -> None:
    result = run(Small(), tdp_w=50.0)

    assert result.energy is not None
    assert result.energy.energy.status in ("measured", "estimated")
    assert result.energy.attempts
    assert result.system is not None
    assert result.system.seconds.unit == "s"


# Files


@pytest.mark.parametrize("make", [torch.jit.script, None], ids=["scripted", "traced"])
def test_an_archive_runs_and_its_operations_are_found_in_the_graph_of_its_code(
    make: Callable[[Any], Any] | None, tmp_path: Path
) -> None:
    module = Small().eval()
    path = tmp_path / "model.pt"
    script = make(module) if make else torch.jit.trace(module, torch.ones(2, 3, 8, 8))
    script.save(str(path))
    graph = read_torchscript(path, inputs=[IMAGE])

    result = run(load_torchscript(path), graph=graph)

    convolutions = [node for node in result.nodes if node.node.op.endswith("conv2d")] or [
        node for node in result.nodes if "convolution" in node.node.op
    ]
    assert [node.module for node in convolutions] == ["stem.0", "side"]
    assert result.flops.value == totals_of(record(module, IMAGE).nodes).work.flops


def test_an_operation_that_is_not_in_the_code_belongs_to_the_owner_of_its_parameters(
    tmp_path: Path,
) -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    path = tmp_path / "model.pt"
    torch.jit.script(nn.Sequential(nn.Linear(16, 16), layer).eval()).save(str(path))

    result = run(load_torchscript(path), TensorSpec((2, 5, 16), "float32"))

    owners = {node.node.op: node.module for node in result.nodes}
    assert owners["aten::_transformer_encoder_layer_fwd"] == "1"


def test_an_exported_program_runs(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(Small().eval(), (torch.ones(2, 3, 8, 8),)), str(path))

    result = run(load_pt2(path))

    assert sum(node.macs.value or 0 for node in result.nodes) > 0


def test_a_package_with_operations_that_torch_misses_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "more_operations.py").write_text("HAS_THEM = True\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(loading, "_PACKAGES", ("more_operations", "operations_not_installed"))

    def load(missing: str, path: str) -> str:
        if missing not in sys.modules:
            raise RuntimeError(f"Unknown builtin op: {missing}::one. It may not exist")
        return path

    model = tmp_path / "model.pt"
    model.touch()
    try:
        assert loading._loaded(model, partial(load, "more_operations")) == str(model)
    finally:
        sys.modules.pop("more_operations", None)
    for missing in ("operations_not_installed", "json_from_elsewhere"):
        with pytest.raises(SnapshotError, match="cannot load the model"):
            loading._loaded(model, partial(load, missing))


@pytest.mark.parametrize("load", [load_torchscript, load_pt2])
def test_a_file_that_torch_cannot_load_ends_with_a_sentence(
    load: Callable[[Path], Any], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.pt"
    broken.write_bytes(b"PK\x03\x04 and no more")

    with pytest.raises(SnapshotError, match="torch cannot load the model: "):
        load(broken)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.pt")


def test_without_torch_the_package_imports_and_says_what_to_install() -> None:
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "from snapviewer import SnapshotError\n"
        "from snapviewer.model.graph import Graph\n"
        "from snapviewer.model.inference import *\n"
        "graph = Graph('live', (), (), 'none', ())\n"
        "calls = [lambda: profile(None, None), lambda: load_torchscript('x'),\n"
        "         lambda: load_pt2('x'), lambda: example_inputs(graph)]\n"
        "for call in calls:\n"
        "    try:\n"
        "        call()\n"
        "    except SnapshotError as error:\n"
        "        print('pip install torch' in str(error))\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["True"] * 4


# Inputs


def graph_with(inputs: tuple[Value, ...], nodes: tuple[Node, ...] = ()) -> Graph:
    return Graph("live", nodes, inputs, "given", ())


def test_example_inputs_have_the_shapes_and_types_of_the_graph() -> None:
    inputs = (
        TensorSpec((2, 3), "float16"),
        (TensorSpec((4,), "int64"), None, 7),
        TensorSpec((), "bool"),
        TensorSpec((2,), "uint8"),
        TensorSpec((2,), "complex64"),
        TensorSpec((5,), ""),
    )

    half, (ints, nothing, seven), flag, small, numbers, plain = example_inputs(graph_with(inputs))

    assert (half.shape, half.dtype) == ((2, 3), torch.float16)
    assert ints.dtype == torch.int64
    assert 0 <= ints.min() <= ints.max() < 10
    assert (nothing, seven, flag.item()) == (None, 7, False)
    assert (small.dtype, numbers.dtype) == (torch.uint8, torch.complex64)
    assert plain.dtype == torch.float32


def test_example_inputs_are_the_same_for_the_same_seed() -> None:
    graph = graph_with((IMAGE,))

    one, again, other = (example_inputs(graph, seed=seed)[0] for seed in (1, 1, 2))

    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_example_indices_fit_the_smallest_embedding() -> None:
    module = nn.Sequential(nn.Embedding(2, 4), nn.Linear(4, 4))
    graph = record(module, TensorSpec((1, 50), "int64"))

    (ids,) = example_inputs(graph)

    assert ids.max() < 2
    assert run(module, ids).nodes


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (TensorSpec((None, 3), "float32"), "all of its sizes"),
        (TensorSpec((2**40, 3), "float32"), "has a bad shape"),
        (TensorSpec((-1,), "float32"), "has a bad shape"),
        (TensorSpec((3,), "float31"), "not a dtype of torch"),
        (Unknown("it comes from\x1b afar"), "it comes from. afar"),
    ],
)
def test_an_input_that_cannot_be_made_ends_with_a_sentence(value: Value, said: str) -> None:
    with pytest.raises(SnapshotError, match=said):
        example_inputs(graph_with((value,)))


# Matching and timing


def node_of(number: int, op: str, size: int | None) -> Node:
    output = TensorSpec((size,), "float32")
    return Node(number, op, f"m{number}", "", (), (), (output,), ())


@given(
    st.lists(st.tuples(st.sampled_from(["aten::add", "aten::mul", "aten::relu"]), st.booleans()))
)
def test_nodes_are_found_again_among_others(drawn: list[tuple[str, bool]]) -> None:
    graph_nodes = [node_of(number, op, number) for number, (op, _) in enumerate(drawn)]
    ran = [node for node, (_, is_kept) in zip(graph_nodes, drawn, strict=True) if is_kept]
    near = [
        node
        for before, node in zip([None, *ran], ran, strict=False)
        if node.number - (before.number if before else -1) <= 64
    ]

    found = matched(ran, graph_nodes)

    if near == ran:
        assert list(found) == ran


def test_an_operation_in_place_is_found_as_itself_and_unknown_sizes_fit() -> None:
    ran = [node_of(0, "aten::relu_", 4), node_of(1, "aten::add", 4), node_of(2, "aten::mul", 4)]
    graph_nodes = [node_of(7, "aten::relu", None), node_of(8, "aten::add", 5)]

    found = matched(ran, graph_nodes)

    assert [node.number if node else None for node in found] == [7, None, None]


@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_half_of_the_runs_lie_within_the_deviation(times_ns: list[int]) -> None:
    timing = timing_of(times_ns, "clock")

    median, deviation = timing.median.value or 0.0, timing.deviation.value or 0.0
    near = sum(abs(time / 1e9 - median) <= deviation + 1e-6 for time in times_ns)
    assert 2 * near >= len(times_ns)
    assert timing.fastest.value == min(times_ns) / 1e9
    assert timing.slowest.value == max(times_ns) / 1e9
