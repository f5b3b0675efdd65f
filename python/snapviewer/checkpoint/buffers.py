"""Which tensors of a file are parameters, and which are buffers, samples or optimizer state.

A `.pt2` says so of each tensor, the code of a TorchScript archive of each class. A state dict does
not, so tensors with the names that torch gives to buffers count as buffers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from snapviewer import Checkpoint, SnapshotError
from snapviewer._core import Tensor, Value
from snapviewer.checkpoint.code import Archive, archive_of

# A class as torch writes it: its name, then the names of its parameters and buffers.
_CLASS = re.compile(
    r"^class (\w+)\([\w.]+\):\n  __parameters__ = .*\n  __buffers__ = \[(.*)\]", re.M
)
_NAMES = ("running_mean", "running_var", "num_batches_tracked", "position_ids")
# The state dict of an optimizer, by the usual names of it, or by the numbers of its parameters.
_OPTIMIZER = re.compile(
    r"(opt|optim\w*|\w*optimizers?(_states?)?)(?=[.\[]|$)|(.*\.)?state\[\d+\]\.", re.DOTALL
)
_OTHER_STATE = re.compile(
    r"(lr_schedulers?|sched\w*|(grad_)?scaler|amp|\w*rng_states?\w*|random_state|loops|callbacks)"
    r"(?=[.\[]|$)"
)
# Formats that label each tensor, so that names do not matter.
_LABELLED = ("pt2", "torchscript")
# A list of an archive; quantized weights have a state, and recurrent layers list their weights.
_LISTED = re.compile(r"(?<!\.state)(?<!\._flat_weights)\[\d+\]$")
_SAMPLES = re.compile(r"sample_inputs(\[|$)")
# A hostile file may nest modules without end, with many names in each.
_MAX_MODULES = 100_000
_MAX_NAMES = 1_000_000
_MAX_PATH = 1024


def is_sample(checkpoint: Checkpoint, name: str) -> bool:
    """Return whether a tensor is a sample input of an exported program."""
    return checkpoint.format == "pt2" and _SAMPLES.match(name) is not None


def buffers_of(checkpoint: Checkpoint) -> frozenset[str]:
    """Return the names of the tensors that are not parameters."""
    by_name = {
        tensor.name
        for tensor in checkpoint.tensors
        if is_buffer(tensor.name, tensor.dtype) or is_training_state(tensor.name, checkpoint.format)
    }
    if checkpoint.format == "pt2":
        labelled = {tensor.name for tensor in checkpoint.tensors if tensor.kind != "parameter"}
        return frozenset(by_name | labelled)
    if checkpoint.format == "torchscript":
        by_name |= {tensor.name for tensor in checkpoint.tensors if _is_of_code(tensor)}
        try:
            names = {tensor.name for tensor in checkpoint.tensors}
            return frozenset(by_name | names.intersection(_in_code(archive_of(checkpoint))))
        except (SnapshotError, OSError):
            return frozenset(by_name)
    return frozenset(by_name)


def is_buffer(name: str, dtype: str) -> bool:
    """Return whether a tensor is a buffer, by its name and type.

    >>> is_buffer("bn1.running_mean", "float32"), is_buffer("conv1.weight", "float32")
    (True, False)
    """
    return name.rsplit(".", 1)[-1] in _NAMES or dtype.startswith(("int64", "bool"))


def is_of_optimizer(name: str) -> bool:
    """Return whether a tensor is part of the state of an optimizer.

    >>> is_of_optimizer("opt.state[0].exp_avg"), is_of_optimizer("model.state.weight")
    (True, False)
    """
    return _OPTIMIZER.match(name) is not None


def is_training_state(name: str, form: str = "") -> bool:
    """Return whether a tensor is state of a training, saved beside the model.

    Args:
        name: Its name.
        form: The format of the file.

    >>> is_training_state("rng_state"), is_training_state("optical_flow.weight")
    (True, False)
    """
    if form in _LABELLED:
        return form == "pt2" and _SAMPLES.match(name) is not None
    return is_of_optimizer(name) or _OTHER_STATE.match(name) is not None


def _is_of_code(tensor: Tensor) -> bool:
    """Return whether a tensor is a constant of the code of an archive.

    These are numbers, which a trace keeps as float64, and lists that are attributes of a module,
    such as the anchors of a detector. Other constants are the weights of a frozen model.
    """
    if tensor.name.startswith("constants["):
        return not tensor.shape and tensor.dtype == "float64"
    return _LISTED.search(tensor.name) is not None


def _in_code(archive: Archive) -> Iterator[str]:
    """Walk through the modules, and yield the paths of the buffers of each."""
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
    modules, names = _MAX_MODULES, _MAX_NAMES
    while waiting and names > 0:
        above, module = waiting.pop()
        here = buffers(module.type)[:names]
        names -= 1 + len(here)
        yield from (f"{above}{name}" for name in here)
        if len(above) < _MAX_PATH and modules > 0:
            inside = module.items(0, _MAX_MODULES)
            names -= len(inside)
            found = [(name, inner) for name, inner in inside if inner.type.startswith("__torch__.")]
            waiting += [(f"{above}{name}.", inner) for name, inner in found[:modules]]
            modules -= len(found)
