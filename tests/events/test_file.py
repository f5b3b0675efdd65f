"""Every event is on disk when it happened, whatever becomes of the process or of the disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from snapviewer.events import EventRecorder
from support.fake_memory import FakeMemory, events_of, names_of


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "memory_events.jsonl"


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=False)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no such signal")
@pytest.mark.parametrize("is_synced", [True, False])
def test_a_killed_process_leaves_every_event_so_far(log: Path, is_synced: bool) -> None:
    code = """if True:
        import os, signal, sys
        from snapviewer.events import EventRecorder
        options = {"memory": "process", "is_synced": sys.argv[2] == "True"}
        with EventRecorder(sys.argv[1], **options) as recorder:
            for _ in range(25):
                recorder.step()
            with recorder.stage("last"):
                os.kill(os.getpid(), signal.SIGKILL)
    """

    done = run_python(code, str(log), str(is_synced))

    assert done.returncode == -signal.SIGKILL
    assert names_of(log) == ["init", *(f"step_{number}" for number in range(25)), "last_start"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_writes_nothing(log: Path) -> None:
    code = """if True:
        import os, sys
        from snapviewer.events import EventRecorder
        with EventRecorder(sys.argv[1], memory="process") as recorder:
            recorder.event("before")
            with recorder._lock:  # as another thread may hold it
                child = os.fork()
            if child == 0:
                recorder.event("child")
                recorder.step_hook()
                with recorder.stage("child"):
                    sys.exit(4)
            status = os.waitpid(child, 0)[1]
            recorder.event("after", child=os.waitstatus_to_exitcode(status))
    """

    done = run_python(code, str(log))

    assert (done.returncode, done.stderr) == (0, "")
    assert names_of(log) == ["init", "before", "after", "inference_end"]
    assert events_of(log)[2]["child"] == 4


# The file


def test_a_recording_replaces_the_one_before_it(log: Path) -> None:
    log.write_text("old\n" * 100)

    with EventRecorder(log, memory=FakeMemory()):
        pass

    assert names_of(log) == ["init", "inference_end"]


def test_a_recording_is_appended_if_asked_even_after_a_torn_line(log: Path) -> None:
    with EventRecorder(log, memory=FakeMemory(), append=True):
        pass
    with log.open("ab") as file:
        file.write(b'{"event": "to')

    with EventRecorder(log, memory=FakeMemory(), append=True):
        pass

    lines = log.read_text().splitlines()
    assert [json.loads(lines[number])["event"] for number in (0, 1, 3, 4)] == [
        *("init", "inference_end"),
        *("init", "inference_end"),
    ]
    assert lines[2] == '{"event": "to'
    assert len(lines) == 5


def test_nothing_is_appended_to_an_array(log: Path) -> None:
    log.write_text('\n [{"event": "init"}]\n')

    with pytest.raises(ValueError, match="JSON array"):
        EventRecorder(log, memory=FakeMemory(), append=True).__enter__()

    assert log.read_text() == '\n [{"event": "init"}]\n'


@pytest.mark.parametrize(
    "other",
    [
        b'{"events": [{"event": "init"}]}\n',
        b'{"name": "a model"}\n{"event": "init"}\n',
        b'{\n"event": "init"\n}\n',
        b'{"event": "in',
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"a text\n",
        b"\xff" * 100,
        b"{" * 10**6,
        '{"event": "init"}\n'.encode("utf-16"),
    ],
)
def test_nothing_is_appended_to_what_is_no_log_of_lines(log: Path, other: bytes) -> None:
    log.write_bytes(other)

    with pytest.raises(ValueError, match="first line is an event"):
        EventRecorder(log, memory=FakeMemory(), append=True).__enter__()

    assert log.read_bytes() == other


@pytest.mark.parametrize("old", [b"", b"\n", b'\xef\xbb\xbf\n {"event": "init"}\r\n'])
def test_a_recording_is_appended_to_an_empty_file_and_to_a_log(log: Path, old: bytes) -> None:
    log.write_bytes(old)

    with EventRecorder(log, memory=FakeMemory(), append=True):
        pass

    new = log.read_bytes()
    assert new.startswith(old + b'{"event": "init"')
    assert new.endswith(b"\n")


def test_a_path_that_cannot_be_written_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        EventRecorder(tmp_path / "none" / "log.jsonl", memory=FakeMemory()).__enter__()
    with pytest.raises(IsADirectoryError):
        EventRecorder(tmp_path, memory=FakeMemory()).__enter__()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_full_disk_is_reported_once_and_does_not_end_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with EventRecorder("/dev/full", memory=FakeMemory()) as recorder:
        for _ in range(10):
            recorder.step()

    assert len(caplog.records) == 1
    assert "No space left on device" in caplog.text


@pytest.mark.skipif(sys.platform == "win32", reason="files have no limit there")
def test_a_line_torn_by_a_full_disk_hurts_no_other(log: Path) -> None:
    code = """if True:
        import os, resource, sys
        from snapviewer.events import EventRecorder
        path = sys.argv[1]
        with EventRecorder(path, memory="process") as recorder:
            recorder.event("whole")
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path) + 20, limits[1]))
            recorder.event("torn")
            recorder.event("lost")
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            recorder.event("whole_again")
    """

    done = run_python(code, str(log))

    assert done.returncode == 0
    assert "memory events are being lost" in done.stderr
    *_, whole, torn, again, end = log.read_text().splitlines()
    assert json.loads(whole)["event"] == "whole"
    assert torn == '{"event": "torn", "t'
    assert json.loads(again)["event"] == "whole_again"
    assert json.loads(end)["lost_events"] == 2


def test_an_event_is_one_write_and_then_waits_for_the_disk(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def watched(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*arguments: Any) -> Any:
            calls.append(name)
            return real(*arguments)

        return call

    with EventRecorder(log, memory=FakeMemory()) as recorder:
        monkeypatch.setattr(os, "write", watched("write"))
        monkeypatch.setattr(os, "fsync", watched("fsync"))
        recorder.event("something")
        assert calls == ["write", "fsync"]
        monkeypatch.undo()


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.fixture
def reader(pipe: Path) -> Iterator[int]:
    """The end of the pipe that is read."""
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    yield descriptor
    os.close(descriptor)


def test_what_cannot_wait_for_a_disk_is_written_all_the_same(
    pipe: Path, reader: int, caplog: pytest.LogCaptureFixture
) -> None:
    with EventRecorder(pipe, memory=FakeMemory()):
        pass

    assert os.read(reader, 1 << 16).count(b"\n") == 2
    assert caplog.records == []


@pytest.mark.parametrize("append", [False, True])
def test_a_pipe_without_a_reader_is_an_error_at_once(pipe: Path, append: bool) -> None:
    with pytest.raises(OSError, match="nobody reads this pipe"):
        EventRecorder(pipe, memory=FakeMemory(), append=append).__enter__()


@pytest.mark.usefixtures("reader")
def test_a_pipe_whose_reader_stopped_loses_events_and_not_the_run(
    pipe: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with EventRecorder(pipe, memory=FakeMemory()) as recorder:
        for _ in range(100):
            recorder.step(padding="x" * 4000)

    assert len(caplog.records) == 1
    assert "memory events are being lost" in caplog.text


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="this system has no such file")
def test_events_may_go_to_where_the_program_prints() -> None:
    code = """if True:
        from snapviewer.events import EventRecorder
        with EventRecorder("/dev/stdout", memory="process") as recorder:
            recorder.step()
    """

    done = run_python(code)

    assert done.returncode == 0
    names = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert names == ["init", "step_0", "inference_end"]


def test_a_disk_as_such_is_not_written_over(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write_text("what is on it")
    monkeypatch.setattr("stat.S_ISBLK", lambda _: True)

    with pytest.raises(OSError, match="this is a disk"):
        EventRecorder(log, memory=FakeMemory()).__enter__()

    assert log.read_text() == "what is on it"


def test_threads_may_share_a_recorder(log: Path) -> None:
    with EventRecorder(log, memory=FakeMemory(), is_synced=False) as recorder:

        def work(number: int) -> None:
            for _ in range(50):
                recorder.step_hook()
                recorder.event("thread", number=number, padding="x" * 3000)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    events = events_of(log)
    steps = [event["event"] for event in events if event["event"].startswith("step_")]
    assert steps == [f"step_{number}" for number in range(400)]
    assert len(events) == 802
