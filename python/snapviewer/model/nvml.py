"""GPUs through NVIDIA's management library (NVML), or the reason why that is not possible.

Each query may fail on its own: consumer cards, virtual GPUs and containers support some and not
others.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

_CONSTANTS = {"NVML_TEMPERATURE_GPU": 0, "NVML_CLOCK_SM": 1}


class NoAnswerError(Exception):
    """The library or the card has no answer; the message says why."""


@dataclass(frozen=True, slots=True)
class NvmlGpu:
    """One card: the module of the library, its handle of the card, and the name in reports."""

    nvml: Any
    handle: Any
    name: str

    def ask(self, function: str, *arguments: Any) -> Any:
        """Query the card.

        Raises:
            NoAnswerError: It has no answer.
        """
        return _called(self.nvml, function, self.handle, *arguments)

    def constant(self, name: str) -> int:
        """Return a constant of the library; all versions have the same values."""
        return int(getattr(self.nvml, name, _CONSTANTS[name]))


def open_nvml(nvml: Any = None) -> Any:
    """Return the initialized library.

    Args:
        nvml: A module to use instead of `pynvml`.

    Raises:
        NoAnswerError: It is not installed, or there is no driver.
    """
    if nvml is None:
        try:
            with warnings.catch_warnings():
                # An older package of this name warns that it is deprecated.
                warnings.simplefilter("ignore")
                nvml = import_module("pynvml")
        except ImportError:
            raise NoAnswerError(
                "nvidia-ml-py is not installed (pip install nvidia-ml-py)"
            ) from None
    _called(nvml, "nvmlInit")
    return nvml


def close_nvml(nvml: Any) -> None:
    """Release the library; it counts how often it was opened."""
    try:
        _called(nvml, "nvmlShutdown")
    except NoAnswerError:
        return  # there is nothing more to release


def all_gpus(nvml: Any) -> tuple[NvmlGpu, ...]:
    """Return all cards of the machine, in the order of the library.

    Raises:
        NoAnswerError: The library has no answer.
    """
    return tuple(
        NvmlGpu(nvml, _called(nvml, "nvmlDeviceGetHandleByIndex", index), f"GPU {index}")
        for index in range(min(int(_called(nvml, "nvmlDeviceGetCount")), 1024))
    )


def find_gpu(nvml: Any, index: int) -> NvmlGpu:
    """Find the card that PyTorch calls `cuda:index`.

    The library lists all cards, in the order of their slots; CUDA lists those of
    `CUDA_VISIBLE_DEVICES`, the fastest first. If PyTorch uses CUDA, it knows the UUID of the card;
    else the variable decides.

    Raises:
        NoAnswerError: There is no such card, or it cannot be identified.
    """
    identity = _identity_from_torch(index) or _identity_from_environment(os.environ, index)
    if isinstance(identity, int):
        handle = _called(nvml, "nvmlDeviceGetHandleByIndex", identity)
    else:
        handle = _called(nvml, "nvmlDeviceGetHandleByUUID", identity)
    return NvmlGpu(nvml, handle, f"GPU {index}")


def _identity_from_torch(index: int) -> str | None:
    """Return the UUID of the card if PyTorch is loaded and already uses CUDA."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    try:
        if not torch.cuda.is_initialized():
            return None
        identity = str(torch.cuda.get_device_properties(index).uuid)
    except (AttributeError, AssertionError, RuntimeError):
        return None
    return identity if identity.startswith(("GPU-", "MIG-")) else f"GPU-{identity}"


def _identity_from_environment(environment: Mapping[str, str], index: int) -> int | str:
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return index
    names = [name.strip() for name in visible.split(",") if name.strip()]
    if "-1" in names:  # CUDA uses what comes before it
        names = names[: names.index("-1")]
    if index >= len(names):
        raise NoAnswerError(f"CUDA_VISIBLE_DEVICES hides the GPU {index}")
    name = names[index]
    if not name.isdecimal():
        return name
    return int(name)


def _called(nvml: Any, function: str, *arguments: Any) -> Any:
    """Call a function of the library."""
    call: Callable[..., Any] | None = getattr(nvml, function, None)
    if call is None:
        raise NoAnswerError(f"this nvidia-ml-py has no {function}")
    try:
        return call(*arguments)
    except nvml.NVMLError as error:
        raise NoAnswerError(f"NVML: {str(error) or type(error).__name__}") from None
