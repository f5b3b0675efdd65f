"""Replaces `torch.nn.Module.__call__` while something is recorded, and takes the time.

One place in torch is changed, the class, and restored at the end. Nothing is put on modules, so
they can be saved, copied and compiled meanwhile, and take the same code paths as without recording
(some of torch's differ if there are hooks). Hooks of the user are part of the call.

The overhead of recording is subtracted from the calls around it. Waiting for a device is not: it is
work of the running module.

Listeners are nested, the first one outermost. The insides of compiled, traced and TorchScript
modules are not seen.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from snapviewer.explorer.recording.paths import KnownModule

clock_ns = time.perf_counter_ns


class Listener(Protocol):
    """Receives calls. Nothing may raise, except for waiting."""

    @property
    def waits(self) -> Sequence[Callable[[], None]]: ...
    def find(self, module: Any) -> KnownModule | None: ...
    def enter(self, known: KnownModule, module: Any, args: Any, kwargs: Any) -> Any: ...
    def leave(self, frame: Any, time_ns: int, result: Any, *, has_failed: bool) -> None: ...


class Overhead(threading.local):
    """The time that recording itself took on this thread so far."""

    ns = 0


overhead = Overhead()
_listeners: tuple[Listener, ...] = ()
_lock = threading.Lock()
_torchs_call: Any = None
_modules_before: frozenset[str] = frozenset()
_is_compiling: Callable[[], bool] = bool
_is_tracing: Callable[[], Any] = bool


def listen(listener: Listener) -> None:
    """Notify a listener of all module calls from now on."""
    global _listeners, _torchs_call, _modules_before, _is_compiling, _is_tracing  # noqa: PLW0603
    import torch

    with _lock:
        _is_compiling = torch.compiler.is_compiling
        _is_tracing = torch._C._get_tracing_state  # noqa: SLF001 (as `_call_impl` does)
        _listeners = (*_listeners, listener)
        if torch.nn.Module.__call__ is not _call:
            _modules_before = frozenset(sys.modules)
            _torchs_call = torch.nn.Module.__call__
            torch.nn.Module.__call__ = _call


def stop(listener: Listener) -> None:
    """Stop notifying a listener."""
    global _listeners  # noqa: PLW0603
    import torch

    with _lock:
        _listeners = tuple(one for one in _listeners if one is not listener)
        # Otherwise someone else replaced it meanwhile; they will call us, without listeners.
        if not _listeners and torch.nn.Module.__call__ is _call:
            torch.nn.Module.__call__ = _torchs_call
            _restore_copies()


def _restore_copies() -> None:
    """Restore torch's function in its modules that were imported meanwhile and copied ours."""
    for name in set(sys.modules) - _modules_before:
        module = sys.modules.get(name)
        if name.startswith("torch.") and module is not None:
            for key, value in list(vars(module).items()):
                if value is _call:
                    setattr(module, key, _torchs_call)


def _call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    # First: torch.compile treats this as a constant and drops the rest.
    if _is_compiling():
        return _torchs_call(self, *args, **kwargs)
    entered_ns = clock_ns()
    active = [(one, known) for one in _listeners if (known := one.find(self)) is not None]
    overhead.ns += clock_ns() - entered_ns
    if not active or _is_tracing():
        return _torchs_call(self, *args, **kwargs)
    return _timed(active, self, args, kwargs)


def _timed(active: list[tuple[Listener, KnownModule]], module: Any, args: Any, kwargs: Any) -> Any:
    for one, _ in active:
        for wait in one.waits:
            wait()
    entered_ns = clock_ns()
    frames = [(one, one.enter(known, module, args, kwargs)) for one, known in active]
    began_ns = clock_ns()
    overhead.ns += began_ns - entered_ns
    overhead_before_ns = overhead.ns
    result, has_failed = None, True
    try:
        result = _torchs_call(module, *args, **kwargs)
        for one, _ in active:
            for wait in one.waits:
                wait()
        has_failed = False
    finally:
        ended_ns = clock_ns()
        time_ns = ended_ns - began_ns - (overhead.ns - overhead_before_ns)
        for one, frame in reversed(frames):
            one.leave(frame, time_ns, result, has_failed=has_failed)
        overhead.ns += clock_ns() - ended_ns
    return result
