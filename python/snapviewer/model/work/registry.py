"""The registry of formulas by the names of operations, and the work of a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from snapviewer.model.graph import Node, TensorSpec, Unknown, Value
from snapviewer.model.work.sizes import (
    NotKnownError,
    bits_of,
    bytes_of,
    elements_of,
    flatten,
    has_unknown,
    tensors_in,
    whole_shape,
)


@dataclass(frozen=True, slots=True)
class Work:
    """What an operation computes, and the bytes that it reads and writes once.

    `is_traffic_exact` is False if the type or shape of a tensor is unknown: an element of unknown
    type counts as 4 bytes, a tensor of unknown shape as none.
    """

    macs: int
    flops: int
    read_bytes: int
    written_bytes: int
    is_traffic_exact: bool = True

    def __add__(self, other: Work) -> Work:
        return Work(
            self.macs + other.macs,
            self.flops + other.flops,
            self.read_bytes + other.read_bytes,
            self.written_bytes + other.written_bytes,
            self.is_traffic_exact and other.is_traffic_exact,
        )


NO_WORK = Work(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Uncounted:
    """An operation whose work is unknown, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of one operation by their names, and its outputs: the input of a formula.

    If the graph does not have what a formula needs, a `NotKnownError` ends the formula: the
    operation is then uncounted, for that reason.
    """

    node: Node
    parameters: tuple[tuple[str, ...], ...]

    def value(self, name: str) -> Value:
        """Return an argument, or None if it is not given."""
        names: tuple[str, ...] = (name,)
        for position, names_there in enumerate(self.parameters):
            if name in names_there:
                names = names_there
                if position < len(self.node.arguments):
                    return self.node.arguments[position]
        return next((value for keyword, value in self.node.keywords if keyword in names), None)

    def tensor(self, name: str) -> TensorSpec:
        """Return an argument that is a tensor of known rank."""
        value = self.value(name)
        if isinstance(value, TensorSpec):
            return value
        if isinstance(value, Unknown):
            raise NotKnownError(f"the shape of `{name}` is unknown: {value.why}")
        raise NotKnownError(f"`{name}` is not a tensor")

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor argument."""
        spec = self.tensor(name)
        try:
            return whole_shape(spec)
        except NotKnownError as error:
            raise NotKnownError(f"`{name}`: {error}") from None

    def elements(self, name: str) -> int:
        """Return the number of elements of a tensor argument."""
        return elements_of(self.tensor(name))

    def tensors(self, name: str) -> list[TensorSpec]:
        """Return the tensors of an argument that is a tensor or a list of them."""
        return tensors_in((self.value(name),))

    def is_given(self, name: str) -> bool:
        """Return whether an argument is given and not None."""
        return self.value(name) is not None

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an argument that is a number, or the default if it is not given."""
        value = self.value(name)
        if value is None and default is not None:
            return default
        if isinstance(value, int):
            return value
        raise NotKnownError(f"`{name}` is unknown")

    def integers(self, name: str) -> tuple[int, ...]:
        """Return an argument that is a number or a list of numbers; () if it is not given."""
        value = self.value(name)
        values = () if value is None else tuple(flatten((value,)))
        numbers = tuple(number for number in values if isinstance(number, int))
        if len(numbers) != len(values):
            raise NotKnownError(f"`{name}` is unknown")
        return numbers

    def output(self, index: int = 0) -> TensorSpec:
        """Return one of the outputs, which must be a tensor."""
        outputs = list(flatten(self.node.outputs))
        value = outputs[index] if index < len(outputs) else None
        if isinstance(value, TensorSpec):
            return value
        why = f": {value.why}" if isinstance(value, Unknown) else ""
        raise NotKnownError(f"the shape of its output is unknown{why}")

    def output_elements(self, index: int = 0) -> int:
        """Return the number of elements of one of the outputs."""
        return elements_of(self.output(index))

    def with_parameters(self, names: str) -> Call:
        """Return the same call under the names of another overload."""
        return replace(self, parameters=_parsed(names))

    def work(
        self,
        *,
        macs: int = 0,
        other_flops: int = 0,
        read_bytes: int | None = None,
        written_bytes: int | None = None,
    ) -> Work:
        """Return the work of this call.

        Args:
            macs: Multiply-adds; those of complex numbers count four.
            other_flops: FLOPs in addition to the two of each multiply-add.
            read_bytes: The bytes that it reads; by default all its tensor arguments.
            written_bytes: The bytes that it writes; by default all its outputs.
        """
        inputs = (*self.node.arguments, *(value for _, value in self.node.keywords))
        read, is_read_exact = _traffic(inputs)
        written, is_write_exact = _traffic(self.node.outputs)
        if macs and any("complex" in spec.dtype for spec in tensors_in(inputs)):
            macs *= 4
        return Work(
            macs,
            2 * macs + other_flops,
            read if read_bytes is None else read_bytes,
            written if written_bytes is None else written_bytes,
            (is_read_exact or read_bytes == 0) and (is_write_exact or written_bytes == 0),
        )


Formula: TypeAlias = Callable[[Call], Work | Uncounted]
_AnyFormula = TypeVar("_AnyFormula", bound=Formula)


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: str
    parameters: tuple[tuple[str, ...], ...]
    formula: Formula


_entries: dict[str, _Entry] = {}


def register(
    ops: str | Iterable[str], parameters: str = "", *, kind: str = "Other"
) -> Callable[[_AnyFormula], _AnyFormula]:
    """Return a decorator that makes a function the formula of some operations.

    Args:
        ops: Their names without overloads, also several in one text; a name without `::` is in
            `aten`. `aten::relu` also stands for `aten::relu_`.
        parameters: The names of the arguments in the order of the schema, as one text. Names after
            the last that the formula needs may be left out. An argument with other names in some of
            the operations has all its names, as in `input|self weight`.
        kind: The kind of layer of the operations.

    >>> @register("example::scale", "self factor", kind="ElementWise")
    ... def scale(call: Call) -> Work:
    ...     return call.work(other_flops=call.elements("self"))
    >>> kind_of("example::scale")
    'ElementWise'
    """
    names = _parsed(parameters)

    def keep(formula: _AnyFormula) -> _AnyFormula:
        for op in (ops if isinstance(ops, str) else " ".join(ops)).split():
            _entries[op if "::" in op else f"aten::{op}"] = _Entry(kind, names, formula)
        return formula

    return keep


def in_namespace(namespace: str, names: str) -> str:
    """Return names with their namespace, for `register`.

    >>> in_namespace("prim", "max min")
    'prim::max prim::min'
    """
    return " ".join(f"{namespace}::{name}" for name in names.split())


def per_output(flops: int) -> Formula:
    """Return a formula of so many FLOPs for each element of the output."""
    return lambda call: call.work(other_flops=flops * call.output_elements())


def per_element_of(name: str, flops: int) -> Formula:
    """Return a formula of so many FLOPs for each element of an argument."""
    return lambda call: call.work(other_flops=flops * call.elements(name))


def matrix_product(name: str, *, flops: int = 0) -> Formula:
    """Return the formula of a product that sums over the last dimension of an argument.

    Args:
        name: The argument.
        flops: Further FLOPs for each element of the output.
    """

    def formula(call: Call) -> Work:
        outputs = call.output_elements()
        return call.work(macs=outputs * call.shape(name)[-1], other_flops=flops * outputs)

    return formula


def without_traffic(call: Call) -> Work:
    """Return the work of an operation that neither computes nor moves anything."""
    return call.work(read_bytes=0, written_bytes=0)


def _parsed(parameters: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(names.split("|")) for names in parameters.split())


def _entry(op: str) -> _Entry | None:
    """Find the formula of an operation, or of the one it is the in-place form of."""
    entry = _entries.get(op)
    if entry is None and op.endswith("_") and not op.endswith("__"):
        entry = _entries.get(op[:-1])
    return entry


def kind_of(op: str) -> str:
    """Return the kind of layer that an operation is, "Other" if there is no formula for it.

    >>> kind_of("aten::relu_")
    'Activation'
    """
    entry = _entry(op)
    return entry.kind if entry else "Other"


def is_counted(op: str) -> bool:
    """Return whether there is a formula for an operation."""
    return _entry(op) is not None


def parameters_of(op: str) -> tuple[tuple[str, ...], ...]:
    """Return the names of each argument with which an operation was registered."""
    entry = _entry(op)
    return entry.parameters if entry else ()


# Far larger numbers would not fit into a float.
_MAX_WORK = 1 << 128
_BAD_SHAPES = "its shapes do not fit the operation"


def work_of(node: Node) -> Work | Uncounted:
    """Return the work of a node, multiplied by its `times`, or why it is unknown."""
    try:
        once = _work_once(node)
    except NotKnownError as error:
        return Uncounted(str(error))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        # A file may have any shapes: a weight without dimensions, a list instead of a number.
        return Uncounted(_BAD_SHAPES)
    if isinstance(once, Work) and min(once.macs, once.flops) < 0:
        return Uncounted(_BAD_SHAPES)
    if isinstance(once, Uncounted):
        return once
    work = once
    if node.times != 1:
        work = Work(
            once.macs * node.times,
            once.flops * node.times,
            once.read_bytes * node.times,
            once.written_bytes * node.times,
            once.is_traffic_exact,
        )
    if max(work.macs, work.flops, work.read_bytes, work.written_bytes) > _MAX_WORK:
        return Uncounted("its sizes are too large")
    return work


def _work_once(node: Node) -> Work | Uncounted:
    if not _works_on_tensors(node):
        # Arithmetic on sizes and lists, such as `aten::add` of two numbers.
        return NO_WORK
    entry = _entry(node.op)
    if entry is None:
        return Uncounted("there is no formula for it")
    return entry.formula(Call(node, entry.parameters))


def _works_on_tensors(node: Node) -> bool:
    values = (*node.arguments, *(value for _, value in node.keywords), *node.outputs)
    return any(isinstance(value, TensorSpec | Unknown) for value in flatten(values))


def _traffic(values: tuple[Value, ...]) -> tuple[int, bool]:
    """Return the bytes of the tensors among some values, and whether they are exact."""
    total = 0
    is_exact = not has_unknown(values)
    for spec in tensors_in(values):
        try:
            total += bytes_of(spec)
        except NotKnownError:
            is_exact = False
        is_exact = is_exact and bits_of(spec.dtype) is not None
    return total, is_exact
