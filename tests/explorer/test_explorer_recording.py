"""The times of modules are those of a clock that only modules move, to the nanosecond.

Looking at arguments and outputs takes time on that clock, too, and none of it may show.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapviewer.explorer.recording import (
    calls,
    get_forward_stats,
    record_torch_module_forward_stats,
    values,
)
from snapviewer.explorer.recording.totals import MAX_SAMPLES, Samples
from snapviewer.explorer.timing import ForwardStats, Spread
from support.patience import EXAMPLES

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402 (after the line that skips)
from torch.utils.checkpoint import checkpoint  # noqa: E402

from support.recorded_models import Block, Clock, Does, SlowToLookAt, Takes  # noqa: E402 (needs torch)

pytestmark = pytest.mark.torch


@contextmanager
def one_clock() -> Iterator[Clock]:
    """Have recording use a clock of ours, on which looking at tensors takes 1,000 ns."""
    clock = Clock()

    def slowly(work: Any) -> Any:
        def look(*args: Any) -> Any:
            clock.take(1_000)
            return work(*args)

        return look

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "clock_ns", clock)
        patch.setattr(values, "inputs_of", slowly(values.inputs_of))
        patch.setattr(values, "outputs_of", slowly(values.outputs_of))
        yield clock


@pytest.fixture
def clock() -> Iterator[Clock]:
    with one_clock() as made:
        yield made


def recorded(model: Any, *args: Any, **kwargs: Any) -> ForwardStats:
    with record_torch_module_forward_stats(model):
        model(*args, **kwargs)
    return get_forward_stats(model)


def ns(spread: Spread | None) -> int:
    assert spread is not None
    return round(spread.sum_s * 1e9)


def times(stats: ForwardStats) -> dict[str, tuple[int, int]]:
    """The time and the own time of each module, in nanoseconds."""
    return {path: (ns(one.total), ns(one.own)) for path, one in stats.timings.items()}


def backward_times(stats: ForwardStats) -> dict[str, tuple[int, int]]:
    timings = stats.timings.items()
    return {p: (ns(one.backward), ns(one.backward_own)) for p, one in timings if one.backward}


X = torch.zeros(2)


@pytest.mark.promise("X03", "X28")
def test_a_call_has_its_own_time_and_that_of_what_it_calls(clock: Clock) -> None:
    inner = Takes(clock, 10, Takes(clock, 1), Takes(clock, 2))
    model = Takes(clock, 100, inner, Takes(clock, 5))

    stats = recorded(model, X)

    assert times(stats) == {
        "": (338, 300),
        "parts.0": (33, 30),
        "parts.0.parts.0": (1, 1),
        "parts.0.parts.1": (2, 2),
        "parts.1": (5, 5),
    }
    assert stats.runs == 1


def test_looking_at_arguments_takes_no_time(clock: Clock) -> None:
    inner = Does(lambda _, given: clock.take(7))

    def outer(self: Any, given: Any) -> None:
        clock.take(3)
        self.inner(given)
        self.inner(given)

    stats = recorded(Does(outer, inner=inner), SlowToLookAt(clock, 50_000))

    assert times(stats) == {"": (17, 3), "inner": (14, 14)}


trees = st.recursive(
    st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.just(())),
    lambda children: st.tuples(
        st.integers(0, 10**6), st.integers(0, 10**6), st.lists(children, max_size=4)
    ),
    max_leaves=12,
)


def _built(clock: Clock, tree: Any) -> Takes:
    own_ns, back_ns, children = tree
    parts = (_built(clock, child) for child in children)
    return Takes(clock, own_ns, *parts, back_ns=back_ns)


def _expected(tree: Any, way: int, path: str = "") -> Iterator[tuple[str, tuple[int, int]]]:
    """The times of a tree of modules, parents first, added up by hand; `way` 1 is backward."""
    below: list[tuple[str, tuple[int, int]]] = []
    total = own = tree[way] * (len(tree[2]) + 1)
    for number, child in enumerate(tree[2]):
        place = f"{path}.parts.{number}" if path else f"parts.{number}"
        found = list(_expected(child, way, place))
        total += found[0][1][0]
        below += found
    yield path, (total, own)
    yield from below


@given(trees, st.integers(1, 3))
@settings(max_examples=max(10, EXAMPLES // 5), deadline=None)
def test_times_of_any_tree_add_up_as_by_hand(tree: Any, runs: int) -> None:
    with one_clock() as clock:
        model = _built(clock, tree)
        with record_torch_module_forward_stats(model):
            for _ in range(runs):
                model(X.clone().requires_grad_()).sum().backward()
        stats = get_forward_stats(model)

    there, back = dict(_expected(tree, 0)), dict(_expected(tree, 1))
    assert times(stats) == {path: (runs * a, runs * b) for path, (a, b) in there.items()}
    assert backward_times(stats) == {path: (runs * a, runs * b) for path, (a, b) in back.items()}
    for path, timing in stats.timings.items():
        inner = [one for one in stats.timings if one.rpartition(".parts.")[0] == path and one]
        direct = [one for one in inner if path or one.count(".") == 1]
        assert sum(ns(stats.timings[one].total) for one in direct) <= ns(timing.total)
        assert timing.calls == timing.total.count == timing.own.count == runs


def test_repeated_calls_have_a_median_and_a_spread(clock: Clock) -> None:
    waits = iter((10, 30, 20, 1_000, 20))
    model = Does(lambda _: clock.take(next(waits)))

    with record_torch_module_forward_stats(model):
        for _ in range(5):
            model()

    total = get_forward_stats(model).timings[""].total
    assert (total.count, total.median_s, total.deviation_s) == (5, 20e-9, 10e-9)
    assert (total.min_s, total.max_s) == (10e-9, 1_000e-9)
    assert total.sum_s == pytest.approx(1_080e-9)


def test_any_number_of_calls_takes_little_memory_and_sums_stay_exact() -> None:
    samples = Samples()

    for time_ns in range(100_000):
        samples.add(time_ns)

    spread = samples.spread()
    assert spread is not None
    assert len(samples._sample) == MAX_SAMPLES
    assert (spread.count, samples.sum_ns) == (100_000, sum(range(100_000)))
    assert (spread.min_s, spread.max_s) == (0.0, 99_999e-9)
    assert 0.4 < spread.median_s / 99_999e-9 < 0.6, "a fair draw is about the middle"


def test_a_module_that_calls_itself_is_counted_once(clock: Clock) -> None:
    inner = Does(lambda _: clock.take(1))

    def recurse(self: Any, depth: int) -> None:
        clock.take(10)
        if depth:
            self.inner()
            self(depth - 1)

    model = Does(recurse, inner=inner)
    stats = recorded(model, 3)

    assert times(stats) == {"": (43, 40), "inner": (3, 3)}
    assert stats.timings[""].calls == 4
    assert stats.timings[""].total.count == 1


def test_a_shared_module_counts_under_the_path_of_its_caller(clock: Clock) -> None:
    shared = Takes(clock, 1)
    model = Takes(clock, 0, Takes(clock, 0, shared), Takes(clock, 0, shared, shared))

    stats = recorded(model, X)

    calls_of = {path: one.calls for path, one in stats.timings.items()}
    assert calls_of["parts.0.parts.0"] == 1
    assert calls_of["parts.1.parts.0"] == 2, "of paths that are as near, the first"
    assert "parts.1.parts.1" not in calls_of
    assert any("parts.0.parts.0 = parts.1.parts.0 = parts.1.parts.1" in n for n in stats.notes)


def test_modules_that_hold_each_other_are_recorded(clock: Clock) -> None:
    child = Does(lambda _: clock.take(1))
    model = Does(lambda self: self.child(), child=child)
    child.add_module("owner", model)

    assert times(recorded(model)) == {"": (1, 0), "child": (1, 1)}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_call_that_fails_has_no_times_and_its_caller_has(
    clock: Clock, error: type[BaseException]
) -> None:
    def fail(_: Any) -> None:
        clock.take(5)
        raise error

    def outer(self: Any) -> None:
        clock.take(2)
        try:
            self.middle()
        except error:
            clock.take(1)
        self.last()

    middle = Does(lambda self: self.inner(), inner=Does(fail))
    model = Does(outer, middle=middle, last=Does(lambda _: clock.take(4)))
    stats = recorded(model)

    assert times(stats) == {"": (12, 3), "last": (4, 4)}
    assert "2 calls not timed: ended with an exception" in stats.notes


def test_a_run_that_was_ended_early_leaves_the_next_one_right(clock: Clock) -> None:
    def work(self: Any, is_early: bool) -> None:
        self.inner()
        if is_early:
            raise KeyboardInterrupt

    model = Does(work, inner=Does(lambda _: clock.take(1)))
    with record_torch_module_forward_stats(model):
        with pytest.raises(KeyboardInterrupt):
            model(True)
        model(False)
    stats = get_forward_stats(model)

    assert (stats.runs, stats.timings[""].calls, stats.timings["inner"].calls) == (1, 1, 2)
    assert [(step.path, step.depth) for step in stats.flow] == [("", 0), ("inner", 1)]


def test_threads_have_calls_of_their_own(clock: Clock) -> None:
    inside, outside = threading.Barrier(2), threading.Barrier(2)

    def work(self: Any) -> None:
        inside.wait(timeout=60)
        self.inner()
        outside.wait(timeout=60)

    model = Does(work, inner=Does(lambda _: None))
    with record_torch_module_forward_stats(model):
        threads = [threading.Thread(target=model) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    stats = get_forward_stats(model)

    assert {path: one.calls for path, one in stats.timings.items()} == {"": 2, "inner": 2}
    assert {(step.path, step.depth) for step in stats.flow} <= {("", 0), ("inner", 1)}


def test_copies_that_run_in_parallel_count_for_the_module_that_they_are_of(clock: Clock) -> None:
    model = nn.Sequential(Takes(clock, 3))

    with record_torch_module_forward_stats(model):
        model._replicate_for_data_parallel()(X)
        model[0]._replicate_for_data_parallel()(X)

    assert times(get_forward_stats(model)) == {"": (3, 0), "0": (6, 6)}


def test_a_module_that_is_added_by_a_run_is_recorded(clock: Clock) -> None:
    def work(self: Any) -> None:
        self.late = Does(lambda _: clock.take(4))
        self.late()
        Does(lambda _: clock.take(2))()

    stats = recorded(Does(work))

    assert times(stats) == {"": (6, 2), "late": (4, 4)}, "of what it does not hold, it is the time"


def test_hooks_of_the_user_are_part_of_the_call(clock: Clock) -> None:
    model = nn.Sequential(nn.Identity())
    model[0].register_forward_pre_hook(lambda *_: clock.take(3))

    def replace(*_: Any) -> Any:
        clock.take(4)
        return torch.zeros(7)

    model[0].register_forward_hook(replace)

    stats = recorded(model, X)

    assert times(stats) == {"": (7, 0), "0": (7, 7)}
    assert [one.shape for one in stats.timings["0"].outputs] == [(7,)]


def test_recordings_can_be_nested(clock: Clock) -> None:
    inner = Takes(clock, 5, back_ns=50)
    model = Takes(clock, 1, inner, back_ns=10)

    with record_torch_module_forward_stats(model):
        with record_torch_module_forward_stats(inner):
            model(X.clone().requires_grad_()).sum().backward()
            inside = get_forward_stats(inner)
        with record_torch_module_forward_stats(model):
            model(X)
        twice = get_forward_stats(model)
        model(X)

    assert (times(inside), backward_times(inside)) == ({"": (5, 5)}, {"": (50, 50)})
    assert times(twice) == {"": (7, 2), "parts.0": (5, 5)}


def test_a_recording_takes_the_place_of_the_last_one_unless_that_is_kept(clock: Clock) -> None:
    model = Takes(clock, 1)

    for keep, runs in ((False, 1), (True, 2), (True, 3), (False, 1)):
        with record_torch_module_forward_stats(model, keep=keep):
            model(X)
        stats = get_forward_stats(model)
        assert (stats.runs, times(stats)) == (runs, {"": (runs, runs)})


def test_a_recording_that_keeps_what_is_around_it_counts_once(clock: Clock) -> None:
    model = Takes(clock, 1)

    with record_torch_module_forward_stats(model):
        model(X)
        with record_torch_module_forward_stats(model, keep=True):
            model(X)
        model(X)

    assert times(get_forward_stats(model)) == {"": (3, 3)}


def test_backward_passes_are_times_of_the_nodes_of_a_call(clock: Clock) -> None:
    inner = Takes(clock, 0, Takes(clock, 0, back_ns=7), back_ns=20)
    model = Takes(clock, 0, inner, back_ns=300)

    with record_torch_module_forward_stats(model):
        loss = model(X.clone().requires_grad_()).sum()
        loss.backward(retain_graph=True)
        clock.take(10**6)
        loss.backward()
    stats = get_forward_stats(model)

    once = {"": (647, 600), "parts.0": (47, 40), "parts.0.parts.0": (7, 7)}
    assert backward_times(stats) == {path: (2 * a, 2 * b) for path, (a, b) in once.items()}
    assert all(one.has_gradient for one in stats.timings.values())
    assert stats.timings[""].backward == Spread(2, 647e-9, 0.0, 647e-9, 647e-9, 1294e-9)


def test_what_has_no_gradient_has_no_backward_time(clock: Clock) -> None:
    frozen, trained = Takes(clock, 0, back_ns=1), nn.Linear(2, 2)
    model = nn.Sequential(frozen, trained)

    with record_torch_module_forward_stats(model):
        model(X).sum().backward()
    stats = get_forward_stats(model)

    assert [(p, one.has_gradient) for p, one in stats.timings.items()] == [
        ("", True),
        ("0", False),
        ("1", True),
    ]
    assert stats.timings["0"].backward is None


def test_a_loss_that_is_not_returned_is_followed_too(clock: Clock) -> None:
    kept: list[Any] = []
    model = Does(lambda self, x: kept.append(self.inner(x)), inner=Takes(clock, 0, back_ns=5))

    with record_torch_module_forward_stats(model):
        model(X.clone().requires_grad_())
        kept[0].sum().backward()

    assert backward_times(get_forward_stats(model)) == {"": (5, 0), "inner": (5, 5)}


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_what_is_computed_again_is_backward_time(clock: Clock, use_reentrant: bool) -> None:
    inner = Takes(clock, 5, back_ns=50)

    def work(self: Any, x: Any) -> Any:
        return checkpoint(self.inner, x, use_reentrant=use_reentrant)

    model = Does(work, inner=inner)
    with record_torch_module_forward_stats(model):
        model(X.clone().requires_grad_()).sum().backward()
    stats = get_forward_stats(model)

    assert times(stats) == {"": (5, 0), "inner": (5, 5)}
    # With re-entrance there is a node of the caller's that computes it all again.
    assert backward_times(stats) == (
        {"": (55, 5), "inner": (50, 50)} if use_reentrant else {"": (55, 0), "inner": (55, 55)}
    )
    assert any(note.startswith("1 call recomputed by a backward pass") for note in stats.notes)


def test_a_backward_pass_that_fails_has_no_times(clock: Clock) -> None:
    def fail(_: Any) -> None:
        raise ValueError("no gradient today")

    model = Takes(clock, 0, back_ns=5)
    with record_torch_module_forward_stats(model):
        x = X.clone().requires_grad_()
        y = model(x * 2)
        y.grad_fn.next_functions[0][0].register_prehook(fail)
        with pytest.raises(ValueError, match="today"):
            y.sum().backward()
        model(x).sum().backward()

    backward = get_forward_stats(model).timings[""].backward
    assert backward is not None
    assert (backward.count, ns(backward)) == (1, 5)


def test_backward_passes_after_the_recording_are_not_timed(clock: Clock) -> None:
    model = Takes(clock, 0, back_ns=5)

    with record_torch_module_forward_stats(model):
        loss = model(X.clone().requires_grad_()).sum()
    loss.backward()

    assert get_forward_stats(model).timings[""].backward is None


def test_a_model_with_operations_in_place_gets_the_same_gradients() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(Block(2), Block(2)), torch.randn(1, 2, 4, 4)
    model(x).sum().backward()
    plain = [one.grad.clone() for one in model.parameters()]
    model.zero_grad()

    with record_torch_module_forward_stats(model):
        model(x).sum().backward()

    assert all(torch.equal(a, b.grad) for a, b in zip(plain, model.parameters(), strict=True))
    stats = get_forward_stats(model)
    assert all(one.has_gradient for one in stats.timings.values())
    assert Counter(one.calls for one in stats.timings.values()) == {1: 7, 2: 2}


IMAGES = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(2))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name",
    ["resnet50", "mobilenet_v3_small", "densenet121", "efficientnet_b0", "shufflenet_v2_x1_0",
     "regnet_y_400mf", "swin_t", "convnext_tiny"],
)  # fmt: skip
def test_published_networks_run_as_without_recording(name: str) -> None:
    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(0)
    model = torchvision.models.get_model(name)
    state = {key: value.clone() for key, value in model.state_dict().items()}

    def outcome() -> list[Any]:
        torch.manual_seed(1)
        model.load_state_dict(state)
        model.zero_grad()
        out = model(IMAGES)
        out.sum().backward()
        return [out, *(one.grad for one in model.parameters())]

    plain = outcome()
    with record_torch_module_forward_stats(model):
        again = outcome()
    stats = get_forward_stats(model)

    assert all(torch.equal(a, b) for a, b in zip(plain, again, strict=True))
    whole, timings = stats.timings[""], stats.timings.values()
    assert sum(ns(one.own) for one in timings) == pytest.approx(ns(whole.total), abs=len(timings))
    backward = sum(own for _, own in backward_times(stats).values())
    assert backward == pytest.approx(ns(whole.backward), abs=len(timings))
    assert [note for note in stats.notes if "on the CPU is a lower bound" not in note] == []
