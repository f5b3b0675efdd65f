"""The classes and functions of an archive's code, as syntax trees.

The code of TorchScript has the syntax of Python, so `ast` parses it. Nothing of it is compiled
or run. A file is parsed when something in it is first needed.

# Cost

A syntax tree takes up to 700 bytes per word or mark (measured on nested lists), so these are
counted first, and no more than `MAX_WORDS` are parsed.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

from snapviewer._core import SnapshotError

MAX_WORDS = 1_000_000  # a traced model of 1,400 operations has 75,000
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Class:
    """A class of the code."""

    name: str
    kind: str
    """Its base class: Module, NamedTuple, Enum, Interface, or none."""
    methods: dict[str, ast.FunctionDef]
    fields: dict[str, ast.expr]
    """The annotated attributes and their types, in order."""
    constants: dict[str, ast.expr]


@dataclass(slots=True)
class _File:
    classes: dict[str, Class] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)


class Program:
    """Finds classes and functions by their full names, such as `__torch__.net.Net`."""

    def __init__(self, names: frozenset[str], source: Callable[[str], str]) -> None:
        self._names = names
        self._source = source
        self._files: dict[str, _File] = {}
        self._words = 0
        self.problems: dict[str, str] = {}
        """Files that could not be read, and why."""

    def find_class(self, name: str) -> Class | None:
        """Return a class, or None if the code does not have it."""
        module, _, last = name.rpartition(".")
        file = self._file(module)
        return file.classes.get(last) if file else None

    def find_function(self, name: str) -> ast.FunctionDef | None:
        """Return a function, or None if the code does not have it."""
        module, _, last = name.rpartition(".")
        file = self._file(module)
        return file.functions.get(last) if file else None

    def class_names(self) -> list[str]:
        """Return the names of the classes that were read so far, without their modules."""
        return [name for file in self._files.values() for name in file.classes]

    def _file(self, name: str) -> _File | None:
        if name not in self._names:
            return None
        if name not in self._files:
            self._files[name] = _File()
            try:
                source = self._source(name)
                self._words += sum(1 for _ in _WORD.finditer(source))
                if self._words > MAX_WORDS:
                    raise SnapshotError(f"the code is too large, from {name[:200]} on")
                self._files[name] = _parse(name, source)
            except SnapshotError as error:
                self.problems[name] = str(error)
        return self._files[name]


def _parse(name: str, source: str) -> _File:
    try:
        with warnings.catch_warnings():
            # Warnings about escapes in untrusted strings do not concern the user.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SnapshotError(
            f"the code of {name[:200]} cannot be parsed ({type(error).__name__})"
        ) from None
    file = _File()
    for item in tree.body:
        if isinstance(item, ast.FunctionDef):
            file.functions[item.name] = item
        elif isinstance(item, ast.ClassDef):
            file.classes[item.name] = _class(f"{name}.{item.name}", item)
    return file


def _class(name: str, item: ast.ClassDef) -> Class:
    base = item.bases[0] if item.bases else None
    kind = base.id if isinstance(base, ast.Name) else ""
    found = Class(name, kind, {}, {}, {})
    for part in item.body:
        if isinstance(part, ast.FunctionDef):
            found.methods[part.name] = part
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            found.fields[part.target.id] = part.annotation
            if part.value is not None:
                found.constants[part.target.id] = part.value
        elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
            found.constants[part.targets[0].id] = part.value
    return found
