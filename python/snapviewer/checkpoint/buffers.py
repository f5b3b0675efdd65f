"""Which tensors of a file are learned, and which only kept: buffers, samples, an optimizer's.

A `.pt2` says it of each tensor, the code of a TorchScript archive of each class. State dicts do
not, so names that torch gives to buffers have to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from snapviewer import Checkpoint, SnapshotError
from snapviewer._core import Tensor, Value
from snapviewer.checkpoint.code import Archive, archive_of

# How torch writes a class: its name, then the names of its parameters and buffers.
_CLASS = re.compile(
    r"^class (\w+)\([\w.]+\):\n  __parameters__ = .*\n  __buffers__ = \[(.*)\]", re.M
)
_NAMES = ("running_mean", "running_var", "num_batches_tracked", "position_ids")
# How the state dict of an optimizer is laid out: by the numbers of parameters.
_OPTIMIZER = re.compile(r"(^|\.)state\[\d+\]\.")
# A list of an archive; quantized weights have a state, and layers that recur list their weights.
_LISTED = re.compile(r"(?<!\.state)(?<!\._flat_weights)\[\d+\]$")
_SAMPLES = re.compile(r"sample_inputs(\[|$)")
# A file may have modules inside of each other without end, and names of buffers in each.
_MOST_MODULES = 100_000
_MOST_NAMES = 1_000_000
_LONGEST_WAY = 1024


def is_sample(checkpoint: Checkpoint, name: str) -> bool:
    """Tell whether a tensor is what an exported program was tried with, and no part of it."""
    return checkpoint.format == "pt2" and _SAMPLES.match(name) is not None


def buffers_of(checkpoint: Checkpoint) -> frozenset[str]:
    """Return the names of the tensors that a model keeps and does not learn."""
    by_name = {
        tensor.name
        for tensor in checkpoint.tensors
        if is_buffer(tensor.name, tensor.dtype) or is_of_optimizer(tensor.name)
    }
    if checkpoint.format == "pt2":
        told = {tensor.name for tensor in checkpoint.tensors if tensor.kind != "parameter"}
        return frozenset(by_name | told)
    if checkpoint.format == "torchscript":
        by_name |= {tensor.name for tensor in checkpoint.tensors if _is_of_code(tensor)}
        try:
            names = {tensor.name for tensor in checkpoint.tensors}
            return frozenset(by_name | names.intersection(_in_code(archive_of(checkpoint))))
        except (SnapshotError, OSError):
            return frozenset(by_name)
    return frozenset(by_name)


def is_buffer(name: str, dtype: str) -> bool:
    """Tell whether a tensor is kept rather than learned, by its name and type.

    >>> is_buffer("bn1.running_mean", "float32"), is_buffer("conv1.weight", "float32")
    (True, False)
    """
    return name.rsplit(".", 1)[-1] in _NAMES or dtype.startswith(("int64", "bool"))


def is_of_optimizer(name: str) -> bool:
    """Tell whether a tensor is what an optimizer remembers of a parameter.

    >>> is_of_optimizer("optimizer.state[0].exp_avg"), is_of_optimizer("model.state.weight")
    (True, False)
    """
    return _OPTIMIZER.search(name) is not None


def _is_of_code(tensor: Tensor) -> bool:
    """Tell whether a tensor is what only the code of an archive uses.

    Such are numbers, which a trace keeps as float64, and lists that are attributes of a module,
    such as the anchors of a detector. Other constants are the weights of a frozen model.
    """
    if tensor.name.startswith("constants["):
        return not tensor.shape and tensor.dtype == "float64"
    return _LISTED.search(tensor.name) is not None


def _in_code(archive: Archive) -> Iterator[str]:
    """Walk through the modules, and yield the ways to the buffers of each."""
    classes: dict[str, dict[str, tuple[str, ...]]] = {}

    def buffers(type_name: str) -> tuple[str, ...]:
        file, _, name = type_name.rpartition(".")
        if file not in classes:
            source = archive.source(file) if file in archive.code else ""
            classes[file] = {
                found[1]: tuple(re.findall(r'"([^"]*)"', found[2]))
                for found in _CLASS.finditer(source)
            }
        return classes[file].get(name, ())

    waiting: list[tuple[str, Value]] = [("", archive.checkpoint.root)]
    modules, names = _MOST_MODULES, _MOST_NAMES
    while waiting and names > 0:
        above, module = waiting.pop()
        here = buffers(module.type)[:names]
        names -= 1 + len(here)
        yield from (f"{above}{name}" for name in here)
        if len(above) < _LONGEST_WAY and modules > 0:
            inside = module.items(0, _MOST_MODULES)
            names -= len(inside)
            found = [(name, inner) for name, inner in inside if inner.type.startswith("__torch__.")]
            waiting += [(f"{above}{name}.", inner) for name, inner in found[:modules]]
            modules -= len(found)
