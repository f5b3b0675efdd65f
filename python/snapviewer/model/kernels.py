"""The kernels that measure a machine (matrix product, copy, triad), with PyTorch or NumPy."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

Backend: TypeAlias = Literal["auto", "torch", "numpy"]
Run: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Stream:
    """A kernel that only moves numbers, and the bytes that it reads and writes."""

    name: str
    run: Run
    moved_bytes: int


class Kernels(Protocol):
    """A library of kernels; each runs to its end when it is called."""

    @property
    def name(self) -> str:
        """The name of the library."""

    def threads(self, count: int | None) -> AbstractContextManager[int]:
        """Set the number of threads for a `with` block; yields the actual number."""

    def matmul(self, side: int) -> Run:
        """Return a product of square matrices."""

    def streams(self, size_bytes: int) -> tuple[Stream, ...]:
        """Return a copy of an array, and `a = b + s × c` of arrays (the triad)."""


def kernels_of(backend: Backend, *, device: str = "cpu", dtype: str = "float32") -> Kernels:
    """Return the kernels of a library.

    Raises:
        ValueError: It is not installed, or does not support the device or the dtype.
    """
    if backend == "auto":
        backend = "torch" if sys.modules.get("torch") is not None else "numpy"
    if backend == "torch":
        return TorchKernels(device, dtype)
    if backend != "numpy":
        raise ValueError(f"the machine is measured with 'torch' or 'numpy', not {backend!r}")
    if device != "cpu":
        raise ValueError(f"NumPy computes on the processor, not on {device!r}")
    return NumpyKernels(dtype)


class TorchKernels:
    """PyTorch, on any of its devices."""

    name = "torch"

    def __init__(self, device: str, dtype: str) -> None:
        try:
            self._torch = torch = import_module("torch")
        except (ImportError, OSError) as error:
            raise ValueError(f"PyTorch is not installed or does not load: {error}") from None
        self._dtype: Any = getattr(torch, dtype.removeprefix("torch."), None)
        if not isinstance(self._dtype, torch.dtype) or not self._dtype.is_floating_point:
            raise ValueError(f"no floating-point dtype {dtype!r}")
        try:
            self._device = torch.device(device)
            torch.empty(1, device=self._device)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"no device {device!r}: {str(error).splitlines()[0]}") from None

    @contextmanager
    def threads(self, count: int | None) -> Iterator[int]:
        before = self._torch.get_num_threads()
        try:
            if count is not None:
                self._torch.set_num_threads(count)
            yield int(self._torch.get_num_threads())
        finally:
            self._torch.set_num_threads(before)

    def matmul(self, side: int) -> Run:
        left, right, out = (self._ones(side, side) for _ in range(3))
        return self._waited(lambda: self._torch.mm(left, right, out=out))

    def streams(self, size_bytes: int) -> tuple[Stream, ...]:
        torch = self._torch
        one, two, out = (self._ones(size_bytes // self._dtype.itemsize) for _ in range(3))
        array_bytes = one.numel() * one.element_size()
        return (
            Stream("copy", self._waited(lambda: out.copy_(one)), 2 * array_bytes),
            Stream(
                "triad",
                self._waited(lambda: torch.add(one, two, alpha=0.5, out=out)),
                3 * array_bytes,
            ),
        )

    def _ones(self, *shape: int) -> Any:
        return self._torch.ones(shape, dtype=self._dtype, device=self._device)

    def _waited(self, work: Callable[[], Any]) -> Run:
        """Return a kernel that waits for an asynchronous device."""
        torch, device = self._torch, self._device

        def run() -> None:
            with torch.no_grad():
                work()
            if device.type == "cuda":
                torch.cuda.synchronize(device)

        return run


class NumpyKernels:
    """NumPy. Its matrix product has threads of its own; streams use ours."""

    name = "numpy"

    def __init__(self, dtype: str) -> None:
        if dtype not in ("float32", "float64"):
            raise ValueError(f"NumPy computes fast with float32 and float64, not with {dtype!r}")
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._pool: ThreadPoolExecutor | None = None
        self._count = 1

    @contextmanager
    def threads(self, count: int | None) -> Iterator[int]:
        self._count = count or _usable()
        with ThreadPoolExecutor(self._count) as self._pool:
            # The threads of the matrix product are fixed when NumPy is loaded.
            yield _usable()
        self._pool = None

    def matmul(self, side: int) -> Run:
        left, right, out = (np.ones((side, side), self._dtype) for _ in range(3))

        def run() -> None:
            np.matmul(left, right, out=out)

        return run

    def streams(self, size_bytes: int) -> tuple[Stream, ...]:
        size = size_bytes // self._dtype.itemsize
        one, two, out = (np.ones(size, self._dtype) for _ in range(3))

        def copy(piece: slice) -> None:
            np.copyto(out[piece], one[piece])

        def triad(piece: slice) -> None:
            np.multiply(two[piece], self._dtype.type(0.5), out=out[piece])
            np.add(out[piece], one[piece], out=out[piece])

        return (
            Stream("copy", self._shared(copy, size), 2 * one.nbytes),
            # In two passes, which move five arrays instead of three.
            Stream("triad", self._shared(triad, size), 5 * one.nbytes),
        )

    def _shared(self, part: Callable[[slice], None], size: int) -> Run:
        """Return a kernel whose pieces run in parallel threads."""
        step = -(-size // self._count)
        pieces = [slice(start, min(start + step, size)) for start in range(0, size, step)]

        def run() -> None:
            if self._pool is None or len(pieces) == 1:
                for piece in pieces:
                    part(piece)
                return
            # NumPy releases the GIL while it moves numbers.
            for _ in self._pool.map(part, pieces):
                pass

        return run


def _usable() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
