"""`pth` with many files: in parallel, in the order given, whatever becomes of single ones.

Of each file only what is printed is kept, and only so many files are ahead of the one that is
printed next, so that memory does not depend on how many there are.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from threading import Event
from typing import TYPE_CHECKING, TypeVar

from snapviewer import CancelledError, SnapshotError
from snapviewer.checkpoint.paths import FailedFile, failed_file
from snapviewer.checkpoint.statistics import Measured
from snapviewer.checkpoint.summary import summary_of
from snapviewer.report.checkpoint import json as json_report
from snapviewer.report.checkpoint import many as many_report
from snapviewer.report.checkpoint.many import FileLine, line_of
from snapviewer.text.progress import progress_bar
from snapviewer.text.sanitize import json_text

from .errors import sentence

if TYPE_CHECKING:
    from snapviewer._core import Checkpoint

_AHEAD = 4  # files a worker

_T = TypeVar("_T")
Analyze = Callable[[str, Event], "tuple[Checkpoint, Measured | None]"]


def run_many(
    files: Sequence[str],
    failed: Sequence[FailedFile],
    analyze: Analyze,
    options: argparse.Namespace,
    *,
    width: int | None,
) -> None:
    """Analyze files and print them, then fail if one of them did."""
    if options.json:
        failures = _print_documents(files, failed, analyze, options)
    else:
        failures = _print_lines(files, failed, analyze, options, width)
    if failures:
        count = len(files) + len(failed)
        raise SnapshotError(f"{failures:,} of {count:,} files could not be analyzed")


def _print_lines(
    files: Sequence[str],
    failed: Sequence[FailedFile],
    analyze: Analyze,
    options: argparse.Namespace,
    width: int | None,
) -> int:
    lines: list[FileLine] = []
    failures = list(failed)

    def line(file: str, cancel: Event) -> FileLine:
        return line_of(file, *analyze(file, cancel))

    results = _in_order(files, line, options.jobs)
    with closing(results), progress_bar("reading") as progress:
        for result in results:
            if isinstance(result, FailedFile):
                failures.append(result)
            else:
                lines.append(result)
            progress(len(lines) + len(failures) - len(failed), len(files))
    print(many_report.as_text(lines, failures, width=width), end="")
    return len(failures)


def _print_documents(
    files: Sequence[str],
    failed: Sequence[FailedFile],
    analyze: Analyze,
    options: argparse.Namespace,
) -> int:
    """Print one document, in which each file is a line."""
    choice = {"sort": options.sort, "top": options.top, "depth": options.depth}

    def document(file: str, cancel: Event) -> str:
        checkpoint, measured = analyze(file, cancel)
        summary = summary_of(checkpoint, file)
        found = json_report.to_json(summary, measured=measured, **choice)
        return json_text(found, indent=None)

    failures = list(failed)
    # On a terminal, the document itself shows how far it is.
    bar = nullcontext(_ignore) if sys.stdout.isatty() else progress_bar("reading")
    separator = ""
    sys.stdout.write('{\n  "files": [')
    results = _in_order(files, document, options.jobs)
    with closing(results), bar as progress:
        for done, result in enumerate(results, start=1):
            if isinstance(result, FailedFile):
                failures.append(result)
            else:
                sys.stdout.write(f"{separator}\n    {result}")
                separator = ","
            progress(done, len(files))
    reasons = json_text([{"file": item.file, "reason": item.reason} for item in failures])
    end = "\n  ]" if separator else "]"
    indented = reasons.replace("\n", "\n  ")
    sys.stdout.write(f'{end},\n  "failed": {indented}\n}}\n')
    return len(failures)


def _ignore(_done: int, _total: int) -> None:
    pass


def _in_order(
    files: Sequence[str], work: Callable[[str, Event], _T], jobs: int | None
) -> Generator[_T | FailedFile, None, None]:
    """Yield what comes of each file, or how it failed, in the order given."""
    workers = jobs or min(8, os.cpu_count() or 1)
    cancel = Event()

    def run(file: str) -> _T | FailedFile:
        try:
            return work(file, cancel)
        except CancelledError:
            raise
        except (SnapshotError, OSError, MemoryError) as error:
            return failed_file(file, sentence(error))

    waiting: deque[Future[_T | FailedFile]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for file in files:
                waiting.append(pool.submit(run, file))
                if len(waiting) >= _AHEAD * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            # After Ctrl-C, or if nobody wants the rest: leaving the pool waits for its threads.
            cancel.set()
            pool.shutdown(wait=False, cancel_futures=True)
