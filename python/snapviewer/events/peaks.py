"""The measured peak, split into the parts that the log names.

Parts add up to the peak exactly: what no event explains is a part, too. It is negative where the
named parts are more than was measured: they were not loaded together, or were recorded twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

PartKind: TypeAlias = Literal[
    "initial", "component", "kv-cache", "unaccounted", "steps", "generation"
]


class Peak(NamedTuple):
    """The highest measured memory, and the first event that recorded it."""

    event: str
    size_bytes: int


class Part(NamedTuple):
    """A part of the peak; `subject` is the name of the component or cache."""

    kind: PartKind
    subject: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the peak; their sum is the peak."""

    peak: Peak
    loaded: Peak | None
    """The peak of the loaded model, which the components are compared with."""
    parts: tuple[Part, ...]

    @property
    def unaccounted_bytes(self) -> int:
        """What no event explains in the loaded model's peak; negative if parts overlap."""
        return sum(part.size_bytes for part in self.parts if part.kind == "unaccounted")

    @property
    def compared_bytes(self) -> int:
        """The peak that the named parts are compared with."""
        return self.loaded.size_bytes if self.loaded else self.peak.size_bytes

    @property
    def generation_bytes(self) -> int:
        """What the generation added to the peak: steps, new caches, and the rest."""
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
    """Split the peak into parts.

    Args:
        peak: The highest of all.
        loaded: The peak of the loaded model.
        initial_bytes: The peak before anything was loaded.
        components: Their sizes.
        caches: The sizes of caches that were made before the model was loaded.
        late_caches: The sizes of caches that were made later.
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
        # The peak of the loaded model is unknown, so steps are a part of the one peak.
        steps = max(0, min(highest_step_bytes or 0, peak.size_bytes - named))
        parts.append(Part("unaccounted", "", peak.size_bytes - named - steps))
        parts += [Part("steps", "", steps)] if steps else []
    else:
        parts.append(Part("unaccounted", "", loaded.size_bytes - named))
        # Later parts count as far as the peak rose: some may have been released by then.
        room = peak.size_bytes - loaded.size_bytes
        for part in (*later, Part("steps", "", max(0, highest_step_bytes or 0))):
            size = min(part.size_bytes, room)
            room -= size
            parts += [Part(part.kind, part.subject, size)] if size else []
        parts += [Part("generation", "", room)] if room else []
    return Parts(peak, loaded, tuple(parts))
