"""Notes on the limits of recorded times, in sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from snapviewer.explorer.recording.devices import Devices
from snapviewer.explorer.safe_call import describe_error
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize
from snapviewer.text.units import count_of

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Notes:
    """Notes on one recording."""

    def __init__(self, *, counts_memory: bool) -> None:
        self.failed = 0
        self.recomputed = 0
        self.no_backward = ""
        self.flow_is_cut = False
        self.later: set[str] = set()
        self._counts_memory = counts_memory
        self._closed: dict[str, str] = {}
        self._errors: dict[str, int] = {}
        self._waited: tuple[str, ...] = ()
        self._peaks: dict[str, int] = {}

    def attempt(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T | None:
        """Call something that must not end the recorded run; keep its error for a note."""
        try:
            return work(*args, **kwargs)
        # The user's values may raise anything.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            message = describe_error(error)
            if message in self._errors or len(self._errors) < 10:
                self._errors[message] = self._errors.get(message, 0) + 1
            return None

    def of_module(self, path: str, module: Any) -> None:
        """Note a module whose inner calls are not seen."""
        import torch

        if isinstance(module, torch.jit.ScriptModule):
            self._closed[path] = "TorchScript"
        elif (
            "_orig_mod" in module.__dict__.get("_modules", {})
            or module.__dict__.get("_compiled_call_impl") is not None
        ):
            self._closed[path] = "compiled"

    def devices(self, devices: Devices) -> None:
        """Note the devices."""
        self._waited = tuple(dict.fromkeys((*self._waited, *devices.names())))
        self._peaks.update(devices.peaks())

    def sentences(self, *, has_calls: bool) -> tuple[str, ...]:
        """Return all notes."""
        notes: list[str] = []
        if not has_calls:
            notes.append(
                "no call of the model completed while it was recorded (a compiled copy does not "
                "call the model: record the copy)"
            )
        for path, kind in self._closed.items():
            name = sanitize(path, MAX_NAME_CHARS) or "the model"
            notes.append(f"{name} is {kind}: its inner modules are not seen")
        for path in sorted(self.later):
            name = sanitize(path, MAX_NAME_CHARS) or "the model"
            notes.append(f"{name} returns a generator or coroutine, whose later work is not timed")
        if self.failed:
            notes.append(f"{count_of(self.failed, 'call')} not timed: ended with an exception")
        if self.recomputed:
            notes.append(
                f"{count_of(self.recomputed, 'call')} recomputed by a backward pass "
                "(checkpointing): in the backward times of the modules that needed it"
            )
        if self.flow_is_cut:
            notes.append("the flow contains only the first calls of the last run")
        if self.no_backward:
            notes.append(f"backward passes are not timed: {self.no_backward}")
        notes += self._memory()
        for error, count in self._errors.items():
            notes.append(f"{count_of(count, 'call')} could not be described: {error}")
        return tuple(notes)

    def _memory(self) -> list[str]:
        if not self._waited:
            return [
                "the memory that calls allocate on the CPU is a lower bound: it is that of the "
                "tensors that modules take and return"
            ]
        notes = [
            f"each call waited for {', '.join(self._waited)} before and after it, so devices "
            "and CPU did not run at the same time"
        ]
        if not self._counts_memory:
            notes.append(
                "the memory that calls allocate was not counted: that would reset the peaks"
            )
        elif self._peaks:
            most = ", ".join(f"{name} {peak:,} bytes" for name, peak in self._peaks.items())
            notes.append(
                "torch.cuda.max_memory_allocated() was reset at each call; without resets it "
                f"would be at least: {most}"
            )
        return notes
