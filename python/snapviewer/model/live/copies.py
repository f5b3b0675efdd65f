"""Copies of modules that share the weights, so that a run leaves nothing behind."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def copied(module: Any, way: str) -> Any:
    """Return a copy of a module for one run.

    On the meta device its tensors have no storage. Else its parameters are those of the module,
    and so are its buffers if the tensors of the run are fake; a real run may write into them.
    A module that cannot be copied runs itself, where it has to be for real anyway.
    """
    if way == "meta":
        return _on_meta(module)
    memo: dict[int, Any] = {}
    for tensor in module.parameters():
        # What has no shape yet gets one by running, which must not happen to the module itself.
        if not _is_lazy(tensor):
            memo[id(tensor)] = tensor
    if way == "fake":
        memo.update((id(tensor), tensor) for tensor in module.buffers() if not _is_lazy(tensor))
    try:
        return copy.deepcopy(module, memo)
    except Exception:  # noqa: BLE001 (locks, files, tensors of a graph: each raises its own)
        return module


def _on_meta(module: Any) -> Any:
    import torch

    memo: dict[int, Any] = {}
    for tensor in (*module.parameters(), *module.buffers()):
        if _is_lazy(tensor):
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


def _is_lazy(tensor: Any) -> bool:
    from torch.nn.parameter import is_lazy

    return bool(is_lazy(tensor))


@contextmanager
def in_eval_mode(module: Any) -> Iterator[None]:
    """Put a module into eval mode, and every part of it back as it was."""
    were_training = [(part, part.training) for part in module.modules()]
    try:
        module.eval()
    except NotImplementedError:
        # An exported program has one mode, the one it was exported in.
        were_training = []
    try:
        yield
    finally:
        for part, was_training in were_training:
            part.training = was_training
