"""The source code of modules: of live ones where Python finds it, of TorchScript files as saved.

Nothing is run: a live ScriptModule tells its code, and an archive is read as text.

# Cost

Python parses the whole file of a class, some 10 ms for a long one. Of an archive one file of code
is unpacked, up to the archive's own limits. No code is longer than `MOST_LINES`.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snapviewer import SnapshotError
from snapviewer.checkpoint.code import archive_of
from snapviewer.text.sanitize import replace_unprintable, sanitize

from .guarded import Refused, asked
from .subject import Subject
from .tree import ModuleNode

if TYPE_CHECKING:
    from snapviewer._core import Value

MOST_LINES = 600
_MOST_LETTERS = 1000  # of a line
_MOST_ITEMS = 2000  # of a value, in which a name is looked for


@dataclass(frozen=True, slots=True)
class Code:
    """A piece of code: what it is, where it stands, its lines, and how many were cut off."""

    name: str
    place: str
    first_line: int
    lines: tuple[str, ...]
    left_lines: int = 0


@dataclass(frozen=True, slots=True)
class Codes:
    """What is known of a module's code; `reason` says why there is none, or not all."""

    codes: tuple[Code, ...] = ()
    reason: str = ""


def codes_of(subject: Subject, node: ModuleNode) -> Codes:
    """Find the code of a module: of its `forward` first, then of its class."""
    module = subject.module_of(node)
    if type(module) is Refused:
        return Codes(reason=f"The live module cannot be asked {module}.")
    if module is not None:
        return _of_script(module) if _is_script(module) else _of_class(type(module))
    return _of_archive(subject, node)


def _is_script(module: Any) -> bool:
    return any(base.__name__ == "ScriptModule" for base in type(module).__mro__)


def _of_script(module: Any) -> Codes:
    text = asked(lambda: module.code)
    if type(text) is not str:
        return Codes(reason="This ScriptModule has no code of its own.")
    return Codes((_code("forward", "TorchScript", 1, text.splitlines()),))


def _of_class(kind: type) -> Codes:
    codes, reasons = [], []
    for name, thing in (("forward", _forward_of(kind)), (f"class {kind.__name__}", kind)):
        if thing is None:
            continue
        found = asked(_looked_up, thing)
        if isinstance(found, Refused):
            reasons.append(f"Python does not find the code of {name} {found}.")
        else:
            codes.append(_code(name, *found))
    return Codes(tuple(codes), sanitize(" ".join(reasons), 1000))


def _forward_of(kind: type) -> Any:
    """Return the function that runs, without asking the class's own code."""
    for base in kind.__mro__:
        found = base.__dict__.get("forward")
        if found is not None:
            # What it wraps, if it is wrapped, says more than the wrapper; and never a method.
            return asked(inspect.unwrap, found)
    return None


def _looked_up(thing: Any) -> tuple[str, int, list[str]]:
    lines, first = inspect.getsourcelines(thing)
    return inspect.getsourcefile(thing) or "", max(1, first), lines


def _code(name: str, place: str, first_line: int, lines: list[str]) -> Code:
    return Code(
        sanitize(name, 200),
        sanitize(place, 400),
        first_line,
        tuple(_inert(line) for line in lines[:MOST_LINES]),
        max(0, len(lines) - MOST_LINES),
    )


def _inert(line: str) -> str:
    """Take from a line what a terminal would obey; its indentation stays."""
    line = line[: _MOST_LETTERS + 1].rstrip().expandtabs(4)
    line = line if len(line) <= _MOST_LETTERS else f"{line[: _MOST_LETTERS - 1]}…"
    return replace_unprintable(line)


def _of_archive(subject: Subject, node: ModuleNode) -> Codes:
    checkpoint = subject.checkpoint
    if checkpoint is None:
        return Codes(reason="There is no live module here.")
    if checkpoint.format != "torchscript":
        return Codes(
            reason="The file holds tensors and no code. Open the live model to see the code of its "
            "modules, or a TorchScript archive."
        )
    value = value_at(checkpoint.root, node.path)
    if value is None:
        return Codes(reason="The archive has no module of this name.")
    where, _, kind = value.type.rpartition(".")
    try:
        archive = archive_of(checkpoint)
        if where not in archive.code:
            return Codes(reason=f"The archive has no code of {sanitize(value.type, 200)}.")
        source = archive.source(where)
    except (SnapshotError, OSError) as error:
        return Codes(reason=sanitize(str(error), 400))
    found = _class_in(source, kind)
    if found is None:
        return Codes(reason=f"The archive has no code of {sanitize(value.type, 200)}.")
    first, lines = found
    return Codes((_code(f"class {kind}", f"code/{where.replace('.', '/')}.py", first, lines),))


def value_at(root: Value, path: str) -> Value | None:
    """Find a value of a file by the path that it has in the tree; None if it is not there."""
    value = root
    while path:
        found = _item_on(value, path)
        if found is None:
            return None
        label, value = found
        path = path[len(label) + 1 :]
    return value


def _item_on(value: Value, path: str) -> tuple[str, Value] | None:
    """Return the item of a value through which a path leads."""
    for label, item in value.items(0, _MOST_ITEMS):
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
