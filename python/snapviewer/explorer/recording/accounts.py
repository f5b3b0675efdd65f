"""What adds up while calls are recorded, and the plain data that it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from snapviewer.explorer.recording.samples import Samples
from snapviewer.explorer.recording.values import Seen, shapes_of
from snapviewer.explorer.timing import ForwardStats, ModuleTiming


class Account:
    """All calls of one module, under one of its paths."""

    __slots__ = (
        "activation_bytes",
        "allocated_bytes",
        "backward",
        "backward_own",
        "calls",
        "inputs",
        "outputs",
        "own",
        "path",
        "total",
        "type_name",
    )

    def __init__(self, path: str) -> None:
        self.path = path
        self.type_name = ""
        self.calls = 0
        self.total, self.own = Samples(), Samples()
        self.backward, self.backward_own = Samples(), Samples()
        self.inputs: Sequence[Seen] = ()
        self.outputs: Sequence[Seen] = ()
        self.activation_bytes = 0
        self.allocated_bytes: int | None = None

    def timing(self) -> ModuleTiming | None:
        """Return what the calls showed, or None if none of them came to its end."""
        total, own = self.total.spread(), self.own.spread()
        if total is None or own is None:
            return None
        return ModuleTiming(
            path=self.path,
            type_name=self.type_name,
            calls=self.calls,
            total=total,
            own=own,
            backward=self.backward.spread(),
            backward_own=self.backward_own.spread(),
            has_gradient=self.backward.count > 0,
            inputs=shapes_of(self.inputs),
            outputs=shapes_of(self.outputs),
            activation_bytes=self.activation_bytes,
            allocated_bytes=self.allocated_bytes,
        )


def below(stats: ForwardStats, path: str) -> ForwardStats:
    """Return what was recorded of one module, with paths as it would tell them itself.

    Args:
        stats: Of the module and what is below it only.
        path: The module's.
    """
    if not path:
        return stats
    timings = {
        _within(one.path, path): replace(one, path=_within(one.path, path))
        for one in stats.timings.values()
    }
    depth = min((step.depth for step in stats.flow), default=0)
    flow = [
        replace(
            step,
            order=order,
            path=_within(step.path, path),
            depth=step.depth - depth,
            sources=tuple(_within(one, path) for one in step.sources if is_within(one, path)),
        )
        for order, step in enumerate(stats.flow)
    ]
    runs = timings[""].calls if "" in timings else 0
    return ForwardStats(timings, tuple(flow), runs, stats.notes)


def is_within(path: str, ancestor: str) -> bool:
    """Tell whether a path is that of a module or of one below it.

    >>> is_within("layer1.0", "layer1"), is_within("layer10", "layer1"), is_within("fc", "")
    (True, False, True)
    """
    return not ancestor or path == ancestor or path.startswith(f"{ancestor}.")


def _within(path: str, ancestor: str) -> str:
    """Return a path as seen from a module above it.

    >>> _within("layer1.0.conv1", "layer1"), _within("layer1", "layer1")
    ('0.conv1', '')
    """
    return path[len(ancestor) + 1 :]
