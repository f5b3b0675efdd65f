"""Abstract interpreter of the code of a model, statement by statement.

Tensors are only shapes; plain values are themselves. If a condition depends on the values of a
tensor, both branches are interpreted and the one with more work is kept.

# Invariants

No code is run: every construct is handled here, and an unknown one gives an Unknown and a note.
Time and memory are limited by `Run.spend`, whatever the code contains.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from snapviewer.model.graph import Unknown
from snapviewer.model.shapes import UnknownNumber
from snapviewer.model.torchscript import operations, scalars
from snapviewer.model.torchscript.program import Class, Program
from snapviewer.model.torchscript.run import Attempt, CodeRaisedError, Run, StoppedError, rough_work
from snapviewer.model.torchscript.tree import Tree
from snapviewer.model.torchscript.values import (
    Function,
    Instance,
    Member,
    NamedValues,
    Tensor,
    unknown_like,
    within_64_bits,
)

_MAX_DEPTH = 60  # nested calls
_NUMBERS = {"inf": float("inf"), "nan": float("nan"), "infj": Unknown("a complex number")}
_ROOTS = ("torch", "ops", "__torch__", "CONSTANTS")


@dataclass(slots=True)
class _Frame:
    """A call: its variables and the module whose code it is."""

    variables: dict[str, Any]
    module: tuple[str, str]
    depth: int


@dataclass(frozen=True, slots=True)
class _Returned:
    value: Any


class Interpreter:
    """Interprets the functions of a program."""

    def __init__(self, program: Program, tree: Tree, run: Run) -> None:
        self._program = program
        self._tree = tree
        self.run = run

    def method(self, owner: Instance, name: str, arguments: Sequence[Any]) -> Any:
        """Interpret a method of an object."""
        top = _Frame({}, ("", ""), 0)
        return self._call_method(owner, name, list(arguments), {}, top)

    # Calls

    def _call_method(
        self,
        owner: Any,
        name: str,
        arguments: list[Any],
        keywords: dict[str, Any],
        frame: _Frame,
    ) -> Any:
        if isinstance(owner, Unknown):
            return Unknown(owner.why)
        if not isinstance(owner, Instance):
            return self._gap(f"a method {name[:100]} of a plain value")
        found = self._program.find_class(owner.class_name)
        self._restore(owner, found)
        node = found.methods.get(name) if found else None
        if node is None:
            return self._gap(f"no method {name[:100]} of {owner.class_name[:200]} in the code")
        is_module = found is not None and found.kind == "Module"
        module = (owner.path, owner.short_name) if is_module else frame.module
        return self._call(node, [owner, *arguments], keywords, module, frame.depth)

    def _call(
        self,
        node: ast.FunctionDef,
        arguments: list[Any],
        keywords: dict[str, Any],
        module: tuple[str, str],
        depth: int,
        outer: dict[str, Any] | None = None,
    ) -> Any:
        self.run.spend(1)
        if depth >= _MAX_DEPTH:
            raise StoppedError(f"after {_MAX_DEPTH} nested calls")
        inner = _Frame(dict(outer or {}), module, depth + 1)
        names = [argument.arg for argument in node.args.args]
        self.run.spend(len(inner.variables) + len(names))
        defaults = node.args.defaults
        for place, name in enumerate(names):
            if place < len(arguments):
                inner.variables[name] = arguments[place]
            elif name in keywords:
                inner.variables[name] = keywords[name]
            elif place >= len(names) - len(defaults):
                default = defaults[place - len(names) + len(defaults)]
                inner.variables[name] = self._value(default, inner)
            else:
                annotation = node.args.args[place].annotation
                inner.variables[name] = unknown_like(annotation, f"argument {name[:100]}")
        result = self._block(node.body, inner)
        return result.value if isinstance(result, _Returned) else None

    def _restore(self, owner: Instance, found: Class | None) -> None:
        """Let an object that was saved with `__getstate__` restore its attributes."""
        if "state" not in owner.stored or found is None or "__setstate__" not in found.methods:
            return
        state = self._tree.attribute(owner, "state")
        del owner.stored["state"], owner.attributes["state"]
        node, module = found.methods["__setstate__"], (owner.path, owner.short_name)
        # That happens when the model is loaded, not each time it is used.
        self.run.permanently(lambda: self._call(node, [owner, state], {}, module, 0))

    def _gap(self, text: str) -> Unknown:
        self.run.note(f"not supported: {text}", is_doubt=True)
        return Unknown(text)

    # Statements

    def _block(self, body: Sequence[ast.stmt], frame: _Frame) -> _Returned | None:
        for statement in body:
            self.run.spend(1)
            result = self._statement(statement, frame)
            if result is not None:
                return result
        return None

    def _statement(self, node: ast.stmt, frame: _Frame) -> _Returned | None:
        if isinstance(node, ast.Assign):
            value = self._value(node.value, frame)
            for target in node.targets:
                self._assign(target, value, frame)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._assign(node.target, self._value(node.value, frame), frame)
        elif isinstance(node, ast.Expr):
            self._value(node.value, frame)
        elif isinstance(node, ast.Return):
            return _Returned(None if node.value is None else self._value(node.value, frame))
        elif isinstance(node, ast.If):
            return self._if(node, frame)
        elif isinstance(node, ast.While):
            return self._while(node, frame)
        elif isinstance(node, ast.For):
            return self._for(node, frame)
        elif isinstance(node, ast.With):
            return self._with(node, frame)
        elif isinstance(node, ast.FunctionDef):
            frame.variables[node.name] = Function(node.name, node)
        elif isinstance(node, ast.Assert):
            if self._truth(node.test, frame) is False:
                raise CodeRaisedError("an assertion")
        elif isinstance(node, ast.Raise):
            raise CodeRaisedError("an error")
        elif not isinstance(node, ast.Pass):
            self._gap(f"a statement {type(node).__name__}")
        return None

    def _assign(self, target: ast.expr, value: Any, frame: _Frame) -> None:
        self.run.spend(1)
        if isinstance(target, ast.Name):
            frame.variables[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value, frame)
        elif isinstance(target, ast.Attribute):
            owner = self._value(target.value, frame)
            if isinstance(owner, Instance):
                self.run.touch(owner)
                owner.attributes[target.attr] = value
        elif isinstance(target, ast.Subscript):
            items, key = self._value(target.value, frame), self._value(target.slice, frame)
            scalars.apply("_set_item", [items, key, value], {}, self.run)

    def _unpack(self, targets: Sequence[ast.expr], value: Any, frame: _Frame) -> None:
        if not isinstance(value, (list, tuple)) or len(value) != len(targets):
            if not isinstance(value, Unknown):
                value = self._gap("unpacking of a value with another number of parts")
            value = [value] * len(targets)
        for target, item in zip(targets, value, strict=True):
            self._assign(target, item, frame)

    def _with(self, node: ast.With, frame: _Frame) -> _Returned | None:
        owners = [self._value(item.context_expr, frame) for item in node.items]
        for owner in owners:
            if isinstance(owner, Instance):
                self._call_method(owner, "__enter__", [], {}, frame)
        result = self._block(node.body, frame)
        for owner in reversed(owners):
            if isinstance(owner, Instance):
                self._call_method(owner, "__exit__", [None, None, None], {}, frame)
        return result

    # Conditions and loops

    def _truth(self, node: ast.expr, frame: _Frame) -> bool | None:
        """Return whether a condition holds; None if that depends on values of tensors."""
        value = self._value(node, frame)
        if isinstance(value, Tensor):
            value = value.number
            return None if value is None else bool(value)
        return None if isinstance(value, Unknown) else bool(value)

    def _if(self, node: ast.If, frame: _Frame) -> _Returned | None:
        truth = self._truth(node.test, frame)
        if truth is not None:
            return self._block(node.body if truth else node.orelse, frame)
        before = frame.variables
        attempts: list[tuple[Attempt, dict[str, Any]]] = []
        for body in (node.body, node.orelse):
            frame.variables = dict(before)
            self.run.spend(len(before))
            attempt = self.run.attempt(lambda body=body: self._block(body, frame))  # type: ignore[misc]
            attempts.append((attempt, frame.variables))
        frame.variables = before
        going = [pair for pair in attempts if pair[0].raised is None]
        if not going:
            raise attempts[0][0].raised or CodeRaisedError("an error")
        amounts = [sum(rough_work(node) for node in attempt.nodes) for attempt, _ in going]
        chosen, variables = going[amounts.index(max(amounts))]
        if len(going) > 1 and any(attempt.nodes for attempt, _ in going):
            where = f" in {frame.module[0][:100]}" if frame.module[0] else ""
            self.run.note(
                f"a condition{where} depends on values: the branch with more work is counted",
                is_doubt=True,
            )
        self.run.accept(chosen)
        if len(going) > 1:
            other = going[0][1] if variables is going[1][1] else going[1][1]
            _merge(variables, other, before)
        frame.variables = variables
        result: _Returned | None = chosen.result
        return result

    def _while(self, node: ast.While, frame: _Frame) -> _Returned | None:
        is_first = True
        while True:
            self.run.spend(1)
            truth = self._truth(node.test, frame)
            if truth is False:
                return None
            if truth is None:
                self._note_loop(frame)
                if not is_first:
                    return None
            result = self._block(node.body, frame)
            if result is not None or truth is None:
                return result
            is_first = False

    def _for(self, node: ast.For, frame: _Frame) -> _Returned | None:
        iterations = self._iterations(node.iter, frame)
        if iterations is None:
            self._note_loop(frame)
            iterations = [UnknownNumber("the index of an iteration")]
        for item in iterations:
            self.run.spend(1)
            self._assign(node.target, item, frame)
            result = self._block(node.body, frame)
            if result is not None:
                return result
        return None

    def _iterations(self, node: ast.expr, frame: _Frame) -> Sequence[Any] | None:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "range"
        ):
            bounds = [self._value(argument, frame) for argument in node.args]
            numbers = [bound for bound in bounds if isinstance(bound, int)]
            if len(numbers) != len(bounds) or not 1 <= len(numbers) <= 3 or 0 in numbers[2:]:
                return None
            return range(*numbers)
        items = self._value(node, frame)
        return items if isinstance(items, (list, tuple, str)) else None

    def _note_loop(self, frame: _Frame) -> None:
        where = f" in {frame.module[0][:100]}" if frame.module[0] else ""
        self.run.note(
            f"how often a loop{where} runs depends on values: its body is counted once",
            is_doubt=True,
        )

    # Expressions

    def _value(self, node: ast.expr, frame: _Frame) -> Any:
        self.run.spend(1)
        if isinstance(node, ast.Name):
            return self._name(node.id, frame)
        if isinstance(node, ast.Call):
            return self._expression_call(node, frame)
        if isinstance(node, ast.Constant):
            is_plain = node.value is None or isinstance(node.value, (bool, int, float, str))
            return within_64_bits(node.value) if is_plain else Unknown("a constant of another type")
        if isinstance(node, ast.Attribute):
            return self._attribute(node, frame)
        if isinstance(node, ast.List):
            return [self._value(item, frame) for item in node.elts]
        if isinstance(node, ast.Tuple):
            return tuple(self._value(item, frame) for item in node.elts)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, frame)
        if isinstance(node, ast.Dict):
            pairs = [
                (self._value(key, frame), self._value(value, frame))
                for key, value in zip(node.keys, node.values, strict=True)
                if key is not None
            ]
            return scalars.apply("dict", [pairs], {}, self.run)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return scalars.apply("neg", [self._value(node.operand, frame)], {}, self.run)
        return self._gap(f"an expression {type(node).__name__}")

    def _name(self, name: str, frame: _Frame) -> Any:
        if name in frame.variables:
            return frame.variables[name]
        if name in _NUMBERS:
            return _NUMBERS[name]
        return self._gap(f"a name {name[:100]} that does not exist")

    def _subscript(self, node: ast.Subscript, frame: _Frame) -> Any:
        items = self._value(node.value, frame)
        if isinstance(node.slice, ast.Slice):
            return self._gap("a slice")
        key = self._value(node.slice, frame)
        return self._operation("aten::__getitem__", [items, key], {}, frame)

    def _attribute(self, node: ast.Attribute, frame: _Frame) -> Any:
        path = self._path(node, frame)
        if path is not None:
            return self._global(path)
        owner = self._value(node.value, frame)
        return self._member(owner, node.attr)

    def _member(self, owner: Any, name: str) -> Any:
        if isinstance(owner, Unknown):
            return Unknown(owner.why)
        if isinstance(owner, Instance):
            found = self._program.find_class(owner.class_name)
            self._restore(owner, found)
            try:
                return self._tree.attribute(owner, name)
            except KeyError:
                if found and name in found.constants:
                    return self._value(found.constants[name], _Frame({}, ("", ""), 0))
        try:
            return operations.member(owner, name)
        except KeyError:
            return self._gap(f"an attribute {name[:100]} that does not exist")

    def _path(self, node: ast.expr, frame: _Frame) -> str | None:
        """Return a dotted name that starts at one of the roots, or None."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id in frame.variables or node.id not in _ROOTS:
            return None
        return ".".join([node.id, *reversed(parts)])

    def _global(self, path: str) -> Any:
        if path.startswith("CONSTANTS.c") and path[11:].isdecimal() and len(path) < 30:
            return self._tree.constant(int(path[11:]))
        if path.startswith("__torch__."):
            owner, _, last = path.rpartition(".")
            found = self._program.find_class(owner)
            if found is not None and found.kind == "Enum":
                return Member(owner, last)
            return Function(path)
        if path in ("torch.inf", "torch.nan"):
            return float(path[6:])
        return self._gap(f"a name {path[:200]}")

    def _expression_call(self, node: ast.Call, frame: _Frame) -> Any:
        target = node.func
        path = self._path(target, frame)
        if path is None and isinstance(target, ast.Name) and target.id not in frame.variables:
            return self._builtin(target.id, node, frame)
        arguments = [self._value(argument, frame) for argument in node.args]
        keywords = {k.arg: self._value(k.value, frame) for k in node.keywords if k.arg}
        if path is not None:
            return self._call_path(path, arguments, keywords, frame)
        if isinstance(target, ast.Attribute):
            owner = self._value(target.value, frame)
            return self._call_method(owner, target.attr, arguments, keywords, frame)
        function = self._value(target, frame)
        if not isinstance(function, Function):
            return self._gap("a call of something that is not a function")
        if function.node is not None:
            outer = frame.variables
            return self._call(function.node, arguments, keywords, frame.module, frame.depth, outer)
        return self._call_path(function.name, arguments, keywords, frame)

    def _call_path(
        self, path: str, arguments: list[Any], keywords: dict[str, Any], frame: _Frame
    ) -> Any:
        root, _, rest = path.partition(".")
        if root == "torch":
            return self._operation(f"aten::{rest}", arguments, keywords, frame)
        if root == "ops":
            namespace, _, name = rest.partition(".")
            return self._operation(f"{namespace}::{name}", arguments, keywords, frame)
        if path.endswith(".__new__"):
            return Instance(path.removesuffix(".__new__"), frame.module[0])
        function = self._program.find_function(path)
        if function is not None:
            return self._call(function, arguments, keywords, frame.module, frame.depth)
        found = self._program.find_class(path)
        if found is not None and found.kind == "NamedTuple":
            return _named(found, arguments)
        return self._gap(f"a function {path[:200]} that is not in the code")

    def _operation(
        self, op: str, arguments: list[Any], keywords: dict[str, Any], frame: _Frame
    ) -> Any:
        return operations.apply(op, arguments, keywords, frame.module, self.run)

    def _builtin(self, name: str, node: ast.Call, frame: _Frame) -> Any:
        if name in ("annotate", "unchecked_cast") and len(node.args) == 2:
            value = self._value(node.args[1], frame)
            if isinstance(value, Tensor) and _is_number(node.args[0]):
                # Traced code passes numbers as tensors.
                return self._operation("prim::ScalarImplicit", [value], {}, frame)
            return value
        if name == "uninitialized":
            return Unknown("an uninitialized value")
        if name == "isinstance" and len(node.args) == 2:
            return self._is_instance(self._value(node.args[0], frame), node.args[1])
        arguments = [self._value(argument, frame) for argument in node.args]
        if name == "getattr" and len(arguments) == 2:
            return self._member(arguments[0], str(arguments[1]))
        if name == "fork" and arguments and isinstance(arguments[0], Function):
            function = arguments[0]
            if function.node is not None:
                outer = frame.variables
                return self._call(function.node, [], {}, frame.module, frame.depth, outer)
            return self._call_path(function.name, arguments[1:], {}, frame)
        if name == "print":
            return None
        renamed = {"int": "Int", "float": "Float", "bool": "Bool"}.get(name, name)
        return self._operation(f"prim::{renamed}", arguments, {}, frame)

    def _is_instance(self, value: Any, annotation: ast.expr) -> Any:
        self.run.spend(1)
        if isinstance(annotation, (ast.Tuple, ast.List)):
            answers = [self._is_instance(value, item) for item in annotation.elts]
            if True in answers:
                return True
            return False if all(answer is False for answer in answers) else UnknownNumber("a type")
        if isinstance(annotation, ast.Subscript):
            annotation = annotation.value
        answer = operations.describes(value, _dotted(annotation))
        return UnknownNumber("a type") if answer is None else answer


def _merge(kept: dict[str, Any], other: dict[str, Any], before: dict[str, Any]) -> None:
    """Forget booleans and texts that differ between two branches, so that both are tried later.

    Sizes and tensors are those of the branch that was kept.
    """
    for name, value in kept.items():
        if name not in other or before.get(name, kept) is value is other[name]:
            continue
        one_of = (value, other[name])
        if any(isinstance(v, bool) for v in one_of) and one_of[0] is not one_of[1]:
            kept[name] = UnknownNumber("a result that depends on values")
        elif all(isinstance(v, str) for v in one_of) and one_of[0] != one_of[1]:
            kept[name] = Unknown("one of two texts")


def _dotted(annotation: ast.expr) -> str:
    """Return the dotted name of a type; empty if it is not one."""
    parts: list[str] = []
    while isinstance(annotation, ast.Attribute) and len(parts) < _MAX_DEPTH:
        parts.append(annotation.attr)
        annotation = annotation.value
    return ".".join([annotation.id, *reversed(parts)]) if isinstance(annotation, ast.Name) else ""


def _is_number(annotation: ast.expr) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id in ("number", "int", "float")


def _named(found: Class, arguments: list[Any]) -> Any:
    value = NamedValues(arguments)
    value.fields = tuple(found.fields)
    return value
