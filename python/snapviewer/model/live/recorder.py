"""Records the operations of a run with a dispatch mode: shapes, and the module that runs each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from snapviewer.model.graph import Node, TensorSpec, Unknown, Value
from snapviewer.model.shapes import outputs_of
from snapviewer.model.work import kind_of
from snapviewer.model.work.sizes import flatten

_MAX_DEPTH = 20


@contextmanager
def recording(module: Any, dependent: dict[str, None] | None = None) -> Iterator[list[Node]]:
    """Record while a module runs; the list fills with the operations of this thread.

    The hooks that show which module runs are torch's global ones: none is put on a module.

    Args:
        module: The module that will run.
        dependent: Gets the names of operations whose sizes or results depend on values of tensors.
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
        with _mode(nodes, {} if dependent is None else dependent, open_modules, _names_of(module)):
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


def _mode(
    nodes: list[Node],
    dependent: dict[str, None],
    open_modules: list[tuple[str, str]],
    names: dict[int, str],
) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class RecordingMode(TorchDispatchMode):  # type: ignore[misc] # its base is torch's
        supports_higher_order_operators = True

        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            # Before the call: an in-place operation may change the shape of its argument.
            arguments = tuple(value_of(value) for value in args)
            keywords = tuple((str(name), value_of(value)) for name, value in kwargs.items())
            parameters = _parameters(names, (*args, *kwargs.values()))
            op = _op_of(function)
            if op in _BLOCKS:
                _check_block(op, args)
                if op in _DECIDING:
                    dependent[op] = None
                return function(*(_recorded(value, self) for value in args), **kwargs)
            try:
                result = function(*args, **kwargs)
            except RuntimeError:
                result = _stand_in(op, args, kwargs, (arguments, keywords))
            # The value of a parameter or buffer is the same in every run.
            is_own = op in ("aten::item", "aten::_local_scalar_dense") and bool(parameters)
            if not is_own and _depends_on_values(function, arguments):
                dependent[op] = None
            outputs = result if isinstance(result, tuple | list) else (result,)
            values = tuple(value_of(value) for value in outputs)
            if kind_of(op) != "Bookkeeping" or _has_tensors(values):
                path, kind = open_modules[-1]
                node = Node(len(nodes), op, path, kind, arguments, keywords, values, parameters)
                nodes.append(node)
            return result

    return RecordingMode()


def _op_of(function: Any) -> str:
    schema = getattr(function, "_schema", None)
    return str(schema.name) if schema is not None else f"higher_order::{function}"


# Operations that run code of the model, whose own operations are recorded.
_DECIDING = ("higher_order::cond", "higher_order::while_loop")
_BLOCKS = (
    *_DECIDING,
    *(f"higher_order::{name}" for name in ("map_impl", "map", "scan", "wrap", "invoke_subgraph")),
    *(f"higher_order::{name}" for name in ("strict_mode", "hints_wrapper", "associative_scan")),
    *(f"higher_order::{name}" for name in ("tag_activation_checkpoint", "checkpoint")),
)


def _check_block(op: str, args: Any) -> None:
    """Raise an error if a block would not run as often as it does with real values."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    tensors = [value for value in _leaves(args) if isinstance(value, torch.Tensor)]
    is_fake = any(isinstance(tensor, FakeTensor) for tensor in tensors)
    if is_fake or (op in _DECIDING and any(tensor.is_meta for tensor in tensors)):
        raise NotImplementedError(f"{op.partition('::')[2]} needs real values")


def _leaves(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple | list):
            yield from _leaves(value)
        else:
            yield value


def _recorded(value: Any, mode: Any) -> Any:
    """Wrap a function so that its operations are recorded; return other values as they are."""
    import torch

    if isinstance(value, torch.Tensor) or not callable(value):
        return value

    def run(*args: Any, **kwargs: Any) -> Any:
        with mode:
            return value(*args, **kwargs)

    return run


# Without real values they refuse types that they accept with them.
_STRICT = ("aten::_grouped_mm", "aten::_scaled_grouped_mm")


def _stand_in(op: str, args: Any, kwargs: Any, values: tuple[Any, Any]) -> Any:
    """Return the result of an operation that only runs with real values; else raise again.

    This is for the meta device and fake tensors, where a result is a shape and a type.
    """
    import torch

    arguments, keywords = values
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
    if op not in _STRICT or not all(_is_bare(tensor) for tensor in tensors):
        raise  # noqa: PLE0704 (the error that is being handled)
    made = outputs_of(op, arguments, dict(keywords))
    if not isinstance(made, TensorSpec) or None in made.shape:
        raise  # noqa: PLE0704
    return tensors[0].new_empty(made.shape)


def _is_bare(tensor: Any) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return bool(tensor.is_meta) or isinstance(tensor, FakeTensor)


def _depends_on_values(function: Any, arguments: tuple[Value, ...]) -> bool:
    """Return whether the size or the result of an operation depends on values of tensors."""
    import torch

    op = _op_of(function)
    if op == "aten::index":
        # A boolean index picks as many elements as are true; an integer one does not.
        kinds = {value.dtype for value in flatten(arguments[1:]) if isinstance(value, TensorSpec)}
        return bool(kinds & {"bool", "uint8"})
    tags = getattr(function, "tags", ())
    is_tagged = torch.Tag.dynamic_output_shape in tags or torch.Tag.data_dependent_output in tags
    return is_tagged or op == "torchvision::nms"


def _has_tensors(values: tuple[Any, ...]) -> bool:
    return any(isinstance(value, TensorSpec | Unknown) for value in flatten(values))


def _parameters(names: dict[int, str], values: Any) -> tuple[str, ...]:
    """Return the names of the parameters among arguments, also inside lists."""
    found: list[str] = []
    for value in values:
        if isinstance(value, tuple | list):
            found.extend(_parameters(names, value))
        elif id(value) in names:
            found.append(names[id(value)])
    return tuple(found)


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
    if depth >= _MAX_DEPTH:
        return Unknown("it is nested too deeply")
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
        return Unknown("a nested tensor has rows of different lengths")
    if str(tensor.layout).startswith("torch.sparse"):
        return Unknown("a sparse tensor omits zeros")
    shape = tuple(int(size) for size in tensor.shape)
    return TensorSpec(shape, str(tensor.dtype).removeprefix("torch."))


def _unpacked(packed: Any, depth: int) -> Value:
    """Return the tensors inside the packed parameters of quantized layers."""
    from torch.utils._python_dispatch import _disable_current_modes

    try:
        # Unpacking is an operation as well, which fake tensors do not support.
        with _disable_current_modes():
            state = packed.__getstate__()
    except Exception:  # noqa: BLE001 (classes of other libraries may have no state)
        return Unknown("packed parameters of unknown content")
    return value_of(state, depth + 1) if isinstance(state, tuple | list) else Unknown("packed")
