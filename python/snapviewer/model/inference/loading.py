"""Model files, loaded to be run: the only place where the code of a file gets to run."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from snapviewer import SnapshotError
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

# They register their operations when they are imported. A file never says what is imported.
_PACKAGES = ("torchvision", "torchaudio")


def torch_for(what: str) -> Any:
    """Return torch.

    Args:
        what: What needs it, as the beginning of a sentence.

    Raises:
        SnapshotError: It is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise SnapshotError(
            f"{what} needs torch, which is not installed ({sanitize(str(error), MAX_NAME_CHARS)}): "
            "pip install torch"
        ) from None
    return torch


def load_torchscript(path: str | PathLike[str], device: str = "cpu") -> Any:
    """Load a TorchScript archive to run it.

    This runs the archive's code as soon as the module is called, and parts of it while it loads:
    do so with files of people you trust.

    Args:
        path: The archive.
        device: Where its weights go.

    Raises:
        SnapshotError: torch is not installed, or cannot load the file.
        OSError: The file cannot be read.
    """
    torch = torch_for("running a TorchScript archive")
    return _loaded(path, lambda name: torch.jit.load(name, map_location=device))


def load_pt2(path: str | PathLike[str]) -> Any:
    """Load an exported program to run it, as a module.

    Like a TorchScript archive, it is made by someone whom you trust, or it is not run.

    Raises:
        SnapshotError: torch is not installed, or cannot load the file.
        OSError: The file cannot be read.
    """
    torch = torch_for("running an exported program")
    return _loaded(path, lambda name: torch.export.load(name).module())


def _loaded(path: str | PathLike[str], load: Callable[[str], Any]) -> Any:
    with Path(path).open("rb"):
        # A file that cannot be read says so by itself; torch would say RuntimeError.
        pass
    with warnings.catch_warnings():
        # torch calls its own ways to load deprecated.
        warnings.simplefilter("ignore")
        try:
            try:
                return load(fspath(path))
            except RuntimeError as error:
                if not _has_more_operations(str(error)):
                    raise
                return load(fspath(path))
        except Exception as error:  # noqa: BLE001 (a broken file makes torch raise anything)
            said = sanitize(str(error), MAX_NAME_CHARS) or type(error).__name__
            raise SnapshotError(f"torch cannot load the model: {said}") from None


def _has_more_operations(message: str) -> bool:
    """Import the package whose operations torch missed, if it is there and was not imported yet."""
    for package in _PACKAGES:
        if f" {package}::" in message and package not in sys.modules and find_spec(package):
            import_module(package)
            return True
    return False
