"""Listening to a run: each operation with its shapes, and the module that runs it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from snapviewer.model.graph import Node, TensorSpec, Unknown
from snapviewer.model.live.values import value_of
from snapviewer.model.work import kind_of
from snapviewer.model.work.sizes import flatten


@contextmanager
def recording(module: Any) -> Iterator[list[Node]]:
    """Listen while a module runs; the list fills with the operations of this thread.

    The hooks that tell which module runs are torch's global ones: none is put on any module.
    """
    from torch.nn.modules.module import (
        register_module_forward_hook,
        register_module_forward_pre_hook,
    )

    paths = {id(part): (name, _type_of(part)) for name, part in module.named_modules()}
    thread = threading.get_ident()
    open_modules = [("", _type_of(module))]
    nodes: list[Node] = []

    def is_ours(part: Any) -> bool:
        return id(part) in paths and threading.get_ident() == thread

    def enter(part: Any, _: Any) -> None:
        if is_ours(part):
            open_modules.append(paths[id(part)])

    def leave(part: Any, *_: Any) -> None:
        if is_ours(part):
            open_modules.pop()

    handles = [
        register_module_forward_pre_hook(enter),
        register_module_forward_hook(leave, always_call=True),
    ]
    try:
        with _mode(nodes, open_modules, _names_of(module)):
            yield nodes
    finally:
        for handle in handles:
            handle.remove()


def _type_of(module: Any) -> str:
    return str(getattr(module, "original_name", type(module).__name__))


def _names_of(module: Any) -> dict[int, str]:
    """Return the first name of each parameter and buffer: tied ones have one."""
    named = [*module.named_parameters(), *module.named_buffers()]
    return {id(tensor): name for name, tensor in named}


def _mode(nodes: list[Node], open_modules: list[tuple[str, str]], names: dict[int, str]) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Listener(TorchDispatchMode):  # type: ignore[misc] # its base is torch's
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            # Before the call: an operation in place may give its argument another shape.
            arguments = tuple(value_of(value) for value in args)
            keywords = tuple((str(name), value_of(value)) for name, value in kwargs.items())
            parameters = _parameters(names, (*args, *kwargs.values()))
            result = function(*args, **kwargs)
            outputs = result if isinstance(result, tuple | list) else (result,)
            values = tuple(value_of(value) for value in outputs)
            op = _op_of(function)
            if kind_of(op) != "Bookkeeping" or _has_tensors(values):
                path, kind = open_modules[-1]
                node = Node(len(nodes), op, path, kind, arguments, keywords, values, parameters)
                nodes.append(node)
            return result

    return Listener()


def _op_of(function: Any) -> str:
    schema = getattr(function, "_schema", None)
    return str(schema.name) if schema is not None else f"higher_order::{function}"


def _has_tensors(values: tuple[Any, ...]) -> bool:
    return any(isinstance(value, TensorSpec | Unknown) for value in flatten(values))


def _parameters(names: dict[int, str], values: Any) -> tuple[str, ...]:
    """Return the names of the parameters among arguments and inside lists of them."""
    found: list[str] = []
    for value in values:
        if isinstance(value, tuple | list):
            found.extend(_parameters(names, value))
        elif id(value) in names:
            found.append(names[id(value)])
    return tuple(found)
