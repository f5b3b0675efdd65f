"""A checkpoint as a tree, without torch and without running anything of it.

Names of tensors are ways to them (`layer1.0.conv1.weight`), so they make the tree. Where a file
names the types of its modules these are taken, and modules without tensors are shown, too.

# Invariants

Every tensor of the file is in the tree exactly once, under its own name, except for what a saved
module keeps a second time beside its parameters. The tree has no more levels and letters than
`_MOST_DEPTH` and `_MOST_LETTERS`, whatever names a file has: the rest of a name stays together.

# Cost

`O(tensors + modules)`, about 10 µs each; no byte of a tensor is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from os.path import basename
from threading import Event
from typing import TYPE_CHECKING

from snapviewer import CancelledError
from snapviewer.checkpoint.buffers import is_buffer
from snapviewer.checkpoint.saved_modules import SavedModules, saved_modules
from snapviewer.gc_pause import gc_pause
from snapviewer.text.units import count_of

from .assembly import Draft, assembled
from .saved_types import arguments_of_shapes, guessed_type
from .tree import TensorEntry, Tree

if TYPE_CHECKING:
    from snapviewer._core import Checkpoint, Tensor

_MOST_DEPTH = 1000
_MOST_LETTERS = 50_000_000  # of the paths of all modules
_BETWEEN_REPORTS = 1024  # tensors

# What a training saves beside its model: nothing that the model has learned.
_BESIDE = re.compile(
    r"(optim\w*|\w*optimizers?(_states?)?|lr_schedulers?|sched\w*|(grad_)?scaler|amp|"
    r"\w*rng_states?\w*|random_state|loops|callbacks|sample_inputs)(?=[.\[]|$)"
)


@dataclass(slots=True)
class _Part:
    """A module on its way; `same_as` is the path of the one that it is, if it is met again."""

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
    """Look at a checkpoint.

    Args:
        checkpoint: What `snapviewer.read_checkpoint` returned.
        progress: Called with (done, total) in tensors now and then.
        cancel: Asked now and then whether to stop.

    Raises:
        CancelledError: `cancel` was set.
    """
    with gc_pause():
        return _tree(checkpoint, progress, cancel)


def _tree(
    checkpoint: Checkpoint, progress: Callable[[int, int], object] | None, cancel: Event | None
) -> Tree:
    modules = saved_modules(checkpoint.root)
    parts = _Parts(basename(checkpoint.path))
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
    drafts = list(_drafts(parts.root, modules))
    notes = [*reader.notes(), *parts.notes()]
    if any(draft.is_type_guessed for draft in drafts):
        notes.append("Types are guessed from the names and shapes of tensors: the file has none.")
    name = parts.root.name
    return Tree(name, checkpoint.path, assembled(drafts), (*notes, *checkpoint.warnings))


class _Parts:
    """The modules, made as they are named."""

    def __init__(self, name: str) -> None:
        self.root = _Part(name, "")
        self._letters = _MOST_LETTERS
        self._unsplit = 0

    def at(self, path: str) -> _Part:
        """Return the module at a path; the last one above it where there is no room for more."""
        return self._down(_names(path))[0] if path else self.root

    def of_tensor(self, path: str) -> tuple[_Part, str]:
        """Return the module of a tensor, and what is left of the tensor's path there: its name."""
        *above, name = _names(path)
        part, used = self._down(above)
        if used < len(above) or len(above) == _MOST_DEPTH:
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
        """Show the parts of a module in another place, too; not within itself."""
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
        """Yield what could not be shown as it is."""
        if self._unsplit:
            names = count_of(self._unsplit, "name")
            yield f"{names} of tensors have so many parts that they are not split any further."


def _names(path: str) -> list[str]:
    """Return the names that a path is made of.

    >>> _names("layer1.0.weight"), _names(".a.b")
    (['layer1', '0', 'weight'], ['.a', 'b'])
    """
    names = path.split(".", _MOST_DEPTH)
    # A path that begins with a dot is not that of the root, which has none.
    return [f".{names[1]}", *names[2:]] if not names[0] and len(names) > 1 else names


class _Reader:
    """Makes entries of tensors, by what kind of file they are in."""

    def __init__(self, form: str, tensors: Sequence[Tensor], modules: SavedModules) -> None:
        self._form = form
        self._modules = modules
        self._kept = {_key(index, tensors[index]) for index in modules.reached.values()}
        self._tells_training = any(tensor.requires_grad for tensor in tensors)
        self._is_all_beside = all(_BESIDE.match(tensor.name) for tensor in tensors)
        self._left_out = 0
        self._beside = 0

    def read(self, index: int, tensor: Tensor, name: str) -> tuple[Hashable, TensorEntry] | None:
        """Return what tells a tensor from others, and its entry; None if it is there already."""
        key = _key(index, tensor)
        is_buffer = self._is_buffer(tensor)
        if tensor.name not in self._modules.reached and self._modules.hold(tensor.name):
            if key in self._kept:
                self._left_out += 1
                return None
            is_buffer = True  # an attribute that torch does not know as parameter
        return key, TensorEntry(
            name=name,
            path=tensor.name,
            shape=tensor.shape,
            dtype=tensor.dtype,
            device=tensor.device,
            elements=prod(tensor.shape),
            size_bytes=tensor.logical_bytes,
            is_buffer=is_buffer,
            is_trainable=tensor.requires_grad if self._tells_training else not is_buffer,
        )

    def _is_buffer(self, tensor: Tensor) -> bool:
        if not self._is_all_beside and _BESIDE.match(tensor.name):
            self._beside += 1
            return True
        if tensor.kind == "parameter" or (tensor.requires_grad and self._form == "torchscript"):
            return False
        if self._form == "pt2":
            return True
        if self._form != "torchscript" and tensor.name in self._modules.reached:
            return True
        return is_buffer(tensor.name, tensor.dtype)

    def notes(self) -> Iterator[str]:
        """Yield what is not as a reader may think."""
        if self._beside:
            count, verb = _tensors_are(self._beside)
            yield f"{count} beside the model (optimizer, inputs, states) {verb} taken for buffers."
        if self._left_out:
            count, verb = _tensors_are(self._left_out)
            yield f"{count} that modules keep twice {verb} shown once."


def _tensors_are(count: int) -> tuple[str, str]:
    return count_of(count, "tensor"), "is" if count == 1 else "are"


def _key(index: int, tensor: Tensor) -> Hashable:
    """Return what tells a tensor from those with other elements."""
    if tensor.storage is None or 0 in tensor.shape:
        return index
    return tensor.file, tensor.storage, tensor.offset, tensor.shape, tensor.stride, tensor.dtype


def _drafts(root: _Part, modules: SavedModules) -> Iterator[Draft]:
    """Yield the modules, parents first; numbered ones in the order of their numbers."""
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
