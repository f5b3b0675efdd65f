"""A filter for the allocations of some stacks, in words that a person would type."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from snapviewer._core import Device, Frame
from snapviewer.snapshot.frames import frame_text, own_frame

_MAX_FILTER = 1000  # characters; nobody would edit a longer filter


def filter_of(
    device: Device, stacks: Sequence[int], frames_of: Callable[[int], Sequence[Frame]]
) -> str | None:
    """Write a filter for the allocations of some stacks, in words that a person would type.

    The words are the line of code that the stacks share, such as `model.py:71`, or all of it
    where other lines have these words, too. Stacks that only pass through the line
    match, too, unless the ids of these stacks are a range, which is then part of the filter.

    Returns:
        The filter, or None if none describes them.
    """
    if not stacks:
        return None
    wanted = np.isin(device.allocations.stack, stacks)
    first, last = min(stacks), max(stacks)
    is_range = last - first + 1 == len(stacks)
    ids = f"stack={first}" if first == last else f"stack={first}..{last + 1}"
    words = [_in_words(device, text) for text in _lines_of(stacks, frames_of)]
    exact = [text for text, mask in words if np.array_equal(mask, wanted)]
    if exact:
        return exact[0]
    # Words that match less than wanted are no description.
    wider = [text for text, mask in words if not (wanted & ~mask).any()]
    if is_range:
        return f"{wider[0]} {ids}" if wider else ids
    return wider[-1] if wider else None


def _lines_of(stacks: Sequence[int], frames_of: Callable[[int], Sequence[Frame]]) -> list[str]:
    """Describe the lines of code of some stacks, the shortest description first."""
    frames = {own_frame(frames_of(stack)) for stack in stacks}
    known = sorted(
        (one for one in frames if one is not None), key=lambda one: (one.filename, one.line)
    )
    if not known or len(known) < len(frames):
        return []
    descriptions: tuple[Callable[[Frame], str], ...] = (
        _place,
        lambda one: f"{_place(one)}\\)" if one.line else _place(one),
        lambda one: f"^{_escaped(f'{one.name} ({one.filename}:{one.line})')}$",
    )
    texts = ("|".join(dict.fromkeys(map(of, known))) for of in descriptions)
    return [text for text in texts if len(text) <= _MAX_FILTER]


def _place(frame: Frame) -> str:
    """Return the file and line of a frame, or the function if it has none.

    A dot matches itself, too: it stays, as most people would type it.
    """
    if not frame.line:
        return _escaped(frame_text(frame))
    name = re.split(r"[/\\]", frame.filename)[-1]
    return _escaped(f"{name}:{frame.line}").replace("\\.", ".")


def _in_words(device: Device, expression: str) -> tuple[str, npt.NDArray[np.bool_]]:
    """Return an expression as a filter, and what it matches; quoted where it must be."""
    is_plain = re.fullmatch(r"[\w.:|/-]+", expression, re.ASCII) is not None
    text = expression if is_plain else f'"{expression}"'
    try:
        return text, device.mask(text)
    except ValueError:
        return text, np.zeros(len(device.allocations), dtype=np.bool_)


def _escaped(text: str) -> str:
    r"""Escape a text for an expression inside of a filter's quotes.

    >>> _escaped('f (a b.py:1)'), _escaped('"x"')
    ('f \\(a b\\.py:1\\)', '\\"x\\"')
    """
    return re.sub(r'[][\\.^$|?*+(){}"]', r"\\\g<0>", text)
