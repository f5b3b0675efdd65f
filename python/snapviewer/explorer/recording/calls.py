"""Stands in for `torch.nn.Module.__call__` while someone records, and keeps the time.

One place in torch is changed, the class, and changed back at the end: nothing is put on modules, so
they can be saved, copied and compiled meanwhile, and take the ways that they take without us (some
of torch's go another way if they have hooks). Hooks of the user are part of the call.

The clock stands still for what recording itself does: the time of it is taken away from the calls
around it. Waiting for a device is not: what was waited for is work of the module that runs.

Listeners are asked in turn, those who came first around those who came later. What is compiled,
traced or run by TorchScript is not seen from within.
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
    """Who is told of calls. Nothing of it may raise, but for waiting."""

    @property
    def waits(self) -> Sequence[Callable[[], None]]: ...
    def find(self, module: Any) -> KnownModule | None: ...
    def enter(self, known: KnownModule, module: Any, args: Any, kwargs: Any) -> Any: ...
    def leave(self, frame: Any, time_ns: int, result: Any, *, has_failed: bool) -> None: ...


class Overhead(threading.local):
    """What recording itself took on this thread so far."""

    ns = 0


overhead = Overhead()
_listeners: tuple[Listener, ...] = ()
_lock = threading.Lock()
_torchs_call: Any = None
_modules_before: frozenset[str] = frozenset()
_is_compiling: Callable[[], bool] = bool
_is_tracing: Callable[[], Any] = bool


def listen(listener: Listener) -> None:
    """Tell someone of all calls of modules from now on."""
    global _listeners, _torchs_call, _modules_before, _is_compiling, _is_tracing  # noqa: PLW0603
    import torch

    with _lock:
        _is_compiling = torch.compiler.is_compiling
        _is_tracing = torch._C._get_tracing_state  # noqa: SLF001 (`_call_impl` asks the same)
        _listeners = (*_listeners, listener)
        if torch.nn.Module.__call__ is not _call:
            _modules_before = frozenset(sys.modules)
            _torchs_call = torch.nn.Module.__call__
            torch.nn.Module.__call__ = _call


def stop(listener: Listener) -> None:
    """Tell no more."""
    global _listeners  # noqa: PLW0603
    import torch

    with _lock:
        _listeners = tuple(one for one in _listeners if one is not listener)
        # If it is another one, someone stands in for us, who will call us and find nobody.
        if not _listeners and torch.nn.Module.__call__ is _call:
            torch.nn.Module.__call__ = _torchs_call
            _put_right()


def _put_right() -> None:
    """Give torch's function to the modules of torch that were imported meanwhile and took ours."""
    for name in set(sys.modules) - _modules_before:
        module = sys.modules.get(name)
        if name.startswith("torch.") and module is not None:
            for key, value in list(vars(module).items()):
                if value is _call:
                    setattr(module, key, _torchs_call)


def _call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    # First: torch.compile takes this for a constant, and leaves out the rest.
    if _is_compiling():
        return _torchs_call(self, *args, **kwargs)
    asked_ns = clock_ns()
    asked = [(one, known) for one in _listeners if (known := one.find(self)) is not None]
    overhead.ns += clock_ns() - asked_ns
    if not asked or _is_tracing():
        return _torchs_call(self, *args, **kwargs)
    return _timed(asked, self, args, kwargs)


def _timed(asked: list[tuple[Listener, KnownModule]], module: Any, args: Any, kwargs: Any) -> Any:
    for one, _ in asked:
        for wait in one.waits:
            wait()
    asked_ns = clock_ns()
    frames = [(one, one.enter(known, module, args, kwargs)) for one, known in asked]
    began_ns = clock_ns()
    overhead.ns += began_ns - asked_ns
    overhead_before_ns = overhead.ns
    result, has_failed = None, True
    try:
        result = _torchs_call(module, *args, **kwargs)
        for one, _ in asked:
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
