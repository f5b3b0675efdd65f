"""The measured peak, reconciled with the parts that the log names.

Parts add up to the peak exactly: what no event explains is a part of its own. Where the named parts
are more than was measured (some were not there at the same time, or are counted twice), that part
is negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

PartKind: TypeAlias = Literal[
    "initial", "component", "kv-cache", "unaccounted", "steps", "generation"
]


@dataclass(frozen=True, slots=True)
class Peak:
    """The highest memory that was measured, and the event that recorded it first."""

    event: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the peak: `subject` is the component's or the cache's name."""

    kind: PartKind
    subject: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the peak; their sum is the peak."""

    peak: Peak
    loaded: Peak | None
    """The peak when the model was loaded, which the components are compared with."""
    parts: tuple[Part, ...]

    @property
    def unaccounted_bytes(self) -> int:
        """What no event explains of the memory of the loaded model; negative if parts overlap."""
        return sum(part.size_bytes for part in self.parts if part.kind == "unaccounted")

    @property
    def compared_bytes(self) -> int:
        """The peak that the named parts are compared with."""
        return self.loaded.size_bytes if self.loaded else self.peak.size_bytes

    @property
    def generation_bytes(self) -> int:
        """What generating added to the peak: steps, caches made meanwhile, and the rest."""
        if self.loaded is not None:
            return self.peak.size_bytes - self.loaded.size_bytes
        return sum(part.size_bytes for part in self.parts if part.kind == "steps")


def reconcile(
    peak: Peak,
    *,
    loaded: Peak | None,
    initial_bytes: int | None,
    components: Mapping[str, int],
    caches: Mapping[str, int],
    late_caches: Mapping[str, int],
    highest_step_bytes: int | None,
) -> Parts:
    """Put the peak together from its parts.

    Args:
        peak: The highest of all.
        loaded: The peak when the model was loaded.
        initial_bytes: The peak before anything was loaded.
        components: What each added.
        caches: What each cache added that was there when the model was loaded.
        late_caches: What each cache added that was made later.
        highest_step_bytes: The highest level of a step above its base.
    """
    parts = [Part("initial", "", initial_bytes)] if initial_bytes else []
    parts += [Part("component", name, size) for name, size in components.items()]
    parts += [Part("kv-cache", name, size) for name, size in caches.items()]
    later = [Part("kv-cache", name, size) for name, size in late_caches.items()]
    if loaded is None:
        parts += later
    named = sum(part.size_bytes for part in parts)
    if loaded is None:
        # Nothing says what the model took when it was loaded, so steps share in the one peak.
        steps = max(0, min(highest_step_bytes or 0, peak.size_bytes - named))
        parts.append(Part("unaccounted", "", peak.size_bytes - named - steps))
        parts += [Part("steps", "", steps)] if steps else []
    else:
        parts.append(Part("unaccounted", "", loaded.size_bytes - named))
        # What came later is a part as far as the peak rose: some may have been released by then.
        room = peak.size_bytes - loaded.size_bytes
        for part in (*later, Part("steps", "", max(0, highest_step_bytes or 0))):
            size = min(part.size_bytes, room)
            room -= size
            parts += [Part(part.kind, part.subject, size)] if size else []
        parts += [Part("generation", "", room)] if room else []
    return Parts(peak, loaded, tuple(parts))
