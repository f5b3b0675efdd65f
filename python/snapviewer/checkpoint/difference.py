"""Differences between two checkpoints: their tensors, and the plain values beside them.

Tensors are matched by name (several of one name in the file's order).

# Invariants

Each tensor of both files is in exactly one list: added, removed, reshaped, retyped, changed, equal,
or not compared.

# Cost

One pass over the bytes of the tensors that have the same type and shape. Of plain values the first
`values.MAX_VALUES` are compared.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from snapviewer import CancelledError, SnapshotError
from snapviewer.checkpoint.values import ValuesDiff, values_diff
from snapviewer.text.progress import part_of

if TYPE_CHECKING:
    from snapviewer._core import Checkpoint, Difference, Tensor


class Pair(NamedTuple):
    """The same tensor, before and after."""

    before: Tensor
    after: Tensor


class Changed(NamedTuple):
    """A tensor whose elements changed, and by how much."""

    before: Tensor
    after: Tensor
    difference: Difference


class Uncompared(NamedTuple):
    """A tensor whose elements could not be compared."""

    before: Tensor
    after: Tensor
    reason: str


@dataclass(frozen=True, slots=True)
class CheckpointDiff:
    """What changed from one checkpoint to another."""

    added: tuple[Tensor, ...]
    removed: tuple[Tensor, ...]
    reshaped: tuple[Pair, ...]
    """Of another shape, and perhaps of another type."""
    retyped: tuple[Pair, ...]
    """Of the same shape, but another type."""
    changed: tuple[Changed, ...]
    """Those with new NaN or Inf first, then those that changed most."""
    uncompared: tuple[Uncompared, ...]
    equal: tuple[Tensor, ...]
    values: ValuesDiff

    @property
    def is_equal(self) -> bool:
        """Whether both have the same tensors and plain values, as far as they were compared.

        Long texts are compared by their first 200 characters and their size.
        """
        tensors = (self.added, self.removed, self.reshaped, self.retyped, self.changed)
        return self.values.is_equal and not any(tensors)


def diff_of(
    before: Checkpoint,
    after: Checkpoint,
    *,
    progress: Callable[[int, int], object] | None = None,
    cancel: Event | None = None,
) -> CheckpointDiff:
    """Compare two checkpoints.

    Args:
        before: The first.
        after: The second.
        progress: Called with (done, total) bytes from time to time.
        cancel: Set to stop.

    Raises:
        CancelledError: `cancel` was set.
        OSError: A file cannot be read.
    """
    old, new = before.tensors, after.tensors
    pairs, removed, added = _matched(old, new)
    reshaped, retyped, comparable = [], [], []
    for i, j in pairs:
        if old[i].shape != new[j].shape:
            reshaped.append(Pair(old[i], new[j]))
        elif old[i].dtype != new[j].dtype:
            retyped.append(Pair(old[i], new[j]))
        else:
            comparable.append((i, j))
    total = sum(old[i].logical_bytes for i, _ in comparable)
    done = 0
    changed, uncompared, equal = [], [], []
    for i, j in comparable:
        report = part_of(progress, done, old[i].logical_bytes, total)
        try:
            difference = before.difference(i, after, j, progress=report, cancel=cancel)
        except CancelledError:
            raise
        except SnapshotError as error:
            uncompared.append(Uncompared(old[i], new[j], str(error)))
        else:
            if difference.is_equal:
                equal.append(new[j])
            else:
                changed.append(Changed(old[i], new[j], difference))
        done += old[i].logical_bytes
        if progress is not None:
            progress(done, total)
    return CheckpointDiff(
        added=tuple(new[j] for j in added),
        removed=tuple(old[i] for i in removed),
        reshaped=tuple(reshaped),
        retyped=tuple(retyped),
        changed=tuple(sorted(changed, key=_alarm, reverse=True)),
        uncompared=tuple(uncompared),
        equal=tuple(equal),
        values=values_diff(before.root, after.root),
    )


def _alarm(item: Changed) -> tuple[int, int, float]:
    """Order by new NaN and Inf, then by those gone, then by norm; changes from zero come first."""
    difference = item.difference
    relative = difference.relative_l2
    if relative is None or not math.isfinite(relative):
        relative = math.inf
    return difference.to_nonfinite, difference.from_nonfinite, relative


def _matched(
    old: Sequence[Tensor], new: Sequence[Tensor]
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Return pairs of indexes in the first file's order, then what only one of them has."""
    waiting: dict[str, list[int]] = defaultdict(list)
    for j in reversed(range(len(new))):
        waiting[new[j].name].append(j)
    pairs, removed = [], []
    for i, tensor in enumerate(old):
        if waiting.get(tensor.name):
            pairs.append((i, waiting[tensor.name].pop()))
        else:
            removed.append(i)
    return pairs, removed, sorted(j for left in waiting.values() for j in left)
