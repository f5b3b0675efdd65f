"""The recordings of all models; each lives as long as its modules.

Modules are identified by `id`, since they may define `==`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from snapviewer.explorer.live import tree_of_module
from snapviewer.explorer.recording import calls
from snapviewer.explorer.recording.paths import parts_of
from snapviewer.explorer.recording.recorder import Recorder
from snapviewer.explorer.safe_call import CallFailure, safe_call
from snapviewer.explorer.timing import ForwardStats

# By the id of a module: the module, and its recorder. The latest are last.
_recordings: dict[int, tuple[weakref.ref[Any], Recorder]] = {}


@contextmanager
def record_torch_module_forward_stats(
    model: Any, *, keep: bool = False, resets_peak: bool = True
) -> Iterator[None]:
    """Record the times of a model's modules, and their inputs and outputs.

        with record_torch_module_forward_stats(model):
            model(images).sum().backward()
        print(get_forward_stats(model).timings["layer1.0.conv1"].total.median_s)

    Calls of all threads are recorded, and backward passes that run inside the block, of outputs
    that were made in it. Nothing is put on the modules. Each `with` replaces the last recording of
    the model, unless `keep` is set. Recordings may be nested.

    Args:
        model: A module; or an object that holds some, such as a pipeline, a mapping or a list,
            whose names then begin the paths.
        keep: Whether to add to the last recording of this model.
        resets_peak: Whether to count the memory that calls allocate on CUDA devices. This resets
            `torch.cuda.max_memory_allocated()` at each call; the notes contain its value.

    Raises:
        TypeError: It is not a module and holds none.
    """
    parts = parts_of(model)
    recorder = _earlier(parts) if keep else None
    if recorder is not None and recorder.is_listening:
        yield  # the recording around this one adds to the same
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
    """Return the last recording of a model, of an object that holds modules, or of a module.

    For a module inside a recorded model, paths are relative to it, and sources outside it are left
    out. If nothing was recorded, there are no timings.
    """
    tree = safe_call(tree_of_module, model)
    return replace(recorded_stats(model), tree=None if isinstance(tree, CallFailure) else tree)


def recorded_stats(model: Any) -> ForwardStats:
    """Return the last recording of a model without its tree."""
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
    """Return the recorder of the same modules under the same names."""
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
