"""The inputs of a module: tensors or their specs, converted for the way in which it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from snapviewer import SnapshotError
from snapviewer.model.graph import TensorSpec


@dataclass(frozen=True, slots=True)
class Inputs:
    """The arguments of a call."""

    positional: tuple[Any, ...]
    named: dict[str, Any]


def call_inputs(inputs: Any, keywords: Mapping[str, Any] | None) -> Inputs:
    """Sort the inputs of a user into positional and keyword arguments.

    >>> call_inputs({"ids": 1}, {"mask": 2}).named
    {'ids': 1, 'mask': 2}
    """
    named = dict(keywords or {})
    if isinstance(inputs, Mapping):
        return Inputs((), {**{str(name): value for name, value in inputs.items()}, **named})
    if isinstance(inputs, tuple | list):
        return Inputs(tuple(inputs), named)
    return Inputs((inputs,), named)


def inputs_for(inputs: Inputs, way: str, fake_mode: Any, module: Any) -> Inputs:
    """Return the inputs as tensors of the kind that a way needs.

    Args:
        inputs: The inputs of the user; their tensors are not changed.
        way: "meta", "fake" or "cpu".
        fake_mode: The mode that fake tensors belong to, for that way.
        module: The module to call, on whose device they go.
    """
    import torch

    device = "meta" if way == "meta" else _device_of(module)

    def made(value: Any) -> Any:
        if isinstance(value, TensorSpec):
            value = _tensor_like(value, has_numbers=way == "cpu")
        elif not isinstance(value, torch.Tensor):
            return value
        if way == "meta":
            return value.to("meta")
        if fake_mode is not None:
            with fake_mode:
                return torch.empty_like(value, device=device)
        return value.detach().clone().to(device)

    return Inputs(
        tuple(_mapped(value, made) for value in inputs.positional),
        {name: _mapped(value, made) for name, value in inputs.named.items()},
    )


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a function to the values inside nested lists, tuples and dicts."""
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(item, change) for item in value))
    if isinstance(value, tuple):
        return tuple(_mapped(item, change) for item in value)
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return change(value)


def _tensor_like(spec: TensorSpec, *, has_numbers: bool) -> Any:
    """Make a tensor, with the same numbers each time, or on the meta device without any."""
    import torch

    if any(size is None for size in spec.shape):
        raise SnapshotError("an input needs all of its sizes to run a model")
    dtype = getattr(torch, spec.dtype or "float32", None)
    if not isinstance(dtype, torch.dtype):
        raise SnapshotError(f"{spec.dtype!r} is not a dtype of torch")
    shape = [int(size) for size in spec.shape if size is not None]
    if not has_numbers:
        return torch.empty(shape, dtype=dtype, device="meta")
    if dtype.is_floating_point or dtype.is_complex:
        generator = torch.Generator().manual_seed(0)
        return torch.randn(shape, generator=generator, device="cpu").to(dtype)
    # Zeros are valid as indices, classes and masks.
    return torch.zeros(shape, dtype=dtype, device="cpu")


def _device_of(module: Any) -> Any:
    """Return the device of a module's first parameter or buffer that has storage."""
    for tensors in (module.parameters(), module.buffers()):
        for tensor in tensors:
            if tensor.device.type != "meta":
                return tensor.device
    return "cpu"
