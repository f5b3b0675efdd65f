"""The analysis of a log of memory events: one frozen result that all reports render.

A peak is a high-water mark that a recorder read; an increment is what a component, a cache or a
step added. What was not recorded is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .advice import Saving, advise
from .cards import Need, need_of
from .gather import (
    Component,
    Environment,
    Failure,
    Labelled,
    Other,
    Phase,
    Stage,
    by_phase,
    caches_of,
    components_of,
    environment_of,
    failures_of,
    highest_of,
    is_ended,
    largest,
    loaded_peak,
    lost_of,
    others_of,
    peaks_around,
    phases_of,
    stages_of,
)
from .log import Log, Oddity
from .names import role_of
from .peaks import Parts, Peak, reconcile
from .rating import Rating, rate
from .steps import Meaning, Steps, examine, split_runs

MAX_LISTED = 1000  # unknown events, and failures


@dataclass(frozen=True, slots=True)
class Analysis:
    """The result."""

    path: str
    event_count: int
    peak_event_count: int
    incremental_event_count: int
    environment: Environment
    components: tuple[Component, ...]
    phases: tuple[Phase, ...]
    stages: tuple[Stage, ...]
    others: tuple[Other, ...]
    other_count: int
    failures: tuple[Failure, ...]
    is_ended: bool
    lost_count: int
    """Events that the recorder could not write."""
    peak: Peak | None
    device_peak_bytes: int | None
    pytorch_peak_bytes: int | None
    parts: Parts | None
    has_kv_cache: bool
    steps: Steps | None
    need: Need | None
    rating: Rating
    advice: tuple[Saving, ...]
    oddities: tuple[Oddity, ...]
    odd_count: int

    @property
    def components_bytes(self) -> int | None:
        """The size of all components, negative ones as 0; None if none was recorded."""
        sizes = [item.size_bytes for item in self.components if item.size_bytes is not None]
        return sum(max(0, size) for size in sizes) if sizes else None


def analyze(log: Log, *, steps_are: Meaning | None = None) -> Analysis:
    """Analyze a log.

    Args:
        log: With at least one event.
        steps_are: What the values of steps are; if None, the numbers decide.

    Raises:
        ValueError: The log has no events.
    """
    if not log.events:
        raise ValueError("a log without events")
    events = [(event, role_of(event.name, event.model_name)) for event in log.events]
    environment = environment_of(events)
    components = components_of(events, environment)
    before, after = peaks_around(events)
    peak = max(
        (item for item in (before, after) if item), key=lambda item: item.size_bytes, default=None
    )
    if peak is None:
        peak = highest_of(events, lambda event: event.pytorch_peak_bytes)
    rise = after.size_bytes - before.size_bytes if before and after else None
    steps = _steps(events, steps_are, environment, peak, rise)
    parts = _parts(events, components, peak, steps)
    device_peak = largest(event.cuda_peak_bytes for event, _ in events)
    need = None
    if peak is not None and peak.size_bytes > 0 and environment.source == "device":
        need = need_of(peak.size_bytes, device_peak)
    others = others_of(events)
    sizes = {
        item.name: max(0, item.size_bytes) for item in components if item.size_bytes is not None
    }
    return Analysis(
        path=log.path,
        event_count=len(log.events),
        peak_event_count=sum(bool(event.peak_bytes) for event in log.events),
        incremental_event_count=sum(bool(event.incremental_bytes) for event in log.events),
        environment=environment,
        components=components,
        phases=phases_of(events, after),
        stages=stages_of(events),
        others=tuple(others[:MAX_LISTED]),
        other_count=len(others),
        failures=tuple(failures_of(events)[:MAX_LISTED]),
        is_ended=is_ended(events),
        lost_count=lost_of(events),
        peak=peak,
        device_peak_bytes=device_peak,
        pytorch_peak_bytes=largest(event.pytorch_peak_bytes for event, _ in events),
        parts=parts,
        has_kv_cache=any(role.kind == "kv-cache" for _, role in events),
        steps=steps,
        need=need,
        rating=rate(sizes, peak, parts, steps),
        advice=advise(sizes, peak, parts, steps, is_device=environment.source == "device"),
        oddities=log.oddities,
        odd_count=log.odd_count,
    )


def _steps(
    events: Labelled,
    asked: Meaning | None,
    environment: Environment,
    peak: Peak | None,
    rise: int | None,
) -> Steps | None:
    steps = [(role.number, event) for event, role in events if role.kind == "step"]
    valued = [
        (number, event.incremental_bytes)
        for number, event in steps
        if event.incremental_bytes is not None
    ]
    meanings: dict[str | None, Meaning] = {"levels": "levels", "increments": "increments"}
    return examine(
        split_runs(valued),
        without_value=len(steps) - len(valued),
        asked=asked,
        declared=meanings.get(dict(environment.facts).get("steps_are")),
        peak_bytes=peak.size_bytes if peak else None,
        peak_rise_bytes=rise,
    )


def _parts(
    events: Labelled,
    components: Sequence[Component],
    peak: Peak | None,
    steps: Steps | None,
) -> Parts | None:
    if peak is None:
        return None
    early_caches, late_caches = caches_of(events)
    return reconcile(
        peak,
        loaded=loaded_peak(events),
        initial_bytes=largest(event.peak_bytes for event in by_phase(events).get("init", [])),
        components={
            item.name: item.size_bytes
            for item in components
            if item.size_bytes is not None and item.size_bytes > 0
        },
        caches=early_caches,
        late_caches=late_caches,
        highest_step_bytes=steps.highest_bytes if steps else None,
    )
