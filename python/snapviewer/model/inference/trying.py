"""Runs a model in other ways, as far as time and model allow, and keeps why a way was not tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from snapviewer.model.graph import Graph, Node
from snapviewer.model.inference import running
from snapviewer.model.inference.batches import Batches, time_batches
from snapviewer.model.inference.metering import Metering
from snapviewer.model.inference.result import Runs
from snapviewer.model.inference.running import Runner
from snapviewer.model.inference.steps import Steps
from snapviewer.model.inference.trials import (
    DtypeRun,
    Layouts,
    ThreadTrials,
    thread_counts,
    time_dtype,
    time_layouts,
    time_threads,
)
from snapviewer.model.system import read_memory
from snapviewer.model.work import MOSTLY_IMAGES, image_share, main_dtype

# Shares of the time budget.
_THREADS, _LAYOUT, _BATCH, _DTYPE = 0.5, 0.3, 0.5, 0.3
_ON_GPU = "the model ran on a GPU"


@dataclass(frozen=True, slots=True)
class Trials:
    """What the trials of a profile have in common."""

    runner: Runner
    runs: Runs
    graph: Graph | None
    metering: Metering
    repeats: int
    budget_s: float
    steps: Steps

    def threads(self, maximum: int) -> ThreadTrials:
        """Try numbers of threads."""
        steps = self.steps
        if self.runner.device.startswith("cuda"):
            steps.notes.append(f"{_ON_GPU}: other numbers of threads were not tried")
            steps.untried["threads"] = _ON_GPU
            return ThreadTrials()
        if maximum == 1:
            steps.untried["threads"] = "one thread is the most that it may use"
        found = steps.attempt(
            "runs with other numbers of threads failed",
            lambda: time_threads(
                self.runner,
                maximum,
                self.metering,
                like=self.runs.recorded,
                repeats=self.repeats,
                is_over=self._over(_THREADS / len(thread_counts(maximum))),
            ),
            way="threads",
        )
        return found or ThreadTrials()

    def layouts(self) -> Layouts | None:
        """Try channels_last, if convolutions dominate."""
        if image_share(self._nodes()) < MOSTLY_IMAGES:
            self.steps.untried["layout"] = "convolutions of images are not most of the work"
            return None
        end_ns = running.clock_ns() + self.budget_s * _LAYOUT * 1e9

        def is_over() -> bool:
            self.steps.reach(self.steps.done)
            return running.clock_ns() > end_ns

        return self.steps.attempt(
            "channels_last was not timed",
            lambda: time_layouts(self.runner, self.metering, repeats=self.repeats, is_over=is_over),
            way="layout",
        )

    def batches(self) -> Batches | None:
        """Try batch sizes."""
        memory = self.runs.memory
        return self.steps.attempt(
            "other batches were not timed",
            lambda: time_batches(
                self.runner,
                self.metering,
                run_bytes=memory.peak.value if memory else None,
                free_bytes=_free_bytes(self.runner.device),
                budget_s=self.budget_s * _BATCH,
                reach=lambda: self.steps.reach(self.steps.done),
            ),
            way="batch",
        )

    def dtype(self) -> DtypeRun | None:
        """Try half precision, if the model computes in float32."""
        own = main_dtype(self._nodes())
        if own != "float32":
            self.steps.untried["dtype"] = f"the model computes in {own}"
            return None
        return self.steps.attempt(
            "another dtype was not timed",
            lambda: time_dtype(
                self.runner,
                "float16" if self.runner.device.startswith("cuda") else "bfloat16",
                self.metering,
                repeats=self.repeats,
                is_over=self._over(_DTYPE),
            ),
            way="dtype",
        )

    def _nodes(self) -> tuple[Node, ...]:
        if self.runs.recorded is not None:
            return self.runs.recorded.nodes
        return self.graph.nodes if self.graph is not None else ()

    def _over(self, share: float) -> Callable[[int], bool]:
        """Return whether runs have taken a share of the time budget."""

        def is_over(spent_ns: int) -> bool:
            self.steps.reach(self.steps.done)
            return spent_ns > self.budget_s * share * 1e9

        return is_over


def _free_bytes(device: str) -> float | None:
    import torch

    if device.startswith("cuda"):
        return float(torch.cuda.mem_get_info(device)[0])
    return read_memory().available.value
