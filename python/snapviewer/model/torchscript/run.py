"""The state of following a program: what was recorded, what it may still cost, what to undo.

Where a condition is not known, both ways are tried one after the other, so whatever the first way
changed (lists, dictionaries, objects) must be put back. A journal keeps what they were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from snapviewer.model.graph import MAX_NODES, Node
from snapviewer.model.torchscript.values import Instance, Tensor

MOST_STEPS = 3_000_000  # about ten seconds
MOST_NOTES = 50
_MOST_NOTE = 400  # characters

Changeable: TypeAlias = "list[Any] | dict[Any, Any] | Instance | Tensor"


class StoppedError(Exception):
    """A limit was reached; the message says which."""


class CodeRaisedError(Exception):
    """The code itself raises an error here; the message is its own."""


@dataclass(slots=True)
class Run:
    """What following a program has given so far."""

    nodes: list[Node] = field(default_factory=list)
    notes: dict[str, bool] = field(default_factory=dict)
    """Sentences for the reader, and whether each is a reason why counts are not exact."""
    misfits: set[str] = field(default_factory=set)
    """Notes on sizes that should have been the same; also of trials that were given up."""
    steps: int = 0
    notes_left_out: int = 0
    differing: tuple[int, ...] = ()
    """The first two sizes that were met and should have been the same."""
    grad_enabled: bool = True
    _journals: list[dict[int, tuple[Changeable, Any]]] = field(default_factory=list)

    def spend(self, steps: int) -> None:
        """Count work.

        Raises:
            StoppedError: It is too much.
        """
        self.steps += steps
        if self.steps > MOST_STEPS:
            raise StoppedError(f"after {MOST_STEPS:,} steps")

    def note(self, text: str, *, is_doubt: bool = False, is_misfit: bool = False) -> None:
        """Keep a sentence for the reader, once."""
        text = text[:_MOST_NOTE]
        if is_misfit and len(self.misfits) < MOST_NOTES:
            self.misfits.add(text)
        if len(self.notes) < MOST_NOTES:
            self.notes[text] = is_doubt
        elif text not in self.notes:
            self.notes_left_out += 1

    def record(self, node: Node) -> None:
        """Keep a node.

        Raises:
            StoppedError: There are too many.
        """
        if len(self.nodes) >= MAX_NODES:
            raise StoppedError(f"after {MAX_NODES:,} operations")
        self.nodes.append(node)

    def touch(self, thing: Changeable) -> None:
        """Remember what something is before it is changed."""
        if self._journals and id(thing) not in self._journals[-1]:
            state = _state(thing)
            self.spend(1 + (len(state) if isinstance(state, (list, dict)) else 0))
            self._journals[-1][id(thing)] = (thing, state)

    def for_good(self, action: Callable[[], Any]) -> None:
        """Do something that stays as it is even if the trial under way is given up; no nodes."""
        first, journals, self._journals = len(self.nodes), self._journals, []
        try:
            action()
        finally:
            self._journals = journals
            del self.nodes[first:]

    def attempt(self, action: Callable[[], Any]) -> Attempt:
        """Do something as a trial: its nodes and changes are taken out and handed back."""
        first = len(self.nodes)
        notes, grad = dict(self.notes), self.grad_enabled
        self._journals.append({})
        result: Any = None
        raised: CodeRaisedError | None = None
        try:
            result = action()
        except CodeRaisedError as error:
            raised = error
        finally:
            journal = self._journals.pop()
        after = [(thing, _state(thing)) for thing, _ in journal.values()]
        for thing, state in journal.values():
            _restore(thing, state)
        nodes = self.nodes[first:]
        del self.nodes[first:]
        self.spend(len(nodes))
        new_notes = {note: flag for note, flag in self.notes.items() if note not in notes}
        for note in new_notes:
            del self.notes[note]
        attempt = Attempt(result, raised, nodes, new_notes, after, self.grad_enabled)
        self.grad_enabled = grad
        return attempt

    def accept(self, attempt: Attempt) -> None:
        """Make a trial real."""
        for thing, state in attempt.changes:
            self.touch(thing)
            _restore(thing, state)
        for node in attempt.nodes:
            self.record(node)
        for note, is_doubt in attempt.notes.items():
            self.note(note, is_doubt=is_doubt)
        self.grad_enabled = attempt.grad_enabled


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a trial gave and changed."""

    result: Any
    raised: CodeRaisedError | None
    nodes: list[Node]
    notes: dict[str, bool]
    changes: list[tuple[Changeable, Any]]
    grad_enabled: bool


def _state(thing: Changeable) -> Any:
    if isinstance(thing, list):
        return list(thing)
    if isinstance(thing, dict):
        return dict(thing)
    if isinstance(thing, Tensor):
        return (thing.spec, thing.number, thing.row)
    return dict(thing.attributes)


def _restore(thing: Changeable, state: Any) -> None:
    if isinstance(thing, list):
        thing[:] = state
    elif isinstance(thing, dict):
        thing.clear()
        thing.update(state)
    elif isinstance(thing, Tensor):
        thing.spec, thing.number, thing.row = state
    else:
        thing.attributes = dict(state)
