"""Saves what the window shows as a PNG, as `render` draws it: with axes, legend and facts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from snapviewer.report.picture.drawing import draw, write
from snapviewer.report.picture.options import LARGEST, SMALLEST, PictureOptions

from .state import State


def picture_of(state: State, scale: int) -> tuple[PictureOptions, Callable[[Path], None]]:
    """Return what is shown now, and what writes a picture of it to a file, on any thread.

    Args:
        state: What is shown; there must be a device.
        scale: 2 on a screen of twice the density.
    """
    document, device, view = state.document, state.device, state.view
    assert document is not None
    assert device is not None
    clock, look = state.clock, state.look
    span = view.x_span if clock is None else (clock.real(view.left), clock.real(view.right))
    width, height = (
        min(max(px // scale, least), most // scale)
        for px, least, most in zip(state.plot_px, SMALLEST, LARGEST, strict=True)
    )
    has_events = int(device.events) > 0
    options = PictureOptions(
        size=(max(width, 900), max(height, 500)),
        scale=scale,
        axis="event" if look.axis == "event" else "time",
        shorten_idle=look.axis == "busy time",
        span=span if has_events else None,
        byte_span=view.byte_span,
        color=look.color,
        order=look.order,
        filters=(state.filter.text,) if state.filter.matches is not None else (),
        dim=state.filter.mode == "highlight" and state.filter.matches is not None,
        theme=look.theme,
    )

    def save(path: Path) -> None:
        write(draw(document.snapshot, device, options, file=document.name), path)

    return options, save
