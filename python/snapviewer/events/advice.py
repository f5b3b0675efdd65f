"""What to do, from the numbers of a log: each piece says how many bytes it saves and why.

Savings are of the peak and at most what the numbers allow. They do not add up: what was released
cannot be quantized as well. The words are the reports'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from .components import use_of
from .peaks import Parts, Peak
from .rating import LEAKS
from .steps import Steps

Term: TypeAlias = Literal["short", "medium", "long"]
AdviceKind: TypeAlias = Literal[
    "release-encoder",
    "load-late",
    "find-unaccounted",
    "fix-leak",
    "activations",
    "int8",
    "block-swap",
    "kv-cache",
    "four-bit",
    "shard",
]

# What is smaller than this share of the peak is not worth a piece of advice.
_LEAST_SHARE = 0.01
# How many steps a video is often generated with.
_USUAL_STEPS = 50


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to do; `subject` is the component it is about."""

    kind: AdviceKind
    term: Term
    subject: str
    saved_bytes: int


def advise(
    components: Mapping[str, int],
    peak: Peak | None,
    parts: Parts | None,
    steps: Steps | None,
    *,
    is_device: bool,
) -> tuple[Advice, ...]:
    """Return what follows from the numbers, what saves most first.

    Of the memory of a process we only know that it leaks: the rest is about cards.
    """
    found: list[Advice] = []
    if is_device:
        is_offloaded = parts is not None and parts.unaccounted_bytes < 0
        found += [*_on_components(components, is_offloaded), *_on_parts(parts)]
    if peak is not None:
        found = [replace(item, saved_bytes=_saved(item, components, peak)) for item in found]
        found = [
            item for item in found if item.saved_bytes >= _LEAST_SHARE * max(1, peak.size_bytes)
        ]
    return tuple(sorted([*_on_steps(steps), *found], key=lambda item: -item.saved_bytes))


def _saved(item: Advice, components: Mapping[str, int], peak: Peak) -> int:
    """Return what a piece of advice takes off the peak.

    What works alone, before or after the rest, must still fit: the peak does not fall below it.
    Nor does anything take off more than there is beside the largest component that stays.
    """
    size = components.get(item.subject, 0)
    if item.kind in ("release-encoder", "load-late"):
        return min(size, peak.size_bytes - size)
    others = [other for name, other in components.items() if name != item.subject]
    stays = max([size - item.saved_bytes, *others], default=0) if item.kind == "int8" else 0
    return min(item.saved_bytes, max(0, peak.size_bytes - stays))


def projected_steps(steps: Steps) -> int:
    """Return for how many steps to tell what a leak adds up to: as many as there were, or usual."""
    return max(_USUAL_STEPS, steps.longest_run)


def _on_components(components: Mapping[str, int], is_offloaded: bool) -> Iterator[Advice]:
    """Advise on what is loaded; if it was not there all at once, only on what must be there."""
    for name, size in components.items():
        if size <= 0:
            continue
        use = use_of(name)
        if use == "core":
            yield Advice("block-swap", "medium", name, size // 2)
            yield Advice("int8", "medium", name, size // 2)
        elif is_offloaded:
            continue
        elif use == "encoder":
            yield Advice("release-encoder", "short", name, size)
            yield Advice("int8", "medium", name, size // 2)
            yield Advice("four-bit", "long", name, size * 3 // 4)
        else:  # a decoder in 8 bits is seen in what it decodes
            yield Advice("load-late", "short", name, size)
    total = sum(size for size in components.values() if size > 0)
    if total and not is_offloaded:
        yield Advice("shard", "long", "", total // 2)


def _on_parts(parts: Parts | None) -> Iterator[Advice]:
    if parts is None:
        return
    if parts.unaccounted_bytes > 0:
        yield Advice("find-unaccounted", "short", "", parts.unaccounted_bytes)
    if parts.generation_bytes > 0:
        yield Advice("activations", "short", "", parts.generation_bytes)
    for part in parts.parts:
        if part.kind == "kv-cache" and part.size_bytes > 0:
            yield Advice("kv-cache", "medium", part.subject, part.size_bytes // 2)


def _on_steps(steps: Steps | None) -> Iterator[Advice]:
    if steps is None or steps.growth.verdict not in LEAKS:
        return
    growth = steps.growth
    saved = (steps.growth_bytes or 0.0) * projected_steps(steps)
    if growth.verdict == "leak-between-runs":
        saved = (growth.per_run_bytes or 0.0) * (steps.runs - 1)
    yield Advice("fix-leak", "short", "", round(saved))
