"""Things that people save with torch, each made when it is asked for. Needs torch."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

CASES: dict[str, Callable[[], Any]] = {}


def case(make: Callable[[], Any]) -> Callable[[], Any]:
    """Add a case under its function's name."""
    CASES[make.__name__] = make
    return make


def grid(rows: int = 3, columns: int = 4, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.arange(rows * columns, dtype=dtype).reshape(rows, columns)


def bytes_as(dtype: torch.dtype, count: int = 16) -> torch.Tensor:
    """A tensor of a type that torch cannot compute with."""
    return torch.arange(count, dtype=torch.uint8).view(dtype)


# Where elements are


@case
def contiguous() -> Any:
    return {
        "a": grid(),
        "b": torch.ones(()),
        "none": torch.empty(0),
        "also none": torch.empty(3, 0),
    }


@case
def views_of_one_storage() -> Any:
    base = torch.arange(1000.0)
    table = base[:900].view(30, 30)
    return {
        "base": base,
        "slice": base[10:20],
        "steps": base[::7],
        "turned": table.t(),
        "column": table[:, 3],
        "window": base.unfold(0, 5, 2),
        "diagonal": table.diagonal(),
    }


@case
def small_view_of_a_large_storage() -> Any:
    return {"x": torch.zeros(100_000)[5:15], "y": torch.zeros(500).view(50, 10)[::2, 1:3]}


@case
def expanded() -> Any:
    return {"x": torch.ones(1).expand(100, 100), "row": torch.arange(4.0).expand(3, 4)}


@case
def tied_by_storage() -> Any:
    weight = nn.Parameter(grid())
    return {"input": weight.detach(), "output": weight.detach(), "turned": weight.detach().t()}


@case
def tied_by_object() -> Any:
    weight = grid()
    return {"input": weight, "output": weight, "list": [weight, weight]}


@case
def at_the_top() -> Any:
    return grid()


@case
def in_a_list() -> Any:
    return [grid(), (grid(2, 2), {3: grid(1, 1), (4, "x"): torch.ones(2)})]


@case
def storages() -> Any:
    tensor = torch.arange(8, dtype=torch.uint8)
    return {"untyped": tensor.untyped_storage(), "typed": torch.FloatStorage(4)}


# What elements are

FLOATS = ("float64", "float32", "float16", "bfloat16")
EIGHTHS = tuple(f"float8_{kind}" for kind in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu"))
INTEGERS = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool")
NUMERIC = (*FLOATS, *EIGHTHS, *INTEGERS, "complex128", "complex64")
OPAQUE = ("float4_e2m1fn_x2", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2")


def of_type(name: str) -> Callable[[], Any]:
    def make() -> Any:
        dtype = getattr(torch, name)
        made = bytes_as(dtype) if name in OPAQUE else grid().to(dtype)
        return {"x": made, "view": made[1:], "w": nn.Parameter(made, requires_grad=False)}

    return make


for _name in (*NUMERIC, *OPAQUE):
    CASES[f"type_{_name}"] = of_type(_name)


@case
def complex_half() -> Any:
    return {"x": torch.ones(3, dtype=torch.complex32)}


@case
def conjugates() -> Any:
    numbers = torch.tensor([1 + 2j, 3 - 4j])
    return {"conjugate": numbers.conj(), "negative": (numbers * 2).conj().imag}


# Kinds of tensors


@case
def parameters() -> Any:
    frozen = nn.Parameter(grid(), requires_grad=False)
    leaf = grid().requires_grad_()
    return {"p": nn.Parameter(grid()), "frozen": frozen, "leaf": leaf, "buffer": nn.Buffer(grid())}


@case
def parameter_with_state() -> Any:
    parameter = nn.Parameter(grid())
    parameter.sharded = "yes"
    parameter.scale = torch.ones(3)
    plain = grid()
    plain.note = {"made": "here"}
    return {"p": parameter, "t": plain}


@case
def sparse() -> Any:
    dense = torch.tensor([[0.0, 1.0, 0, 0], [2.0, 0, 0, 3.0]])
    doubled = torch.sparse_coo_tensor([[0, 0, 1], [2, 2, 0]], [1.0, 2.0, 3.0], (2, 4))
    return {
        "coo": dense.to_sparse(),
        "not coalesced": doubled,
        "hybrid": torch.stack([dense, dense], 2).to_sparse(2),
        "csr": dense.to_sparse_csr(),
        "csc": dense.to_sparse_csc(),
        "bsr": dense.to_sparse_bsr((1, 2)),
        "bsc": dense.to_sparse_bsc((2, 1)),
    }


@case
def quantized() -> Any:
    scales, zeros = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64), torch.tensor([0, 1, 2])
    return {
        "tensor": torch.quantize_per_tensor(grid(), 0.5, 3, torch.qint8),
        "wide": torch.quantize_per_tensor(grid(), 0.5, 3, torch.qint32),
        "channel": torch.quantize_per_channel(grid(), scales, zeros, 0, torch.quint8),
    }


@case
def nested() -> Any:
    parts = [torch.ones(2, 3), torch.zeros(4, 3)]
    return {
        "strided": torch.nested.nested_tensor(parts, layout=torch.strided),
        "jagged": torch.nested.nested_tensor(parts, layout=torch.jagged),
    }


@case
def meta() -> Any:
    return {"x": torch.empty(1000, 1000, device="meta"), "y": torch.ones(2)}


class Named(torch.Tensor):
    """A subclass that adds nothing."""


class Doubled(torch.Tensor):
    """A wrapper: no elements of its own, two tensors inside."""

    def __new__(cls, low: torch.Tensor, _: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, low.shape, dtype=low.dtype)

    def __init__(self, low: torch.Tensor, high: torch.Tensor) -> None:
        self.low, self.high = low, high

    @classmethod
    def __torch_dispatch__(cls, *arguments: Any) -> Any:
        return NotImplemented


@case
def subclasses() -> Any:
    return {"named": grid().as_subclass(Named), "wrapper": Doubled(torch.ones(4), torch.zeros(4))}


@case
def arrays() -> Any:
    return {
        "a": np.arange(12.0).reshape(3, 4),
        "fortran": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
        "big": np.arange(4, dtype=">f4"),
        "flags": np.array([True, False]),
        "text": np.array(["ab", "c"]),
        "objects": np.array([None, "x"], dtype=object),
        "scalar": np.float32(1.5),
        "none": np.zeros((0, 3)),
    }


# Values that are no tensors


class Color(enum.Enum):
    """An enumeration, which a pickle calls by value."""

    RED = 1


class Point(NamedTuple):
    """A tuple whose items have names."""

    x: int
    y: int


class Config:
    """An object with a state."""

    def __init__(self) -> None:
        self.rate, self.weight = 0.1, torch.ones(2)


class Slotted:
    """An object whose state is a pair."""

    __slots__ = ("a", "b")

    def __init__(self) -> None:
        self.a, self.b = 1, torch.ones(3)


@case
def values() -> Any:
    return {
        "int": 3, "large": 2**100, "negative": -(2**40), "float": 2.5, "nan": float("nan"),
        "text": "é\n\x1b[31m", "bytes": b"\x00\xff" * 5, "none": None, "yes": True,
        "set": {1, 2}, "frozen": frozenset("ab"), "complex": 1 + 2j, "array": bytearray(b"xy"),
        "range": range(3), "slice": slice(1, 2), "date": datetime.datetime(2026, 1, 2, 3),
        "decimal": decimal.Decimal("1.5"), "color": Color.RED, "point": Point(1, 2),
        "ordered": collections.OrderedDict(a=1), "default": collections.defaultdict(list, a=[1]),
        "counter": collections.Counter("aab"), "queue": collections.deque([1, 2], 5),
        "dtype": torch.float16, "size": torch.Size([1, 2]), "device": torch.device("cuda", 1),
        "type": dict, "function": len, "config": Config(), "slotted": Slotted(),
        7: "seven", None: "nothing", (1, "a"): "pair", "": "empty",
    }  # fmt: skip


@case
def circles() -> Any:
    ring: list[Any] = [torch.ones(2)]
    ring.append(ring)
    table: dict[str, Any] = {"ring": ring}
    table["self"] = table
    config = Config()
    config.owner = config  # type: ignore[attr-defined]
    return {"table": table, "config": config}


# What training leaves behind


class Net(nn.Module):
    """A small network with shared weights, a buffer, and one that is not saved."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.last = nn.Linear(8, 4, bias=False)
        self.tied = self.last.weight
        self.register_buffer("mask", torch.ones(8, dtype=torch.bool))
        self.register_buffer("scratch", torch.zeros(5), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.norm(self.first(x)))


def trained() -> tuple[Net, torch.optim.Optimizer, Any]:
    """A network after one step."""
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    net(torch.randn(8, 4)).square().sum().backward()
    optimizer.step()
    schedule.step()
    return net, optimizer, schedule


@case
def state_dict() -> Any:
    return trained()[0].state_dict()


@case
def whole_module() -> Any:
    return trained()[0]


@case
def optimizer_state() -> Any:
    return trained()[1].state_dict()


@case
def lightning() -> Any:
    net, optimizer, schedule = trained()
    return {
        "epoch": 3,
        "global_step": 1200,
        "pytorch-lightning_version": "2.5.0",
        "state_dict": {f"model.{key}": value for key, value in net.state_dict().items()},
        "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"total": {"ready": 3}}}},
        "callbacks": {"ModelCheckpoint{'monitor': 'loss'}": {"best": torch.tensor(0.5)}},
        "optimizer_states": [optimizer.state_dict()],
        "lr_schedulers": [schedule.state_dict()],
        "hparams_name": "config",
        "hyper_parameters": {"rate": 0.01, "layers": [4, 8, 4]},
    }
