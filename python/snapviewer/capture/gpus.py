"""GPUs as data: the ones in `gpus.toml`, or a file of the user's."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MAX_FILE_BYTES = 1 << 20


class UnknownGpuError(Exception):
    """There is no such GPU, or its file is wrong; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as a prediction needs it."""

    key: str
    name: str
    memory_bytes: int
    context_bytes: int
    capability: str
    multiprocessors: int
    l2_bytes: int
    shared_bytes: int
    origin: str

    @property
    def usable_bytes(self) -> int:
        """What PyTorch can reserve: the memory less CUDA's context."""
        return max(0, self.memory_bytes - self.context_bytes)

    def with_capacity(self, usable_bytes: int) -> Gpu:
        """Return the same GPU with another amount of usable memory."""
        return replace(self, memory_bytes=usable_bytes + self.context_bytes)


def known_gpus() -> dict[str, Gpu]:
    """Return the GPUs of `gpus.toml` by their keys."""
    document = tomllib.loads(files(__package__).joinpath("gpus.toml").read_text("utf-8"))
    defaults = document.pop("defaults")
    return {key: _gpu(key, defaults | table) for key, table in document.items()}


def find_gpu(name: str) -> Gpu:
    """Return a GPU by its key (`h100-80gb`, or `h100` if only one begins so) or its file.

    Raises:
        UnknownGpuError: There is none.
    """
    if name.endswith(".toml"):
        return _read_gpu(Path(name))
    known = known_gpus()
    wanted = name.lower().replace("_", "-").replace(" ", "")
    matching = [key for key in known if key == wanted or key.startswith(f"{wanted}-")]
    if wanted in known or len(matching) == 1:
        return known[wanted if wanted in known else matching[0]]
    if matching:
        raise UnknownGpuError(f"{name} has several sizes: {', '.join(matching)}")
    near = get_close_matches(wanted, known, n=1)
    advice = f"did you mean {near[0]}? " if near else ""
    raise UnknownGpuError(f"unknown GPU: {name}; {advice}known ones: {', '.join(known)}")


def _read_gpu(path: Path) -> Gpu:
    with path.open("rb") as file:
        content = file.read(_MAX_FILE_BYTES + 1)
    try:
        if len(content) > _MAX_FILE_BYTES:
            raise ValueError("it is too large")
        table: Any = tomllib.loads(content.decode("utf-8"))
        if "memory_bytes" not in table and len(table) == 1:
            (table,) = table.values()  # `[my-gpu]`
        if not isinstance(table, dict):
            raise ValueError("it has no table")
        return _gpu(path.stem, {"context_bytes": 0, "origin": path.name} | table)
    except ValueError as error:  # what TOML and UTF-8 raise, too
        raise UnknownGpuError(f"{path} does not describe a GPU: {error}") from None


def _gpu(key: str, table: dict[str, Any]) -> Gpu:
    """Check a table; the optional numbers are those of an A100."""
    usual = {
        "name": key,
        "capability": "8.0",
        "multiprocessors": 108,
        "l2_bytes": 41_943_040,
        "shared_bytes": 167_936,
    }
    known = {*Gpu.__dataclass_fields__} - {"key"}
    if unknown := sorted(table.keys() - known):
        raise ValueError(f"unknown key {unknown[0]}")
    values: dict[str, Any] = usual | table
    if missing := sorted(known - values.keys()):
        raise ValueError(f"{missing[0]} is missing")
    texts = {"name", "capability", "origin"}
    for field in texts:
        if not isinstance(values[field], str):
            raise ValueError(f"{field} must be a text")
    for field in known - texts:
        number = values[field]
        if isinstance(number, bool) or not isinstance(number, int):
            raise ValueError(f"{field} must be a whole number")
        if not 0 <= number < 1 << 42:
            raise ValueError(f"{field} is out of range")
    major, dot, minor = values["capability"].partition(".")
    if not (dot and major.isdecimal() and minor.isdecimal() and len(minor) == 1):
        raise ValueError('capability must be a text such as "8.0"')
    return Gpu(key=key, **values)
