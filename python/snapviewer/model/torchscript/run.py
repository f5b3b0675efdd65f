"""The state of an interpretation: recorded nodes, notes, the step limit, and an undo journal.

If a condition is unknown, both branches are tried one after the other, so what the first one
changed (lists, dictionaries, objects) must be restored. A journal keeps the old states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

from snapviewer.model.graph import MAX_NODES, Node, TensorSpec
from snapviewer.model.torchscript.values import Instance, Tensor

MAX_STEPS = 1_000_000  # three seconds; the largest of torchvision's models take 100,000
MAX_NOTES = 50
_MAX_NOTE = 400  # characters

Changeable: TypeAlias = "list[Any] | dict[Any, Any] | Instance | Tensor"


class StoppedError(Exception):
    """A limit was reached; the message says which."""


class CodeRaisedError(Exception):
    """The code itself raises an error here; the message is its own."""


@dataclass(slots=True)
class Run:
    """What an interpretation has recorded so far."""

    nodes: list[Node] = field(default_factory=list)
    notes: dict[str, bool] = field(default_factory=dict)
    """Sentences, and whether each is a reason why counts are not exact."""
    misfits: set[str] = field(default_factory=set)
    """Notes on sizes that should have been equal, also those of discarded trials."""
    steps: int = 0
    max_steps: int = field(default_factory=lambda: MAX_STEPS)
    is_trial: bool = False
    """Whether to stop at the first misfit."""
    notes_left_out: int = 0
    differing: tuple[int, ...] = ()
    """The first two sizes that should have been equal and were not."""
    grad_enabled: bool = True
    _journals: list[dict[int, tuple[Changeable, Any]]] = field(default_factory=list)

    def spend(self, steps: int) -> None:
        """Count steps.

        Raises:
            StoppedError: There are too many.
        """
        self.steps += steps
        if self.steps > self.max_steps:
            raise StoppedError(f"after {self.max_steps:,} steps")

    def note(self, text: str, *, is_doubt: bool = False, is_misfit: bool = False) -> None:
        """Add a sentence, once.

        Raises:
            StoppedError: It is a misfit, and this a trial.
        """
        text = text[:_MAX_NOTE]
        if is_misfit and len(self.misfits) < MAX_NOTES:
            self.misfits.add(text)
            if self.is_trial:
                raise StoppedError("sizes do not fit")
        if len(self.notes) < MAX_NOTES:
            self.notes[text] = is_doubt
        elif text not in self.notes:
            self.notes_left_out += 1

    def record(self, node: Node) -> None:
        """Add a node.

        Raises:
            StoppedError: There are too many.
        """
        if len(self.nodes) >= MAX_NODES:
            raise StoppedError(f"after {MAX_NODES:,} operations")
        self.nodes.append(node)

    def touch(self, thing: Changeable) -> None:
        """Save the state of an object before it is changed."""
        if self._journals and id(thing) not in self._journals[-1]:
            state = _state(thing)
            self.spend(1 + (len(state) if isinstance(state, (list, dict)) else 0))
            self._journals[-1][id(thing)] = (thing, state)

    def permanently(self, action: Callable[[], Any]) -> None:
        """Do something that is not undone with the current trial; its nodes are dropped."""
        first, journals, self._journals = len(self.nodes), self._journals, []
        try:
            action()
        finally:
            self._journals = journals
            del self.nodes[first:]

    def attempt(self, action: Callable[[], Any]) -> Attempt:
        """Do something as a trial: its nodes and changes are undone and returned."""
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
        """Apply a trial."""
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
    """The result and the changes of a trial."""

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


def rough_work(node: Node) -> int:
    """Return about how many multiplications an operation takes, to compare branches.

    Unknown sizes count as 1.

    >>> x = TensorSpec((2, 3), "float32")
    >>> rough_work(Node(0, "aten::relu", "", "", (x,), (), (x,), ()))
    6
    """
    made = sum(_count(output) for output in node.outputs if isinstance(output, TensorSpec))
    name = node.op.partition("::")[2]
    tensors = [value for value in node.arguments if isinstance(value, TensorSpec)]
    if "conv" in name and len(tensors) > 1:
        return made * prod(size or 1 for size in tensors[1].shape[1:])
    if name in ("linear", "matmul", "mm", "bmm", "addmm", "baddbmm") and tensors:
        left = tensors[-2] if name in ("addmm", "baddbmm") and len(tensors) > 1 else tensors[0]
        return made * (left.shape[-1] or 1) if left.shape else made
    return made


def _count(spec: TensorSpec) -> int:
    return prod(1 if size is None else size for size in spec.shape)
