"""The work of a run, split into operations of one class and dtype each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from snapviewer.model.energy.assumptions import ClassName, class_of_kind
from snapviewer.model.graph import Node, TensorSpec
from snapviewer.model.work import Uncounted, kind_of, work_of


class WorkTotals(Protocol):
    """What a node or a model computes and moves."""

    @property
    def flops(self) -> int:
        """Operations; a multiply-add counts as two."""

    @property
    def read_bytes(self) -> int:
        """Bytes read from memory."""

    @property
    def written_bytes(self) -> int:
        """Bytes written to memory."""


@dataclass(frozen=True, slots=True)
class OperationWork:
    """The work of an operation, with its class and the dtype that it computes in."""

    operation: ClassName
    dtype: str
    flops: int
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True, slots=True)
class RunWork:
    """The work of several operations."""

    parts: tuple[OperationWork, ...]

    @property
    def flops(self) -> int:
        """Operations of all parts."""
        return sum(part.flops for part in self.parts)

    @property
    def read_bytes(self) -> int:
        """Bytes that all parts read."""
        return sum(part.read_bytes for part in self.parts)

    @property
    def written_bytes(self) -> int:
        """Bytes that all parts write."""
        return sum(part.written_bytes for part in self.parts)


def work_by_class(nodes: Iterable[Node]) -> RunWork:
    """Return the work of nodes, without those that cannot be counted."""
    parts = []
    for node in nodes:
        work = work_of(node)
        if not isinstance(work, Uncounted):
            operation = class_of_kind(kind_of(node.op))
            dtype = next(
                (spec.dtype for spec in node.arguments if isinstance(spec, TensorSpec)), ""
            )
            parts.append(
                OperationWork(operation, dtype, work.flops, work.read_bytes, work.written_bytes)
            )
    return RunWork(tuple(parts))


def parts_of(work: WorkTotals, dtype: str) -> tuple[OperationWork, ...]:
    """Return the parts of some work; without any, all of it as matrix products of a dtype."""
    if isinstance(work, RunWork):
        return work.parts
    return (OperationWork("linear", dtype, work.flops, work.read_bytes, work.written_bytes),)
