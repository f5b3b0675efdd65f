"""The inputs of the goldens in `tests/compat`, written without torch where that is possible.

Every input is the same on every machine and with every release of torch. A change here changes
goldens, so add an input rather than change one.
"""

from __future__ import annotations

import pickle
import random
import struct
from collections import OrderedDict
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

from support.hostile import small_snapshot
from support.pth_writer import G, Obj, S, T, write_pth
from support.torchscript_writer import write_torchscript

MIB = 2**20


def write_snapshot(path: Path) -> None:
    """Write a snapshot of two devices.

    The second device freed a block that was allocated before the recording, uses two streams, and
    has blocks that stay, that have no call stack, and whose free was requested but not completed.
    """
    snapshot = small_snapshot()
    base = 0x7E00_0000_0000
    load = {"name": "load", "filename": "weights.py", "line": 12}
    step = {"name": "step", "filename": "train.py", "line": 41}
    block = {"name": "forward", "filename": "model.py", "line": 7}
    events = [
        ("free_requested", 0, 512, 0, [step]),
        ("free_completed", 0, 512, 0, [step]),
        ("alloc", 0, 4096, 0, [load]),
        ("alloc", 4096, 1536, 0, [block, step]),
        ("alloc", 8192, 3 * MIB, 7, [block, step]),
        ("free_requested", 8192, 3 * MIB, 7, [step]),
        ("alloc", 6144, 700, 0, []),
        ("free_completed", 8192, 3 * MIB, 7, [step]),
        ("alloc", 8192, 2 * MIB, 7, [block, step]),
        ("free_requested", 4096, 1536, 0, [step]),
        ("free_completed", 4096, 1536, 0, [step]),
        ("alloc", 4096, 1536, 0, [block, step]),
        ("free_requested", 8192, 2 * MIB, 7, [step]),
    ]
    trace = [
        {
            "action": action,
            "addr": base + offset,
            "size": size,
            "stream": stream,
            "time_us": 1_700_000_000_000_000 + 1000 * number,
            "frames": frames,
        }
        for number, (action, offset, size, stream, frames) in enumerate(events)
    ]
    sizes = [
        (4096, 4096, "active_allocated", [load]),
        (1536, 1536, "active_allocated", [block, step]),
        (512, 0, "inactive", []),
        (1024, 700, "active_allocated", []),
        (1024, 0, "inactive", []),
        (2 * MIB, 2 * MIB, "active_pending_free", [block, step]),
        (6 * MIB - 8192, 0, "inactive", []),
    ]
    blocks, offset = [], 0
    for size, requested, state, frames in sizes:
        place = {"address": base + offset, "size": size, "requested_size": requested}
        blocks.append({**place, "state": state, "frames": frames})
        offset += size
    segment = {
        **snapshot["segments"][0],
        "device": 1,
        "address": base,
        "total_size": offset,
        "allocated_size": 6656,
        "active_size": 6656 + 2 * MIB,
        "requested_size": 6332,
        "blocks": blocks,
    }
    snapshot["segments"].append(segment)
    snapshot["device_traces"].append(trace)
    path.write_bytes(pickle.dumps(snapshot))


def write_checkpoints(folder: Path) -> None:
    """Write `sample.pth`, a dict of everything that is analyzed, and `list.pth`, a list."""
    shared = S("9", bytes(4 * 64))
    deep: Any = T("int8", (5,))
    for level in range(7, 1, -1):
        deep = {f"level_{level}": deep}
    sample = {
        "video_latent": T("bfloat16", (16, 4, 8, 8), device="cuda:0"),
        "prompt": "a red fox in the snow",
        "video_id": "clip-0001",
        "video": T("uint8", (3, 16, 32, 32)),
        "model": OrderedDict(
            {
                "conv.weight": T("float32", (8, 3, 3, 3), is_parameter=True, requires_grad=True),
                "conv.bias": T("float32", (8,), requires_grad=True),
                "head.weight": T("float32", (8, 8), storage=shared),
                "tied.weight": T("float32", (8, 8), storage=shared),
            }
        ),
        "steps": [1, 2, T("int64", ())],
        "size": (480, 832),
        "rate": 2.5e-4,
        "is_final": True,
        "nothing": None,
        "settings": Obj(G("trainer", "Settings"), {"seed": 17, "name": "tuned"}),
        "deep": deep,
    }
    write_pth(folder / "sample.pth", sample)
    write_pth(folder / "list.pth", [T("float16", (2, 3)), {"epoch": 3}, "done"])


def numbers(*shape: int, seed: int, zeros: int = 0) -> T:
    """Return a tensor of numbers between -0.5 and 0.5, the first of which are zeros."""
    draw = random.Random(seed).random
    values = [0.0 if place < zeros else draw() - 0.5 for place in range(prod(shape))]
    return T("float32", shape, struct.pack(f"<{len(values)}f", *values), requires_grad=True)


def constant(value: float, count: int) -> T:
    """Return a vector of one number."""
    return T("float32", (count,), struct.pack(f"<{count}f", *[value] * count))


def write_models(folder: Path) -> None:
    """Write a network as TorchScript and as a state dict, and a smaller one.

    - `network.pt`: two convolutions, a batch normalisation and a linear layer, as a trace of a
      3 × 16 × 16 image. In each convolution the first of eight output channels is zero.
    - `state.pth`: the tensors of that network.
    - `linear.pt`: one linear layer and an activation, with no input recorded.
    """
    first, second = numbers(8, 3, 3, 3, seed=1, zeros=27), numbers(8, 8, 3, 3, seed=2, zeros=72)
    layers = {
        "conv1": ("Conv", {"weight": first, "bias": numbers(8, seed=3)}),
        "norm": (
            "Norm",
            {
                "weight": constant(1, 8),
                "bias": constant(0, 8),
                "running_mean": constant(0, 8),
                "running_var": constant(1, 8),
            },
        ),
        "conv2": ("Conv", {"weight": second, "bias": numbers(8, seed=4)}),
        "head": ("Head", {"weight": numbers(5, 8, seed=5), "bias": numbers(5, seed=6)}),
    }
    state = {
        name: Obj(G("__torch__", kind), {**tensors, "training": False})
        for name, (kind, tensors) in layers.items()
    }
    image = T("float32", (1, 3, 16, 16))
    write_torchscript(folder / "network.pt", _NETWORK, state=state, traced=[image])
    tensors = {
        f"{name}.{key}": tensor
        for name, (_, members) in layers.items()
        for key, tensor in members.items()
    }
    write_pth(folder / "state.pth", OrderedDict(tensors))
    write_torchscript(folder / "linear.pt", _LINEAR, state={"weight": numbers(4, 3, seed=7)})


def _layer(name: str, call: str, parameters: Sequence[str], buffers: Sequence[str] = ()) -> str:
    """Return the class of a layer that calls an operation with its tensors."""
    lines = [
        f"class {name}(Module):",
        f"  __parameters__ = {list(parameters)}",
        f"  __buffers__ = {list(buffers)}",
        *(f"  {tensor} : Tensor" for tensor in (*parameters, *buffers)),
        "  training : bool",
        f"  def forward(self: __torch__.{name},",
        "    x: Tensor) -> Tensor:",
        *(f"    {tensor} = self.{tensor}" for tensor in (*parameters, *buffers)),
        f"    return {call}",
    ]
    return "".join(f"{line}\n" for line in lines)


_BOTH = ("weight", "bias")
_NETWORK = """\
class M(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  conv1 : __torch__.Conv
  norm : __torch__.Norm
  conv2 : __torch__.Conv
  head : __torch__.Head
  def forward(self: __torch__.M,
    input: Tensor) -> Tensor:
    head = self.head
    conv2 = self.conv2
    norm = self.norm
    conv1 = self.conv1
    _0 = torch.relu((norm).forward((conv1).forward(input, ), ))
    _1 = torch.relu((conv2).forward(_0, ))
    _2 = torch.flatten(torch.adaptive_avg_pool2d(_1, [1, 1]), 1)
    return (head).forward(_2, )
""" + "".join(
    [
        _layer(
            "Conv",
            "torch._convolution(x, weight, bias, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, False, "
            "False, True, True)",
            _BOTH,
        ),
        _layer(
            "Norm",
            "torch.batch_norm(x, weight, bias, running_mean, running_var, False, "
            "0.10000000000000001, 1.0000000000000001e-05, True)",
            _BOTH,
            ("running_mean", "running_var"),
        ),
        _layer("Head", "torch.linear(x, weight, bias)", _BOTH),
    ]
)
_LINEAR = _layer("M", "torch.relu(torch.linear(x, weight))", ("weight",))


def live_model() -> Any:
    """Return a module of torch: nested, with a tied weight, a frozen one, and buffers."""
    import torch
    from torch import nn

    torch.manual_seed(17)
    stem = OrderedDict(conv=nn.Conv2d(3, 8, 3), norm=nn.BatchNorm2d(8), act=nn.ReLU())
    layers = OrderedDict(
        stem=nn.Sequential(stem),
        pool=nn.AdaptiveAvgPool2d(1),
        flat=nn.Flatten(),
        head=nn.Linear(8, 8),
        tied=nn.Linear(8, 8, bias=False),
    )
    model = nn.Sequential(layers)
    layers["tied"].weight = layers["head"].weight
    stem["norm"].weight.requires_grad_(False)
    return model
