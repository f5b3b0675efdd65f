"""A filter for the allocations of some stacks, in words that a person would type."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Collection, Sequence
from itertools import groupby

import numpy as np

from snapviewer._core import Device, Frame
from snapviewer.snapshot.frames import frame_text, own_frame

_MAX_FILTER = 1000  # characters; nobody would edit a longer filter
_MAX_WORDS = 80  # characters; ids are shorter than more lines
_MAX_COMPARED = 5000  # stacks whose frames are compared; a double click must not wait for more
_MAX_TERMS = 60  # a filter may have 64


def filter_of(
    device: Device,
    stacks: Sequence[int],
    frames_of: Callable[[int], Sequence[Frame]],
    *,
    same_line: bool = False,
) -> str | None:
    """Write a filter for the allocations of some stacks, in words that a person would type.

    The words are the line of code that the stacks share, such as `model.py:71`, or all of it
    where other lines have these words, too. Stacks that only pass through the line are excluded,
    by their own line (`model.py:98 !model.py:41`) or by id (`train.py:71 stack=3..5 !stack=4`).

    Args:
        device: The device.
        stacks: The ids of the stacks.
        frames_of: Returns the frames of a stack.
        same_line: Other stacks whose own line is one of these stacks' own lines may match, too.

    Returns:
        The filter, or None if none describes them.
    """
    if not stacks:
        return None
    wanted = frozenset(stacks)
    own = {own_frame(frames_of(stack)) for stack in wanted}
    found, excluding = [], []
    for words in _lines_of(own):
        matched = _stacks_of(device, words)
        if not wanted <= matched:
            continue  # words that match less than wanted are no description
        others = matched - wanted
        if same_line and len(others) <= _MAX_COMPARED:
            lines = {stack: own_frame(frames_of(stack)) for stack in others}
            others = frozenset(stack for stack in others if lines[stack] not in own)
            for line in _lines_of({lines[stack] for stack in others}):
                matched = _stacks_of(device, text := f"{words} !{line}")
                if len(text) <= _MAX_WORDS and wanted <= matched and not matched & others:
                    excluding.append(text)
        if not others:
            return words
        found += [f"{words} {ids}" for ids in _ids(wanted, others)]
    found = excluding or found or _ids(wanted, _stacks_of(device, "") - wanted)
    return min(found, key=len, default=None)


def _ids(wanted: Collection[int], others: Collection[int]) -> list[str]:
    """Write the terms that select some stacks and not others; none if there are too many."""
    first, last = min(wanted), max(wanted)
    if first == last:
        return [f"stack={first or 'none'}"]
    between = sorted(stack for stack in others if first < stack < last)
    terms = []
    if not between or len(between) < len(others):
        terms = [f"stack={first}..{last + 1}"]
    kept = sorted(wanted)
    # Ids that have no wanted one between them are one range.
    for _, run in groupby(between, key=lambda stack: bisect(kept, stack)):
        ids = list(run)
        one, end = ids[0], ids[-1] + 1
        terms.append(f"!stack={one}" if end == one + 1 else f"!stack={one}..{end}")
    return [" ".join(terms)] if len(terms) <= _MAX_TERMS else []


def _lines_of(frames: Collection[Frame | None]) -> list[str]:
    """Describe some lines of code as terms, the shortest first."""
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
    return [_term(text) for text in texts if len(text) <= _MAX_FILTER]


def _place(frame: Frame) -> str:
    """Return the file and line of a frame, or the function if it has none.

    A dot matches itself, too: it stays, as most people would type it.
    """
    if not frame.line:
        return _escaped(frame_text(frame))
    name = re.split(r"[/\\]", frame.filename)[-1]
    return _escaped(f"{name}:{frame.line}").replace("\\.", ".")


def _term(expression: str) -> str:
    """Return an expression as a term of a filter, quoted where it must be."""
    is_plain = re.fullmatch(r"[\w.:|/-]+", expression, re.ASCII) is not None
    return expression if is_plain else f'"{expression}"'


def _stacks_of(device: Device, where: str) -> frozenset[int]:
    """Return the stacks of the allocations that a filter matches; none if it is not understood."""
    try:
        mask = device.mask(where)
    except ValueError:
        return frozenset()
    return frozenset(np.unique(device.allocations.stack[mask]).tolist())


def _escaped(text: str) -> str:
    r"""Escape a text for an expression inside of a filter's quotes.

    >>> _escaped('f (a b.py:1)'), _escaped('"x"')
    ('f \\(a b\\.py:1\\)', '\\"x\\"')
    """
    return re.sub(r'[][\\.^$|?*+(){}"]', r"\\\g<0>", text)
