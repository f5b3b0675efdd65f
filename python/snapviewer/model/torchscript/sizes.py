"""The sizes that the inputs of a model may have, found by interpreting it with other sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from snapviewer.model.graph import InputSize, TensorSpec
from snapviewer.model.shapes.roles import LENGTH, SIDES, role_of, suggested_lengths
from snapviewer.model.torchscript.run import Run
from snapviewer.model.torchscript.values import Tensor

# All trials together take about a second.
_MAX_STEPS = 500_000
_SIDES = (224, 256, 384, 512)
# A size above all that a model may have a table for, unless its weights have larger sizes.
_LONG = 1 << 17
_MAX_LIMITS = 8

Interpret = Callable[[Sequence[Any], int], "tuple[Run, bool]"]
Place = tuple[int, int]


class _ExhaustedError(Exception):
    """The trials took too many steps."""


class Trials:
    """Interpretations of a model with other sizes of its inputs."""

    def __init__(self, interpret: Interpret, arguments: Sequence[Any], usual: Run) -> None:
        self._interpret = interpret
        self._arguments = list(arguments)
        self._usual = usual
        self._left = _MAX_STEPS
        self._known: dict[tuple[tuple[Place, ...], int], bool] = {}

    def sizes(self, weight_sizes: Sequence[int], positions: int | None) -> Iterator[InputSize]:
        """Yield the sizes of the inputs; those that could not be tried in time are left out.

        Args:
            weight_sizes: The sizes of all weights: a limit is one of them.
            positions: The rows of a table of positions, if there is one.
        """
        if not self._usual.misfits and 4 * self._usual.steps <= self._left:
            try:
                for (role, size), places in self._groups().items():
                    yield self._size(role, size, tuple(places), weight_sizes, positions)
            except _ExhaustedError:
                return

    def _groups(self) -> dict[tuple[str, int], list[Place]]:
        """Return the dimensions that vary together: those of one role and size, of all inputs."""
        groups: dict[tuple[str, int], list[Place]] = {}
        for place, argument in enumerate(self._arguments):
            shape = argument.spec.shape if isinstance(argument, Tensor) else ()
            for dimension, size in enumerate(shape):
                if size is not None:
                    role = role_of(argument.spec, dimension)
                    groups.setdefault((role, size), []).append((place, dimension))
        return groups

    def _size(
        self,
        role: str,
        size: int,
        places: tuple[Place, ...],
        weight_sizes: Sequence[int],
        positions: int | None,
    ) -> InputSize:
        # One more pixel may be cut off, one more token is not.
        tried = [2 * size] if role == SIDES else [2 * size, size + 1]
        other = next((other for other in tried if self._fits(places, other)), None)
        if other is None:
            return InputSize(
                places, role, size, varies=False, reason=f"its layers do not fit {2 * size:,}"
            )
        found = InputSize(places, role, size, varies=True, reason=f"its layers fit {other:,} too")
        if role == SIDES:
            others = [side for side in _SIDES if side != size and self._fits(places, side)]
            return replace(found, suggested=(size, *others))
        if role != LENGTH:
            return found
        most = self._limit(places, size, weight_sizes)
        reason = f"its layers do not fit {most + 1:,}" if most is not None else found.reason
        if positions is not None and positions >= size and (most is None or positions <= most):
            most, reason = positions, "the rows of its table of positions"
        return replace(found, most=most, suggested=suggested_lengths(most), reason=reason)

    def _limit(
        self, places: tuple[Place, ...], size: int, weight_sizes: Sequence[int]
    ) -> int | None:
        """Return the largest size that fits, if it is that of a weight; None if there is none."""
        if self._fits(places, max(_LONG, *weight_sizes, 0) + 1):
            return None
        larger = sorted({other for other in weight_sizes if other >= size})[:_MAX_LIMITS]
        return next(
            (
                limit
                for limit in larger
                if self._fits(places, limit) and not self._fits(places, limit + 1)
            ),
            None,
        )

    def _fits(self, places: tuple[Place, ...], size: int) -> bool:
        """Return whether the layers of the model fit each other if dimensions have this size."""
        if (places, size) not in self._known:
            arguments = list(self._arguments)
            for place, dimension in places:
                spec = arguments[place].spec
                shape = (*spec.shape[:dimension], size, *spec.shape[dimension + 1 :])
                arguments[place] = Tensor(TensorSpec(shape, spec.dtype))
            if self._left <= 0:
                raise _ExhaustedError
            run, is_whole = self._interpret(arguments, self._left)
            self._left -= run.steps
            if self._left <= 0:
                raise _ExhaustedError
            self._known[places, size] = is_whole and len(run.notes) <= len(self._usual.notes)
        return self._known[places, size]
