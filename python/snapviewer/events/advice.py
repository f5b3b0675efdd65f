"""Recommendations that follow from the numbers of a log, with the bytes that each would save.

Savings are upper bounds, of the peak. They do not add up: what was released cannot be quantized as
well. The reports phrase them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from .names import use_of
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

# Savings below this share of the peak are not recommended.
MIN_SHARE = 0.01
# A usual number of steps for a video.
_USUAL_STEPS = 50


class Saving(NamedTuple):
    """A way to save memory; `subject` is the component it is about."""

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
) -> tuple[Saving, ...]:
    """Return what follows from the numbers: a leak, which has no end, then the largest savings.

    For the memory of a process that is only whether it leaks: the rest is about GPUs.
    """
    found: list[Saving] = []
    if is_device:
        is_offloaded = parts is not None and parts.unaccounted_bytes < 0
        found += [*_on_components(components, is_offloaded), *_on_parts(parts)]
    if peak is not None:
        found = [item._replace(saved_bytes=_saved(item, components, peak)) for item in found]
        found = [item for item in found if item.saved_bytes >= MIN_SHARE * max(1, peak.size_bytes)]
    return (*_on_steps(steps), *sorted(found, key=lambda item: -item.saved_bytes))


def _saved(item: Saving, components: Mapping[str, int], peak: Peak) -> int:
    """Return by how much a recommendation lowers the peak.

    A component that is released or loaded late must still fit alone, and quantizing one does not
    lower the peak below the largest component that stays.
    """
    size = components.get(item.subject, 0)
    if item.kind in ("release-encoder", "load-late"):
        return min(size, peak.size_bytes - size)
    others = [other for name, other in components.items() if name != item.subject]
    stays = max([size - item.saved_bytes, *others], default=0) if item.kind == "int8" else 0
    return min(item.saved_bytes, max(0, peak.size_bytes - stays))


def projected_steps(steps: Steps) -> int:
    """Return the number of steps that a leak is projected to: recorded or usual, the larger."""
    return max(_USUAL_STEPS, steps.longest_run)


def _on_components(components: Mapping[str, int], is_offloaded: bool) -> Iterator[Saving]:
    """Yield what can be done about components; if they are offloaded, only about the core."""
    for name, size in components.items():
        if size <= 0:
            continue
        use = use_of(name)
        if use == "core":
            yield Saving("block-swap", "medium", name, size // 2)
            yield Saving("int8", "medium", name, size // 2)
        elif is_offloaded:
            continue
        elif use == "encoder":
            yield Saving("release-encoder", "short", name, size)
            yield Saving("int8", "medium", name, size // 2)
            yield Saving("four-bit", "long", name, size * 3 // 4)
        else:  # quantizing a decoder shows in what it decodes
            yield Saving("load-late", "short", name, size)
    total = sum(size for size in components.values() if size > 0)
    if total and not is_offloaded:
        yield Saving("shard", "long", "", total // 2)


def _on_parts(parts: Parts | None) -> Iterator[Saving]:
    if parts is None:
        return
    if parts.unaccounted_bytes > 0:
        yield Saving("find-unaccounted", "short", "", parts.unaccounted_bytes)
    if parts.generation_bytes > 0:
        yield Saving("activations", "short", "", parts.generation_bytes)
    for part in parts.parts:
        if part.kind == "kv-cache" and part.size_bytes > 0:
            yield Saving("kv-cache", "medium", part.subject, part.size_bytes // 2)


def _on_steps(steps: Steps | None) -> Iterator[Saving]:
    if steps is None or steps.growth.verdict not in LEAKS:
        return
    growth = steps.growth
    saved = (steps.growth_bytes or 0.0) * projected_steps(steps)
    if growth.verdict == "leak-between-runs":
        saved = (growth.per_run_bytes or 0.0) * (steps.runs - 1)
    yield Saving("fix-leak", "short", "", round(saved))
