"""`pth` with many files: in parallel, in the order given; a file that fails stops no other.

Of each file only what is printed is kept, and few files are read ahead of the one that is printed
next, so that memory does not grow with their number.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, nullcontext
from threading import Event
from typing import IO, TYPE_CHECKING, TypeVar

from snapviewer import CancelledError, SnapshotError
from snapviewer.checkpoint.paths import FailedFile, failed_file
from snapviewer.checkpoint.statistics import TensorStats
from snapviewer.checkpoint.summary import RowChoice, summary_of
from snapviewer.files.atomic_write import atomic_write
from snapviewer.report.checkpoint import json as json_report
from snapviewer.report.checkpoint import many as many_report
from snapviewer.report.checkpoint.many import FileLine, line_of
from snapviewer.text.progress import progress_bar
from snapviewer.text.sanitize import json_text

from .errors import CommandError, sentence
from .outputs import output_width, print_written, write_file

if TYPE_CHECKING:
    from snapviewer._core import Checkpoint

_AHEAD = 4  # files per worker

_T = TypeVar("_T")
Analyze = Callable[[str, Event], "tuple[Checkpoint, TensorStats | None]"]


def run_many(
    files: Sequence[str],
    failed: Sequence[FailedFile],
    analyze: Analyze,
    options: argparse.Namespace,
) -> None:
    """Analyze files, write or print what was asked for, then fail if one of them failed."""
    lines: list[FileLine] = []
    failures = list(failed)
    texts = [path for path in options.outputs if path.suffix.lower() == ".txt"]
    is_text_printed = not options.json and not options.outputs
    choice = RowChoice(options.sort, options.top, options.depth)
    with ExitStack() as stack:
        writers = [
            _text_writer(stack.enter_context(atomic_write(path)))
            for path in options.outputs
            if path not in texts
        ]
        if options.json:
            writers.append(sys.stdout.write)

        def work(file: str, cancel: Event) -> tuple[FileLine | None, str]:
            checkpoint, measured = analyze(file, cancel)
            line = line_of(file, checkpoint, measured) if texts or is_text_printed else None
            if not writers:
                return line, ""
            summary = summary_of(checkpoint, file)
            document = json_report.to_json(summary, choice, measured=measured)
            return line, json_text(document, indent=None)

        # On a terminal, the document itself shows how far it is.
        is_shown = options.json and sys.stdout.isatty()
        progress = stack.enter_context(
            nullcontext(_ignore) if is_shown else progress_bar("reading")
        )
        documents = _Documents(writers)
        results = stack.enter_context(closing(_in_order(files, work, options.jobs)))
        for done, result in enumerate(results, start=1):
            if isinstance(result, FailedFile):
                failures.append(result)
            else:
                line, document = result
                lines += [] if line is None else [line]
                documents.add(document)
            progress(done, len(files))
        documents.end(failures)
    for path in texts:
        write_file(path, many_report.as_text(lines, failures, width=None))
    if is_text_printed:
        print(many_report.as_text(lines, failures, width=output_width(options)), end="")
    elif not options.json:
        print_written(options)
    if failures:
        count = len(files) + len(failed)
        raise CommandError(f"{len(failures):,} of {count:,} files could not be analyzed")


def _text_writer(file: IO[bytes]) -> Callable[[str], object]:
    return lambda text: file.write(text.encode("utf-8", "backslashreplace"))


class _Documents:
    """One JSON document, written as it grows, in which each file is a line."""

    def __init__(self, writers: Sequence[Callable[[str], object]]) -> None:
        self._writers = writers
        self._separator = ""
        self._write('{\n  "files": [')

    def add(self, document: str) -> None:
        self._write(f"{self._separator}\n    {document}")
        self._separator = ","

    def end(self, failures: Sequence[FailedFile]) -> None:
        reasons = json_text([{"file": item.file, "reason": item.reason} for item in failures])
        end = "\n  ]" if self._separator else "]"
        indented = reasons.replace("\n", "\n  ")
        self._write(f'{end},\n  "failed": {indented}\n}}\n')

    def _write(self, text: str) -> None:
        for write in self._writers:
            write(text)


def _ignore(_done: int, _total: int) -> None:
    pass


def _in_order(
    files: Sequence[str], work: Callable[[str, Event], _T], jobs: int | None
) -> Generator[_T | FailedFile, None, None]:
    """Yield the result of each file, or how it failed, in the order given."""
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
