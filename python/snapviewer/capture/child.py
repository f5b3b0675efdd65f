"""Runs a script as `python` would, while it is recorded: `python -m snapviewer.capture.child`.

The options are in the environment, so that the arguments are all the script's. Torch is not
imported here: the script may set its environment first.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NoReturn

from .options import VARIABLE, CaptureOptions
from .recorder import Recorder


class CaptureDone(SystemExit):
    """The run was recorded for as long as was asked."""


def main(arguments: Sequence[str]) -> int:
    """Run `SCRIPT …` or `-m MODULE …`, and return its exit code."""
    options = CaptureOptions.from_environment()
    del os.environ[VARIABLE]  # what the script starts is not recorded
    recorder = _recorder(options)
    after_import("torch", recorder.attach)
    _catch_signals(recorder)
    cause, code = _run_script(arguments)
    if not isinstance(code, CaptureDone):
        recorder.dump(cause, is_last=True)
    recorder.close()
    return exit_code(code)


def _recorder(options: CaptureOptions) -> Recorder:
    def after_step(step: int) -> None:
        if options.steps and step >= options.steps:
            if not recorder.is_closed:
                recorder.dump("steps", is_last=True)
                recorder.close()
            raise CaptureDone(0)

    def start_clock() -> None:
        if options.seconds:
            signal.setitimer(signal.ITIMER_REAL, options.seconds)

    if options.predicted is None:
        recorder = Recorder(options, on_start=start_clock, on_step=after_step)
        return recorder
    from .prediction import Prediction

    prediction = Prediction(options)

    def start() -> None:
        prediction.started()
        start_clock()

    recorder = Recorder(options, describe=prediction.facts, on_start=start, on_step=after_step)
    after_import("torch", prediction.imported)
    return recorder


def _run_script(arguments: Sequence[str]) -> tuple[str, object]:
    """Return why the script ended, and its exit code as `SystemExit` has it."""
    try:
        if arguments[0] == "-m":
            sys.argv[:] = [arguments[1], *arguments[2:]]
            sys.path[0] = os.getcwd()
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv[:] = arguments
            sys.path[0] = str(Path(arguments[0]).resolve().parent)
            runpy.run_path(arguments[0], run_name="__main__")
    except CaptureDone as done:
        return "steps", done
    except SystemExit as left:
        return ("end" if exit_code(left.code) == 0 else "error"), left.code
    except KeyboardInterrupt:
        return "interrupt", 130
    except BaseException as error:  # noqa: BLE001 - any error of the script's
        _print_traceback(error)
        return "error", 1
    return "end", 0


def exit_code(code: object) -> int:
    """Return the exit code that Python would have; a text goes to stderr.

    >>> exit_code(None), exit_code(3)
    (0, 3)
    """
    if isinstance(code, SystemExit):
        code = code.code
    if code is None or isinstance(code, int):
        return int(code or 0)
    print(code, file=sys.stderr)  # noqa: T201
    return 1


def _print_traceback(error: BaseException) -> None:
    """Print what Python would: without the frames of this module and `runpy`."""
    ours = {__file__, runpy.__file__, "<frozen runpy>"}
    entries = error.__traceback__
    while entries and entries.tb_frame.f_code.co_filename in ours:
        entries = entries.tb_next
    traceback.print_exception(type(error), error, entries)


def _catch_signals(recorder: Recorder) -> None:
    """Write a snapshot when a signal comes, when time is up, and before `os._exit`."""
    process = os.getpid()

    def dump(number: int, frame: FrameType | None) -> None:
        if os.getpid() == process:
            recorder.dump("signal", is_last=False)

    def terminate(number: int, frame: FrameType | None) -> None:
        if os.getpid() != process:  # a worker that the script started
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        recorder.dump("sigterm", is_last=False)
        recorder.close()
        raise CaptureDone(128 + signal.SIGTERM)

    def time_is_up(number: int, frame: FrameType | None) -> None:
        recorder.dump("seconds", is_last=True)
        recorder.close()
        raise CaptureDone(0)

    signal.signal(signal.SIGUSR1, dump)
    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGALRM, time_is_up)
    leave = os._exit

    def leave_at_once(status: int) -> NoReturn:
        if os.getpid() == process and not recorder.is_closed:
            recorder.dump("exit", is_last=True)
        leave(status)

    os._exit = leave_at_once


def after_import(name: str, action: Callable[[], None]) -> None:
    """Do something as soon as a module was imported."""
    if name in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Watcher(name, action))


class _Watcher(importlib.abc.MetaPathFinder):
    """Finds a module as others do, and wraps its loader."""

    def __init__(self, name: str, action: Callable[[], None]) -> None:
        self._name, self._action = name, action

    def find_spec(
        self, fullname: str, path: Any, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        after = sys.meta_path[sys.meta_path.index(self) + 1 :]
        found = (finder.find_spec(fullname, path, target) for finder in after)
        spec = next((spec for spec in found if spec), None)
        if spec and spec.loader:
            execute, action = spec.loader.exec_module, self._action

            def execute_and_act(module: ModuleType) -> None:
                execute(module)
                sys.meta_path.remove(self)
                action()

            spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
