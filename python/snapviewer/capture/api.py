"""Recording from code: `with snapviewer.record("snap.pickle", model=model): …`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .options import CaptureOptions
from .recorder import Recorder


@contextmanager
def record(
    output: str | os.PathLike[str],
    *,
    model: Any = None,
    every: int | None = None,
    max_entries: int = 1_000_000,
    stacks: str = "python",
    marks: bool = True,
) -> Iterator[Recorder]:
    """Record PyTorch's allocations in a block, and write a snapshot when it ends.

    Also when it ends with an error, and when memory runs out, under a name with the step and the
    cause. Of several ranks, each writes its own file.

    Args:
        output: The snapshot: .pickle, or .pickle.gz.
        model: A module whose parts get its names in the marks; by default the outermost module
            that is called.
        every: Optimizer steps between further snapshots.
        max_entries: Events to keep.
        stacks: "python", or "all" with C++ frames.
        marks: Whether to record steps, phases and module paths.
    """
    recorder = start_recording(
        output,
        model=model,
        every=every,
        max_entries=max_entries,
        stacks=stacks,
        marks=marks,
    )
    try:
        yield recorder
    except BaseException:
        recorder.dump("error", is_last=False)
        raise
    else:
        recorder.dump("end", is_last=True)
    finally:
        recorder.close()


def start_recording(
    output: str | os.PathLike[str],
    *,
    model: Any = None,
    every: int | None = None,
    max_entries: int = 1_000_000,
    stacks: str = "python",
    marks: bool = True,
) -> Recorder:
    """Begin what `record` describes; the caller dumps and closes."""
    path = os.fspath(output)
    recorder = Recorder(
        CaptureOptions(
            output=path,
            every=every,
            max_entries=max_entries,
            stacks=stacks,
            has_marks=marks,
            is_gzip=path.lower().endswith(".gz"),
        )
    )
    recorder.attach()
    if model is not None and recorder.marks:
        recorder.marks.name_modules(model)
    return recorder
