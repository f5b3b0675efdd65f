"""How long commands take on small files, as ratios to a bare `python -c pass` beside them.

Bytecode is compiled once and kept, as an installation does, whatever the environment says.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import torch

from snapviewer import demo

REPEATS = 15
PROGRAM = ("-m", "snapviewer")


def run(folder: Path) -> None:
    """Print a table of the commands."""
    snapshot, checkpoint, picture = (folder / name for name in ("tiny.pickle", "tiny.pth", "t.png"))
    if not snapshot.exists():
        demo.write_demo(snapshot, demo.DemoOptions(events=2000))
    if not checkpoint.exists():
        torch.save(torch.nn.Linear(20, 30).state_dict(), checkpoint)
    commands = {
        "--version": (4, ["--version"]),
        "--help": (4, ["--help"]),
        "info": (7, ["info", str(snapshot)]),
        "report": (7, ["report", str(snapshot)]),
        "pth": (7, ["pth", str(checkpoint)]),
        "render": (15, ["render", str(snapshot), "-o", str(picture), "--force"]),
    }
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def seconds(arguments: list[str]) -> float:
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, *arguments], stdout=subprocess.DEVNULL, env=environment, check=True
        )
        return time.perf_counter() - start

    taken: dict[str, list[float]] = {"": [], **{name: [] for name in commands}}
    for _ in range(REPEATS):  # side by side: a busy moment meets all of them
        taken[""].append(seconds(["-c", "pass"]))
        for name, (_, arguments) in commands.items():
            taken[name].append(seconds([*PROGRAM, *arguments]))
    baseline = min(taken[""])
    print(f"\nstart-up: a small file, best of {REPEATS}; `python -c pass` {baseline * 1e3:.1f} ms")
    for name, (limit, _) in commands.items():
        best = min(taken[name])
        verdict = "" if best <= limit * baseline else "   OVER"
        print(f"  {name:24}{best * 1e3:8.1f} ms   {best / baseline:.1f}× (limit {limit}){verdict}")
    picture.unlink()
