"""The source code of modules: of live ones from Python's files, of TorchScript archives as saved.

No code is run: a live ScriptModule has its code as text, and an archive is read as text.

# Cost

Python parses the whole file of a class, some 10 ms for a long one. Of an archive one code file is
unpacked, up to the archive's own limits. No excerpt is longer than `MAX_LINES`.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from snapviewer import SnapshotError
from snapviewer.checkpoint.code import archive_of
from snapviewer.text.sanitize import replace_unprintable, sanitize

from .explored_model import ExploredModel
from .safe_call import CallFailure, safe_call
from .tree import ModuleNode

if TYPE_CHECKING:
    from snapviewer._core import Value

MAX_LINES = 600
_MAX_LINE_CHARS = 1000
_MAX_ITEMS = 2000  # of a value that are searched for a name


class SourceExcerpt(NamedTuple):
    """An excerpt of source code: its name, its place, its lines, and how many were cut off."""

    name: str
    place: str
    first_line: int
    lines: tuple[str, ...]
    left_lines: int = 0


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """The source code of a module; `reason` says why there is none, or not all."""

    excerpts: tuple[SourceExcerpt, ...] = ()
    reason: str = ""


def module_source(explored: ExploredModel, node: ModuleNode) -> ModuleSource:
    """Find the source code of a module: of its `forward` first, then of its class."""
    module = explored.module_of(node)
    if type(module) is CallFailure:
        return ModuleSource(reason=f"The live module cannot be read {module}.")
    if module is not None:
        return _of_script(module) if _is_script(module) else _of_class(type(module))
    return _of_archive(explored, node)


def _is_script(module: Any) -> bool:
    return any(base.__name__ == "ScriptModule" for base in type(module).__mro__)


def _of_script(module: Any) -> ModuleSource:
    text = safe_call(lambda: module.code)
    if type(text) is not str:
        return ModuleSource(reason="This ScriptModule has no code of its own.")
    return ModuleSource((_excerpt("forward", "TorchScript", 1, text.splitlines()),))


def _of_class(kind: type) -> ModuleSource:
    excerpts, reasons = [], []
    for name, thing in (("forward", _forward_of(kind)), (f"class {kind.__name__}", kind)):
        if thing is None:
            continue
        found = safe_call(_looked_up, thing)
        if isinstance(found, CallFailure):
            reasons.append(f"No source code of {name} found {found}.")
        else:
            excerpts.append(_excerpt(name, *found))
    return ModuleSource(tuple(excerpts), sanitize(" ".join(reasons), 1000))


def _forward_of(kind: type) -> Any:
    """Return the function that runs, without running the class's own code."""
    for base in kind.__mro__:
        found = base.__dict__.get("forward")
        if found is not None:
            # A wrapped function says more than its wrapper.
            return safe_call(inspect.unwrap, found)
    return None


def _looked_up(thing: Any) -> tuple[str, int, list[str]]:
    lines, first = inspect.getsourcelines(thing)
    return inspect.getsourcefile(thing) or "", max(1, first), lines


def _excerpt(name: str, place: str, first_line: int, lines: list[str]) -> SourceExcerpt:
    return SourceExcerpt(
        sanitize(name, 200),
        sanitize(place, 400),
        first_line,
        tuple(_inert(line) for line in lines[:MAX_LINES]),
        max(0, len(lines) - MAX_LINES),
    )


def _inert(line: str) -> str:
    """Replace what a terminal would interpret in a line; its indentation stays."""
    line = line[: _MAX_LINE_CHARS + 1].rstrip().expandtabs(4)
    line = line if len(line) <= _MAX_LINE_CHARS else f"{line[: _MAX_LINE_CHARS - 1]}…"
    return replace_unprintable(line)


def _of_archive(explored: ExploredModel, node: ModuleNode) -> ModuleSource:
    checkpoint = explored.checkpoint
    if checkpoint is None:
        return ModuleSource(reason="There is no live module.")
    if checkpoint.format != "torchscript":
        return ModuleSource(
            reason="The file contains tensors but no code. Open the live model, or a TorchScript "
            "archive, to see the code of its modules."
        )
    value = value_at(checkpoint.root, node.path)
    if value is None:
        return ModuleSource(reason="The archive has no module of this name.")
    where, _, kind = value.type.rpartition(".")
    try:
        archive = archive_of(checkpoint)
        if where not in archive.code:
            return ModuleSource(reason=f"The archive has no code of {sanitize(value.type, 200)}.")
        source = archive.source(where)
    except (SnapshotError, OSError) as error:
        return ModuleSource(reason=sanitize(str(error), 400))
    found = _class_in(source, kind)
    if found is None:
        return ModuleSource(reason=f"The archive has no code of {sanitize(value.type, 200)}.")
    first, lines = found
    return ModuleSource(
        (_excerpt(f"class {kind}", f"code/{where.replace('.', '/')}.py", first, lines),)
    )


def value_at(root: Value, path: str) -> Value | None:
    """Find a value of a file by its path in the tree; None if there is none."""
    value = root
    while path:
        found = _item_on(value, path)
        if found is None:
            return None
        label, value = found
        path = path[len(label) + 1 :]
    return value


def _item_on(value: Value, path: str) -> tuple[str, Value] | None:
    """Return the item of a value that a path begins with."""
    for label, item in value.items(0, _MAX_ITEMS):
        if path == label or path.startswith(f"{label}."):
            return label, item
    return None


def _class_in(source: str, name: str) -> tuple[int, list[str]] | None:
    r"""Cut a class out of a file of TorchScript; return its first line's number and its lines.

    >>> _class_in("class A(Module):\n  x : int\nclass B(Module):\n  y : int\n", "B")
    (3, ['class B(Module):', '  y : int'])
    """
    lines = source.splitlines()
    start = re.compile(rf"class {re.escape(name)}\b")
    first = next((number for number, line in enumerate(lines) if start.match(line)), None)
    if first is None:
        return None
    last = first + 1
    while last < len(lines) and (not lines[last] or lines[last][0].isspace()):
        last += 1
    return first + 1, lines[first:last]
