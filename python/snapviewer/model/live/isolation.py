"""Runs that leave nothing behind: copies of modules, and settings restored afterwards."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def copy_module(module: Any, way: str, fake_mode: Any) -> Any:
    """Return a copy of a module for one run.

    Its tensors have no storage on the meta device, and are fake with a fake mode. For a real run it
    shares the parameters, and has buffers of its own, into which models write. A module that cannot
    be copied is returned itself.
    """
    if way == "meta":
        return _on_meta(module)
    memo: dict[int, Any] = {}
    for tensor in (*module.parameters(), *(module.buffers() if fake_mode else ())):
        # A run sets the shapes of lazy parameters, which must not happen to the module itself.
        if not is_lazy(tensor):
            memo[id(tensor)] = _faked(tensor, fake_mode) if fake_mode else tensor
    try:
        return copy.deepcopy(module, memo)
    except Exception:  # noqa: BLE001 (locks, files, tensors of a graph: each raises its own)
        return module


def _faked(tensor: Any, fake_mode: Any) -> Any:
    import torch

    if tensor.device.type != "meta":
        return fake_mode.from_tensor(tensor)
    # On the processor, like the tensors that the model creates.
    with fake_mode:
        empty = torch.empty_like(tensor, device="cpu")
        return torch.nn.Parameter(empty) if isinstance(tensor, torch.nn.Parameter) else empty


def _on_meta(module: Any) -> Any:
    import torch

    memo: dict[int, Any] = {}
    for tensor in (*module.parameters(), *module.buffers()):
        if is_lazy(tensor):
            continue
        empty = torch.empty_like(tensor, device="meta")
        if isinstance(tensor, torch.nn.Parameter):
            empty = torch.nn.Parameter(empty, requires_grad=tensor.requires_grad)
        memo[id(tensor)] = empty
    twin = copy.deepcopy(module, memo)
    for part in twin.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor):
                # A tensor that is neither a parameter nor a buffer.
                setattr(part, name, value.to("meta"))
    return twin


def is_lazy(tensor: Any) -> bool:
    """Return whether a parameter or buffer gets its shape in the first run."""
    from torch.nn import parameter

    kinds = (parameter.UninitializedParameter, parameter.UninitializedBuffer)
    return isinstance(tensor, kinds)


@contextmanager
def restored_buffers(module: Any) -> Iterator[None]:
    """Restore the buffers of a module that runs itself."""
    import torch

    kept = [(buffer, buffer.clone()) for buffer in module.buffers() if not is_lazy(buffer)]
    try:
        yield
    finally:
        for buffer, before in kept:
            if buffer.device.type != "meta" and not torch.equal(buffer, before):
                with torch.no_grad():
                    buffer.copy_(before)


@contextmanager
def eval_mode(module: Any) -> Iterator[None]:
    """Put a module into eval mode, and restore the mode of every part afterwards."""
    # A frozen ScriptModule has no mode.
    were_training = [
        (part, part.training) for part in module.modules() if hasattr(part, "training")
    ]
    try:
        module.eval()
    except (AttributeError, NotImplementedError):
        # Exported programs and frozen modules cannot change their mode.
        were_training = []
    try:
        yield
    finally:
        for part, was_training in were_training:
            part.training = was_training


@contextmanager
def restored_torch_settings() -> Iterator[None]:
    """Restore the default dtype, the number of threads and whether gradients are on."""
    import torch

    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    has_gradients = torch.is_grad_enabled()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(has_gradients)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
