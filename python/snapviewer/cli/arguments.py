"""What the commands share: numbers as people type them, and what they print."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from pathlib import Path

from snapviewer import Device, Snapshot, SnapshotError
from snapviewer.text.sanitize import json_text
from snapviewer.text.units import parse_bytes


def whole(text: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be a whole number, such as 1000") from None


def positive(text: str) -> int:
    """Read a whole number from 1 on."""
    number = whole(text)
    if not 1 <= number < 2**63:
        raise argparse.ArgumentTypeError("must be 1 or more" if number < 1 else "is too large")
    return number


def device_index(text: str) -> int:
    """Read the number of a device."""
    number = whole(text)
    if not -1 <= number < 2**31:
        raise argparse.ArgumentTypeError("must be 0 or more, or -1 for pinned host memory")
    return number


def byte_count(text: str) -> int:
    """Read a number of bytes, such as 512MiB."""
    try:
        number = parse_bytes(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError("must be a number of bytes, such as 512MiB") from None
    if not 0 <= number < 2**64:
        raise argparse.ArgumentTypeError("must be 0 or more" if number < 0 else "is too large")
    return number


def seconds(text: str) -> float:
    """Read a number of seconds."""
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be a number of seconds") from None
    if not number > 0:  # nor is NaN
        raise argparse.ArgumentTypeError("must be more than 0")
    return number


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of the files in a directory."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def refuse_to_replace(options: argparse.Namespace) -> None:
    """Refuse an output that exists, unless it is to be replaced."""
    output = options.output
    if output.is_dir() or not os.path.lexists(output):
        return
    if output.exists() and not output.is_file():
        raise OSError(errno.EINVAL, "the output is not a regular file", str(output))
    if not options.force:
        raise FileExistsError(
            errno.EEXIST,
            "the output exists already; choose another name, or replace it with --force",
            str(output),
        )


def picked_device(snapshot: Snapshot, index: int | None) -> Device:
    """Return the device that was asked for; if none was, the one with the largest peak."""
    devices = snapshot.devices
    if not devices:
        raise SnapshotError("there is no device in this file")
    if index is None:
        return max(devices, key=lambda device: device.peak_bytes)
    found = [device for device in devices if device.index == index]
    if not found:
        there = ", ".join(str(device.index) for device in devices)
        raise SnapshotError(f"there is no device {index} in this file; there is {there}")
    return found[0]


def print_json(document: object) -> None:
    """Print one JSON document."""
    sys.stdout.write(f"{json_text(document)}\n")
