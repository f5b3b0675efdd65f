"""Imports point one way, and each outside library is known in one place only."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / "python" / "snapviewer"
RUST = ROOT / "src"

# A module may import what stands in a lower layer. What is not named here computes an answer, and
# is in the layer of the analyses; these may import each other.
FOUNDATION, ANALYSES, RENDERING, INTERFACES, COMMANDS = range(5)
LAYERS = {
    "_core": FOUNDATION,
    "counts": FOUNDATION,
    "theme": FOUNDATION,
    "units": FOUNDATION,
    "__init__": ANALYSES,
    "report": RENDERING,
    "gui": INTERFACES,
    "explorer": INTERFACES,
    "cli": COMMANDS,
    "__main__": COMMANDS,
}
SHARED_LAYERS = {FOUNDATION, ANALYSES, COMMANDS}

# Who may use what: directories of the package.
HOMES = {
    "PIL": ("report/picture", "gui"),
    "fontTools": ("document",),
    "fpdf": ("document",),
    "pygments": ("explorer/panels",),
    "rich": ("explorer/app", "explorer/panels"),
    "sqlite3": (),
    "textual": ("explorer",),
    "tkinter": ("gui",),
}
CODE_RUNNERS = {"pickle": {"load", "loads", "Unpickler"}, "torch": {"load"}}


class Use(NamedTuple):
    """A dotted name that a file imports or reaches through an import."""

    name: str
    line: int


def _uses(source: str, package: tuple[str, ...]) -> Iterator[Use]:
    """Yield what a file imports, and the attributes of imported modules that it names."""
    modules: dict[str, str] = {}
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                modules[alias.asname or alias.name.split(".")[0]] = alias.name
                yield Use(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield Use(f"{module}.{alias.name}", node.lineno)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id, "")
            if module:
                yield Use(f"{module}.{node.attr}", node.lineno)


def _part(path: Path) -> str:
    """The part of the package that a file belongs to: its directory or its own name."""
    return path.relative_to(PYTHON).parts[0].removesuffix(".py").removesuffix(".pyi")


def _imported_part(name: str) -> str | None:
    """The part of the package that a dotted name stands for; None if it is no part of it."""
    parts = name.split(".")
    if parts[0] != "snapviewer":
        return None
    is_part = len(parts) > 1 and (
        parts[1] == "_core" or (PYTHON / parts[1]).is_dir() or (PYTHON / f"{parts[1]}.py").is_file()
    )
    return parts[1] if is_part else "__init__"


def _is_allowed(importer: str, imported: str) -> bool:
    own, other = (LAYERS.get(part, ANALYSES) for part in (importer, imported))
    return importer == imported or other < own or (other == own and own in SHARED_LAYERS)


def _is_home(path: Path, homes: Sequence[str]) -> bool:
    return any(path.is_relative_to(PYTHON / home) for home in homes)


def _complaints(source: str, path: Path) -> Iterator[str]:
    part = _part(path)
    package = ("snapviewer", *path.relative_to(PYTHON).parts[:-1])
    for name, line in _uses(source, package):
        where = f"{path.relative_to(ROOT)}:{line}"
        top, *rest = name.split(".")
        imported = _imported_part(name)
        if imported is not None and not _is_allowed(part, imported):
            yield f"{where}: {part} must not import {imported}"
        if top in HOMES and not _is_home(path, HOMES[top]):
            yield f"{where}: {top} belongs to {' and '.join(HOMES[top]) or 'nobody'}"
        if rest and rest[0] in CODE_RUNNERS.get(top, set()):
            yield f"{where}: {name} may run code"


def _python_files() -> list[Path]:
    return sorted(path for path in PYTHON.rglob("*.py*") if path.suffix in (".py", ".pyi"))


def test_the_product_imports_downwards_only_and_keeps_libraries_at_home() -> None:
    complaints = [
        complaint
        for path in _python_files()
        for complaint in _complaints(path.read_text(encoding="utf-8"), path)
    ]

    assert complaints == []


@pytest.mark.parametrize(
    ("part", "source", "complaint"),
    [
        ("units.py", "from snapviewer.report import text", "units must not import report"),
        ("units.py", "from snapviewer import load", "units must not import __init__"),
        ("demo/model.py", "from .. import cli", "demo must not import cli"),
        ("report/text.py", "import snapviewer.cli", "report must not import cli"),
        ("report/text.py", "def f():\n    import tkinter.ttk", "tkinter belongs to gui"),
        ("explorer/app.py", "import tkinter", "tkinter belongs to gui"),
        ("report/info.py", "from PIL import Image", "PIL belongs to report/picture and gui"),
        ("gui/app.py", "from sqlite3 import connect", "sqlite3 belongs to nobody"),
        ("gui/app.py", "import pickle as p\np.load(f)", "pickle.load may run code"),
        ("gui/app.py", "from pickle import Unpickler", "pickle.Unpickler may run code"),
        ("cli.py", "import torch\ntorch.load(f)", "torch.load may run code"),
    ],
)
def test_an_import_that_crosses_the_line_is_found(part: str, source: str, complaint: str) -> None:
    complaints = list(_complaints(source, PYTHON / part))

    assert [found.split(": ", 1)[1] for found in complaints] == [complaint]


@pytest.mark.parametrize(
    ("part", "source"),
    [
        ("cli.py", "from snapviewer.report import text\nimport snapviewer\nimport pickle"),
        ("report/text.py", "from ..units import size_text\nfrom . import json"),
        ("demo/__init__.py", "import pickle\npickle.dump(x, f)"),
        ("gui/app.py", "import tkinter\nfrom snapviewer import load"),
        ("report/picture/canvas.py", "from PIL import Image\nfrom snapviewer.report import ticks"),
        ("units.py", "from snapviewer._core import __doc__"),
    ],
)
def test_an_import_that_stays_in_line_is_not_found(part: str, source: str) -> None:
    assert list(_complaints(source, PYTHON / part)) == []


def _in_py(path: Path) -> bool:
    return path.parts[0] == "py"


def _in_store(path: Path) -> bool:
    return path.parts[0].startswith("store")


def _in_filter(path: Path) -> bool:
    return path.parts[0] == "filter"


def _in_screen(path: Path) -> bool:
    return path.parts[0] == "screen"


def _may_be_unsafe(path: Path) -> bool:
    """Where files and memory are mapped, NumPy is lent a column, and SQLite is shown the events."""
    homes = ("source.rs", "screen/segment.rs", "py/columns.rs", "store/events.rs")
    return path.as_posix() in homes


@pytest.mark.parametrize(
    ("pattern", "is_home"),
    [
        (r"\b(pyo3|use numpy|(?<!super::)numpy::(Py|ndarray|Element))", _in_py),
        (r"\brusqlite\b", _in_store),
        (r"\bregex::", _in_filter),
        (r"\bx11rb\b", _in_screen),
        (r"allow\(unsafe_code\)", _may_be_unsafe),
    ],
)
def test_the_core_keeps_libraries_at_home_too(
    pattern: str, is_home: Callable[[Path], bool]
) -> None:
    strays = [
        f"src/{path.relative_to(RUST)}:{number}: {line.strip()}"
        for path in sorted(RUST.rglob("*.rs"))
        if not is_home(path.relative_to(RUST))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(pattern, line.split("//")[0])
    ]

    assert strays == []
