"""The gate of commands on snapshots: `--fail-over`, and the exit code 3."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from snapviewer._lazy import TYPE_CHECKING

from .errors import CheckFailed
from .options import byte_count

if TYPE_CHECKING:
    from snapviewer import Device, Snapshot
    from snapviewer.snapshot.gate import Failure

EPILOG = "Exit code 3: a peak is above a limit."


def add_fail_over(parser: argparse.ArgumentParser, of: str = "") -> None:
    """Add `--fail-over`."""
    parser.add_argument(
        "--fail-over",
        type=byte_count,
        metavar="SIZE",
        help=f"fail if a device's peak of live bytes{of} is above this size, such as 24GiB; "
        "reserved memory is not checked",
    )


def gated_devices(snapshot: Snapshot, index: int | None) -> list[Device]:
    """Return the devices whose peaks are checked: the one asked for, or else every GPU.

    A file without a GPU has pinned host memory only, which then is checked.
    """
    if index is None:
        gpus = [device for device in snapshot.devices if device.index >= 0]
        return gpus or list(snapshot.devices)
    return [device for device in snapshot.devices if device.index == index]


def raise_if_failed(failed: Sequence[Failure]) -> None:
    """Fail with the reasons, if there are any.

    Raises:
        CheckFailed: A peak is above a limit.
    """
    if failed:
        raise CheckFailed("; ".join(one.reason for one in failed))
