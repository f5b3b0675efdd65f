"""Hostile bundles get one sentence, within limits on memory and time; nothing is left."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import snapviewer
from snapviewer import _core
from support import hostile
from support.hostile_bundles import ATTACKS, change_database, reseal

SQL = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n"


def _limit() -> None:
    """Allow half a gigabyte of memory, and five seconds of the processor."""
    resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))
    resource.setrlimit(resource.RLIMIT_CPU, (5, 5))


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "snap.json"
    path.write_text(json.dumps(hostile.small_snapshot()))
    _core.convert(path, tmp_path / "out")
    path.unlink()
    return tmp_path / "out"


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_gets_one_sentence(attack: str, bundle: Path, tmp_path: Path) -> None:
    change, words = ATTACKS[attack]
    change(bundle)
    before = sorted(tmp_path.rglob("*"))

    ran = subprocess.run(
        [sys.executable, "-m", "snapviewer", "query", bundle, "select * from allocs"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=_limit,
    )

    assert ran.returncode == 1
    assert words in ran.stderr
    assert ran.stderr.startswith("snapviewer: ")
    assert ran.stderr.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_bundle_with_its_digests_put_right_is_as_good_as_any(bundle: Path) -> None:
    reseal(bundle)

    assert snapviewer.query(bundle, "select count(*) from allocs")[1] == [(2,)]


def test_a_call_stack_without_end_is_refused(bundle: Path) -> None:
    change_database(
        bundle,
        "update frames set name = hex(zeroblob(50000))",
        "update stacks set frames = "
        "'[' || substr(replace(hex(zeroblob(50000)), '00', ',0'), 2) || ']'",
    )

    with pytest.raises(snapviewer.SnapshotError, match="too big"):
        snapviewer.query(bundle, "select * from allocs")
    with pytest.raises(snapviewer.SnapshotError, match="its rows are more than its bytes"):
        snapviewer.load(bundle).frames(1)


def test_a_child_forked_during_a_query_gets_an_error(bundle: Path) -> None:
    is_over = threading.Event()

    def ask() -> None:
        with pytest.raises(Exception, match="cancelled"):
            _core.query(bundle, SQL, cancel=is_over)

    asking = threading.Thread(target=ask)
    asking.start()
    while asking.is_alive() and threading.active_count() < 2:
        pass
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for _ in range(200):
                snapviewer.query(bundle, "select 1")
            code = 0
        except snapviewer.SnapshotError as error:
            code = 7 if "forked" in str(error) else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    is_over.set()
    asking.join()

    # If the fork came before the query began, the child can ask.
    assert os.waitstatus_to_exitcode(status) in (0, 7)
