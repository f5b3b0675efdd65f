"""The operations of the code: queries of tensors, operations on plain values, computations.

Only computations become nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from snapviewer.model.graph import Node, TensorSpec, Unknown, Value
from snapviewer.model.shapes import ShapeError, UnknownNumber, is_known, outputs_of
from snapviewer.model.torchscript import scalars
from snapviewer.model.torchscript.elements import with_elements
from snapviewer.model.torchscript.queries import QUERIES
from snapviewer.model.torchscript.run import CodeRaisedError, Run
from snapviewer.model.torchscript.values import (
    Instance,
    Member,
    NamedValues,
    Tensor,
    plain,
    spec_of,
    tensors_among,
)

# In-place operations that change the shape.
_RESHAPING = ("unsqueeze_", "squeeze_", "transpose_", "t_", "swapaxes_", "swapdims_", "as_strided_")


def apply(
    op: str, arguments: list[Any], keywords: dict[str, Any], module: tuple[str, str], run: Run
) -> Any:
    """Apply an operation of the code, such as `aten::conv2d`, and record it if it computes.

    Raises:
        CodeRaisedError: It raises an error.
        StoppedError: A limit was reached.
    """
    run.spend(1)
    name = op.partition("::")[2]
    if name == "RaiseException":
        raise CodeRaisedError(str(arguments[0])[:200] if arguments else "an error")
    query = QUERIES.get(name)
    if query is not None:
        try:
            answer = query(run, *arguments)
        except TypeError:
            answer = NotImplemented  # more arguments than it takes
        if answer is not NotImplemented:
            return answer
    if op.startswith(("aten::", "prim::")) and _is_plain(name, arguments, keywords):
        try:
            return scalars.apply(name, arguments, keywords, run)
        except scalars.NoOperationError:
            pass
    return _compute(op, name, arguments, keywords, module, run)


def _is_plain(name: str, arguments: Sequence[Any], keywords: dict[str, Any]) -> bool:
    """Whether an operation works on plain values, given these arguments."""
    if scalars.is_operation(name) and not is_known(f"aten::{name}"):
        return True
    first = arguments[0] if arguments else None
    if isinstance(first, (list, dict, str)) and name in _LIST_OPERATIONS:
        return True
    return not _has_tensor(arguments, keywords)


_LIST_OPERATIONS = ("index", "slice", "add", "add_", "mul", "sort", "split", "copy", "eq", "ne")


def _has_tensor(arguments: Sequence[Any], keywords: dict[str, Any]) -> bool:
    for value in (*arguments, *keywords.values()):
        if isinstance(value, Tensor):
            return True
        if isinstance(value, Unknown) and not isinstance(value, UnknownNumber):
            return True
        if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value[:8]):
            return True
    return False


def _compute(
    op: str,
    name: str,
    arguments: list[Any],
    keywords: dict[str, Any],
    module: tuple[str, str],
    run: Run,
) -> Any:
    specs = [spec_of(value, run.spend) for value in arguments]
    named = {key: spec_of(value, run.spend) for key, value in keywords.items()}
    result: Any
    try:
        result = outputs_of(op, specs, named)
        if isinstance(result, Unknown) and not is_known(op):
            run.note(f"{op[:100]}: no shape function")
    except ShapeError as error:
        run.differing = run.differing or error.sizes
        where = f" in {module[0][:100]}" if module[0] else ""
        run.note(f"{op[:100]}{where}: {error}", is_misfit=bool(error.sizes))
        result = Unknown(f"{op[:100]}: {error}")
    except (IndexError, ValueError, TypeError, AttributeError, ArithmeticError):
        run.note(f"{op[:100]}: arguments that it does not accept")
        result = Unknown(f"{op[:100]}: arguments that it does not accept")
    names = [tensor.name for tensor in tensors_among([*arguments, *keywords.values()], run.spend)]
    run.record(
        Node(
            number=len(run.nodes),
            op=op,
            module=module[0],
            module_type=module[1],
            arguments=tuple(plain(value, run.spend) for value in arguments),
            keywords=tuple((key, plain(value, run.spend)) for key, value in keywords.items()),
            outputs=_outputs(result, run),
            parameters=tuple(dict.fromkeys(name for name in names if name)),
        )
    )
    first = arguments[0] if arguments else None
    if name.endswith("_") and not name.endswith("__") and isinstance(first, Tensor):
        return _changed(name, first, result, run)
    if isinstance(result, TensorSpec):
        return with_elements(name, arguments, keywords, result)
    return _tensors(result)


def _outputs(result: Any, run: Run) -> tuple[Value, ...]:
    if isinstance(result, tuple):
        return tuple(plain(item, run.spend) for item in result)
    return (plain(result, run.spend),)


def _changed(name: str, tensor: Tensor, result: Any, run: Run) -> Tensor:
    """Return the tensor after an in-place operation."""
    run.touch(tensor)
    tensor.number, tensor.row = None, ()
    if name in _RESHAPING and isinstance(result, TensorSpec):
        tensor.spec = result
    return tensor


def _tensors(result: Any) -> Any:
    if isinstance(result, TensorSpec):
        return Tensor(result)
    if isinstance(result, (list, tuple)):
        return type(result)(_tensors(item) for item in result)
    return result


def member(value: Any, name: str) -> Any:
    """Return a named item of a tuple; KeyError if it has none."""
    if isinstance(value, NamedValues) and name in value.fields:
        return value[value.fields.index(name)]
    raise KeyError(name)


def describes(value: Any, type_name: str) -> bool | None:
    """Return whether a value is of a simple type; None if unknown."""
    if isinstance(value, Unknown):
        return None
    if type_name == "Tensor":
        return isinstance(value, Tensor)
    if type_name in ("int", "float", "bool", "str"):
        return type(value).__name__ == type_name
    if type_name in ("List", "list", "Tuple", "tuple", "Dict", "dict"):
        return type(value).__name__.lower() == type_name.lower()
    if type_name == "NoneType":
        return value is None
    if isinstance(value, (Instance, Member)):
        return value.class_name == type_name
    return None if type_name == "Any" else False
