"""Reads the graph of a `.pt2` file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from snapviewer._core import Checkpoint, SnapshotError, read_checkpoint
from snapviewer.model.graph import Graph, InputSize, TensorSpec, Value
from snapviewer.model.pt2.archive import read_description
from snapviewer.model.pt2.nodes import NodeReader
from snapviewer.model.pt2.symbols import NotEvaluatedError, evaluate, solve, symbol_of
from snapviewer.model.pt2.values import Scope, Sizes, items_in, mapping_in, text_in
from snapviewer.model.shapes.roles import LENGTH, role_of, suggested_lengths
from snapviewer.text.units import format_shape

# The largest size of a range that has no upper limit.
_NO_LIMIT = 2**62


def read_pt2(
    file: str | PathLike[str] | Checkpoint, *, inputs: Sequence[TensorSpec] | None = None
) -> Graph:
    """Read the graph of a file that `torch.export.save` wrote.

    Dynamic sizes are those of the sample input, unless others are given.

    Args:
        file: The file, or what `read_checkpoint` returned for it.
        inputs: The tensors to give to the model, in the order of its inputs; sizes that are not
            dynamic must be those of the program.

    Raises:
        SnapshotError: The file is not such a program, or does not accept these inputs.
        OSError: The file cannot be read.
    """
    checkpoint = file if isinstance(file, Checkpoint) else read_checkpoint(file)
    program, notes = read_description(checkpoint)
    try:
        return _graph(program, inputs, notes)
    except RecursionError:
        raise SnapshotError(f"the program is nested too deeply: {checkpoint.path}") from None


def _graph(
    program: Mapping[str, Any], inputs: Sequence[TensorSpec] | None, notes: list[str]
) -> Graph:
    module = mapping_in(program, "graph_module")
    graph = mapping_in(module, "graph")
    if "nodes" not in graph:
        raise SnapshotError("the program has no graph")
    signature = items_in(mapping_in(module, "signature"), "input_specs")
    sizes = Sizes()
    if inputs is not None:
        sizes = Sizes(_chosen(program, graph, signature, inputs, notes))
    reader = NodeReader(sizes)
    nodes = reader.nodes(graph, _names(signature), ("", _root_type(graph)))
    values = _user_values(Scope(graph, sizes), signature)
    return Graph(
        source="pt2",
        nodes=tuple(nodes),
        inputs=values,
        input_source="sample" if inputs is None else "given",
        notes=(*notes, *_notes_of(sizes, program), *reader.notes),
        doubts=tuple(reader.notes),
        input_sizes=tuple(_input_sizes(program, graph, signature, values)),
    )


def _input_sizes(
    program: Mapping[str, Any],
    graph: Mapping[str, Any],
    signature: Sequence[Any],
    values: Sequence[Value],
) -> Iterator[InputSize]:
    """Yield the sizes of the inputs: dynamic ones with their range; the others are fixed."""
    ranges = mapping_in(program, "range_constraints")
    tensors = mapping_in(graph, "tensor_values")
    found: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
    for place, (argument, value) in enumerate(zip(_user_arguments(signature), values, strict=True)):
        if not isinstance(value, TensorSpec):
            continue
        entry = mapping_in(tensors, text_in(mapping_in(argument, "as_tensor"), "name"))
        wanted = items_in(entry, "sizes")[: len(value.shape)]
        for dimension, (size, entry) in enumerate(zip(value.shape, wanted, strict=False)):
            if size is not None:
                expression = text_in(mapping_in(entry, "as_expr"), "expr_str")
                key = (role_of(value, dimension), expression, size)
                found.setdefault(key, []).append((place, dimension))
    for (role, expression, size), places in found.items():
        if not expression:
            reason = "the program was exported for this size"
            yield InputSize(tuple(places), role, size, varies=False, reason=reason)
            continue
        symbol = symbol_of(expression)
        limits = mapping_in(ranges, symbol) if symbol else {}
        low, high = limits.get("min_val"), limits.get("max_val")
        most = high if type(high) is int and high < _NO_LIMIT else None
        yield InputSize(
            tuple(places),
            role,
            size,
            varies=True,
            least=low if type(low) is int else None,
            most=most,
            suggested=suggested_lengths(most) if role == LENGTH else (),
            reason="the program was exported with this range"
            if symbol
            else f"it depends on others: {expression[:60]}",
        )


def _names(signature: Sequence[Any]) -> dict[str, str]:
    """Return the names of parameters and buffers by their names in the graph."""
    names = {}
    for spec in signature:
        for kind in ("parameter", "buffer"):
            held = mapping_in(spec, kind)
            inside, name = text_in(mapping_in(held, "arg"), "name"), text_in(held, f"{kind}_name")
            if inside and name:
                names[inside] = name
    return names


def _root_type(graph: Mapping[str, Any]) -> str:
    """Return the class of the model, from the outermost module of any operation."""
    for entry in items_in(graph, "nodes"):
        outermost = text_in(mapping_in(entry, "metadata"), "nn_module_stack").partition(";")[0]
        if outermost.startswith("L__self__,,"):
            return outermost.rpartition(",")[2].rpartition(".")[2]
    return ""


def _user_arguments(signature: Sequence[Any]) -> list[Any]:
    """Return the arguments of the JSON that a user gives to the model."""
    given = []
    for spec in signature:
        if isinstance(spec, dict) and "user_input" in spec:
            given.append(mapping_in(mapping_in(spec, "user_input"), "arg"))
        elif isinstance(spec, dict) and "constant_input" in spec:
            given.append(mapping_in(mapping_in(spec, "constant_input"), "value"))
    return given


def _user_values(scope: Scope, signature: Sequence[Any]) -> tuple[Value, ...]:
    return tuple(scope.value(argument) for argument in _user_arguments(signature))


def _chosen(
    program: Mapping[str, Any],
    graph: Mapping[str, Any],
    signature: Sequence[Any],
    inputs: Sequence[TensorSpec],
    notes: list[str],
) -> dict[str, int]:
    """Find the values of symbols for which the model accepts these inputs.

    Raises:
        SnapshotError: There are none.
    """
    entries = []
    for argument in _user_arguments(signature):
        name = text_in(mapping_in(argument, "as_tensor"), "name")
        if name:
            entries.append((name, mapping_in(mapping_in(graph, "tensor_values"), name)))
    if len(entries) != len(inputs):
        raise SnapshotError(f"the model takes {len(entries)} tensors, not {len(inputs)}")
    chosen: dict[str, int] = {}
    later = []
    scope = Scope(graph, Sizes())
    for (name, entry), spec in zip(entries, inputs, strict=True):
        sample = scope.tensor(name)
        wanted = items_in(entry, "sizes")
        if not isinstance(sample, TensorSpec) or len(wanted) != len(spec.shape):
            raise SnapshotError(f"{_describe(name, sample)} cannot be {_shape(spec)}")
        if spec.dtype and sample.dtype and spec.dtype != sample.dtype:
            notes.append(f"{_describe(name, sample)} stays {sample.dtype}: types cannot be changed")
        for number, (size, value) in enumerate(zip(wanted, spec.shape, strict=True)):
            where = f"dimension {number} of {_describe(name, sample)}"
            if value is None:
                raise SnapshotError(f"{where} is not given")
            expression = text_in(mapping_in(size, "as_expr"), "expr_str")
            if expression:
                later.append((expression, value, where))
            elif size.get("as_int") != value if isinstance(size, dict) else True:
                raise SnapshotError(f"{where} is not dynamic: it cannot be {value}")
    # Plain symbols first, because others depend on them.
    for expression, value, where in sorted(later, key=lambda one: symbol_of(one[0]) is None):
        found = solve(expression, value, chosen)
        if found is not None:
            _check_range(program, found, where)
            chosen[found[0]] = found[1]
        try:
            is_right = evaluate(expression, chosen) == value
        except NotEvaluatedError:
            is_right = False
        if not is_right:
            raise SnapshotError(f"{where} cannot be {value} together with the other sizes")
    return chosen


def _check_range(program: Mapping[str, Any], found: tuple[str, int], where: str) -> None:
    limits = mapping_in(mapping_in(program, "range_constraints"), found[0])
    low, high = limits.get("min_val"), limits.get("max_val")
    is_low = type(low) is int and found[1] < low
    if is_low or (type(high) is int and found[1] > high):
        raise SnapshotError(
            f"{where} is out of range: {_range_text(found[0], limits)}, not {found[1]}"
        )


def _notes_of(sizes: Sizes, program: Mapping[str, Any]) -> list[str]:
    """Return notes on dynamic and unknown sizes."""
    notes = []
    # Symbols of torch that begin with u are computed.
    varying = sorted(symbol for symbol in sizes.varying if not symbol.startswith("u"))[:20]
    if varying:
        ranges = mapping_in(program, "range_constraints")
        texts = ", ".join(_range_text(symbol, mapping_in(ranges, symbol)) for symbol in varying)
        whose = "of the sample input" if sizes.chosen is None else "of the given inputs"
        notes.append(f"dynamic sizes are those {whose} ({texts})")
    if sizes.is_incomplete:
        notes.append("some sizes depend on computed values and are unknown before a run")
    return notes


def _range_text(symbol: str, limits: Mapping[str, Any]) -> str:
    low, high = limits.get("min_val"), limits.get("max_val")
    parts = [f"at least {low}"] if type(low) is int else []
    if type(high) is int and high < _NO_LIMIT:
        parts.append(f"at most {high}")
    return f"{symbol[:40]} is {' and '.join(parts)}" if parts else symbol[:40]


def _describe(name: str, sample: Value) -> str:
    shape = f" ({_shape(sample)})" if isinstance(sample, TensorSpec) else ""
    return f"the input {name[:60]}{shape}"


def _shape(spec: TensorSpec) -> str:
    return format_shape(spec.shape[:16]) or "a number"
