"""The module tree of an archive: objects, their attributes and their tensors."""

from __future__ import annotations

from typing import Any

from snapviewer._core import Checkpoint, SnapshotError
from snapviewer._core import Value as FileValue
from snapviewer.model.graph import TensorSpec, Unknown
from snapviewer.model.shapes.dtypes import is_integral
from snapviewer.model.torchscript.elements import MAX_ROW
from snapviewer.model.torchscript.values import Instance, Tensor, within_64_bits

_MAX_ITEMS = 100_000
_MAX_DEPTH = 30
_MAX_PACKED = 1000  # values in a packed weight; it has about ten
_PACKED = "__torch__.torch.classes.quantized."
_PICKLED = "torch.jit._pickle."
_PLAIN = ("int", "float", "bool", "str", "NoneType")


class Tree:
    """Converts the inert values of a file into values of the interpreter, each once."""

    def __init__(self, checkpoint: Checkpoint, *, is_bare: bool = False) -> None:
        # Bare values are inputs of the model, without elements and names.
        self._checkpoint = checkpoint
        self._is_bare = is_bare
        self._tensors = checkpoint.tensors
        self._made: dict[FileValue, Any] = {}
        self._made_tensors: dict[int, Tensor] = {}
        self._constants = {
            tensor.name: index
            for index, tensor in enumerate(self._tensors)
            if tensor.name.startswith("constants[")
        }
        self._in_constants: dict[str, list[int]] = {}
        for name, index in self._constants.items():
            constant, is_inside, _ = name.partition("].state")
            if is_inside:
                self._in_constants.setdefault(f"{constant}]", []).append(index)

    def root(self) -> Any:
        """Return the model."""
        return self.value(self._checkpoint.root, "")

    def constant(self, number: int) -> Any:
        """Return `CONSTANTS.c…` of the code."""
        name = f"constants[{number}]"
        if name in self._constants:
            return self._tensor(self._constants[name])
        return self._packed(self._in_constants.get(name, [])[:_MAX_PACKED])

    def attribute(self, owner: Instance, name: str) -> Any:
        """Return an attribute of an object; KeyError if it has none of this name."""
        if name not in owner.attributes and name in owner.stored:
            path = f"{owner.path}.{name}" if owner.path else name
            owner.attributes[name] = self.value(owner.stored[name], path)
        return owner.attributes[name]

    def value(self, value: FileValue, path: str, depth: int = 0) -> Any:
        """Return a value of the file; an unsupported one is Unknown."""
        if value.tensor is not None:
            return self._tensor(value.tensor)
        if value.type in _PLAIN:
            return _plain(value)
        if depth > _MAX_DEPTH or (value.count or 0) > _MAX_ITEMS:
            return Unknown("a value of the file is too large or too deep")
        if value in self._made:
            return self._made[value]
        made = self._make(value, path, depth + 1)
        self._made[value] = made
        return made

    def _make(self, value: FileValue, path: str, depth: int) -> Any:
        kind = value.type
        if kind == f"{_PICKLED}restore_type_tag":
            return self._tagged(value, path, depth)
        if kind in ("list", "tuple") or kind.startswith(f"{_PICKLED}build_"):
            items = [self.value(item, f"{path}{key}", depth) for key, item in value.items()]
            return tuple(items) if kind == "tuple" else items
        if kind in ("dict", "OrderedDict"):
            return self._dict(value, path, depth)
        if kind.startswith(_PACKED):
            return self._packed(_tensors_in(value))
        if kind.startswith("__torch__."):
            if not value.is_container and value.preview is not None:
                return Unknown(f"a value of class {kind.rpartition('.')[2][:100]}")
            return Instance(kind, path, stored=dict(value.items()))
        return Unknown(f"a value of type {kind[:100]}")

    def _tagged(self, value: FileValue, path: str, depth: int) -> Any:
        """Return a collection that has the type of its items beside it."""
        items = dict(value.items())
        return self.value(items["[0]"], path, depth) if "[0]" in items else Unknown("nothing")

    def _dict(self, value: FileValue, path: str, depth: int) -> Any:
        made = {}
        for key, item in value.entries():
            known = _plain(key)
            if isinstance(known, Unknown):
                return Unknown("a dictionary with keys that cannot be read")
            made[known] = self.value(item, f"{path}.{known}", depth)
        return made

    def _packed(self, indexes: list[int]) -> Any:
        """What a packed weight was packed from: itself, the bias, and how a convolution uses it."""
        tensors = [self._tensor(index) for index in indexes]
        weight = next((tensor for tensor in tensors if len(tensor.spec.shape) > 1), None)
        if weight is None:
            return Unknown("a packed weight that cannot be read")
        bias = next((t for t in tensors if t.spec.dtype == "float32" and t is not weight), None)
        if len(weight.spec.shape) == 2:
            return (weight, bias)
        settings = next((i for i in indexes if self._tensors[i].dtype == "int16"), None)
        numbers = () if settings is None else self._numbers(settings)
        return _convolution(weight, bias, numbers)

    def _numbers(self, index: int) -> tuple[float, ...]:
        """Return the elements of a tensor that has only a few; none if they cannot be had."""
        try:
            return self._checkpoint.elements(index)
        except SnapshotError:
            return ()

    def _tensor(self, index: int) -> Tensor:
        if index not in self._made_tensors:
            tensor = self._tensors[index]
            spec = TensorSpec(tensor.shape, tensor.dtype)
            name = "" if self._is_bare else tensor.name
            made = Tensor(spec, name=name, requires_grad=tensor.requires_grad)
            is_short = len(tensor.shape) == 1 and 0 < tensor.shape[0] <= MAX_ROW
            is_row = is_short and is_integral(tensor.dtype)
            if not self._is_bare and (is_row or not tensor.shape):
                numbers = self._numbers(index)
                if is_row:
                    made.row = numbers
                elif numbers:
                    made.number = numbers[0]
            self._made_tensors[index] = made
        return self._made_tensors[index]


def _convolution(weight: Tensor, bias: Any, numbers: tuple[float, ...]) -> Any:
    """Spread out the settings: dimensions, stride, padding, dilation, output padding, groups, …."""
    count = len(weight.spec.shape) - 2
    if len(numbers) != 3 + 4 * count or numbers[0] != count:
        return Unknown("a packed convolution whose settings cannot be read")
    whole = [int(number) for number in numbers[1:]]
    stride, padding, dilation, extra = (whole[n * count : (n + 1) * count] for n in range(4))
    return (weight, bias, stride, padding, dilation, whole[-2], bool(whole[-1]), extra)


def _tensors_in(value: FileValue) -> list[int]:
    """Return the tensors in a value in their order; it may hold the same ones without end."""
    found: list[int] = []
    waiting, left = [value], _MAX_PACKED
    while waiting:
        item = waiting.pop()
        if item.tensor is not None:
            found.append(item.tensor)
        elif item.is_container and left:
            inside = [held for _, held in item.items(0, min(left, 100))]
            left -= len(inside)
            waiting.extend(reversed(inside))
    return found


def _plain(value: FileValue) -> Any:
    try:
        return within_64_bits(value.value)
    except ValueError:
        return Unknown(f"a value of type {value.type[:100]}")
