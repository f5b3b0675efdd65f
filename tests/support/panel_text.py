"""Panels as a terminal without colours shows them, and recorded runs made by hand."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console

from snapviewer.explorer.timing import FlowStep, ForwardStats, ModuleTiming, Spread, TensorShape

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDTHS = (40, 60, 100)


def lines_of(content: RenderableType, width: int) -> list[str]:
    """Render to lines without blanks at their ends; none may be wider than there is room."""
    written = io.StringIO()
    Console(width=width, color_system=None, file=written).print(content)
    lines = [line.rstrip() for line in written.getvalue().splitlines()]
    assert all(cell_len(line) <= width for line in lines), lines
    return lines


def text_of(content: RenderableType, width: int = 100) -> str:
    return "\n".join(lines_of(content, width))


def spread(median_s: float, count: int = 3) -> Spread:
    return Spread(count, median_s, median_s / 10, median_s / 2, 2 * median_s, count * median_s)


def shape(*sizes: int, dtype: str = "float32") -> TensorShape:
    return TensorShape("", sizes, dtype, "cpu", 4)


def timing(
    path: str,
    total_s: float,
    *,
    own_s: float | None = None,
    backward_s: float | None = None,
    inputs: tuple[TensorShape, ...] = (),
    outputs: tuple[TensorShape, ...] = (),
    allocated_bytes: int | None = None,
) -> ModuleTiming:
    return ModuleTiming(
        path=path,
        type_name="Module",
        calls=3,
        total=spread(total_s),
        own=spread(total_s if own_s is None else own_s),
        backward=None if backward_s is None else spread(backward_s),
        backward_own=None,
        has_gradient=backward_s is not None,
        inputs=inputs,
        outputs=outputs,
        activation_bytes=802_816,
        allocated_bytes=allocated_bytes,
    )


def recorded(*timings: ModuleTiming, flow: tuple[FlowStep, ...] = ()) -> ForwardStats:
    return ForwardStats({each.path: each for each in timings}, flow, runs=3)


def steps(*calls: tuple[str, int, tuple[str, ...], int]) -> tuple[FlowStep, ...]:
    """Make calls of (path, depth, sources, channels that come out)."""
    return tuple(
        FlowStep(order, path, "Linear", depth, sources, (shape(1, 3),), (shape(1, size),))
        for order, (path, depth, sources, size) in enumerate(calls)
    )
