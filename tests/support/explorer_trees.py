"""Trees made by hand, for tests of the explorer."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from snapviewer.explorer.tree import ModuleNode, Sums, TensorEntry, Tree


def tensor(
    path: str,
    *shape: int,
    dtype: str = "float32",
    is_buffer: bool = False,
    is_trainable: bool = True,
    tied_to: str | None = None,
) -> TensorEntry:
    elements = prod(shape)
    return TensorEntry(
        name=path.rpartition(".")[2],
        path=path,
        shape=shape,
        dtype=dtype,
        device="cpu",
        elements=elements,
        size_bytes=elements * (2 if dtype == "bfloat16" else 4),
        is_buffer=is_buffer,
        is_trainable=is_trainable and not is_buffer,
        tied_to=tied_to,
    )


def module(
    path: str,
    type_name: str = "",
    arguments: str = "",
    *,
    tensors: Sequence[TensorEntry] = (),
    children: Sequence[ModuleNode] = (),
    shared_with: str | None = None,
    is_type_guessed: bool = False,
) -> ModuleNode:
    """Make a module; tensors that are tied to others in it are counted once."""
    own = [one for one in tensors if one.tied_to is None]
    parameters = [one for one in own if not one.is_buffer]
    buffers = [one for one in own if one.is_buffer]
    below = [child.sums for child in children if child.shared_with is None]
    return ModuleNode(
        name=path.rpartition(".")[2],
        path=path,
        type_name=type_name,
        arguments=arguments,
        tensors=tuple(tensors),
        children=tuple(children),
        sums=Sums(
            modules=1 + sum(one.modules for one in below),
            parameters=sum(one.elements for one in parameters)
            + sum(one.parameters for one in below),
            trainable=sum(one.elements for one in parameters if one.is_trainable)
            + sum(one.trainable for one in below),
            buffers=sum(one.elements for one in buffers) + sum(one.buffers for one in below),
            parameter_bytes=sum(one.size_bytes for one in parameters)
            + sum(one.parameter_bytes for one in below),
            buffer_bytes=sum(one.size_bytes for one in buffers)
            + sum(one.buffer_bytes for one in below),
        ),
        is_type_guessed=is_type_guessed,
        shared_with=shared_with,
    )


def conv(path: str, inputs: int, outputs: int, size: int) -> ModuleNode:
    weight = tensor(f"{path}.weight", outputs, inputs, size, size)
    return module(path, "Conv2d", f"{inputs}→{outputs}, {size}×{size}", tensors=[weight])


def norm(path: str, width: int) -> ModuleNode:
    tensors = [
        tensor(f"{path}.weight", width),
        tensor(f"{path}.bias", width),
        tensor(f"{path}.running_mean", width, is_buffer=True),
        tensor(f"{path}.running_var", width, is_buffer=True),
        tensor(f"{path}.num_batches_tracked", dtype="int64", is_buffer=True),
    ]
    return module(path, "BatchNorm2d", str(width), tensors=tensors)


def linear(path: str, inputs: int, outputs: int) -> ModuleNode:
    tensors = [tensor(f"{path}.weight", outputs, inputs), tensor(f"{path}.bias", outputs)]
    return module(path, "Linear", f"{inputs}→{outputs}", tensors=tensors)


def block(path: str, width: int) -> ModuleNode:
    parts = [
        conv(f"{path}.conv1", width, width, 3),
        norm(f"{path}.bn1", width),
        module(f"{path}.relu", "ReLU", "inplace=True"),
        conv(f"{path}.conv2", width, width, 3),
        norm(f"{path}.bn2", width),
    ]
    return module(path, "BasicBlock", children=parts)


def resnet() -> Tree:
    """A small network with the first lines of the known one."""
    layers = [
        module(
            f"layer{number}",
            "Sequential",
            children=[block(f"layer{number}.{at}", 32 << number) for at in range(2)],
        )
        for number in (1, 2)
    ]
    parts = [
        conv("conv1", 3, 64, 7),
        norm("bn1", 64),
        module("relu", "ReLU", "inplace=True"),
        module("maxpool", "MaxPool2d", "3×3, stride=2"),
        *layers,
        linear("fc", 2048, 1000),
    ]
    return Tree("resnet", "resnet.pth", module("", "ResNet", children=parts))


def tied() -> Tree:
    """A language model: tied weights, a shared module, frozen parts, buffers, odd names."""
    embedding = module(
        "embed",
        "Embedding",
        "1000, 64",
        tensors=[tensor("embed.weight", 1000, 64, dtype="bfloat16")],
    )
    frozen = module(
        "adapter",
        "Linear",
        "64→64",
        tensors=[tensor("adapter.weight", 64, 64, is_trainable=False)],
    )
    again = module(
        "again",
        "Linear",
        "64→64",
        tensors=[tensor("again.weight", 64, 64, is_trainable=False, tied_to="adapter.weight")],
        shared_with="adapter",
    )
    head = module(
        "head",
        "Linear",
        "64→1000",
        tensors=[tensor("head.weight", 1000, 64, dtype="bfloat16", tied_to="embed.weight")],
    )
    odd = module(
        "[bold red]",
        "Öl模型",
        "[/]",
        tensors=[tensor("[bold red].权重", 8, 8), tensor("[bold red].e\u0301tat", 8)],
    )
    parts = [embedding, frozen, again, odd, norm("norm", 64), head]
    return Tree("tied", "tied.pth", module("", "LanguageModel", children=parts))


def wide(count: int, *, per_layer: int = 10, tensors_every: int = 5) -> Tree:
    """A tree of about `count` modules in layers of a few parts; every fifth has a tensor."""
    layers = []
    for number in range(count // (per_layer + 1)):
        path = f"layers.{number}"
        parts = [
            module(
                f"{path}.part{at}_proj",
                "Linear" if at % tensors_every == 0 else "Dropout",
                "8→8" if at % tensors_every == 0 else "p=0.1",
                tensors=[tensor(f"{path}.part{at}_proj.weight", 8, 8 + number % 7)]
                if at % tensors_every == 0
                else (),
            )
            for at in range(per_layer)
        ]
        layers.append(module(path, "Layer", children=parts))
    inner = module("layers", "ModuleList", children=layers)
    return Tree("wide", "made", module("", "Wide", children=[inner]))


def node_at(root: ModuleNode, path: str) -> ModuleNode:
    """Return the module at a path."""
    return next(node for node in root.walk() if node.path == path)
