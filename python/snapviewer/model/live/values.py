"""What torch passes between operations, as plain values."""

from __future__ import annotations

from typing import Any

from snapviewer.model.graph import TensorSpec, Unknown, Value

_DEEPEST = 20


def value_of(value: Any, depth: int = 0) -> Value:
    """Return a tensor as its shape and type, and other values as they are.

    >>> value_of([1, None, "sum"])
    (1, None, 'sum')
    """
    import torch

    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, torch.Tensor):
        return _spec_of(value)
    if depth >= _DEEPEST:
        return Unknown("it is nested too deep")
    if isinstance(value, dict):
        return tuple(value_of(item, depth + 1) for item in value.values())
    if isinstance(value, tuple | list):
        return tuple(value_of(item, depth + 1) for item in value)
    if isinstance(value, torch.dtype | torch.device | torch.layout | torch.memory_format):
        return str(value).removeprefix("torch.")
    if isinstance(value, torch.ScriptObject):
        return _unpacked(value, depth)
    return Unknown(f"a value of the type {type(value).__name__}")


def _spec_of(tensor: Any) -> TensorSpec | Unknown:
    if tensor.is_nested:
        return Unknown("a nested tensor has rows of several lengths")
    if str(tensor.layout).startswith("torch.sparse"):
        return Unknown("a sparse tensor leaves out elements that are zero")
    shape = tuple(int(size) for size in tensor.shape)
    return TensorSpec(shape, str(tensor.dtype).removeprefix("torch."))


def _unpacked(packed: Any, depth: int) -> Value:
    """Return the tensors inside the packed parameters of quantized layers."""
    from torch.utils._python_dispatch import _disable_current_modes

    try:
        # Unpacking is an operation too, which fake tensors do not know.
        with _disable_current_modes():
            state = packed.__getstate__()
    except Exception:  # noqa: BLE001 (classes of other libraries need not have a state)
        return Unknown("packed parameters that do not say what is in them")
    return value_of(state, depth + 1) if isinstance(state, tuple | list) else Unknown("packed")
