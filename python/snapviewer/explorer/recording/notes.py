"""What a reader of recorded times must know, in sentences."""

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
    """What came up while a model was recorded."""

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
        """Do what must not end the run that is recorded; keep what went wrong for a sentence."""
        try:
            return work(*args, **kwargs)
        # Values of the user may raise anything.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            message = describe_error(error)
            if message in self._errors or len(self._errors) < 10:
                self._errors[message] = self._errors.get(message, 0) + 1
            return None

    def of_module(self, path: str, module: Any) -> None:
        """Look whether a module calls others in a way that is not seen."""
        import torch

        if isinstance(module, torch.jit.ScriptModule):
            self._closed[path] = "TorchScript"
        elif (
            "_orig_mod" in module.__dict__.get("_modules", {})
            or module.__dict__.get("_compiled_call_impl") is not None
        ):
            self._closed[path] = "compiled"

    def devices(self, devices: Devices) -> None:
        """Keep what is to be said of the devices."""
        self._waited = tuple(dict.fromkeys((*self._waited, *devices.names())))
        self._peaks.update(devices.peaks())

    def sentences(self, *, has_calls: bool) -> tuple[str, ...]:
        """Say it all."""
        said: list[str] = []
        if not has_calls:
            said.append(
                "no call of the model came to its end while it was recorded (a compiled copy of it "
                "does not call it: record the copy)"
            )
        for path, kind in self._closed.items():
            name = sanitize(path, MAX_NAME_CHARS) or "the model"
            said.append(f"{name} is {kind}: the modules that it runs inside are not seen")
        for path in sorted(self.later):
            name = sanitize(path, MAX_NAME_CHARS) or "the model"
            said.append(
                f"{name} returns a generator or coroutine: what that does later is not timed"
            )
        if self.failed:
            said.append(f"{count_of(self.failed, 'call')} not timed: ended with an exception")
        if self.recomputed:
            said.append(
                f"{count_of(self.recomputed, 'call')} made again by a backward pass "
                "(checkpointing): in the backward times of the modules that needed it"
            )
        if self.flow_is_cut:
            said.append("the flow has the first calls of the last run, not all")
        if self.no_backward:
            said.append(f"backward passes are not timed: {self.no_backward}")
        said += self._memory()
        for error, count in self._errors.items():
            said.append(f"{count_of(count, 'call')} could not be described: {error}")
        return tuple(said)

    def _memory(self) -> list[str]:
        if not self._waited:
            return ["the memory that calls allocate is not known: only CUDA counts it"]
        said = [
            f"each call waited for {', '.join(self._waited)} before and after it, so the devices "
            "and the processor did not work at the same time"
        ]
        if not self._counts_memory:
            said.append("the memory that calls allocate was not counted: that resets the peaks")
        elif self._peaks:
            most = ", ".join(f"{name} {peak:,} bytes" for name, peak in self._peaks.items())
            said.append(
                "torch.cuda.max_memory_allocated() was reset at each call; without that it would "
                f"be at least: {most}"
            )
        return said
