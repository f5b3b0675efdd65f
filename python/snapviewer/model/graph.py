"""The graph of a model: its operations in the order in which they run, with their shapes.

Graphs come from the code of a TorchScript archive, from a `.pt2` file, or from a run of a live
module. None of them needs the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

# An operation of a graph takes 25 kB in memory, and 3 kB in a document.
MAX_NODES = 30_000


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor without its elements; an unknown dimension is None, an unknown dtype empty."""

    shape: tuple[int | None, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that could not be determined, and why."""

    why: str


Value: TypeAlias = "TensorSpec | Unknown | int | float | bool | str | tuple[Value, ...] | None"


@dataclass(frozen=True, slots=True)
class Node:
    """One operation.

    `op` is its name without an overload, such as `aten::conv2d`; `arguments` and `keywords` are
    those of its schema; `module` is the path of the module that runs it, such as `layer1.0.conv1`,
    and empty for the model itself; `parameters` are the names of the parameters and buffers among
    its arguments; `times` is how often it runs, as in a loop.
    """

    number: int
    op: str
    module: str
    module_type: str
    arguments: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    outputs: tuple[Value, ...]
    parameters: tuple[str, ...]
    times: int = 1


@dataclass(frozen=True, slots=True)
class InputSize:
    """A size of the inputs of a model, and which others it may have.

    `places` are the dimensions that have it, each as (number of the input, dimension); `role` is
    what they stand for, such as `batch` or `length`; `least` and `most` are None without a limit.
    """

    places: tuple[tuple[int, int], ...]
    role: str
    size: int
    varies: bool
    least: int | None = None
    most: int | None = None
    suggested: tuple[int, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """The operations of a model, with nested blocks and submodules inlined."""

    source: Literal["torchscript", "pt2", "live"]
    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    input_source: Literal["given", "traced", "sample", "inferred", "none"]
    notes: tuple[str, ...]
    """What could not be determined, in sentences."""
    doubts: tuple[str, ...] = ()
    """Those of the notes that say why the counts may differ from a run."""
    input_sizes: tuple[InputSize, ...] = ()
    """The sizes of the inputs that may vary, and those that may not, as far as known."""
