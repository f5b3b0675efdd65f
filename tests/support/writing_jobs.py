"""Everything that the program writes, each as a job that can be made to fail or be killed.

A job runs in a directory with its inputs and, if it replaces something, the output of an earlier
run. Afterwards `state_of` the directory has to be that of before, or that of a whole run.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from support.events_sample import rich_log, write_log
from support.pth_writer import T, write_safetensors

SETTINGS = "settings.json"


@dataclass(frozen=True, slots=True)
class Job:
    """A command that writes; a few are functions, which `run_job` knows by their names."""

    arguments: tuple[str, ...]
    replaces: bool = False
    may_succeed: bool = False
    """Whether it succeeds where nothing can be written: settings are not worth an error."""


def _both(*arguments: str) -> dict[str, Job]:
    """A job that writes a new file, and one that replaces it."""
    name = f"{arguments[0]} {arguments[arguments.index('-o') + 1]}"
    replacing = Job((*arguments, "--force"), replaces=True)
    return {name: Job(arguments), f"{name} again": replacing}


JOBS: Mapping[str, Job] = {
    **_both("convert", "snap.pickle", "-o", "out.zip"),
    **_both("convert", "snap.pickle", "-o", "out"),
    "cache": Job(("query", "snap.pickle", "select count(*) from allocations")),
    **_both("render", "snap.pickle", "-o", "out.png"),
    **_both("report", "snap.pickle", "-o", "out.txt"),
    **_both("info", "snap.pickle", "-o", "out.json"),
    **_both("model", "m.safetensors", "-o", "out.html"),
    **_both("model", "m.safetensors", "-o", "out.xml"),
    **_both("explore", "m.safetensors", "-o", "out.svg"),
    **_both("pth", "m.safetensors", "-o", "out.txt"),
    **_both("events", "events.json", "-o", "out.md"),
    **_both("demo", "--events", "300", "-o", "out.pickle"),
    "settings": Job(("settings",), replaces=True, may_succeed=True),
}


def prepare(directory: Path, *, events: int = 600) -> None:
    """Write the inputs of all jobs."""
    from snapviewer.demo import DemoOptions, write_demo

    directory.mkdir()
    write_demo(directory / "snap.pickle", DemoOptions(events=events))
    write_safetensors(
        directory / "m.safetensors", {f"a.{n}.weight": T("float32", (4, 4)) for n in range(9)}
    )
    write_log(directory / "events.json", rich_log())
    os.environ["SNAPVIEWER_CACHE"] = "cache"
    os.environ["SNAPVIEWER_CONFIG"] = "config"


def run_job(job: Job) -> int:
    """Run a job in the current directory, and return the exit code."""
    if job.arguments == ("settings",):
        from snapviewer.files.user_settings import settings_path, write_user_settings

        write_user_settings(settings_path(SETTINGS), {"theme": "dark", "recent": ["x" * 99] * 500})
        return 0
    from snapviewer.cli import main

    return main(job.arguments)


def reset(directory: Path, inputs: Path, old: Path | None) -> None:
    """Make a directory that has only the inputs, and what an earlier run wrote."""
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(inputs if old is None else old, directory)


def state_of(directory: Path) -> dict[str, str]:
    """A digest of every file, by its path."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def spoil_settings(directory: Path) -> None:
    """Have older settings, which differ from those that the job writes."""
    (directory / "config").mkdir(exist_ok=True)
    (directory / "config" / SETTINGS).write_text(json.dumps({"theme": "light"}))


def spoil_output(directory: Path) -> None:
    """Turn the output of a run into one of an older version, so that a new one differs."""
    for path in directory.glob("out*"):
        if path.suffix not in ("", ".zip"):  # those are checked before they are replaced
            path.write_bytes(pickle.dumps("older"))
