"""Recordings, kept for as long as the modules that they are of, and not on them.

Modules are told apart by identity: they may define `==` as they like.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from snapviewer.explorer.recording import calls
from snapviewer.explorer.recording.paths import parts_of
from snapviewer.explorer.recording.recorder import Recorder
from snapviewer.explorer.timing import ForwardStats

# By the identity of a module: itself, and what was recorded. The latest are last.
_recordings: dict[int, tuple[weakref.ref[Any], Recorder]] = {}


@contextmanager
def record_torch_module_forward_stats(
    model: Any, *, keep: bool = False, resets_peak: bool = True
) -> Iterator[None]:
    """Record how long the modules of a model take, and what goes in and out of them.

        with record_torch_module_forward_stats(model):
            model(images).sum().backward()
        print(get_forward_stats(model).timings["layer1.0.conv1"].total.median_s)

    Calls of all threads are recorded, and backward passes that run inside of the block, of outputs
    that were made in it. Nothing is put on the modules. Each `with` takes the place of what was
    recorded of the model before, unless it is to be kept. Recordings may be nested.

    Args:
        model: A module; or what holds some, such as a pipeline, a mapping or a list, whose names
            are then the beginnings of the paths.
        keep: Whether to add to what was recorded of this model before.
        resets_peak: Whether the memory that calls take on CUDA devices is counted. This resets
            `torch.cuda.max_memory_allocated()` at each call; the notes say what it would be.

    Raises:
        TypeError: It is not a module and holds none.
    """
    parts = parts_of(model)
    recorder = _earlier(parts) if keep else None
    if recorder is not None and recorder.is_listening:
        yield  # what is around is adding to the same already
        return
    if recorder is None:
        recorder = Recorder(parts, resets_peak=resets_peak)
    else:
        recorder.begin(parts)
    for part in parts.values():
        _keep(part, recorder)
    calls.listen(recorder)
    try:
        yield
    finally:
        calls.stop(recorder)
        recorder.end()


def get_forward_stats(model: Any) -> ForwardStats:
    """Return what was last recorded of a model, of an object that holds modules, or of a module.

    Of a module inside of a recorded model, paths are its own, and sources outside of it left out.
    If nothing was recorded, there are no timings.
    """
    parts = parts_of(model)
    recorder = _earlier(parts)
    if recorder is not None:
        return recorder.stats()
    if "" in parts:
        for recorder in reversed([one for _, one in _recordings.values()]):
            path = recorder.paths.path_of(model)
            if path is not None:
                return recorder.stats(path)
    return ForwardStats(notes=("nothing was recorded of this model",))


def _earlier(parts: Mapping[str, Any]) -> Recorder | None:
    """Return what was recorded of the same modules under the same names."""
    found = [_recordings.get(id(part)) for part in parts.values()]
    recorders = {id(one[1]): one[1] for one in found if one is not None}
    if len(recorders) != 1 or None in found:
        return None
    (recorder,) = recorders.values()
    is_same = all(recorder.paths.path_of(part) == path for path, part in parts.items())
    return recorder if is_same and recorder.names == frozenset(parts) else None


def _keep(part: Any, recorder: Recorder) -> None:
    key = id(part)

    def forget(reference: weakref.ref[Any]) -> None:
        kept = _recordings.get(key)
        if kept is not None and kept[0] is reference:
            del _recordings[key]

    _recordings.pop(key, None)
    _recordings[key] = (weakref.ref(part, forget), recorder)
