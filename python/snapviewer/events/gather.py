"""What the events of a log say, by role. What was not recorded is None."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from .log import Event
from .names import EXPECTED, GENERATION_BEGINS, OTHER_COMPONENTS, OTHERS, Role, normal
from .peaks import Peak

Source: TypeAlias = Literal["device", "process"]
Labelled: TypeAlias = Sequence[tuple[Event, Role]]
T = TypeVar("T")

# Components and caches that a report has room for; the smallest beyond these are summed up.
MAX_NAMED = 40
_MAX_FACTS = 40


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the model; if it was loaded several times, with its largest size."""

    name: str
    size_bytes: int | None
    times: int
    load_s: float | None


@dataclass(frozen=True, slots=True)
class Phase:
    """A point of the run, and the peak that was recorded there."""

    name: str
    peak_bytes: int | None
    times: int


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the run, from its `_start` to its `_end`."""

    name: str
    times: int
    duration_s: float | None
    incremental_bytes: int | None
    peak_bytes: int | None


class Other(NamedTuple):
    """The events of a name that no rule knows."""

    name: str
    times: int
    peak_bytes: int | None
    incremental_bytes: int | None


class Failure(NamedTuple):
    """How a run failed: the event, its message, and whether a later run ended well."""

    event: str
    about: str
    is_recovered: bool


@dataclass(frozen=True, slots=True)
class Environment:
    """What a log says about the run itself."""

    model_names: tuple[str, ...]
    source: Source
    is_recorded_here: bool
    """Whether `EventRecorder` wrote the log."""
    facts: tuple[tuple[str, str], ...]
    first_s: float | None
    last_s: float | None


def _size(peak: Peak) -> int:
    return peak.size_bytes


def largest(numbers: Iterable[int | None]) -> int | None:
    """Return the largest number, or None if there is none."""
    return max((number for number in numbers if number is not None), default=None)


def highest_of(events: Labelled, value: Callable[[Event], int | None]) -> Peak | None:
    """Return the largest value of the events, and the first event that has it."""
    best: Peak | None = None
    for event, _ in events:
        size = value(event)
        if size is not None and (best is None or size > best.size_bytes):
            best = Peak(event.name, size)
    return best


def peaks_around(events: Labelled) -> tuple[Peak | None, Peak | None]:
    """Return the highest peaks before and since the generation began.

    The peak of `init` is from before anything was loaded, and counts only if there is no other.
    """
    begin = generation_begin(events)
    init = Role("phase", "init")
    early = [(event, role) for event, role in events[:begin] if role != init]
    late = [(event, role) for event, role in events[begin:] if role != init]
    if not early and not late:
        early = list(events)
    return (
        highest_of(early, lambda event: event.peak_bytes),
        highest_of(late, lambda event: event.peak_bytes),
    )


def loaded_peak(events: Labelled) -> Peak | None:
    """Return the peak of the loaded model, before the generation.

    It is that of `model_loaded`, or else the highest since the last component was loaded: before,
    some components were missing.
    """
    recorded = largest(event.peak_bytes for event in by_phase(events).get("model_loaded", []))
    if recorded is not None:
        return Peak("model_loaded", recorded)
    begin = generation_begin(events)
    first = 0
    for place, (_, role) in enumerate(events[:begin]):
        if role.kind == "component":
            first = place
        elif role.kind == "phase" and role.subject == "init":
            first = place + 1
    return highest_of(events[first:begin], lambda event: event.peak_bytes)


def caches_of(events: Labelled) -> tuple[dict[str, int], dict[str, int]]:
    """Return the largest size of each cache: made before the model was loaded, and after."""
    loaded = 0
    for place, (_, role) in enumerate(events):
        if role.kind == "component" or role == Role("phase", "model_loaded"):
            loaded = place
    early: dict[str, int] = {}
    late: dict[str, int] = {}
    for place, (event, role) in enumerate(events):
        if role.kind == "kv-cache" and event.incremental_bytes and event.incremental_bytes > 0:
            caches = late if place > loaded else early
            size = max(caches.get(role.subject, 0), event.incremental_bytes)
            caches[role.subject] = size
    early = {name: size for name, size in early.items() if name not in late}
    return _few_caches(early), _few_caches(late)


def _few_caches(caches: dict[str, int]) -> dict[str, int]:
    by_size = sorted(caches.items(), key=lambda item: -item[1])
    few = dict(by_size[: MAX_NAMED - 1])
    rest = sum(size for _, size in by_size[MAX_NAMED - 1 :])
    return few | ({OTHERS: few.get(OTHERS, 0) + rest} if rest else {})


def generation_begin(events: Labelled) -> int:
    """Return the index of the first event of the generation; of the end if there is none."""
    return next((place for place, pair in enumerate(events) if _is_generation(*pair)), len(events))


def _is_generation(event: Event, role: Role) -> bool:
    return (
        role.kind == "step"
        or normal(event.name) in GENERATION_BEGINS
        or (
            role.kind == "phase"
            and role.subject in ("after_decode", "inference_end", "total_generation")
        )
    )


def by_phase(events: Labelled) -> dict[str, list[Event]]:
    """Return the events of each phase, in order."""
    found: dict[str, list[Event]] = {}
    for event, role in events:
        if role.kind == "phase":
            found.setdefault(role.subject, []).append(event)
    return found


def environment_of(events: Labelled) -> Environment:
    """Return what a log says about the run itself."""
    facts: dict[str, str] = {}
    for event in by_phase(events).get("init", []):
        if len(facts) < _MAX_FACTS:
            facts |= dict(event.more)
    times = [event.time_s for event, _ in events if event.time_s is not None]
    return Environment(
        model_names=_unique(event.model_name for event, _ in events)[:20],
        source="process" if facts.get("memory_source") == "process" else "device",
        is_recorded_here=facts.get("recorder", "").startswith("snapviewer"),
        facts=tuple(facts.items()),
        first_s=min(times, default=None),
        last_s=max(times, default=None),
    )


def _unique(items: Iterable[T | None]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(item for item in items if item is not None))


def components_of(events: Labelled, environment: Environment) -> tuple[Component, ...]:
    """Return the components of a log, and those that are missing."""
    durations = {stage.name: stage.duration_s for stage in stages_of(events)}
    found: dict[str, list[Event]] = {}
    for event, role in events:
        if role.kind == "component":
            found.setdefault(role.subject, []).append(event)
    if not environment.is_recorded_here and (not found or set(EXPECTED) & set(found)):
        for name in EXPECTED:
            found.setdefault(name, [])
    components = []
    for name, loaded in found.items():
        load_s = next((e.duration_s for e in loaded if e.duration_s is not None), None)
        components.append(
            Component(
                name,
                largest(event.incremental_bytes for event in loaded),
                len(loaded),
                load_s if load_s is not None else durations.get(f"{name}_load"),
            )
        )
    return _with_few_names(components)


def _with_few_names(components: Sequence[Component]) -> tuple[Component, ...]:
    if len(components) <= MAX_NAMED:
        return tuple(components)
    by_size = sorted(components, key=lambda item: -abs(item.size_bytes or 0))
    kept = {item.name for item in by_size[: MAX_NAMED - 1]}
    rest = [item for item in components if item.name not in kept]
    sizes = [item.size_bytes for item in rest if item.size_bytes is not None]
    times = sum(item.times for item in rest)
    others = Component(OTHER_COMPONENTS, sum(sizes) if sizes else None, times, None)
    return (*(item for item in components if item.name in kept), others)


# Other phases are shown only if they were recorded.
_ALWAYS_SHOWN = ("init", "model_loaded", "forward_pass")


def phases_of(events: Labelled, generation: Peak | None) -> tuple[Phase, ...]:
    """Return the peaks of the phases; `generation` is the highest since it began."""
    phases = []
    found = by_phase(events)
    early = by_phase(events[: generation_begin(events)])
    for name in _ALWAYS_SHOWN:
        same = found.get(name, [])
        # Peaks never fall: when a phase comes again, for another prompt, it has the first's peak.
        shown = early.get(name) or same[:1]
        phases.append(Phase(name, largest(event.peak_bytes for event in shown), len(same)))
    phases.append(
        Phase("generation", generation.size_bytes if generation else None, int(bool(generation)))
    )
    for name in ("after_decode", "inference_end", "total_generation"):
        same = found.get(name, [])
        peak = largest(event.peak_bytes for event in same)
        if peak is not None:
            phases.append(Phase(name, peak, len(same)))
    return tuple(phases)


def stages_of(events: Labelled) -> tuple[Stage, ...]:
    """Pair the beginnings and ends of stages; an event with a duration is a stage, too."""
    open_since: dict[str, float | None] = {}
    found: dict[str, list[tuple[float | None, Event]]] = {}
    for event, role in events:
        if role.kind == "stage-start":
            open_since[role.subject] = event.time_s
        elif role.kind == "stage-end":
            start = open_since.pop(role.subject, None)
            took = event.duration_s
            if took is None and start is not None and event.time_s is not None:
                took = max(0.0, event.time_s - start)
            found.setdefault(role.subject, []).append((took, event))
        elif event.duration_s is not None and role.kind in ("phase", "other"):
            found.setdefault(role.subject, []).append((event.duration_s, event))
    stages = []
    for name, ends in found.items():
        times = [took for took, _ in ends if took is not None]
        stages.append(
            Stage(
                name,
                len(ends),
                sum(times) if times else None,
                largest(event.incremental_bytes for _, event in ends),
                largest(event.peak_bytes or event.pytorch_peak_bytes for _, event in ends),
            )
        )
    return tuple(stages)


def failures_of(events: Labelled) -> list[Failure]:
    """Return the failures in a log."""
    failures = []
    ends = [place for place, (_, role) in enumerate(events) if _is_end(role)]
    for place, (event, role) in enumerate(events):
        if role.kind == "failure":
            more = dict(event.more)
            about = [more[key] for key in ("error_type", "message", "failed_in") if more.get(key)]
            is_recovered = bool(ends) and ends[-1] > place
            failures.append(Failure(event.name, ": ".join(about), is_recovered))
    return failures


def _is_end(role: Role) -> bool:
    return role.kind == "phase" and role.subject in ("inference_end", "total_generation")


def is_ended(events: Labelled) -> bool:
    """Return whether the log has an end, good or bad."""
    return _is_end(events[-1][1]) or events[-1][1].kind == "failure"


def lost_of(events: Labelled) -> int:
    """Return how many events the recorder could not write, according to itself."""
    counts = [dict(event.more).get("lost_events", "") for event, _ in events if event.more]
    return sum(int(count) for count in counts if count.isdecimal() and len(count) < 10)


def others_of(events: Labelled) -> list[Other]:
    """Return the events that no rule knows, by name."""
    found: dict[str, list[Event]] = {}
    for event, role in events:
        if role.kind == "other":
            found.setdefault(event.name, []).append(event)
    return [
        Other(
            name,
            len(same),
            largest(event.peak_bytes for event in same),
            largest(event.incremental_bytes for event in same),
        )
        for name, same in found.items()
    ]
