"""Profiles a model: runs it in several ways, one after another.

# Cost

The warm-ups, and then about twice the time budget: plain and timed runs share the budget, runs
with other numbers of threads take up to half of it, those for energy a fifth, and measuring the
machine two seconds, once per process. Trials of layouts, batch sizes and dtypes take about as long
as the budget again. Each way runs at least once, however long that takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any

from snapviewer import CancelledError, SnapshotError
from snapviewer.model.energy import Energy, EnergyMeter, RunWork, work_by_class
from snapviewer.model.graph import Graph
from snapviewer.model.inference import running
from snapviewer.model.inference.counted import count_run
from snapviewer.model.inference.dispatch import RecordedRun, record_run
from snapviewer.model.inference.environment import MEMORY, NODES, read_environment
from snapviewer.model.inference.loading import torch_for
from snapviewer.model.inference.memory import measure_memory
from snapviewer.model.inference.metering import Metering
from snapviewer.model.inference.result import Profile, Runs, profile_of
from snapviewer.model.inference.running import (
    Runner,
    error_text,
    gradients_off,
    prepared,
    thread_count,
)
from snapviewer.model.inference.steps import Progress, Steps
from snapviewer.model.inference.torch_profiler import time_run
from snapviewer.model.inference.trying import Trials
from snapviewer.model.nvml import NoAnswerError
from snapviewer.model.roofline import Roof, measure_roof
from snapviewer.model.system import SystemMonitor, SystemUse
from snapviewer.model.system.flop_counters import flop_counters
from snapviewer.model.work import main_dtype
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

# The share of the time budget for the runs whose energy is reported.
_ENERGY_SHARE = 0.2


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

    The module runs in eval mode and without gradients, and is restored afterwards. Failures on the
    way are notes in the result; only a module that does not run at all raises.

    Args:
        module: A `torch.nn.Module`, a loaded ScriptModule, or a `torch.export.ExportedProgram`.
        inputs: A tuple or list of arguments, a dict of keyword arguments, or a single argument.
            Tensors may be nested in them; a `TensorSpec` stands for a tensor.
        keywords: Further keyword arguments.
        graph: The graph of the module's file, which has the modules of a ScriptModule's operations.
        warmups: The number of first runs that do not count; at least one.
        repeats: The maximum number of plain and of timed runs.
        budget_s: When to stop repeating.
        device: `cpu` or `cuda`; by default that of the module.
        threads: The number of threads; by default the setting of torch.
        roof: The limits of the machine, if already measured.
        tdp_w: The thermal design power of the chip, for an estimate if no sensor works.
        carbon_intensity: Grams of CO2 per kilowatt-hour; the world average by default.
        energy_model: The energy model, if there is no sensor and no TDP.
        idle_s: How long to watch the idle machine, to measure what the runs add to it.
        level: What to record, instead of `PYTORCH_PROFILER_LEVEL`.
        has_trials: Whether to try other layouts and batch sizes as well.
        progress: Called with (done, total) after each step.
        cancel: Stops it between two runs.

    Raises:
        SnapshotError: torch is not installed, or the model did not run; the message quotes it.
        CancelledError: `cancel` was set.
        ValueError: There is less than one thread or repeat.
    """
    if repeats < 1 or (threads is not None and threads < 1):
        raise ValueError("at least one run with at least one thread is needed")
    torch = torch_for("running a model")
    settings = read_environment()
    if level is not None:
        settings = replace(settings, level=level)
    max_threads = settings.max_threads or max(torch.get_num_threads(), threads or 1)
    warmups = max(warmups, 1)
    has_nodes = settings.level >= NODES
    steps = Steps(warmups + repeats + 8, progress, cancel)
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
            with _failure_quoted():
                runs.warmups_ns.append(runner.timed_ns())
        steps.reach(warmups)
        if has_nodes:
            runs.recorded = steps.attempt(
                "the operations could not be recorded",
                lambda: record_run(runner, has_lines=settings.level >= MEMORY),
            )
        steps.take()
        with _failure_quoted():
            _repeat(runner, runs, repeats, budget_s, steps)
        steps.reach(warmups + repeats + 1)
        if has_nodes:
            runs.roof = roof or steps.attempt(
                "the machine could not be measured", lambda: _roof(runner, runs)
            )
        steps.take()
        _memory(runner, runs, steps)
        steps.take()
        work = _work(runs.recorded, graph)
        meter = partial(EnergyMeter, device=runner.device, tdp_w=tdp_w, model=energy_model)
        trials = Trials(runner, runs, graph, Metering(meter, work), repeats, budget_s, steps)
        if has_nodes:
            runs.thread_trials = trials.threads(max_threads)
        steps.take()
        _count(runner, runs, steps)
        steps.take()
        used = steps.attempt(
            "energy and the use of the machine were not measured",
            lambda: _energy(
                runner,
                work,
                budget_s * _ENERGY_SHARE,
                steps,
                meter=meter(idle_s=idle_s),
                carbon_intensity=carbon_intensity,
            ),
        )
        if used is not None:
            runs.energy_ns, runs.energy, runs.system = used
        if runs.system is not None and runs.system.is_shared:
            steps.notes.append(
                "other programs used the machine during the runs, which would be faster alone"
            )
        steps.take()
        if has_trials:
            runs.layouts = trials.layouts()
            steps.take()
            runs.batches = trials.batches()
            runs.dtype_run = trials.dtype()
        else:
            steps.untried |= dict.fromkeys(
                ("layout", "batch", "dtype"), "trials were not requested"
            )
        runs.untried = steps.untried
    steps.reach(steps.total)
    return profile_of(runs, graph, steps.notes)


@contextmanager
def _failure_quoted() -> Iterator[None]:
    """Raise a SnapshotError if a model that ran before fails now."""
    try:
        yield
    except (SnapshotError, CancelledError):
        raise
    except Exception as error:  # noqa: BLE001 (a model may raise anything at all)
        said = sanitize(f"{type(error).__name__}: {error_text(error)}", MAX_NAME_CHARS)
        raise SnapshotError(f"the model ran once but failed later: {said}") from None


def _first(runner: Runner, stack: ExitStack, steps: Steps) -> int:
    """Run for the first time, without gradients if the model allows it."""
    failure = ""
    for is_off in (True, False):
        mode = ExitStack()
        mode.enter_context(gradients_off(is_off))
        try:
            time_ns = runner.timed_ns()
        except Exception as error:  # noqa: BLE001 (a model may raise anything at all)
            mode.close()
            failure = failure or f"{type(error).__name__}: {error_text(error)}"
            continue
        stack.push(mode)
        if not is_off:
            steps.notes.append("the model runs only with gradients, and was timed with them")
        return time_ns
    raise SnapshotError(f"the model failed with these inputs: {sanitize(failure, MAX_NAME_CHARS)}")


def _repeat(runner: Runner, runs: Runs, repeats: int, budget_s: float, steps: Steps) -> None:
    """Alternate plain and timed runs, so that both meet the same disturbances."""
    start_ns = running.clock_ns()
    odd = 0
    like = runs.recorded
    for _ in range(repeats):
        runs.plain_ns.append(runner.timed_ns())
        if like is not None:
            run = steps.attempt("operations could not be timed", partial(time_run, runner, like))
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
            f"{odd} of {len(runs.plain_ns)} runs had other operations than the first, and do not "
            "count in the times of operations"
        )


def _roof(runner: Runner, runs: Runs) -> Roof:
    return measure_roof(
        threads=None if runner.device.startswith("cuda") else runs.threads,
        device=runner.device,
        dtype=main_dtype(runs.recorded.nodes if runs.recorded else ()),
        backend="torch",
    )


def _memory(runner: Runner, runs: Runs, steps: Steps) -> None:
    like = runs.recorded
    if runs.level < MEMORY or like is None:
        return
    found = steps.attempt("memory was not recorded", lambda: measure_memory(runner, like))
    if found is not None:
        runs.memory, runs.allocations = found


def _count(runner: Runner, runs: Runs, steps: Steps) -> None:
    """Let the processor count the FLOPs, if it can; the result says why it cannot."""
    like = runs.recorded
    if like is None:
        return
    if runner.device.startswith("cuda"):
        runs.why_uncounted = "the model ran on a GPU, whose operations no counter of ours sees"
        return
    try:
        runs.counted = count_run(runner, like, flop_counters())
    except NoAnswerError as error:
        runs.why_uncounted = str(error)
    except Exception as error:  # noqa: BLE001 (a model may raise anything at all)
        runs.why_uncounted = f"a counted run failed: {error_text(error)}"
    steps.reach(steps.done)


def _work(like: RecordedRun | None, graph: Graph | None) -> RunWork | None:
    nodes = like.nodes if like is not None else graph.nodes if graph is not None else None
    return None if nodes is None else work_by_class(nodes)


def _energy(
    runner: Runner,
    work: RunWork | None,
    duration_s: float,
    steps: Steps,
    *,
    meter: EnergyMeter,
    carbon_intensity: float | None,
) -> tuple[list[int], Energy, SystemUse]:
    """Run for a while and measure energy and machine; these runs come after the plain ones."""
    times_ns: list[int] = []
    with meter, SystemMonitor() as monitor:
        start_ns = running.clock_ns()
        while not times_ns or running.clock_ns() - start_ns < duration_s * 1e9:
            times_ns.append(runner.timed_ns())
            steps.reach(steps.done)
    energy = meter.result(runs=len(times_ns), work=work, carbon_intensity=carbon_intensity)
    return times_ns, energy, monitor.result()
