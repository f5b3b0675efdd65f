"""The inputs and outputs of modules as plain data.

Nothing here calls an operation of torch or keeps a tensor. Tensors without a readable shape
(nested, lazy, custom subclasses) are left out.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from snapviewer.explorer.timing import TensorShape
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

_MAX_TENSORS = 64
_MAX_ITEMS = 256  # of a list, which may have a million
_MAX_DEPTH = 6

Named = tuple[str, Any]
"""A tensor and its path in the arguments or the output."""

TensorRecord = tuple[str, Any, Any, Any, int]
"""A described tensor: its path, shape, dtype, device, and size in bytes."""


# Cached by function: a signature takes longer than the rest of a call.
_names: WeakKeyDictionary[Any, tuple[str, ...]] = WeakKeyDictionary()


def argument_names(module: Any) -> tuple[str, ...]:
    """Return the names of the positional arguments of `forward`; the last may be `*rest`."""
    forward = inspect.getattr_static(type(module), "forward", None)
    try:
        if "forward" in module.__dict__ or not isinstance(forward, FunctionType):
            return _names_of(module.forward)
        names = _names.get(forward)
        if names is None:
            names = _names[forward] = _names_of(forward)[1:]
    except Exception:  # noqa: BLE001 (scripted and C functions raise anything)
        return ()
    return names


def _names_of(function: Any) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [one.name for one in parameters if one.kind in kinds]
    rest = [f"*{one.name}" for one in parameters if one.kind is inspect.Parameter.VAR_POSITIONAL]
    return (*names, *rest)


def inputs_of(names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Named]:
    """Return the tensors among arguments."""
    found: list[Named] = []
    for place, value in enumerate(args):
        _look(_name_at(names, place), value, found, 0)
    for name, value in kwargs.items():
        _look(name, value, found, 0)
    return found


def outputs_of(result: Any) -> list[Named]:
    """Return the tensors in a module's result."""
    found: list[Named] = []
    _look("output", result, found, 0)
    return found


def tensor_records(tensors: Sequence[Named]) -> list[TensorRecord]:
    """Describe tensors; the rest is done later by `shapes_of`."""
    seen: list[TensorRecord] = []
    for name, tensor in tensors:
        try:
            size_bytes = tensor.numel() * tensor.element_size()
            seen.append((name, tensor.shape, tensor.dtype, tensor.device, size_bytes))
        except Exception:  # noqa: BLE001 (nested and lazy tensors have no shape)
            continue
    return seen


def shapes_of(seen: Sequence[TensorRecord]) -> tuple[TensorShape, ...]:
    """Turn records into plain data."""
    return tuple(
        TensorShape(
            sanitize(name, MAX_NAME_CHARS),
            tuple(map(int, shape)),
            str(dtype).removeprefix("torch."),
            str(device),
            int(size_bytes),
        )
        for name, shape, dtype, device, size_bytes in seen
    )


def storage_of(tensor: Any) -> tuple[int, int] | None:
    """Return the identity of a tensor's storage, and its size in bytes."""
    try:
        storage = tensor.untyped_storage()
        return int(storage._cdata), int(storage.nbytes())  # noqa: SLF001 (also of meta tensors)
    except Exception:  # noqa: BLE001 (sparse and wrapped tensors have none)
        return None


def _look(name: str, value: Any, found: list[Named], depth: int) -> None:
    if isinstance(value, _tensor_type()):
        if len(found) < _MAX_TENSORS:
            found.append((name, value))
    elif value is None or isinstance(value, bool | int | float | str | bytes):
        return
    elif depth < _MAX_DEPTH and len(found) < _MAX_TENSORS:
        # Before mappings: outputs of transformers are both, and people use the attributes.
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            for field in dataclasses.fields(value):
                _look(f"{name}.{field.name}", getattr(value, field.name, None), found, depth + 1)
        elif isinstance(value, Mapping):
            for key, item in islice(value.items(), _MAX_ITEMS):
                _look(f"{name}[{_said(key)}]", item, found, depth + 1)
        elif isinstance(value, tuple | list):
            fields = getattr(value, "_fields", None)
            for place, item in enumerate(value[:_MAX_ITEMS]):
                way = f"{name}[{place}]" if fields is None else f"{name}.{fields[place]}"
                _look(way, item, found, depth + 1)


def _name_at(names: Sequence[str], place: int) -> str:
    if place < len(names) and not names[place].startswith("*"):
        return names[place]
    if names and names[-1].startswith("*"):
        return f"{names[-1][1:]}[{place - len(names) + 1}]"
    return f"[{place}]"


def _said(key: object) -> str:
    text = sanitize(str(key), MAX_NAME_CHARS)
    return repr(text) if isinstance(key, str) else text


@cache
def _tensor_type() -> Any:
    import torch

    return torch.Tensor
