"""What goes through modules is described, nothing of it is kept, and nothing stays on modules."""

from __future__ import annotations

import copy
import gc
import io
import re
import sys
import weakref
from dataclasses import dataclass
from itertools import accumulate
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from snapviewer.explorer.recording import (
    calls,
    devices,
    get_forward_stats,
    record_torch_module_forward_stats,
    recorder,
    registry,
)
from snapviewer.explorer.timing import ForwardStats, ModuleTiming, Spread, TensorShape
from snapviewer.explorer.tree import ModuleNode, Sums, TensorEntry, Tree
from snapviewer.report.tree.overlay import display_timing_in_explorer, performance_overlay
from support.torch_marks import torch_marks

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402 (after the line that skips)
from torch.overrides import TorchFunctionMode  # noqa: E402

from support.recorded_models import Block, Does  # noqa: E402 (it needs torch)

# What torch says of its scripts and of nested tensors.
pytestmark = torch_marks(":DeprecationWarning", ":UserWarning")

TORCHS_CALL = nn.Module.__call__


def recorded(model: Any, *args: Any, **kwargs: Any) -> ForwardStats:
    with record_torch_module_forward_stats(model):
        model(*args, **kwargs)
    return get_forward_stats(model)


def shapes(tensors: tuple[TensorShape, ...]) -> dict[str, tuple[int, ...]]:
    return {one.name: one.shape for one in tensors}


@dataclass
class Answer:
    logits: Any
    states: Any = None


class Net(nn.Module):
    def forward(self, x: Any, *rest: Any, mask: Any = None, **more: Any) -> Any:
        return Answer(x + 1, (x, {"deep": [torch.zeros(5)]}))


class Pair(NamedTuple):
    first: Any
    second: Any


def test_tensors_have_the_names_of_arguments_and_their_way_in_outputs() -> None:
    x, y, mask = torch.zeros(1), torch.zeros(2), torch.zeros(3, dtype=torch.bool)

    stats = recorded(Net(), x, y, [y, {"a b": mask}], mask=mask, extra=Pair(x, 3))

    timing = stats.timings[""]
    assert shapes(timing.inputs) == {
        "x": (1,),
        "rest[0]": (2,),
        "rest[1][0]": (2,),
        "rest[1][1]['a b']": (3,),
        "mask": (3,),
        "extra.first": (1,),
    }
    assert shapes(timing.outputs) == {
        "output.logits": (1,),
        "output.states[0]": (1,),
        "output.states[1]['deep'][0]": (5,),
    }
    assert timing.inputs[4] == TensorShape("mask", (3,), "bool", "cpu", 3)
    assert timing.activation_bytes == 4 + 20, "what goes in and comes out again is not new"


def test_outputs_of_transformers_are_described_by_their_attributes() -> None:
    outputs = pytest.importorskip("transformers.modeling_outputs")
    model = Does(lambda _: outputs.BaseModelOutput(last_hidden_state=torch.zeros(2, 3)))

    assert shapes(recorded(model).timings[""].outputs) == {"output.last_hidden_state": (2, 3)}


def test_only_new_storage_is_activation_memory() -> None:
    model = nn.ModuleDict(
        {
            "view": nn.Flatten(0),
            "same": nn.Identity(),
            "inplace": nn.ReLU(inplace=True),
            "new": nn.Linear(4, 2),
            "weight": Does(lambda self, x: self.inner_weight),
            "slice": Does(lambda self, x: x.repeat(2, 1)[:1]),
            "twice": Does(lambda self, x: (y := x + 1, y.view(-1), y)),
        }
    )
    model["weight"].inner_weight = nn.Parameter(torch.zeros(9))
    x = torch.zeros(3, 4)
    with record_torch_module_forward_stats(model):
        for part in model.values():
            part(x)

    timings = get_forward_stats(model).timings
    assert {path: one.activation_bytes for path, one in timings.items()} == {
        "view": 0,
        "same": 0,
        "inplace": 0,
        "new": 24,
        "weight": 0,
        "slice": 96,
        "twice": 48,
    }
    assert {path: one.allocated_bytes for path, one in timings.items()} == {
        path: one.activation_bytes for path, one in timings.items()
    }
    assert any("on the CPU is a lower bound" in note for note in get_forward_stats(model).notes)


@pytest.mark.promise("X29")
def test_the_memory_of_a_call_on_the_cpu_is_what_lives_at_once() -> None:
    made = nn.Linear(4, 4, bias=False)  # 64 bytes for 4 rows
    model = nn.Sequential(made, nn.ReLU(), nn.Sequential(nn.ReLU(), nn.ReLU()))
    kept: list[Any] = []
    keeps = Does(lambda self, x: kept.append(self.inner(x)), inner=nn.ReLU())

    with torch.no_grad():
        first = recorded(model, torch.zeros(4, 4))
        again = recorded(model, torch.zeros(4, 4))
        keeping = recorded(keeps, torch.zeros(4, 4))

    assert {path: one.allocated_bytes for path, one in first.timings.items()} == {
        "": 192,
        "0": 64,
        "1": 64,
        "2": 128,
        "2.0": 64,
        "2.1": 64,
    }
    assert again.timings[""].allocated_bytes == 192, "what was freed does not count"
    assert keeping.timings[""].allocated_bytes == 64, "also if nothing is returned"


@pytest.mark.promise("X29")
def test_the_memory_of_a_call_on_the_cpu_is_what_torchs_profiler_counts() -> None:
    from torch.profiler import ProfilerActivity, profile

    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 512), nn.ReLU())
    x = torch.zeros(16, 8)
    with torch.no_grad():
        ours = recorded(model, x).timings[""].allocated_bytes
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as theirs:
            model(x)

    events = [one for one in theirs.profiler.kineto_results.events() if one.name() == "[memory]"]
    sizes = [one.nbytes() for one in sorted(events, key=lambda one: one.start_ns())]
    assert ours == max(accumulate(sizes)) == 2 * 16 * 512 * 4


@pytest.mark.promise("X29")
def test_tensors_between_modules_count_and_those_of_the_model_do_not() -> None:
    inner = nn.Identity()
    table = nn.Parameter(torch.zeros(1000))
    model = Does(lambda self, x: self.inner(x + 1).sum() + self.inner(table).sum(), inner=inner)
    model.table = table

    stats = recorded(model, torch.zeros(25))

    assert stats.timings["inner"].allocated_bytes == 0
    assert stats.timings[""].allocated_bytes in (100, 104)


def test_strange_values_do_not_end_a_run() -> None:
    class Raises:
        _fields = property(lambda self: 1 / 0)

        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError("[hands] off\x1b")

    cycle: list[Any] = []
    cycle.append(cycle)
    nested = torch.nested.nested_tensor([torch.zeros(1), torch.zeros(2)])
    given = [Raises(), cycle, nested, torch.zeros(2, 2).to_sparse(), list(range(10**6))]
    model = Does(lambda _, *args: args)

    for value in given:
        with record_torch_module_forward_stats(model):
            assert model(value)[0] is value
        assert get_forward_stats(model).runs == 1


def test_what_cannot_be_described_is_reported_and_timed() -> None:
    class Bad(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError("[hands] off\x1b")

    stats = recorded(Does(lambda _, given: None), Bad())

    assert stats.timings[""].calls == 1
    assert "1 call could not be described: RuntimeError: [hands] off?" in stats.notes


def flow_of(stats: ForwardStats) -> list[str]:
    """The calls in their order, each with its depth, its path and what it takes outputs of."""
    assert [step.order for step in stats.flow] == list(range(len(stats.flow)))
    return [f"{step.depth} {step.path}: {' '.join(step.sources)}" for step in stats.flow]


def test_the_flow_shows_whose_outputs_go_where() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), Block(2), nn.Flatten(), nn.Linear(8, 2))

    with torch.no_grad():
        stats = recorded(model, torch.zeros(1, 1, 4, 4))

    assert flow_of(stats) == [
        "0 : ",
        "1 0: ",
        "1 1: 0",
        "2 1.conv1: 0",
        "2 1.relu: 1.conv1",
        "2 1.conv2: 1.relu",
        "2 1.relu: 1.conv2",  # it was added to in place
        "1 2: 1",
        "1 3: 2",
    ]
    assert stats.flow[0].type_name == "Sequential"
    assert shapes(stats.flow[8].inputs) == {"input": (1, 8)}
    assert shapes(stats.flow[8].outputs) == {"output": (1, 2)}


def test_a_view_of_an_output_has_its_source_and_a_new_tensor_has_none() -> None:
    def work(self: Any, x: Any) -> Any:
        y = self.a(x)
        self.b(y.view(-1))
        self.b(y * 2)
        return self.b(torch.zeros(4))

    model = Does(work, a=Does(lambda _, x: x + 1), b=nn.Identity())
    stats = recorded(model, torch.zeros(2, 2))

    assert [step.sources for step in stats.flow if step.path == "b"] == [("a",), (), ()]


def test_with_gradients_the_graph_shows_what_functions_computed_a_tensor_from() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), Block(2), nn.Identity())
    x = torch.zeros(1, 1, 4, 4)

    with_gradients = recorded(model, x).flow
    with torch.no_grad():
        without = recorded(model, x).flow

    assert [step.sources for step in with_gradients] == [
        (),
        (),
        ("0",),
        ("0",),
        ("1.conv1",),
        ("1.relu",),
        ("0", "1.conv2"),  # the sum
        ("1",),
    ]
    assert without[6].sources == ("1.conv2",), "that is the one that was added to in place"


def test_a_sum_of_several_modules_has_several_sources() -> None:
    def work(self: Any, x: Any) -> Any:
        y, z = self.a(x), self.b(x)
        return self.c(torch.cat([y.relu(), z.exp()]).sum() * x)

    parts = {name: nn.Linear(2, 2) for name in "abc"}
    stats = recorded(Does(work, **parts), torch.zeros(2))

    assert [step.sources for step in stats.flow] == [(), (), (), ("a", "b")]


def test_the_flow_is_that_of_the_last_run_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MAX_STEPS", 5)
    model = Does(lambda self, n: [self.a() for _ in range(n)], a=Does(lambda _: None))

    with record_torch_module_forward_stats(model):
        model(3)
        model(1)
    short = get_forward_stats(model)
    long = recorded(model, 50)

    assert [step.path for step in short.flow] == ["", "a"]
    assert len(long.flow) == 5
    assert long.timings["a"].calls == 50
    assert "the flow contains only the first calls of the last run" in long.notes


def test_a_long_loop_keeps_nothing_of_the_tensors_that_went_through() -> None:
    model = Does(lambda _: torch.empty(1))

    with record_torch_module_forward_stats({"model": model}):
        for _ in range(6_000):
            model()
        (listener,) = calls._listeners
        producers: Any = listener._producers  # type: ignore[attr-defined]
        known = len(producers._by_tensor) + len(producers._by_storage)

    assert known <= 4_096
    assert get_forward_stats({"model": model}).timings["model"].total.count == 6_000


def test_nothing_is_put_on_modules_not_even_while_they_run() -> None:
    def looked_at(model: Any) -> Any:
        return [
            {name: copy.copy(value) for name, value in vars(one).items() if name != "_parameters"}
            for one in model.modules()
        ]

    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Dropout())
    model[1].eval()
    before = looked_at(model)

    with record_torch_module_forward_stats(model):
        model(torch.zeros(2)).sum().backward()
        assert looked_at(model) == before
        torch.save(model, io.BytesIO())
        copy.deepcopy(model)

    assert looked_at(model) == before
    assert nn.Module.__call__ is TORCHS_CALL
    assert not nn.modules.module._has_any_global_hook()


def test_no_tensor_and_no_module_is_kept_alive() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    seen: list[Any] = []
    model[1].register_forward_hook(lambda _, args, out: seen.extend(map(weakref.ref, args)))
    gc.collect()  # models of other tests
    size = len(registry._recordings)

    with record_torch_module_forward_stats(model):
        x = torch.zeros(2)
        seen.append(weakref.ref(x))
        out = model(x)
        out.sum().backward()
        seen.append(weakref.ref(out))
        del x, out
        assert [one() for one in seen] == [None] * 3, "not even while it is recorded"
    stats = get_forward_stats(model)
    seen = [weakref.ref(model), weakref.ref(model[0])]
    assert len(registry._recordings) == size + 1
    del model
    gc.collect()

    assert [one() for one in seen] == [None, None]
    assert len(registry._recordings) == size
    assert stats.timings["0"].calls == 1, "plain data"


def test_a_module_that_equals_all_others_has_its_own_stats() -> None:
    class Alike(nn.Module):
        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

        def forward(self) -> None:
            return None

    first, second = Alike(), Alike()
    recorded(first)

    assert get_forward_stats(first).runs == 1
    assert get_forward_stats(second) == ForwardStats(notes=("nothing was recorded of this model",))


def test_a_submodule_has_the_stats_that_it_would_report_itself() -> None:
    model = nn.Sequential(Block(2), Block(2))
    stats = recorded(model, torch.zeros(1, 2, 4, 4))

    inner = get_forward_stats(model[1])

    assert list(inner.timings) == ["", "conv1", "relu", "conv2"]
    assert inner.timings["conv1"].total == stats.timings["1.conv1"].total
    assert [timing.path for timing in inner.timings.values()] == list(inner.timings)
    steps = ["0 : ", "1 conv1: ", "1 relu: conv1", "1 conv2: relu", "1 relu: conv2"]
    assert flow_of(inner) == steps
    assert inner.runs == 1


def test_what_holds_modules_is_recorded_like_a_module() -> None:
    class Slots:
        __slots__ = ()

    encoder, decoder = nn.Sequential(nn.Linear(2, 2)), nn.Linear(2, 2)
    pipe = SimpleNamespace(encoder=encoder, decoder=decoder, name="pipe")
    for holder in (pipe, {"encoder": encoder, "decoder": decoder}):
        with record_torch_module_forward_stats(holder):
            decoder(encoder(torch.zeros(2)))
        stats = get_forward_stats(holder)
        assert list(stats.timings) == ["encoder", "encoder.0", "decoder"]
        assert [step.sources for step in stats.flow] == [(), (), ("encoder",)]
        assert list(get_forward_stats(encoder).timings) == ["", "0"]

    for nothing in (Slots(), None, [1]):
        with pytest.raises(TypeError, match="a torch module, or an object that holds some"):
            get_forward_stats(nothing)


def test_a_lazy_module_has_the_type_that_it_becomes() -> None:
    stats = recorded(nn.Sequential(nn.LazyLinear(3)), torch.zeros(1, 2))

    assert stats.timings["0"].type_name == "Linear"
    assert stats.timings["0"].activation_bytes == 12


def test_a_script_is_recorded_from_outside_and_the_notes_say_so() -> None:
    model = nn.Sequential(torch.jit.script(nn.Sequential(nn.Linear(2, 2))), nn.ReLU())

    stats = recorded(model, torch.zeros(1, 2))

    assert list(stats.timings) == ["", "0", "1"]
    assert "0 is TorchScript: its inner modules are not seen" in stats.notes


def test_a_model_can_be_compiled_while_it_is_recorded_and_afterwards() -> None:
    model, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.ones(1, 2)
    before = torch.compile(model, backend="eager", fullgraph=True)
    expected = before(x)

    stats = recorded(before, x)
    with record_torch_module_forward_stats(model):
        during = torch.compile(copy.deepcopy(model), backend="eager", fullgraph=True)
        assert torch.equal(during(x), expected)
    afterwards = torch.compile(copy.deepcopy(model), backend="eager", fullgraph=True)

    assert torch.equal(afterwards(x), expected)
    assert torch.equal(during(x), expected)
    assert list(stats.timings) == [""]
    assert "the model is compiled: its inner modules are not seen" in stats.notes
    note = get_forward_stats(model).notes[0]
    assert note.startswith("no call of the model completed")


def test_a_module_that_compiled_itself_is_timed() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].compile(backend="eager")

    stats = recorded(model, torch.ones(1, 2))

    assert stats.timings["0"].calls == 1
    assert "0 is compiled: its inner modules are not seen" in stats.notes


def test_modules_that_were_imported_meanwhile_have_the_function_of_torch() -> None:
    name = "torch.imported_by_a_test"
    with record_torch_module_forward_stats(nn.Identity()):
        assert nn.Module.__call__ is calls._call
        sys.modules[name] = SimpleNamespace(call=nn.Module.__call__)  # type: ignore[assignment]
    taken: Any = sys.modules.pop(name)

    assert taken.call is TORCHS_CALL


def test_a_model_is_traced_as_if_nobody_recorded() -> None:
    model, x = nn.Sequential(nn.Linear(2, 2), nn.Flatten()), torch.ones(1, 2)

    with record_torch_module_forward_stats(model):
        traced = torch.jit.trace(model, x)
        symbolic = torch.fx.symbolic_trace(model)
    again = torch.jit.trace(model, x)

    nodes = [[node.kind() for node in one.inlined_graph.nodes()] for one in (traced, again)]
    assert nodes[0] == nodes[1]
    assert str(symbolic.graph) == str(torch.fx.symbolic_trace(model).graph)


def test_modes_and_tensors_of_the_user_do_not_see_the_recorder() -> None:
    reports: list[Any] = []

    class Reports(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, _: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            reports.append(function)
            return function(*args, **(kwargs or {}))

    model, x = nn.Flatten(0), torch.zeros(2, 2)
    with Reports():
        model(x)
        plain = list(reports)
        reports.clear()
        recorded(model, x)

    assert reports == plain


def test_the_fast_path_of_transformers_is_taken_as_without_recording() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()

    with torch.no_grad():
        stats = recorded(layer, torch.zeros(1, 3, 4))

    assert list(stats.timings) == [""], "one operation does it all, and calls no module"


def test_a_generator_is_reported() -> None:
    stats = recorded(Does(lambda _: (n for n in range(3))))

    note = "the model returns a generator or coroutine, whose later work is not timed"
    assert note in stats.notes


class FakeGpu:
    """A device that counts: what is allocated moves the peak."""

    def __init__(self) -> None:
        self.now = self.most = 1_000
        self.waits: list[str] = []

    def grow(self, size_bytes: int) -> None:
        self.now += size_bytes
        self.most = max(self.most, self.now)

    def allocated(self) -> int:
        return self.now

    def peak(self) -> int:
        return self.most

    def reset_peak(self) -> None:
        self.most = self.now


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    """A device that holds the parameters of all models."""
    made = FakeGpu()

    def see(self: devices.Devices, _: Any) -> None:
        if self.names():
            return
        self._names.append("cuda:0")
        self.waits.append(lambda: made.waits.append("wait"))
        if self._resets_peak:
            self._counters["cuda:0"] = made

    monkeypatch.setattr(devices.Devices, "see", see)
    monkeypatch.setattr(devices, "_shared", devices._Shared())
    return made


def _on_gpu(work: Any, **children: Any) -> Any:
    model = Does(work, **children)
    model.register_buffer("held", torch.zeros(1))
    return model


@pytest.mark.promise("X29")
def test_the_memory_of_a_call_is_its_own_peak(gpu: FakeGpu) -> None:
    gpu.grow(4_000)
    gpu.grow(-4_000)

    def inner(_: Any, size: int) -> None:
        gpu.grow(size)
        gpu.grow(-size)

    def outer(self: Any) -> None:
        gpu.grow(10)
        self.inner(100)
        self.inner(50)
        gpu.grow(5)

    model = _on_gpu(outer, inner=Does(inner))
    with record_torch_module_forward_stats(model), record_torch_module_forward_stats(model):
        model()
    stats = get_forward_stats(model)

    assert {path: one.allocated_bytes for path, one in stats.timings.items()} == {
        "": 110,
        "inner": 100,
    }
    assert any("it would be at least: cuda:0 5,000 bytes" in note for note in stats.notes)


def test_peaks_are_left_alone_if_that_is_wished(gpu: FakeGpu) -> None:
    gpu.grow(500)
    gpu.grow(-500)
    model = _on_gpu(lambda _: None)

    with record_torch_module_forward_stats(model, resets_peak=False):
        model()

    stats = get_forward_stats(model)
    assert gpu.peak() == 1_500
    assert stats.timings[""].allocated_bytes is None
    assert any("was not counted: that would reset the peaks" in note for note in stats.notes)


def test_the_clock_is_read_when_the_device_is_done(
    gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = gpu.waits

    def clock_ns() -> int:
        said.append("clock")
        return 0

    monkeypatch.setattr(calls, "clock_ns", clock_ns)
    model = _on_gpu(lambda *_: said.append("work"))

    with record_torch_module_forward_stats(model):
        model()

    begin, end = said.index("work"), said.index("work") + 1
    assert said[begin - 3 : begin] == ["wait", "clock", "clock"], "then it enters, and begins"
    assert said[end : end + 2] == ["wait", "clock"]
    assert any("each call waited for cuda:0" in note for note in get_forward_stats(model).notes)


def test_cuda_is_waited_for_unless_a_graph_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Any] = []
    capturing: list[bool] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[-1])
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 5)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: 7)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda _: None)
    monkeypatch.setattr(devices, "_shared", devices._Shared())
    seen = devices.Devices(resets_peak=True)
    gpu = torch.device("cuda:1")
    for device in (torch.device("cpu"), torch.device("meta"), gpu, gpu):
        seen.see(device)

    for is_capturing in (False, True):
        capturing.append(is_capturing)
        for wait in seen.waits:
            wait()

    assert seen.names() == ("cuda:1",)
    assert waited == [gpu]
    assert seen.end(seen.begin()) == 2
    assert seen.peaks() == {"cuda:1": 7}


def _spread(seconds: float) -> Spread:
    return Spread(1, seconds, 0.0, seconds, seconds, seconds)


@pytest.mark.promise("X25")
def test_the_overlay_is_that_of_the_seed() -> None:
    shape = TensorShape("input", (1, 64, 56, 56), "float32", "cpu", 802_816)
    timing = ModuleTiming(
        "layer1.0.conv1",
        "Conv2d",
        1,
        _spread(0.85e-3),
        _spread(0.85e-3),
        _spread(0.38e-3),
        _spread(0.38e-3),
        True,
        (shape,),
        (shape,),
        802_816,
        None,
    )
    entry = TensorEntry(
        "weight", "layer1.0.conv1.weight", (64, 64, 3, 3), "float32", "cpu", 36_864, 147_456,
        False, True,
    )  # fmt: skip
    sums = Sums(1, 36_864, 36_864, 0, 147_456, 0)
    node = ModuleNode("conv1", "layer1.0.conv1", "Conv2d", "64→64, 3×3", (entry,), (), sums)

    assert performance_overlay(timing, node) == [
        "layer1.0.conv1    36.9K params   Shape: 64×64×3×3   Time: 1.23ms   Mem: 147KB",
        "├─ forward()      ⚡ 850.00μs   Input: 1×64×56×56   Output: 1×64×56×56",
        "├─ backward()     ⚡ 380.00μs   Gradient: computed",
        "└─ memory         📊 147KB      Parameters: 36,864 × 4 bytes",
    ]
    out = io.StringIO()
    display_timing_in_explorer(
        ForwardStats({timing.path: timing}, notes=("a note",)), Tree("m", "", node), file=out
    )
    assert out.getvalue().splitlines() == [*performance_overlay(timing, node), "note: a note"]


@pytest.mark.promise("X10")
@pytest.mark.promise("X25")
def test_the_overlay_needs_only_the_stats(capsys: pytest.CaptureFixture[str]) -> None:
    model = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1, bias=False))
    with record_torch_module_forward_stats(model):
        model(torch.zeros(1, 64, 56, 56)).sum().backward()

    display_timing_in_explorer(get_forward_stats(model))

    shown = re.sub(r"[\d.]+(ms|μs|s)\b *", "T ", capsys.readouterr().out)
    assert shown.splitlines()[4:8] == [
        "0                 36.9K params   Shape: 64×64×3×3   Time: T Mem: 147KB",
        "├─ forward()      ⚡ T Input: 1×64×56×56   Output: 1×64×56×56",
        "├─ backward()     ⚡ T Gradient: computed",
        "└─ memory         📊 147KB      Parameters: 36,864 × 4 bytes",
    ]


def test_timings_that_are_not_there_are_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    display_timing_in_explorer(None)
    display_timing_in_explorer(get_forward_stats(nn.Identity()))

    assert capsys.readouterr().out.splitlines() == [
        "no timings were recorded",
        "no timings were recorded",
        "note: nothing was recorded of this model",
    ]
