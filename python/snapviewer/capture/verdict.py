"""Does it fit? Runs a script on the null device and sums up what happened."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

from snapviewer.text.units import count_of, format_bytes

from .gpus import Gpu
from .launch import Ran, run_script
from .null_device import NullDevice
from .options import CaptureOptions

NOT_MODELLED = (
    "CUDA's context is an assumption of the GPU's profile",
    "memory that libraries allocate themselves: NCCL, cuBLAS, cuSOLVER, cuFFT",
    "allocations that depend on values: what is read from the device is zero",
)
OTHER_RANKS = "NCCL's buffers, and the work of the other ranks: collectives move nothing"
# The largest workspace of a convolution in a published recording of ResNet-50.
WORKSPACE_BYTES = 129 << 20
_WORKSPACE = ("workspace of a convolution", "workspace of cuDNN")
EXPANDABLE = "expandable_segments:True"


class ScriptFailedError(Exception):
    """The script ended before it was recorded, and not for lack of memory."""


@dataclass(frozen=True, slots=True)
class Case:
    """A run under one setting of the allocator."""

    conf: str
    fits: bool
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    oom: dict[str, Any] | None  # the first time that memory ran out
    snapshot: str  # the file to look at: where it ran out, else the last
    facts: dict[str, Any]


def predict(
    command: Sequence[str],
    options: CaptureOptions,
    device: NullDevice,
    gpu: Gpu,
    *,
    conf: str | None = None,
    devices: int = 1,
    workspace_bytes: int = 0,
    stdout: IO[Any] | None = None,
    is_silent: bool = False,
    variables: dict[str, str] | None = None,
) -> Case:
    """Run a script on the null device.

    Args:
        command: `SCRIPT …` or `-m MODULE …`.
        options: How it is recorded.
        device: The null device.
        gpu: What it stands for.
        conf: The allocator's settings; by default the user's.
        devices: How many GPUs there are.
        workspace_bytes: What each call of cuDNN takes as its workspace.
        stdout: Where the script prints to.
        is_silent: Whether what it prints is dropped.
        variables: Further variables of its environment.

    Raises:
        ScriptFailedError: It failed, and not for lack of memory.
    """
    chosen = _user_conf() if conf is None else conf
    declared = {
        "gpu": gpu.key,
        "gpu_name": gpu.name,
        "capability": gpu.capability,
        "capacity_bytes": gpu.usable_bytes,
        "context_bytes": gpu.context_bytes,
        "profile_origin": gpu.origin,
        "torch": device.torch_version,
        "cuda": device.cuda_version,
        "conf": chosen,
        "stubs": list(device.stubs),
    }
    null_device = device.environment(gpu, devices=devices, workspace_bytes=workspace_bytes)
    environment = {**null_device, **(variables or {})}
    environment |= {"PYTORCH_ALLOC_CONF": chosen, "PYTORCH_CUDA_ALLOC_CONF": chosen}
    ran = run_script(
        command,
        replace(options, predicted=declared, has_times=False),
        environment=environment,
        stdout=stdout,
        is_silent=is_silent,
    )
    return _case(chosen, ran)


def _user_conf() -> str:
    return os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")


def with_expandable_segments(conf: str | None = None) -> str:
    """Return settings with expandable segments on.

    >>> with_expandable_segments("max_split_size_mb:64")
    'max_split_size_mb:64,expandable_segments:True'
    """
    conf = _user_conf() if conf is None else conf
    kept = [part for part in conf.split(",") if part and "expandable_segments" not in part]
    return ",".join([*kept, EXPANDABLE])


def has_workspaces(case: Case) -> bool:
    """Return whether cuDNN was asked for workspaces, whose sizes only a real GPU knows."""
    return any(guess["what"].startswith(_WORKSPACE) for guess in case.facts["guessed"])


def _case(conf: str, ran: Ran) -> Case:
    ooms = [each for each in ran.snapshots if each["oom"]]
    if not ran.snapshots:
        raise ScriptFailedError(
            f"the script ended with exit code {ran.code} before it used CUDA"
            if ran.code
            else "the script did not use CUDA: there is nothing to predict"
        )
    if ran.code and not ooms:
        raise ScriptFailedError(f"the script failed with exit code {ran.code}")
    last = ran.snapshots[-1]
    shown = ooms[0] if ooms else last

    def largest(key: str) -> int:
        return max((device[key] for device in last["devices"]), default=0)

    return Case(
        conf=conf,
        fits=not ooms,
        peak_allocated_bytes=largest("peak_allocated_bytes"),
        peak_reserved_bytes=largest("peak_reserved_bytes"),
        oom={**ooms[0]["oom"], "step": ooms[0]["step"]} if ooms else None,
        snapshot=shown["file"],
        facts=last,
    )


def not_modelled(case: Case) -> list[str]:
    """Return what a prediction leaves out or guesses, in sentences."""
    guesses = [
        f"{guess['what']}: {count_of(guess['calls'], 'call')}, {_assumed(guess['bytes'])}"
        for guess in case.facts["guessed"]
    ]
    missing = [f"PyTorch asked for {name}, which is missing" for name in case.facts["missing"]]
    ranks = [OTHER_RANKS] if case.facts["world_size"] > 1 else []
    return [*missing, *guesses, *ranks, *NOT_MODELLED]


def _assumed(size_bytes: int) -> str:
    return f"at most {format_bytes(size_bytes)} assumed" if size_bytes else "0 B assumed"
