"""The generated library, loaded by the system's own loader."""

from __future__ import annotations

import ctypes
import platform
import sys
from pathlib import Path

import pytest

from snapviewer.capture.elf import driver_names, read_symbols
from snapviewer.capture.stub_library import COUNTS, MACHINES, stub_library

NAMES = ["cublasDoNothing", "cusparseCreateThing", *(f"cudnnFunction{i}" for i in range(500))]
is_native = sys.platform == "linux" and platform.machine() in MACHINES


def library(path: Path, machine: str) -> Path:
    path.write_bytes(stub_library(NAMES, machine=machine, soname="libx.so", needed="libc.so.6"))
    return path


@pytest.mark.skipif(not is_native, reason="needs the loader of Linux")
def test_functions_return_zero_and_count_their_calls(tmp_path: Path) -> None:
    loaded = ctypes.CDLL(str(library(tmp_path / "x.so", platform.machine())))
    handle = ctypes.c_void_p()

    assert [loaded.cudnnFunction7(1, 2, 3), loaded.cudnnFunction7()] == [0, 0]
    assert loaded.cusparseCreateThing(ctypes.byref(handle)) == 0

    counts = (ctypes.c_uint64 * len(NAMES)).in_dll(loaded, COUNTS)
    assert handle.value
    assert {name: count for name, count in zip(NAMES, counts, strict=True) if count} == {
        "cudnnFunction7": 2,
        "cusparseCreateThing": 1,
    }


@pytest.mark.skipif(not is_native, reason="needs the loader of Linux")
def test_symbols_of_a_real_library_are_read() -> None:
    import _ctypes

    symbols = read_symbols(Path(_ctypes.__file__))

    assert "PyInit__ctypes" in symbols.exported
    assert "PyLong_FromLong" in symbols.imported


def test_names_of_driver_functions_are_found_among_strings(tmp_path: Path) -> None:
    (tmp_path / "x.so").write_bytes(b"\x7fELF\x02\x01\0cuMemMap\0cute\0nvmlInit_v2\0xcuInit\0")

    assert driver_names(tmp_path / "x.so") == {"cuMemMap", "nvmlInit_v2"}


@pytest.mark.parametrize("content", [b"", b"text", b"\x7fELF\x02\x01".ljust(80, b"\xff")])
def test_what_is_no_library_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.so").write_bytes(content)

    with pytest.raises(ValueError, match="shared library"):
        read_symbols(tmp_path / "x.so")
