"""The null device from inside the process that runs on it: what was stubbed, guessed and read."""

from __future__ import annotations

import ctypes
from typing import Any

from .options import CaptureOptions
from .ranks import use_fake_groups
from .reads import Reads
from .stub_library import COUNTS

# Values of parameters do not matter, and memory that nobody touches costs nothing.
_INITIALIZERS = [
    "uniform_",
    "normal_",
    "trunc_normal_",
    "xavier_uniform_",
    "xavier_normal_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "orthogonal_",
    "constant_",
    "ones_",
    "zeros_",
]


class Prediction:
    """What is known about a run on the null device, for the snapshots that it writes."""

    def __init__(self, options: CaptureOptions) -> None:
        self._declared = options.predicted or {}
        self._library = ctypes.CDLL(None)
        self._stubs: list[str] = self._declared.get("stubs", [])
        self.reads = Reads(options.values)

    def imported(self) -> None:
        """Skip the initialization of parameters on the CPU, and talk to no other rank."""
        import torch

        use_fake_groups()

        for name in _INITIALIZERS:
            original = getattr(torch.nn.init, name, None)
            if original is not None:
                setattr(torch.nn.init, name, _skipping_cpu(original))

    def started(self) -> None:
        """Choose kernels as the device would, and watch what is read from it."""
        import torch

        built = torch._C._cuda_getArchFlags() or ""  # noqa: SLF001
        major, minor = torch.cuda.get_device_capability()
        newest = newest_architecture(built.split(), major * 10 + minor)
        self._library.snapviewer_set_architecture(newest)
        self.reads.watch(self._library)

    def facts(self) -> dict[str, Any]:
        """Return what to put into a snapshot."""
        declared = {key: value for key, value in self._declared.items() if key != "stubs"}
        missing = ctypes.cast(self._function("snapviewer_missing")(), ctypes.c_char_p).value or b""
        return {
            **declared,
            "stubbed": self._stub_calls(),
            "guessed": self._guesses(),
            "missing": missing.decode("ascii", "replace").split(),
            "reads": self.reads.seen(),
        }

    def _function(self, name: str) -> Any:
        function = getattr(self._library, name)
        function.restype = ctypes.c_void_p
        return function

    def _stub_calls(self) -> dict[str, int]:
        if not self._stubs:
            return {}
        counts = (ctypes.c_uint64 * len(self._stubs)).in_dll(self._library, COUNTS)
        return {name: count for name, count in zip(self._stubs, counts, strict=True) if count}

    def _guesses(self) -> list[dict[str, Any]]:
        guess = self._function("snapviewer_guess")
        calls, answered = ctypes.c_uint64(), ctypes.c_uint64()
        guesses: list[dict[str, Any]] = []
        while text := guess(
            ctypes.c_size_t(len(guesses)), ctypes.byref(calls), ctypes.byref(answered)
        ):
            what = (ctypes.cast(text, ctypes.c_char_p).value or b"").decode("ascii")
            guesses.append({"what": what, "calls": calls.value, "bytes": answered.value})
        return guesses


def newest_architecture(built: list[str], capability: int) -> int:
    """Return the newest of `sm_80`, … that a device can run; its own if there is none.

    >>> newest_architecture(["sm_75", "sm_80", "sm_90", "compute_90"], 86)
    80
    """
    numbers = [int(name[3:]) for name in built if name[:3] == "sm_" and name[3:].isdecimal()]
    return max((number for number in numbers if number <= capability), default=capability)


def _skipping_cpu(original: Any) -> Any:
    def initialize(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
        if tensor.device.type == "cpu":
            return tensor
        return original(tensor, *arguments, **keywords)

    return initialize
