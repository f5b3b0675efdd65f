"""The package is light, and reports on memory events need nothing but Python."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import snapviewer
from snapviewer import _core
from support.events_sample import write_log

SOURCE = Path(__file__).resolve().parents[2] / "python"

# As on a machine without any package, also for imports inside functions.
_ALONE = """
import sys

class Refusal:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if name == "snapviewer._core" or top not in {*sys.stdlib_module_names, "snapviewer"}:
            raise ModuleNotFoundError(f"refused: {name}", name=name)

sys.meta_path.insert(0, Refusal())
sys.path.insert(0, sys.argv[1])
"""


def run_alone(code: str, *arguments: str) -> str:
    """Run a program with only the standard library and our sources."""
    command = [sys.executable, "-I", "-S", "-B", "-W", "error", "-c", _ALONE + code, str(SOURCE)]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_of_events_imports_with_the_standard_library_alone() -> None:
    modules = json.loads(
        run_alone("""
import importlib, json, pkgutil
import snapviewer.events

def fail(name):
    raise

found = pkgutil.walk_packages(snapviewer.events.__path__, "snapviewer.events.", onerror=fail)
names = [module.name for module in found if not module.name.endswith(".__main__")]
for name in names:
    importlib.import_module(name)
print(json.dumps(names))
""")
    )

    files = (SOURCE / "snapviewer" / "events").rglob("*.py")
    names = {".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in files}
    assert {f"{name}.__init__" for name in modules} | set(modules) >= {
        name for name in names if not name.endswith(("events.__init__", ".__main__"))
    }


def test_the_command_runs_with_the_standard_library_alone(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.json")
    outputs = [word for suffix in ("md", "html", "txt", "json") for word in ("-o", f"a.{suffix}")]

    shown = run_alone(
        """
import os
from snapviewer.cli import main
os.chdir(sys.argv[2])
print(main(["events", *sys.argv[3:]]))
""",
        str(tmp_path),
        log.name,
        *outputs,
    )

    assert shown.endswith("\n0\n")
    assert len(list(tmp_path.glob("a.*"))) == 4


def test_importing_events_loads_neither_torch_nor_the_native_module() -> None:
    code = """if True:
        import sys
        import snapviewer.events
        heavy = ("numpy", "torch", "PIL", "psutil", "typst", "tkinter", "snapviewer._core")
        print([name for name in heavy if name in sys.modules])
    """

    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=True)

    assert done.stdout == "[]\n"


def test_without_the_native_module_a_name_that_needs_it_says_so() -> None:
    said = run_alone("""
import snapviewer
print(snapviewer.__version__)
try:
    snapviewer.load
except ModuleNotFoundError as error:
    print(error)
""")

    assert said == f"{snapviewer.__version__}\nrefused: snapviewer._core\n"


PYTHON_NAMES = {
    "__version__",
    "Difference",
    "diff",
    "lightning_callback",
    "record",
    "trainer_callback",
}


@pytest.mark.parametrize("name", sorted({*snapviewer.__all__} - PYTHON_NAMES))
def test_a_name_of_the_package_is_the_native_one_and_is_listed(name: str) -> None:
    assert getattr(snapviewer, name) is getattr(_core, name)
    assert name in dir(snapviewer)
    assert not {"TYPE_CHECKING", "lazy_names"} & set(dir(snapviewer)), "only what can be used"


def test_a_name_that_the_package_does_not_have_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"module 'snapviewer' has no attribute 'lode'"):
        _ = snapviewer.lode  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="lode"):
        from snapviewer import lode  # type: ignore[attr-defined]  # noqa: F401


def test_no_name_of_the_package_hides_a_module_of_it() -> None:
    code = """if True:
        import pkgutil, snapviewer
        modules = pkgutil.iter_modules(snapviewer.__path__)
        names = [module.name for module in modules if not module.name.startswith("_")]
        print([name for name in names if name in dir(snapviewer)])
        print("gc_pause" in names and "events" in names)
    """

    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=True)

    assert done.stdout == "[]\nTrue\n"


def test_the_names_are_listed_and_explained_before_they_are_used() -> None:
    code = """if True:
        import pydoc, snapviewer
        print(set(snapviewer.__all__) <= set(dir(snapviewer)))
        text = pydoc.plain(pydoc.render_doc(snapviewer))
        print(all(name in text for name in snapviewer.__all__ if name != "__version__"))
        from snapviewer import *
        print(load is snapviewer.load)
    """

    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=True)

    assert done.stdout.split() == ["True", "True", "True"]
