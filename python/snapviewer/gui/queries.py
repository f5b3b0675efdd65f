"""SQL queries and their results. Without Tk.

A file that is not a bundle is converted by a job when it is opened; an earlier query waits for it.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Sequence
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
    """The result of a query; `is_truncated` if rows were left off."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_truncated: bool
    seconds: float


class Queries:
    """The last query, and its result or its error."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.text = ""
        self.answer: Answer | None = None
        self.error = ""
        self.is_running = False
        self.is_cancelled = False
        self._is_waiting = False
        self.columns: dict[str, tuple[str, ...]] = {}
        state.on(self._forget, "document")
        state.on(self._go_on, "bundle")

    @property
    def history(self) -> list[str]:
        """Earlier queries, the latest first."""
        return self._state.settings.queries

    @property
    def is_preparing(self) -> bool:
        """Whether the query waits for the file to be converted."""
        return self._is_waiting

    def run(self, sql: str) -> None:
        """Run a query as a job; one that is running is cancelled."""
        sql = sql.strip()
        document = self._state.document
        if not sql or document is None:
            return
        self._state.settings.add_query(sql)
        self._state.jobs.stop("query")
        self.text, self.error, self.is_running, self.is_cancelled = sql, "", True, False
        self._is_waiting = document.bundle is None
        self._state.changed("query")
        if document.bundle is not None:
            self._start(document.bundle)
        elif not any(job.name == "convert" for job in self._state.jobs.running()):
            self._state.convert()

    def cancel(self) -> None:
        """Stop the running query; the result before it stays."""
        if self.is_running:
            self._state.jobs.stop("query")
            self.is_running, self._is_waiting, self.is_cancelled = False, False, True
            self._state.changed("jobs", "query")

    def load_schema(self, tables: Sequence[str]) -> None:
        """Read the columns of some tables from the database, as a job, once it is there."""
        document = self._state.document
        if document is None or document.bundle is None or self.columns:
            return
        bundle = document.bundle
        names = ", ".join(f"({place}, '{name}')" for place, name in enumerate(tables))
        sql = f"""with named(place, name) as (values {names})
            select named.name, columns.name from named, pragma_table_xinfo(named.name) as columns
            order by place, cid"""

        def done(found: tuple[list[str], list[tuple[Any, ...]], bool]) -> None:
            columns: defaultdict[str, list[str]] = defaultdict(list)
            for table, column in found[1]:
                columns[table].append(column)
            for lent in ("visible", "selection"):
                columns[lent] = [*columns["allocations"], "callstack"]
            self.columns = {table: tuple(of) for table, of in columns.items()}
            self._state.changed("query")

        self._state.start(Job("schema"), lambda _: bundle.query(sql), done, lambda _: None)

    def allocation_of(self, row: tuple[Any, ...]) -> tuple[int, int] | None:
        """Return the device and the allocation that a row of the result is about."""
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
        """Return the tables `selection` and `visible`, if the query names them, by idx."""
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
        """Run the query that waited for the bundle, or report why there is none."""
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
        # SQLite repeats the whole query before the position of the error.
        text = str(error).replace(f" in {self.text} at offset ", ", at character ")
        self._end(text.removeprefix("query: "))

    def _end(self, error: str) -> None:
        self.is_running, self.error = False, error
        self._state.changed("query")

    def _forget(self) -> None:
        """Drop the result of another file."""
        self._state.jobs.stop("schema")
        self.answer, self.error, self.columns = None, "", {}
        self.is_running = self._is_waiting = self.is_cancelled = False
        self._state.changed("query")
