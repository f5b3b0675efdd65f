"""Reads the graph of a TorchScript archive."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

from snapviewer._core import Checkpoint, SnapshotError, read_checkpoint
from snapviewer.checkpoint.code import Archive, archive_of
from snapviewer.model.graph import Graph, InputSize, TensorSpec, Unknown, Value
from snapviewer.model.shapes.roles import LENGTH, role_of
from snapviewer.model.torchscript.inputs import (
    PUBLISHED_SIDES,
    Parameter,
    adapted,
    guess,
    parameters_of,
    rows_of_positions,
    traced_inputs,
    unknown_input,
)
from snapviewer.model.torchscript.interpreter import Interpreter
from snapviewer.model.torchscript.program import Program
from snapviewer.model.torchscript.run import MAX_STEPS, CodeRaisedError, Run, StoppedError
from snapviewer.model.torchscript.sizes import Trials
from snapviewer.model.torchscript.tree import Tree
from snapviewer.model.torchscript.values import (
    Instance,
    Tensor,
    plain,
    unknown_like,
    within_64_bits,
)
from snapviewer.text.units import count_of, format_shape

MISFIT = "the input does not fit: "
"""How the first doubt begins if the given inputs do not fit the layers."""

_MAX_TRIES = 24


@dataclass(frozen=True, slots=True)
class _Model:
    archive: Archive
    program: Program
    parameters: tuple[Parameter, ...]
    method: str

    def interpret(
        self, arguments: Sequence[Any], trial_steps: int | None = None
    ) -> tuple[Run, bool]:
        """Interpret the model with some inputs; also return whether it came to its end.

        With `trial_steps` it ends after so many, or at the first layer that does not fit.
        """
        run = Run() if trial_steps is None else Run(max_steps=trial_steps, is_trial=True)
        tree = Tree(self.archive.checkpoint)
        root = tree.root()
        assert isinstance(root, Instance)
        interpreter = Interpreter(self.program, tree, run)
        try:
            interpreter.method(root, self.method, arguments)
        except StoppedError as error:
            run.note(
                f"the code was interpreted up to a limit, {error}: the rest is not counted",
                is_doubt=True,
            )
            return run, False
        except RecursionError:
            run.note("the code is nested too deeply: the rest is not counted", is_doubt=True)
            return run, False
        except CodeRaisedError as error:
            run.note(f"the model rejects this input: {error}", is_doubt=True)
            return run, False
        for problem in self.program.problems.values():
            run.note(problem)
        return run, True


def read_torchscript(
    file: str | PathLike[str] | Checkpoint, *, inputs: Sequence[TensorSpec] | None = None
) -> Graph:
    """Return the graph of a TorchScript archive, without running its code.

    Args:
        file: The file, scripted, traced or frozen, or what `read_checkpoint` returned for it.
        inputs: The tensors to call `forward` with. By default those that the model was traced with,
            or what its first layers suggest.

    Raises:
        SnapshotError: The file is not a TorchScript archive, or its code cannot be interpreted.
        OSError: The file cannot be read.
    """
    model = _open(file)
    source: Literal["given", "traced", "inferred", "none"]
    notes: list[str] = []
    if inputs is not None:
        arguments = _arranged(model, [Tensor(spec) for spec in inputs])
        source = "given"
    else:
        traced = traced_inputs(model.archive)
        if traced is not None and len(traced) <= len(model.parameters):
            arguments, source = _arranged_traced(model, traced), "traced"
        else:
            arguments, notes = _inferred(model)
            source = "inferred" if any(map(_has_tensor, arguments)) else "none"
    run, _ = model.interpret(arguments)
    sizes = _input_sizes(model, arguments, run)
    misfit = next((note for note in run.notes if note in run.misfits), None)
    if source == "given" and misfit is not None:
        del run.notes[misfit]
        run.notes = {f"{MISFIT}{misfit}": True, **run.notes}
    if run.notes_left_out:
        notes.append(f"{run.notes_left_out} more notes were omitted")
    return Graph(
        source="torchscript",
        nodes=tuple(replace(node, number=number) for number, node in enumerate(run.nodes)),
        inputs=_shown(arguments),
        input_source=source,
        notes=(*notes, *run.notes),
        doubts=tuple(note for note, is_doubt in run.notes.items() if is_doubt),
        input_sizes=sizes,
    )


def _input_sizes(model: _Model, arguments: Sequence[Any], run: Run) -> tuple[InputSize, ...]:
    """Find which sizes of the inputs may vary, and how far."""
    tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
    if not tensors:
        return ()
    positions = None
    if any(role_of(tensor.spec, 1) == LENGTH for tensor in tensors if len(tensor.spec.shape) == 2):
        blind, _ = model.interpret([unknown_input(item.name) for item in model.parameters])
        positions = rows_of_positions(blind.nodes)
    shapes = (tensor.shape for tensor in model.archive.checkpoint.tensors)
    weight_sizes = sorted({size for shape in shapes for size in shape})
    return tuple(Trials(model.interpret, arguments, run).sizes(weight_sizes, positions))


def _has_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or (isinstance(value, list) and any(map(_has_tensor, value)))


def _shown(arguments: Sequence[Any]) -> tuple[Value, ...]:
    run = Run()
    try:
        return tuple(plain(argument, run.spend) for argument in arguments)
    except StoppedError:
        return tuple(Unknown("a value that is too large to show") for _ in arguments)


def _open(file: str | PathLike[str] | Checkpoint) -> _Model:
    archive = archive_of(file if isinstance(file, Checkpoint) else read_checkpoint(file))
    program = Program(frozenset(archive.code), archive.source)
    root = Tree(archive.checkpoint).root()
    if not isinstance(root, Instance):
        raise SnapshotError("the archive contains no module")
    found = program.find_class(root.class_name)
    if found is None:
        problem = next(iter(program.problems.values()), "it is not in the archive")
        raise SnapshotError(f"the code of the model cannot be interpreted: {problem}")
    # A module whose forward has several forms has forward__0 and so on.
    names = [name for name in found.methods if name == "forward" or name.startswith("forward__")]
    if not names:
        raise SnapshotError("the model has no method forward")
    return _Model(archive, program, parameters_of(found.methods[names[0]]), names[0])


def _default(parameter: Parameter) -> Any:
    if parameter.default is None:
        return unknown_like(parameter.annotation, unknown_input(parameter.name).why)
    try:
        if isinstance(parameter.default, ast.Constant):
            return within_64_bits(parameter.default.value)
        return ast.literal_eval(parameter.default)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return Unknown(f"the default of {parameter.name[:100]}")


def _arranged(model: _Model, tensors: Sequence[Any]) -> list[Any]:
    """Assign tensors to the parameters that accept them, in order; others have their defaults."""
    places = [p for p, parameter in enumerate(model.parameters) if parameter.kind != "other"]
    if len(places) == 1 and model.parameters[places[0]].kind == "Tensors" and len(tensors) > 1:
        tensors = [list(tensors)]
    if len(tensors) > len(places):
        raise SnapshotError(
            f"{count_of(len(tensors), 'tensor')} given, but the model takes {len(places)}"
        )
    arguments = [_default(parameter) for parameter in model.parameters]
    for place, tensor in zip(places, tensors, strict=False):
        is_list = model.parameters[place].kind == "Tensors"
        arguments[place] = [tensor] if is_list and isinstance(tensor, Tensor) else tensor
    return arguments


def _arranged_traced(model: _Model, traced: Sequence[Any]) -> list[Any]:
    rest = [_default(parameter) for parameter in model.parameters[len(traced) :]]
    return [*traced, *rest]


def _inferred(model: _Model) -> tuple[list[Any], list[str]]:
    """Infer the inputs: interpret the code with unknown ones, and find their first layers."""
    wanted = [p for p in model.parameters if p.kind != "other" and not _is_optional(p)]
    if not wanted:
        wanted = [p for p in model.parameters if p.kind != "other"][:1]
    blind = [unknown_input(parameter.name) for parameter in wanted]
    run, _ = model.interpret(_arranged(model, blind))
    published = _published_side(model)
    guesses = [guess(run.nodes, parameter.name, published) for parameter in wanted]
    first = next((found for found in guesses if found is not None), None)
    if first is None:
        text = "the shapes of the inputs are unknown, and no layer determines them: use --input"
        return _arranged(model, blind), [text]
    notes = [
        f"the input {parameter.name[:100]!r} was inferred: {found.reason}"
        if found is not None
        else f"the input {parameter.name[:100]!r} was assumed to be like the first one"
        for parameter, found in zip(wanted, guesses, strict=True)
    ]
    specs = [(g or first).candidates for g in guesses]
    tries = [
        [candidates[min(number, len(candidates) - 1)] for candidates in specs]
        for number in range(max(map(len, specs)))
    ]
    best, suited = _fitting(model, wanted, tries)
    return best, [*notes, *suited]


def _published_side(model: _Model) -> int | None:
    """Return the image size of a known class of models, of which one may be a part of this one."""
    sides = (PUBLISHED_SIDES.get(name) for name in model.program.class_names())
    return next((side for side in sides if side is not None), None)


def _fitting(
    model: _Model, wanted: Sequence[Parameter], tries: list[list[TensorSpec]]
) -> tuple[list[Any], list[str]]:
    """Interpret the code with one set of inputs after the other until one fits, or fits best.

    If two sizes differ that should be equal, inputs that would make them equal are tried next.
    """
    best: list[Any] = []
    suited: list[str] = []
    steps = 0
    fewest: tuple[bool, int] | None = None
    tried: list[list[TensorSpec]] = []
    while tries and len(tried) < _MAX_TRIES and steps <= MAX_STEPS:
        chosen = tries.pop(0)
        if chosen in tried:
            continue
        tried.append(chosen)
        # A list of tensors has one sample each, without a batch dimension.
        given = [
            TensorSpec(spec.shape[1:], spec.dtype) if parameter.kind == "Tensors" else spec
            for spec, parameter in zip(chosen, wanted, strict=True)
        ]
        arguments = _arranged(model, [Tensor(spec) for spec in given])
        run, is_whole = model.interpret(arguments)
        score = (not is_whole, len(run.notes) + run.notes_left_out)
        if fewest is None or score < fewest:
            best, fewest = arguments, score
            shape = " and ".join(format_shape(spec.shape) for spec in given)
            is_first = len(tried) == 1
            suited = [] if is_first else [f"{shape} is the first size that fits its layers"]
        steps += run.steps
        if score == (False, 0):
            break
        tries[:0] = _adapted_inputs(chosen, run.differing)
    return best, suited


def _adapted_inputs(chosen: list[TensorSpec], differing: tuple[int, ...]) -> list[list[TensorSpec]]:
    """Return inputs of which one is changed so that two sizes may be equal."""
    return [
        [*chosen[:place], better, *chosen[place + 1 :]]
        for place, spec in enumerate(chosen)
        for better in adapted(spec, differing)
    ]


def _is_optional(parameter: Parameter) -> bool:
    return parameter.default is not None
