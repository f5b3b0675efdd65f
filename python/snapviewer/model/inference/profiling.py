"""Runs a model in several ways, one after another, and gathers what they show.

# Cost

The warm-ups, and then about twice the time budget: plain and timed runs share the budget, the runs
with other numbers of threads take up to half of it, those for energy a fifth, and the machine's
roof two seconds, once in a process. Trials of other layouts and batches take up to four fifths
more. Each way runs at least once, however long that takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any

from snapviewer import CancelledError, SnapshotError
from snapviewer.model.energy import Energy, EnergyMeter, WorkTotals
from snapviewer.model.graph import Graph, Node, TensorSpec
from snapviewer.model.inference import running
from snapviewer.model.inference.allocations import watch_memory
from snapviewer.model.inference.batches import Batches, time_batches
from snapviewer.model.inference.gathering import Runs, gathered_profile
from snapviewer.model.inference.layouts import Layouts, time_layouts
from snapviewer.model.inference.listening import Recorded, recorded
from snapviewer.model.inference.loading import torch_for
from snapviewer.model.inference.result import Profile
from snapviewer.model.inference.running import Runner, gradients_off, prepared, thread_count
from snapviewer.model.inference.settings import MEMORY, NODES, read_settings
from snapviewer.model.inference.steps import Progress, Steps, said_by
from snapviewer.model.inference.threads import ThreadRun, counts_up_to, thread_runs
from snapviewer.model.inference.torch_profiler import timed
from snapviewer.model.roofline import Roof, measure_roof
from snapviewer.model.system import SystemMonitor, SystemUse, read_memory
from snapviewer.model.work import MOSTLY_IMAGES, Uncounted, image_share, totals_of, work_of
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

_THREADS_SHARE, _ENERGY_SHARE, _LAYOUT_SHARE, _BATCH_SHARE = 0.5, 0.2, 0.3, 0.5


def profile(
    module: Any,
    inputs: Any,
    *,
    keywords: Mapping[str, Any] | None = None,
    graph: Graph | None = None,
    warmups: int = 3,
    repeats: int = 10,
    budget_s: float = 5.0,
    device: str | None = None,
    threads: int | None = None,
    roof: Roof | None = None,
    tdp_w: float | None = None,
    carbon_intensity: float | None = None,
    energy_model: str = "picojoules",
    idle_s: float = 0.0,
    level: int | None = None,
    has_trials: bool = False,
    progress: Progress | None = None,
    cancel: Event | None = None,
) -> Profile:
    """Run a module and time it, as a whole and each operation.

    The module runs in eval mode and without gradients, and is left as it was. What fails on the
    way is noted in the result; only a module that does not run at all raises.

    Args:
        module: A `torch.nn.Module`, a loaded ScriptModule, or a `torch.export.ExportedProgram`.
        inputs: What it is called with: a tuple or list of arguments, a dict of keyword arguments,
            or one argument alone. Tensors may be anywhere inside; a `TensorSpec` stands for one.
        keywords: Keyword arguments beside them.
        graph: The graph of the file that the module is from, which knows the modules of a
            ScriptModule's operations.
        warmups: How many runs come first and do not count; at least one.
        repeats: How many plain and how many timed runs, at most.
        budget_s: When to stop repeating.
        device: `cpu` or `cuda`; where the module is if not given.
        threads: How many threads compute; as torch is set if not given.
        roof: What the machine can do, if that is known already.
        tdp_w: The power that the chip is built for, for an estimate where nothing is measured.
        carbon_intensity: Grams of CO2 for a kilowatt-hour; the world's average if not given.
        energy_model: The model of the last rung of the ladder.
        idle_s: How long to watch the idle machine, to tell what the runs add to it.
        level: How much to look at, instead of what `PYTORCH_PROFILER_LEVEL` says.
        has_trials: Whether to try other layouts and batches too.
        progress: Called with (done, total) after each step.
        cancel: Stops it between two runs.

    Raises:
        SnapshotError: torch is not installed, or the model did not run; the message says what the
            model said.
        CancelledError: `cancel` was set.
        ValueError: There is less than one thread or repeat.
    """
    if repeats < 1 or (threads is not None and threads < 1):
        raise ValueError("at least one run with at least one thread is needed")
    torch = torch_for("running a model")
    settings = read_settings()
    if level is not None:
        settings = replace(settings, level=level)
    most_threads = settings.most_threads or max(torch.get_num_threads(), threads or 1)
    warmups = max(warmups, 1)
    has_nodes = settings.level >= NODES
    steps = Steps(warmups + repeats + 7, progress, cancel)
    steps.notes.extend(settings.notes)
    with ExitStack() as stack:
        runner = stack.enter_context(
            prepared(module, inputs, keywords, device=device, settings=settings, notes=steps.notes)
        )
        stack.enter_context(thread_count(threads))
        runs = Runs(runner.device, torch.get_num_threads(), settings.level)
        runs.warmups_ns.append(_first(runner, stack, steps))
        for _ in range(warmups - 1):
            steps.take()
            with _failure_told():
                runs.warmups_ns.append(runner.timed_ns())
        steps.reach(warmups)
        if has_nodes:
            runs.recorded = steps.attempt(
                "the operations could not be listened to",
                lambda: recorded(runner, has_lines=settings.level >= MEMORY),
            )
        steps.take()
        with _failure_told():
            _repeat(runner, runs, repeats, budget_s, steps)
        steps.reach(warmups + repeats + 1)
        if has_nodes:
            runs.roof = roof or steps.attempt(
                "the machine could not be measured", lambda: _roof(runner, runs)
            )
        steps.take()
        _memory(runner, runs, steps)
        steps.take()
        if has_nodes:
            runs.thread_runs = _threads(runner, most_threads, repeats, budget_s, steps)
        steps.take()
        used = steps.attempt(
            "energy and the use of the machine were not measured",
            lambda: _energy(
                runner,
                _work(runs.recorded, graph),
                budget_s * _ENERGY_SHARE,
                steps,
                meter=EnergyMeter(
                    device=runner.device, tdp_w=tdp_w, model=energy_model, idle_s=idle_s
                ),
                carbon_intensity=carbon_intensity,
            ),
        )
        runs.energy, runs.system = used or (None, None)
        if runs.system is not None and runs.system.is_shared:
            steps.notes.append(
                "other programs kept the machine busy during the runs: alone they would be faster"
            )
        steps.take()
        if has_trials:
            runs.layouts = _layouts(runner, runs, graph, repeats, budget_s, steps)
            steps.take()
            runs.batches = _batches(runner, runs, budget_s, steps)
    steps.reach(steps.total)
    return gathered_profile(runs, graph, steps.notes)


@contextmanager
def _failure_told() -> Iterator[None]:
    """Say in a sentence that a model ran before, and now does not."""
    try:
        yield
    except (SnapshotError, CancelledError):
        raise
    except Exception as error:  # noqa: BLE001 (a model may raise anything at all)
        said = sanitize(f"{type(error).__name__}: {said_by(error)}", MAX_NAME_CHARS)
        raise SnapshotError(f"the model ran once, and not again; it said: {said}") from None


def _first(runner: Runner, stack: ExitStack, steps: Steps) -> int:
    """Run for the first time, without gradients if the model allows it."""
    said = ""
    for is_off in (True, False):
        mode = ExitStack()
        mode.enter_context(gradients_off(is_off))
        try:
            time_ns = runner.timed_ns()
        except Exception as error:  # noqa: BLE001 (a model may raise anything at all)
            mode.close()
            said = said or f"{type(error).__name__}: {said_by(error)}"
            continue
        stack.push(mode)
        if not is_off:
            steps.notes.append("the model runs with gradients only, so that is what was timed")
        return time_ns
    raise SnapshotError(
        f"the model did not run with these inputs; it said: {sanitize(said, MAX_NAME_CHARS)}"
    )


def _repeat(runner: Runner, runs: Runs, repeats: int, budget_s: float, steps: Steps) -> None:
    """Run plainly and listened to in turn, so that both meet the same disturbances."""
    start_ns = running.clock_ns()
    odd = 0
    like = runs.recorded
    for _ in range(repeats):
        runs.plain_ns.append(runner.timed_ns())
        if like is not None:
            run = steps.attempt("operations could not be timed", partial(timed, runner, like))
            if run is None:
                like = None
            elif run.is_like:
                runs.timed.append(run)
            else:
                odd += 1
        steps.take()
        if running.clock_ns() - start_ns > budget_s * 1e9:
            break
    if odd:
        steps.notes.append(
            f"{odd} of {len(runs.plain_ns)} runs had other operations than the first: the times of "
            "operations are without them"
        )


def _roof(runner: Runner, runs: Runs) -> Roof:
    return measure_roof(
        threads=None if runner.device.startswith("cuda") else runs.threads,
        device=runner.device,
        dtype=_main_dtype(runs.recorded.nodes if runs.recorded else ()),
        backend="torch",
    )


def _main_dtype(nodes: tuple[Node, ...]) -> str:
    """Return the type of the numbers with which most is computed."""
    flops: dict[str, int] = {}
    for node in nodes:
        work = work_of(node)
        spec = next((value for value in node.arguments if isinstance(value, TensorSpec)), None)
        if not isinstance(work, Uncounted) and spec is not None and "float" in spec.dtype:
            flops[spec.dtype] = flops.get(spec.dtype, 0) + work.flops
    return max(flops, key=lambda dtype: flops[dtype], default="float32")


def _memory(runner: Runner, runs: Runs, steps: Steps) -> None:
    like = runs.recorded
    if runs.level < MEMORY or like is None:
        return
    found = steps.attempt("memory was not watched", lambda: watch_memory(runner, like))
    if found is not None:
        runs.memory, runs.allocations = found


def _threads(
    runner: Runner, most: int, repeats: int, budget_s: float, steps: Steps
) -> tuple[ThreadRun, ...]:
    if runner.device.startswith("cuda"):
        steps.notes.append("the model ran on a GPU: what more threads bring was not measured")
        return ()
    each_ns = budget_s * _THREADS_SHARE / len(counts_up_to(most)) * 1e9

    def is_over(_: int, spent_ns: int) -> bool:
        steps.reach(steps.done)
        return spent_ns > each_ns

    found = steps.attempt(
        "runs with other numbers of threads failed",
        lambda: thread_runs(runner, most, repeats=repeats, is_over=is_over),
    )
    return found or ()


def _layouts(
    runner: Runner, runs: Runs, graph: Graph | None, repeats: int, budget_s: float, steps: Steps
) -> Layouts | None:
    nodes = runs.recorded.nodes if runs.recorded else graph.nodes if graph else ()
    if image_share(nodes) < MOSTLY_IMAGES:
        return None
    end_ns = running.clock_ns() + budget_s * _LAYOUT_SHARE * 1e9

    def is_over() -> bool:
        steps.reach(steps.done)
        return running.clock_ns() > end_ns

    return steps.attempt(
        "channels_last was not timed",
        lambda: time_layouts(runner, repeats=repeats, is_over=is_over),
    )


def _batches(runner: Runner, runs: Runs, budget_s: float, steps: Steps) -> Batches | None:
    peak = runs.memory.peak.value if runs.memory else None
    return steps.attempt(
        "other batches were not timed",
        lambda: time_batches(
            runner,
            run_bytes=peak,
            free_bytes=_free_bytes(runner.device),
            budget_s=budget_s * _BATCH_SHARE,
            reach=lambda: steps.reach(steps.done),
        ),
    )


def _free_bytes(device: str) -> float | None:
    import torch

    if device.startswith("cuda"):
        return float(torch.cuda.mem_get_info(device)[0])
    return read_memory().available.value


def _work(like: Recorded | None, graph: Graph | None) -> WorkTotals | None:
    nodes = like.nodes if like is not None else graph.nodes if graph is not None else None
    return None if nodes is None else totals_of(nodes).work


def _energy(
    runner: Runner,
    work: WorkTotals | None,
    least_s: float,
    steps: Steps,
    *,
    meter: EnergyMeter,
    carbon_intensity: float | None,
) -> tuple[Energy, SystemUse]:
    """Run for a while and watch the machine; these runs are not among the timed ones."""
    count = 0
    with meter, SystemMonitor() as monitor:
        start_ns = running.clock_ns()
        while count == 0 or running.clock_ns() - start_ns < least_s * 1e9:
            runner()
            count += 1
            steps.reach(steps.done)
        runner.wait()
    energy = meter.result(runs=count, work=work, carbon_intensity=carbon_intensity)
    return energy, monitor.result()
