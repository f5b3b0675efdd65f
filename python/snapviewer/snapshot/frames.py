"""The most informative frame of a call stack, and a short text for it.

A stack begins with the allocator and PyTorch's own calls, dozens of frames that are always the
same. What a person wants to read is the innermost frame of their own code. The core decides whose
code a frame is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from snapviewer._core import Frame, Snapshot
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

FrameKind = Literal[
    "own",  # the user's
    "library",  # of a package that is not PyTorch
    "torch",
    "other",  # Python, its standard library, the system, and other C++
]

NO_STACK = "no stack recorded"


def own_frame(frames: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame of the user's own code, or the nearest thing to it.

    That is a library built on PyTorch, then the node of a backward pass, then Python code of
    PyTorch, then one of its operators, then whatever is innermost.

    Args:
        frames: A stack, innermost first.

    Returns:
        The frame, or None if there are no frames.
    """
    best, best_rank = None, 99
    for frame in frames:
        rank = frame.rank
        if rank < best_rank:
            best, best_rank = frame, rank
            if rank == 0:  # most stacks end here, long before their last frame
                break
    return best


def kind_of(frame: Frame) -> FrameKind:
    """Return whose code a frame is."""
    return frame.kind


def frame_text(frame: Frame) -> str:
    """Return a short text for a frame: `model.py:77 attention`, or a C++ function."""
    return frame.text


def line_of(snapshot: Snapshot, stack: int) -> str:
    """Return a short text for the user's own line in a stack."""
    frame = own_frame(snapshot.frames(stack))
    return NO_STACK if frame is None else sanitize(frame.text, MAX_NAME_CHARS) or "??"
