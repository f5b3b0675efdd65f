"""The null device, made ready for the installed PyTorch: two libraries to preload.

One is ours, compiled with the core. The other is generated: every function that PyTorch's libraries
import from NVIDIA's, or look up by name, and that ours does not define.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from snapviewer import _core
from snapviewer._lazy import TYPE_CHECKING
from snapviewer.files.atomic_write import atomic_write
from snapviewer.files.directories import cache_directory

from .elf import driver_names, read_symbols
from .stub_library import stub_library

if TYPE_CHECKING:
    from .gpus import Gpu

# Families of functions that are replaced. NCCL, NVRTC, CUPTI and the rest stay NVIDIA's own.
_REPLACED = re.compile(
    r"^(__cuda|cuda[A-Z]|cu[A-Z](?!ile)|cublas|cudnn|cusparse|cusolver|cufft|curand|nvml)"
)
# Functions that only describe, which the real library answers without a device.
_LEFT = re.compile(
    r"^cudnn(Create|Set|Get|Destroy)(?!RNN|Dropout)\w*Descriptor"
    r"|^cudnn(Create|Destroy)DropoutDescriptor"
    r"|^cudnnGet(Version|CudartVersion|Property)$"
    r"|Get\w*(String|Name)$"
)
# Packages whose libraries are looked through, if they are installed.
_PACKAGES = ("torch", "torchvision", "torchaudio")
_DRIVER, _NVML = "libcuda.so.1", "libnvidia-ml.so.1"


class NoNullDeviceError(Exception):
    """The null device cannot be used here; the message is one sentence, with what to do."""


@dataclass(frozen=True, slots=True)
class NullDevice:
    """Libraries to preload, and what they stand for."""

    libraries: tuple[Path, ...]
    stubs: tuple[str, ...]  # the generated functions, in the order of their counters
    torch_version: str
    cuda_version: str

    def environment(
        self, gpu: Gpu, *, devices: int = 1, workspace_bytes: int = 0
    ) -> dict[str, str]:
        """Return the variables with which a process finds this GPU."""
        major, minor = (int(part) for part in self.cuda_version.split(".")[:2])
        declared = {
            "name": gpu.name,
            "total_bytes": gpu.memory_bytes,
            "context_bytes": gpu.context_bytes,
            "capability": gpu.capability.replace(".", ""),
            "multiprocessors": gpu.multiprocessors,
            "l2_bytes": gpu.l2_bytes,
            "shared_bytes": gpu.shared_bytes,
            "devices": devices,
            "cuda_version": major * 1000 + minor * 10,
            "cudnn_workspace_bytes": workspace_bytes,
        }
        preload = [*map(str, self.libraries), *os.environ.get("LD_PRELOAD", "").split()]
        return {
            "LD_PRELOAD": ":".join(preload),
            "SNAPVIEWER_NULL_DEVICE": "\n".join(
                f"{key}={value}" for key, value in declared.items()
            ),
            # Convolutions by cuDNN's older interface, which only needs sizes.
            "TORCH_CUDNN_V8_API_DISABLED": "1",
            # Triton links its launcher to the driver's library, which it looks for by name.
            "TRITON_LIBCUDA_PATH": str(_driver_directory(self.libraries[0])),
            # What a real GPU's machine may have set would hide ours.
            "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(devices))),
        }


def prepare() -> NullDevice:
    """Write the libraries for the installed PyTorch into the cache, unless they are there.

    Raises:
        NoNullDeviceError: It cannot be used here.
    """
    library = _core.null_device()
    if library is None:
        raise NoNullDeviceError(
            "predictions need Linux on x86-64 or aarch64: run this there, or `snapviewer record` "
            "where the GPU is"
        )
    torch_version, cuda_version = _torch_versions()
    ours = _place(library, "null_device")
    stubs = _missing(read_symbols(ours).exported)
    generated = stub_library(stubs, machine=platform.machine(), soname=_NVML, needed=_DRIVER)
    return NullDevice((ours, _place(generated, "stubs")), stubs, torch_version, cuda_version)


def _torch_versions() -> tuple[str, str]:
    """Return the versions of PyTorch and of its CUDA, without importing it."""
    root = _package("torch")
    if root is None:
        raise NoNullDeviceError(
            "PyTorch is not installed: install a CUDA build of it, which needs no GPU"
        )
    try:
        text = (root / "version.py").read_text("utf-8")
    except OSError:
        text = ""
    version = re.search(r"^__version__\s*=\s*'([^'\n]+)'", text, re.MULTILINE)
    cuda = re.search(r"^cuda(?:\s*:[^=\n]+)?\s*=\s*'(\d+\.\d+)'", text, re.MULTILINE)
    if not version or not cuda:
        raise NoNullDeviceError(
            "the installed PyTorch has no CUDA: install a CUDA build of it, which needs no GPU"
        )
    if int(cuda[1].split(".")[0]) not in (12, 13):
        raise NoNullDeviceError(f"PyTorch for CUDA {cuda[1]} is not supported, only 12 and 13")
    return version[1], cuda[1]


def _package(name: str) -> Path | None:
    with suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations:
            return Path(next(iter(spec.submodule_search_locations)))
    return None


def _missing(defined: frozenset[str]) -> tuple[str, ...]:
    """Return the functions that PyTorch wants and our library does not define."""
    wanted: set[str] = set()
    for root in filter(None, map(_package, _PACKAGES)):
        for path in sorted([*root.glob("*.so"), *root.glob("lib/*.so")]):
            with suppress(ValueError):
                wanted |= {name for name in read_symbols(path).imported if _REPLACED.match(name)}
            if path.name == "libc10_cuda.so":
                wanted |= driver_names(path)
    return tuple(sorted(name for name in wanted - defined if not _LEFT.search(name)))


def _driver_directory(library: Path) -> Path:
    """Return a directory in which our library has the name of the driver's."""
    directory = library.with_suffix(".driver")
    directory.mkdir(exist_ok=True)
    for name in (_DRIVER, "libcuda.so"):
        with suppress(FileExistsError):
            (directory / name).symlink_to(library)
    return directory


def _place(library: bytes, name: str) -> Path:
    """Write a library into the cache under a name of its content, unless it is there."""
    digest = hashlib.sha256(library).hexdigest()
    path = cache_directory() / "null_device" / f"{name}-{digest[:16]}.so"
    with suppress(OSError):
        if path.read_bytes() == library:
            return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(library)
    return path
