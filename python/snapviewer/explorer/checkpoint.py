"""A checkpoint as a tree, without torch and without running code.

The names of tensors are paths (`layer1.0.conv1.weight`), which make the tree. If a file names the
classes of its modules these are used, and modules without tensors are shown, too.

# Invariants

Every tensor of the file is in the tree exactly once, under its own name, except for copies that a
saved module keeps beside its parameters. The tree has at most `_MAX_DEPTH` levels and
`_MAX_PATH_CHARS` characters of paths; the rest of a name is not split.

# Cost

`O(tensors + modules)`, about 10 µs each; no byte of a tensor is read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from os.path import basename
from threading import Event
from typing import TYPE_CHECKING

from snapviewer import CancelledError
from snapviewer.checkpoint.buffers import is_buffer, is_training_state
from snapviewer.checkpoint.saved_modules import SavedModules, saved_modules
from snapviewer.gc_pause import gc_pause
from snapviewer.text.units import count_of

from .assembly import Draft, assemble
from .saved_types import arguments_of_shapes, guessed_type
from .tree import TensorEntry, Tree

if TYPE_CHECKING:
    from snapviewer._core import Checkpoint, Tensor

_MAX_DEPTH = 1000
_MAX_PATH_CHARS = 50_000_000  # of all modules
_BETWEEN_REPORTS = 1024  # tensors


@dataclass(slots=True)
class _Part:
    """A module being built; `same_as` is the path of the same module met before."""

    name: str
    path: str
    same_as: str | None = None
    children: dict[str, _Part] = field(default_factory=dict)
    tensors: list[tuple[Hashable, TensorEntry]] = field(default_factory=list)


def tree_of_checkpoint(
    checkpoint: Checkpoint,
    *,
    progress: Callable[[int, int], object] | None = None,
    cancel: Event | None = None,
) -> Tree:
    """Build the tree of a checkpoint.

    Args:
        checkpoint: What `snapviewer.read_checkpoint` returned.
        progress: Called with (done, total) in tensors now and then.
        cancel: Stops the reading when set.

    Raises:
        CancelledError: `cancel` was set.
    """
    with gc_pause():
        return _tree(checkpoint, progress, cancel)


def _tree(
    checkpoint: Checkpoint, progress: Callable[[int, int], object] | None, cancel: Event | None
) -> Tree:
    modules = saved_modules(checkpoint.root)
    parts = Parts(basename(checkpoint.path))
    for path in modules.types:
        parts.at(path)
    tensors = checkpoint.tensors
    reader = _Reader(checkpoint.format, tensors, modules)
    for number, tensor in enumerate(tensors):
        if not number % _BETWEEN_REPORTS:
            if cancel is not None and cancel.is_set():
                raise CancelledError("looking at the checkpoint was cancelled")
            if progress is not None:
                progress(number, len(tensors))
        part, name = parts.of_tensor(tensor.name)
        found = reader.read(number, tensor, name)
        if found is not None:
            part.tensors.append(found)
    for path, first in modules.first.items():
        parts.repeat(first, path)
    drafts = list(drafts_of(parts.root, modules))
    notes = [*reader.notes(), *parts.notes()]
    notes += guess_note(drafts, "the file")
    name = parts.root.name
    return Tree(name, checkpoint.path, assemble(drafts), (*notes, *checkpoint.warnings))


class Parts:
    """The modules, created as their names occur."""

    def __init__(self, name: str) -> None:
        self.root = _Part(name, "")
        self._letters = _MAX_PATH_CHARS
        self._unsplit = 0

    def at(self, path: str) -> _Part:
        """Return the module at a path; the last one above it if the limit is reached."""
        return self._down(_names(path))[0] if path else self.root

    def of_tensor(self, path: str) -> tuple[_Part, str]:
        """Return the module of a tensor, and the tensor's name in it."""
        *above, name = _names(path)
        part, used = self._down(above)
        if used < len(above) or len(above) == _MAX_DEPTH:
            self._unsplit += 1
            name = ".".join([*above[used:], name])
        return part, name

    def _down(self, names: list[str]) -> tuple[_Part, int]:
        """Return the module that names lead to, and how many of them were used."""
        part = self.root
        for used, name in enumerate(names):
            child = part.children.get(name)
            if child is None:
                path = f"{part.path}.{name}" if part.path else name
                self._letters -= len(path) + 1
                if self._letters < 0:
                    return part, used
                child = part.children[name] = _Part(name, path)
            part = child
        return part, len(names)

    def repeat(self, first: str, path: str) -> None:
        """Show the parts of a module in another place, too, but not within itself."""
        source, target = self.at(first), self.at(path)
        target.same_as = first
        if not first or path.startswith(f"{first}."):
            return
        waiting = [(source, target)]
        while waiting:
            source, target = waiting.pop()
            target.tensors = [
                (key, replace(entry, path=f"{target.path}.{entry.name}"))
                for key, entry in source.tensors
            ]
            for name, child in source.children.items():
                twin_path = f"{target.path}.{name}"
                self._letters -= len(twin_path) + 1
                if self._letters < 0:
                    return
                twin = _Part(name, twin_path, child.same_as or child.path)
                target.children[name] = twin
                waiting.append((child, twin))

    def notes(self) -> Iterator[str]:
        """Yield notes about names that were not split."""
        if self._unsplit:
            names = count_of(self._unsplit, "name")
            yield f"{names} of tensors have too many parts to be split fully."


def _names(path: str) -> list[str]:
    """Split a path into names.

    >>> _names("layer1.0.weight"), _names(".a.b")
    (['layer1', '0', 'weight'], ['.a', 'b'])
    """
    names = path.split(".", _MAX_DEPTH)
    # A path that begins with a dot is not that of the root, which has none.
    return [f".{names[1]}", *names[2:]] if not names[0] and len(names) > 1 else names


class _Reader:
    """Makes the entries of tensors, depending on the file format."""

    def __init__(self, form: str, tensors: Sequence[Tensor], modules: SavedModules) -> None:
        self._form = form
        self._modules = modules
        self._reached = {_key(index, tensors[index]) for index in modules.reached.values()}
        self._has_training_flags = any(tensor.requires_grad for tensor in tensors)
        self._is_all_training_state = all(
            is_training_state(tensor.name, form) for tensor in tensors
        )
        self._left_out = 0
        self._training_tensors = 0

    def read(self, index: int, tensor: Tensor, name: str) -> tuple[Hashable, TensorEntry] | None:
        """Return the identity of a tensor and its entry; None if it is a copy."""
        key = _key(index, tensor)
        is_buffer = self._is_buffer(tensor)
        if tensor.name not in self._modules.reached and self._modules.hold(tensor.name):
            if key in self._reached:
                self._left_out += 1
                return None
            is_buffer = True  # an attribute that is not registered as a parameter
        return key, TensorEntry(
            name=name,
            path=tensor.name,
            shape=tensor.shape,
            dtype=tensor.dtype,
            device=tensor.device,
            elements=prod(tensor.shape),
            size_bytes=tensor.logical_bytes,
            is_buffer=is_buffer,
            is_trainable=tensor.requires_grad if self._has_training_flags else not is_buffer,
        )

    def _is_buffer(self, tensor: Tensor) -> bool:
        if not self._is_all_training_state and is_training_state(tensor.name, self._form):
            self._training_tensors += 1
            return True
        if tensor.kind == "parameter" or (tensor.requires_grad and self._form == "torchscript"):
            return False
        if self._form == "pt2":
            return True
        if self._form != "torchscript" and tensor.name in self._modules.reached:
            return True
        return is_buffer(tensor.name, tensor.dtype)

    def notes(self) -> Iterator[str]:
        """Yield notes about tensors that are not parameters of the model."""
        yield from training_note(self._training_tensors)
        if self._left_out:
            count, verb = _tensors_are(self._left_out)
            yield f"{count} that modules store twice {verb} shown once."


def guess_note(drafts: Iterable[Draft], source: str) -> Iterator[str]:
    """Yield a note if classes are guessed."""
    if any(draft.is_type_guessed for draft in drafts):
        yield f"Classes are guessed from the names and shapes of tensors: {source} has none."


def training_note(count: int) -> Iterator[str]:
    """Yield a note about tensors that are state of a training, if there are any."""
    if count:
        tensors, verb = _tensors_are(count)
        yield f"{tensors} beside the model (optimizer, inputs, states) {verb} counted as buffers."


def _tensors_are(count: int) -> tuple[str, str]:
    return count_of(count, "tensor"), "is" if count == 1 else "are"


def _key(index: int, tensor: Tensor) -> Hashable:
    """Return an identity that only tensors with the same elements share."""
    if tensor.storage is None or 0 in tensor.shape:
        return index
    return tensor.file, tensor.storage, tensor.offset, tensor.shape, tensor.stride, tensor.dtype


def drafts_of(root: _Part, modules: SavedModules) -> Iterator[Draft]:
    """Yield the modules, parents first; numbered ones by their numbers."""
    numbers: dict[str, int] = {}
    waiting = [(root, 0)]
    while waiting:
        part, depth = waiting.pop()
        original = part.path if part.same_as is None else part.same_as
        shapes = {entry.name: entry.shape for _, entry in part.tensors}
        type_name = modules.types.get(original, "")
        is_guessed = not type_name
        if is_guessed:
            type_name = guessed_type(part.name, shapes)
        is_shared = part.same_as is not None
        is_closed = is_shared and not part.tensors and not part.children
        yield Draft(
            name=part.name,
            path=part.path,
            type_name=type_name,
            arguments=arguments_of_shapes(type_name, shapes),
            tensors=part.tensors,
            depth=depth,
            key=f"module {original}",
            is_type_guessed=is_guessed and bool(type_name),
            shared_with=part.same_as,
            repeats=numbers.get(original) if is_closed else None,
        )
        numbers.setdefault(part.path, len(numbers))
        children = list(part.children.values())
        if all(child.name.isdecimal() and len(child.name) < 10 for child in children):
            children.sort(key=lambda child: int(child.name))
        waiting += ((child, depth + 1) for child in reversed(children))
