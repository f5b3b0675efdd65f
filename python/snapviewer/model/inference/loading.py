"""Loads model files to run them (the only place where code of a file runs), and makes inputs."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from snapviewer import SnapshotError
from snapviewer.model.graph import Graph, TensorSpec, Unknown, Value
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

_MAX_ELEMENTS = 2**31
# Small enough to be an index into nearly any table.
_SMALL = 10
# Importing them registers their operations. A file never chooses what is imported.
_PACKAGES = ("torchvision", "torchaudio")


def torch_for(what: str) -> Any:
    """Return torch.

    Args:
        what: What needs it, to begin a sentence.

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

    This runs the code of the archive when the module is called, and parts of it while it loads: use
    it only with files that you trust.

    Args:
        path: The archive.
        device: The device of its weights.

    Raises:
        SnapshotError: torch is not installed, or cannot load the file.
        OSError: The file cannot be read.
    """
    torch = torch_for("running a TorchScript archive")
    return _loaded(path, lambda name: torch.jit.load(name, map_location=device))


def load_pt2(path: str | PathLike[str]) -> Any:
    """Load an exported program to run it, as a module.

    Use it only with files that you trust.

    Raises:
        SnapshotError: torch is not installed, or cannot load the file.
        OSError: The file cannot be read.
    """
    torch = torch_for("running an exported program")
    return _loaded(path, lambda name: torch.export.load(name).module())


def _loaded(path: str | PathLike[str], load: Callable[[str], Any]) -> Any:
    with Path(path).open("rb"):
        # Raises the OSError of an unreadable file; torch would raise RuntimeError.
        pass
    with warnings.catch_warnings():
        # torch warns that its own loaders are deprecated.
        warnings.simplefilter("ignore")
        try:
            try:
                return load(fspath(path))
            except RuntimeError as error:
                if not _has_more_operations(str(error)):
                    raise
                return load(fspath(path))
        except Exception as error:  # noqa: BLE001 (torch may raise anything for a broken file)
            said = sanitize(str(error), MAX_NAME_CHARS) or type(error).__name__
            raise SnapshotError(f"torch cannot load the model: {said}") from None


def _has_more_operations(message: str) -> bool:
    """Import the package whose operations torch lacked, if installed and not imported yet."""
    for package in _PACKAGES:
        if f" {package}::" in message and package not in sys.modules and find_spec(package):
            import_module(package)
            return True
    return False


def example_inputs(graph: Graph, *, seed: int = 0, device: str = "cpu") -> tuple[Any, ...]:
    """Make inputs with the shapes of a graph; the same seed gives the same inputs.

    Floating-point numbers are normally distributed, integers are small and below the rows of the
    smallest embedding, booleans are false.

    Args:
        graph: The graph.
        seed: The seed of the random numbers.
        device: The device of the inputs.

    Raises:
        SnapshotError: torch is not installed, or an input has an unknown shape or is too large.
    """
    torch = torch_for("making inputs")
    generator = torch.Generator().manual_seed(seed)
    below = _index_limit(graph)

    def made(value: Value) -> Any:
        if isinstance(value, TensorSpec):
            try:
                return _tensor(torch, value, generator, below).to(device)
            except (RuntimeError, MemoryError) as error:
                raise SnapshotError(
                    f"an input could not be made: {sanitize(str(error), MAX_NAME_CHARS)}"
                ) from None
        if isinstance(value, Unknown):
            raise SnapshotError(f"an input is unknown: {sanitize(value.why, MAX_NAME_CHARS)}")
        return tuple(made(item) for item in value) if isinstance(value, tuple) else value

    return tuple(made(value) for value in graph.inputs)


def _index_limit(graph: Graph) -> int:
    """Return the number of rows of the smallest embedding, at most a small number."""
    rows = [
        node.arguments[0].shape[0]
        for node in graph.nodes
        if node.op in ("aten::embedding", "aten::embedding_bag")
        and node.arguments
        and isinstance(node.arguments[0], TensorSpec)
        and node.arguments[0].shape
    ]
    return max(1, min([_SMALL, *(row for row in rows if row is not None)]))


def _tensor(torch: Any, spec: TensorSpec, generator: Any, below: int) -> Any:
    if any(size is None for size in spec.shape):
        raise SnapshotError("an input needs all of its sizes to run a model")
    shape = [int(size) for size in spec.shape if size is not None]
    if min(shape, default=0) < 0 or math.prod(shape) > _MAX_ELEMENTS:
        raise SnapshotError(f"an input has a bad shape: {sanitize(str(shape), 80)}")
    dtype = getattr(torch, spec.dtype or "float32", None)
    if not isinstance(dtype, torch.dtype):
        raise SnapshotError(f"{sanitize(spec.dtype, 40)!r} is not a dtype of torch")
    if dtype == torch.bool:
        return torch.zeros(shape, dtype=dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, below, shape, generator=generator).to(dtype)
