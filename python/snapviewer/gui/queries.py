"""Questions in SQL, and the answers. Knows nothing of Tk.

A file that is not a bundle is converted aside when it is opened; a question that is asked before
that is done waits for it.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from snapviewer import Snapshot

from .jobs import Job

if TYPE_CHECKING:
    from .state import State

MAX_ROWS = 10_000
MAX_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gave; `is_truncated` if there was more."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_truncated: bool
    seconds: float


class Queries:
    """The query that was asked last, and its answer or why there is none."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.text = ""
        self.answer: Answer | None = None
        self.error = ""
        self.is_running = False
        self.is_cancelled = False
        self._is_waiting = False
        state.on("document", self._forget)
        state.on("bundle", self._go_on)

    @property
    def history(self) -> list[str]:
        """What was asked before, the latest first."""
        return self._state.settings.queries

    @property
    def is_preparing(self) -> bool:
        """Whether the query waits for the file to be made ready."""
        return self._is_waiting

    def run(self, sql: str) -> None:
        """Answer a query aside; one that is running is given up."""
        sql = sql.strip()
        document = self._state.document
        if not sql or document is None:
            return
        self._state.settings.asked(sql)
        self._state.jobs.stop("query")
        self.text, self.error, self.is_running, self.is_cancelled = sql, "", True, False
        self._is_waiting = document.bundle is None
        self._state.changed("query")
        if document.bundle is not None:
            self._start(document.bundle)
        elif not any(job.name == "convert" for job in self._state.jobs.running()):
            self._state.convert()

    def cancel(self) -> None:
        """Stop what is running; the answer before it stays."""
        if self.is_running:
            self._state.jobs.stop("query")
            self.is_running, self._is_waiting, self.is_cancelled = False, False, True
            self._state.changed("jobs", "query")

    def allocation_of(self, row: tuple[Any, ...]) -> tuple[int, int] | None:
        """Return which device's and which of its allocations a row of the answer is about."""
        document = self._state.document
        if document is None or self.answer is None:
            return None
        names = [name.lower() for name in self.answer.columns]
        idx = row[names.index("idx")] if "idx" in names else None
        if not isinstance(idx, int):
            return None
        for which, trace in enumerate(document.traces):
            place = idx - trace.device.first_idx
            if 0 <= place < len(trace.device.allocations):
                return which, place
        return None

    def _start(self, bundle: Snapshot) -> None:
        sql, tables = self.text, self._tables(self.text)

        def work(job: Job) -> Answer:
            start = time.perf_counter()
            columns, rows, is_truncated = bundle.query(
                sql, max_rows=MAX_ROWS, max_seconds=MAX_SECONDS, cancel=job.cancel, tables=tables
            )
            seconds = time.perf_counter() - start
            return Answer(tuple(columns), tuple(rows), is_truncated, seconds)

        self._state.start(Job("query", "running the query"), work, self._done, self._failed)

    def _tables(self, sql: str) -> dict[str, npt.NDArray[np.int64]]:
        """Return what the window lends to a query that speaks of it, by idx."""
        device, selection = self._state.device, self._state.selection
        first = 0 if device is None else device.first_idx
        tables: dict[str, npt.NDArray[np.int64]] = {}
        if re.search(r"\bselection\b", sql, re.IGNORECASE):
            chosen = [] if selection is None else [selection]
            tables["selection"] = first + np.array(chosen, dtype=np.int64)
        if re.search(r"\bvisible\b", sql, re.IGNORECASE):
            tables["visible"] = first + self._state.visible().astype(np.int64)
        return tables

    def _go_on(self) -> None:
        """Run what waited for the bundle, or say why that is not there."""
        document = self._state.document
        if not self._is_waiting or document is None:
            return
        self._is_waiting = False
        if document.bundle is not None:
            self._state.changed("query")
            self._start(document.bundle)
        else:
            self._end(self._state.bundle_error)

    def _done(self, answer: Answer) -> None:
        self.answer = answer
        self._end("")

    def _failed(self, error: Exception) -> None:
        self.answer = None
        # SQLite repeats the whole query before it says where in it.
        text = str(error).replace(f" in {self.text} at offset ", ", at character ")
        self._end(text.removeprefix("query: "))

    def _end(self, error: str) -> None:
        self.is_running, self.error = False, error
        self._state.changed("query")

    def _forget(self) -> None:
        """Another file: what was asked of the last one is no answer any more."""
        self.answer, self.error = None, ""
        self.is_running = self._is_waiting = self.is_cancelled = False
        self._state.changed("query")
