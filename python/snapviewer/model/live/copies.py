"""Copies of modules that share the weights, so that a run leaves nothing behind."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def copied(module: Any, way: str, fake_mode: Any) -> Any:
    """Return a copy of a module for one run.

    Its tensors have no storage on the meta device, and are fake ones of a fake mode. For a real
    run it shares the parameters, and has buffers of its own, into which models write. A module
    that cannot be copied runs itself.
    """
    if way == "meta":
        return _on_meta(module)
    memo: dict[int, Any] = {}
    for tensor in (*module.parameters(), *(module.buffers() if fake_mode else ())):
        # What has no shape yet gets one by running, which must not happen to the module itself.
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
    # On a processor it meets the tensors that the model makes by itself.
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
                # A tensor that is neither parameter nor buffer; buffers are in a dict of theirs.
                setattr(part, name, value.to("meta"))
    return twin


def is_lazy(tensor: Any) -> bool:
    """Tell whether a parameter or buffer gets its shape from the first run."""
    from torch.nn import parameter

    kinds = (parameter.UninitializedParameter, parameter.UninitializedBuffer)
    return isinstance(tensor, kinds)


@contextmanager
def buffers_kept(module: Any) -> Iterator[None]:
    """Put the buffers of a module back as they were, for one that runs itself."""
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
def in_eval_mode(module: Any) -> Iterator[None]:
    """Put a module into eval mode, and every part of it back as it was."""
    # A frozen ScriptModule has lost its mode.
    were_training = [
        (part, part.training) for part in module.modules() if hasattr(part, "training")
    ]
    try:
        module.eval()
    except (AttributeError, NotImplementedError):
        # An exported program and a frozen module have one mode, the one they were made in.
        were_training = []
    try:
        yield
    finally:
        for part, was_training in were_training:
            part.training = was_training
