"""Gathers what the events of a log say, by what they are about.

Nothing is made up: what was not recorded is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from .components import EXPECTED, OTHER_COMPONENTS, OTHERS
from .log import Event
from .names import GENERATION_BEGINS, Role, normal
from .peaks import Peak

Source: TypeAlias = Literal["device", "process"]
Told: TypeAlias = Sequence[tuple[Event, Role]]
T = TypeVar("T")

# Components and caches that a report has room for; the smallest beyond these are put together.
MOST_NAMED = 40
_MOST_FACTS = 40


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the model; loaded several times, it has the largest size that was seen."""

    name: str
    size_bytes: int | None
    times: int
    load_s: float | None


@dataclass(frozen=True, slots=True)
class Phase:
    """A point of the run whose peak was recorded, or should have been."""

    name: str
    peak_bytes: int | None
    times: int


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch of the run between its `_start` and its `_end`."""

    name: str
    times: int
    duration_s: float | None
    incremental_bytes: int | None
    peak_bytes: int | None


@dataclass(frozen=True, slots=True)
class Other:
    """Events that no rule knows."""

    name: str
    times: int
    peak_bytes: int | None
    incremental_bytes: int | None


@dataclass(frozen=True, slots=True)
class Failure:
    """How a run ended that failed: the event, what it says, and whether another ended well."""

    event: str
    about: str
    is_recovered: bool


@dataclass(frozen=True, slots=True)
class Environment:
    """What a log says of the run itself."""

    model_names: tuple[str, ...]
    source: Source
    is_recorded_here: bool
    """Whether our own recorder wrote the log."""
    facts: tuple[tuple[str, str], ...]
    first_s: float | None
    last_s: float | None


def _size(peak: Peak) -> int:
    return peak.size_bytes


def largest(numbers: Iterable[int | None]) -> int | None:
    """Return the largest of the numbers that there are."""
    return max((number for number in numbers if number is not None), default=None)


def highest_of(events: Told, value: Callable[[Event], int | None]) -> Peak | None:
    """Return the largest of what events recorded, and the first event that has it."""
    best: Peak | None = None
    for event, _ in events:
        size = value(event)
        if size is not None and (best is None or size > best.size_bytes):
            best = Peak(event.name, size)
    return best


def peaks_around(events: Told) -> tuple[Peak | None, Peak | None]:
    """Return the highest peaks before the generation begins and from there on.

    What `init` says is from before anything was loaded: it is no peak of the run, unless the log
    has nothing else.
    """
    begin = generation_begin(events)
    init = Role("phase", "init")
    early = [told for told in events[:begin] if told[1] != init]
    late = [told for told in events[begin:] if told[1] != init]
    if not early and not late:
        early = list(events)
    return (
        highest_of(early, lambda event: event.peak_bytes),
        highest_of(late, lambda event: event.peak_bytes),
    )


def loaded_peak(events: Told) -> Peak | None:
    """Return the highest peak when the model was loaded, and nothing generated yet.

    It is what `model_loaded` says. Without that it is the highest from the last component on: what
    was measured before, when some of them were not there yet, says nothing of all of them.
    """
    said = largest(event.peak_bytes for event in by_phase(events).get("model_loaded", []))
    if said is not None:
        return Peak("model_loaded", said)
    begin = generation_begin(events)
    first = 0
    for place, (_, role) in enumerate(events[:begin]):
        if role.kind == "component":
            first = place
        elif role.kind == "phase" and role.subject == "init":
            first = place + 1
    return highest_of(events[first:begin], lambda event: event.peak_bytes)


def caches_of(events: Told) -> tuple[dict[str, int], dict[str, int]]:
    """Return the largest of each cache: of those from before the model was loaded, and after."""
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
    few = dict(by_size[: MOST_NAMED - 1])
    rest = sum(size for _, size in by_size[MOST_NAMED - 1 :])
    return few | ({OTHERS: few.get(OTHERS, 0) + rest} if rest else {})


def generation_begin(events: Told) -> int:
    """Return the place of the first event of the generation, or of the end if there is none."""
    return next((place for place, told in enumerate(events) if _is_generation(*told)), len(events))


def _is_generation(event: Event, role: Role) -> bool:
    return (
        role.kind == "step"
        or normal(event.name) in GENERATION_BEGINS
        or (
            role.kind == "phase"
            and role.subject in ("after_decode", "inference_end", "total_generation")
        )
    )


def by_phase(events: Told) -> dict[str, list[Event]]:
    """Return the events of each phase, in order."""
    found: dict[str, list[Event]] = {}
    for event, role in events:
        if role.kind == "phase":
            found.setdefault(role.subject, []).append(event)
    return found


def environment_of(events: Told) -> Environment:
    """Return what a log says of the run itself."""
    facts: dict[str, str] = {}
    for event in by_phase(events).get("init", []):
        if len(facts) < _MOST_FACTS:
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


def components_of(events: Told, environment: Environment) -> tuple[Component, ...]:
    """Return the components that a log names, and those that it should have named."""
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
    if len(components) <= MOST_NAMED:
        return tuple(components)
    by_size = sorted(components, key=lambda item: -abs(item.size_bytes or 0))
    kept = {item.name for item in by_size[: MOST_NAMED - 1]}
    rest = [item for item in components if item.name not in kept]
    sizes = [item.size_bytes for item in rest if item.size_bytes is not None]
    times = sum(item.times for item in rest)
    others = Component(OTHER_COMPONENTS, sum(sizes) if sizes else None, times, None)
    return (*(item for item in components if item.name in kept), others)


# Every report has these; others only if they were recorded.
_ALWAYS_SHOWN = ("init", "model_loaded", "forward_pass")


def phases_of(events: Told, generation: Peak | None) -> tuple[Phase, ...]:
    """Return the peaks of the phases; `generation` is the highest since it began."""
    phases = []
    found = by_phase(events)
    early = by_phase(events[: generation_begin(events)])
    for name in _ALWAYS_SHOWN:
        same = found.get(name, [])
        # A peak is the most so far: what says it again, for another prompt, has the first one's.
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


def stages_of(events: Told) -> tuple[Stage, ...]:
    """Pair the beginnings and ends of stages; whatever has a duration of its own is one, too."""
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


def failures_of(events: Told) -> list[Failure]:
    """Return how the run failed, as the log tells."""
    failures = []
    ends = [place for place, (_, role) in enumerate(events) if _is_end(role)]
    for place, (event, role) in enumerate(events):
        if role.kind == "failure":
            more = dict(event.more)
            said = [more[key] for key in ("error_type", "message", "failed_in") if more.get(key)]
            is_recovered = bool(ends) and ends[-1] > place
            failures.append(Failure(event.name, ": ".join(said), is_recovered))
    return failures


def _is_end(role: Role) -> bool:
    return role.kind == "phase" and role.subject in ("inference_end", "total_generation")


def is_ended(events: Told) -> bool:
    """Tell whether the log goes on to an end, good or bad."""
    return _is_end(events[-1][1]) or events[-1][1].kind == "failure"


def lost_of(events: Told) -> int:
    """Return how many events the recorder could not write, as it says itself."""
    counts = [dict(event.more).get("lost_events", "") for event, _ in events if event.more]
    return sum(int(count) for count in counts if count.isdecimal() and len(count) < 10)


def others_of(events: Told) -> list[Other]:
    """Return the events that no rule knows, each name once."""
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
