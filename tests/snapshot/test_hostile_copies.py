"""A small file that names something large many times costs no more than a small file."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from support import hostile_copies, program
from support.hostile_copies import COPIES


def _run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "snapviewer", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=program.limit_attack,
    )


@pytest.mark.parametrize("name", COPIES)
def test_copies_cost_little(name: str, tmp_path: Path) -> None:
    path = tmp_path / "snap.pickle"
    path.write_bytes(hostile_copies.content(name))
    assert path.stat().st_size < 3_000_000
    words = COPIES[name][1]

    for ran in (_run("info", path), _run("convert", path, "-o", tmp_path / "out.zip", "-q")):
        if words is None:
            assert (ran.returncode, ran.stderr) == (0, "")
            assert len(ran.stdout) < 100_000
        else:
            assert ran.returncode == 1
            assert words in ran.stderr
            assert ran.stderr.count("\n") == 1


def test_a_gzip_bomb_is_refused_early(tmp_path: Path) -> None:
    path = tmp_path / "snap.pickle.gz"
    path.write_bytes(hostile_copies.bomb())

    ran = _run("info", path)

    assert ran.returncode == 1
    assert "times its size" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_blocks_that_share_their_past_are_converted(tmp_path: Path) -> None:
    past = [{"addr": 5, "real_size": 5, "frames": []}, {"addr": 5, "real_size": 7, "frames": []}]
    block = {"size": 512, "state": "active_allocated", "history": past}
    segment = {"device": 0, "address": 512, "total_size": 4096, "blocks": [block, dict(block)]}
    path, bundle = tmp_path / "snap.pickle", tmp_path / "out"
    path.write_bytes(pickle.dumps({"segments": [segment]}))

    assert _run("convert", path, "-o", bundle).returncode == 0
    ran = _run("query", bundle, "select block, count(*) from history group by block", "--json")

    assert '"rows": [[0, 2]]' in " ".join(ran.stdout.split()).replace("[ ", "[").replace(" ]", "]")
