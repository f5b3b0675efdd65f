"""Queries of a tensor: its sizes, its type, its single element. They compute nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from snapviewer.model.graph import TensorSpec, Unknown
from snapviewer.model.shapes import UnknownNumber
from snapviewer.model.shapes.dtypes import NUMBERS, is_complex, is_real
from snapviewer.model.torchscript.run import Run
from snapviewer.model.torchscript.values import Tensor


def _sizes(run: Run, tensor: Any, dim: Any = None) -> Any:
    if isinstance(tensor, Tensor):
        shape = [
            UnknownNumber("a size that depends on values") if size is None else size
            for size in tensor.spec.shape
        ]
        if dim is None:
            return shape
        if isinstance(dim, int) and -len(shape) <= dim < len(shape):
            return shape[dim]
        return UnknownNumber("the size of a dimension that does not exist")
    if isinstance(tensor, Unknown):
        return Unknown(tensor.why) if dim is None else UnknownNumber(tensor.why)
    return NotImplemented


def _device(run: Run, value: Any = None, *rest: Any) -> Any:
    return value if isinstance(value, str) else "cpu"


def _always(answer: Any) -> Callable[..., Any]:
    """Return a query with the same answer for every tensor, known or not."""

    def query(run: Run, tensor: Any = None, *rest: Any) -> Any:
        return answer if isinstance(tensor, (Tensor, Unknown)) else NotImplemented

    return query


def _of_spec(answer: Callable[[TensorSpec], Any]) -> Callable[..., Any]:
    def query(run: Run, tensor: Any = None, *rest: Any) -> Any:
        if isinstance(tensor, Tensor):
            return answer(tensor.spec)
        return UnknownNumber(tensor.why) if isinstance(tensor, Unknown) else NotImplemented

    return query


def _count(spec: TensorSpec) -> Any:
    total = 1
    for size in spec.shape:
        if size is None:
            return UnknownNumber("a size that depends on values")
        total *= size
    return total


def _strides(spec: TensorSpec) -> Any:
    strides: list[Any] = []
    step = 1
    for size in reversed(spec.shape):
        strides.insert(0, step)
        step *= 1 if size is None else max(size, 1)
    return strides


def _number_of(convert: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return the query int(x), float(x), bool(x) or x.item() of a tensor."""

    def query(run: Run, value: Any = None, *rest: Any) -> Any:
        if isinstance(value, Tensor):
            if value.number is None:
                return UnknownNumber("a computed value")
            try:
                return convert(value.number)
            except (ValueError, OverflowError):
                return UnknownNumber("a number that does not fit")
        if isinstance(value, Unknown):
            return UnknownNumber(value.why)
        return NotImplemented

    return query


def _to_tensor(run: Run, value: Any = None, *rest: Any) -> Any:
    if isinstance(value, Unknown):
        kind = "int64" if isinstance(value, UnknownNumber) else ""
        return Tensor(TensorSpec((), kind)) if kind else value
    if isinstance(value, (int, float)):
        kind = "bool" if isinstance(value, bool) else "int64"
        return Tensor(TensorSpec((), "float64" if isinstance(value, float) else kind), value)
    return NotImplemented


def _set_grad(run: Run, value: Any = None) -> Any:
    if isinstance(value, bool):
        run.grad_enabled = value
    return None


def _needs_grad(run: Run, value: Any = None) -> Any:
    return isinstance(value, Tensor) and value.requires_grad


def _length(run: Run, value: Any = None) -> Any:
    if isinstance(value, Tensor):
        return _sizes(run, value, 0)
    return NotImplemented


def _to_list(run: Run, value: Any = None, *rest: Any) -> Any:
    if isinstance(value, (Unknown, Tensor)):
        return Unknown("a list of computed values")
    return NotImplemented


def _missing_weight(run: Run, *rest: Any) -> Any:
    run.note(
        "the archive was optimized for inference, and such a file does not contain its packed "
        "weights: how they are used is unknown",
        is_doubt=True,
    )
    return Unknown("a weight that is not in the file")


def _unchanged(run: Run, value: Any = None, *rest: Any) -> Any:
    return value


def _pack(run: Run, weight: Any = None, bias: Any = None, *rest: Any) -> Any:
    """Return what a weight was packed from."""
    if not rest:
        return (weight, bias)
    if len(rest) == 4:
        stride, padding, dilation, groups = rest
        return (weight, bias, stride, padding, dilation, groups, False, [0])
    if len(rest) == 5:
        stride, padding, extra, dilation, groups = rest
        return (weight, bias, stride, padding, dilation, groups, True, extra)
    return NotImplemented


QUERIES: dict[str, Callable[..., Any]] = {
    "size": _sizes,
    "shape": _sizes,
    "sym_size": _sizes,
    "dim": _of_spec(lambda spec: len(spec.shape)),
    "ndim": _of_spec(lambda spec: len(spec.shape)),
    "ndimension": _of_spec(lambda spec: len(spec.shape)),
    "numel": _of_spec(_count),
    "dtype": _of_spec(lambda spec: NUMBERS.get(spec.dtype, UnknownNumber("a type"))),
    "device": _device,
    "layout": _always(0),
    "is_floating_point": _of_spec(lambda spec: is_real(spec.dtype)),
    "is_complex": _of_spec(lambda spec: is_complex(spec.dtype)),
    "is_nested": _always(False),
    "is_cuda": _always(False),
    "is_cpu": _always(True),
    "is_mkldnn": _always(False),
    "is_sparse": _always(False),
    "is_quantized": _of_spec(lambda spec: spec.dtype.startswith(("q", "quint"))),
    "is_contiguous": _always(True),
    "is_same_size": lambda run, a=None, b=None: (
        a.spec.shape == b.spec.shape
        if isinstance(a, Tensor) and isinstance(b, Tensor)
        else UnknownNumber("a size")
    ),
    "stride": lambda run, value=None, *rest: (
        NotImplemented if rest or not isinstance(value, Tensor) else _strides(value.spec)
    ),
    "storage_offset": _always(0),
    "get_device": _always(-1),
    "requires_grad": _needs_grad,
    "is_grad_enabled": lambda run: run.grad_enabled,
    "set_grad_enabled": _set_grad,
    "is_autocast_enabled": lambda run, *rest: False,
    "is_autocast_cpu_enabled": lambda run: False,
    "is_tracing": lambda run: False,
    "is_scripting": lambda run: True,
    "manual_seed": lambda run, *rest: None,
    "warn": lambda run, *rest: None,
    "Print": lambda run, *rest: None,
    "_is_tracing": lambda run, *rest: False,
    "item": _number_of(lambda number: number),
    "Int": _number_of(int),
    "Float": _number_of(float),
    "Bool": _number_of(bool),
    "IntImplicit": _number_of(int),
    "FloatImplicit": _number_of(float),
    "ScalarImplicit": _number_of(lambda number: number),
    "is_nonzero": _number_of(bool),
    "NumToTensor": _to_tensor,
    "len": _length,
    "tolist": _to_list,
    "_nested_tensor_from_mask_left_aligned": _of_spec(lambda spec: UnknownNumber("a mask")),
    "equal": lambda run, *rest: UnknownNumber("whether tensors are equal"),
    "allclose": lambda run, *rest: UnknownNumber("whether tensors are equal"),
    "ConstantMKLDNNTensor": _missing_weight,
    "BroadcastMKLDNNTensors": _missing_weight,
    "type": lambda run, value=None, *rest: value if isinstance(value, str) else NotImplemented,
    "unchecked_cast": _unchanged,
    "linear_prepack": _pack,
    **{f"conv{n}d_prepack": _pack for n in (1, 2, 3)},
    **{f"conv_transpose{n}d_prepack": _pack for n in (1, 2, 3)},
    "conv_prepack": _pack,
    "wait": _unchanged,
    "grad": lambda run, *rest: None,
    "is_set": lambda run, *rest: UnknownNumber("a setting"),
}
