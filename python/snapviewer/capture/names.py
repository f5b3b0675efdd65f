"""The names of snapshots: which rank wrote it, at which step, and why."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SUFFIX = re.compile(r"\.(pickle|pkl)(\.gz)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """Which process of a run this is; `rank` is None if it is the only one."""

    rank: int | None = None
    world_size: int = 1
    host: str | None = None  # if there are several


def place_of(environment: Mapping[str, str] = os.environ) -> Place:
    """Return this process's place, as torchrun and others set it in the environment.

    >>> place_of({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4"})
    Place(rank=3, world_size=4, host=None)
    >>> place_of({})
    Place(rank=None, world_size=1, host=None)
    """

    def number(name: str) -> int | None:
        text = environment.get(name, "")
        return int(text) if text.isdecimal() else None

    rank, world_size = number("RANK"), number("WORLD_SIZE") or 1
    if rank is None or (world_size == 1 and rank == 0):
        return Place()
    has_hosts = (number("LOCAL_WORLD_SIZE") or world_size) < world_size
    return Place(rank, world_size, _word(socket.gethostname()) if has_hosts else None)


def snapshot_path(
    output: Path, place: Place, *, step: int, cause: str, is_last: bool, is_gzip: bool = False
) -> Path:
    """Return where to write a snapshot.

    The last one of a run with a single process is the output itself; all others have suffixes, and
    a number if the name is taken: nothing that was written is replaced.

    >>> snapshot_path(Path("run.pickle"), Place(3, 4), step=10, cause="oom", is_last=False).name
    'run_rank3_step10_oom.pickle'
    >>> snapshot_path(Path("run.pickle"), Place(), step=10, cause="end", is_last=True).name
    'run.pickle'
    """
    found = _SUFFIX.search(output.name)
    stem = output.name[: found.start()] if found else output.name
    suffix = found[0] if found else ".pickle"
    if is_gzip and not suffix.lower().endswith(".gz"):
        suffix += ".gz"
    parts = [stem]
    parts += [] if place.rank is None else [f"rank{place.rank}"]
    parts += [place.host] if place.host else []
    if not is_last:
        parts += [f"step{step}", cause]
    path = output.with_name("_".join(parts) + suffix)
    number = 2
    while not is_last and path.exists():
        path = output.with_name("_".join([*parts, str(number)]) + suffix)
        number += 1
    return path


def _word(host: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", host.partition(".")[0]) or "host"
