"""A model analyzed aside, for programs that must not wait.

The explorer itself reads models in the same way: `app.program.ExplorerApp.analyze_model_async` is
a worker of which only one runs at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event
from typing import Any

from snapviewer.compat.explorer import ModuleInfo, info_of
from snapviewer.explorer.app.opening import subject_of

MODULES_BETWEEN = 100


async def analyze_model_async(
    model: Any, *, progress: Callable[[int, int], object] | None = None
) -> dict[str, ModuleInfo]:
    """Analyze every module of a model; others go on meanwhile.

    The modules are looked at in a thread, which ends soon if this is cancelled, and told of in the
    loop, with a turn for others after every hundred.

    Args:
        model: As `explore_model` takes it.
        progress: Called in the loop with (done, total) in modules.

    Returns:
        By path: a module with its own tensors' shapes, and the sums of all in it.

    Raises:
        SnapshotError: It is no model.
    """
    cancel = Event()
    try:
        subject = await asyncio.to_thread(subject_of, model, None, cancel)
    except asyncio.CancelledError:
        cancel.set()
        raise
    found: dict[str, ModuleInfo] = {}
    total = subject.tree.root.sums.modules
    for number, node in enumerate(subject.tree.root.walk()):
        if number % MODULES_BETWEEN == 0:
            if progress is not None:
                progress(number, total)
            await asyncio.sleep(0)
        shapes = {entry.name: entry.shape for entry in node.tensors}
        found[node.path] = info_of(node.path, node, shapes, subject.timing_of(node))
    return found
