"""The inputs of a model: as traced, or inferred from its first layers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

from snapviewer._core import SnapshotError
from snapviewer.checkpoint.code import Archive
from snapviewer.model.graph import Node, TensorSpec, Unknown
from snapviewer.model.torchscript.tree import Tree
from snapviewer.text.units import format_shape

_IMAGE_SIZES = (224, 32, 28, 64, 96, 128, 256, 299, 384, 512, 448, 518)
PUBLISHED_SIDES = {
    **dict.fromkeys(("Inception3", "InceptionV3", "InceptionV4", "InceptionResnetV2"), 299),
    **dict.fromkeys(("Xception", "Xception65", "Xception71"), 299),
    **dict.fromkeys(("NASNetALarge", "PNASNet5Large"), 331),
}
"""Classes of torchvision and timm, and the image sizes that they were published for, if not 224."""
_LENGTHS = (128, 64, 32, 16, 512, 8, 4)
_AUDIO = (16_000,)
_SPECTRUM = (1024, 128)
_VIDEO = ((16, 112, 112), (32, 224, 224), (16, 64, 64), (64, 64, 64), (32, 32, 32))


_ATTENTION = frozenset(
    f"aten::{name}"
    for name in (
        *("scaled_dot_product_attention", "_native_multi_head_attention", "bmm", "baddbmm"),
        "_transformer_encoder_layer_fwd",
    )
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of `forward`."""

    name: str
    kind: str
    """Tensor, Tensors (a list of them), or other."""
    default: ast.expr | None
    annotation: ast.expr | None


@dataclass(frozen=True, slots=True)
class Guess:
    """Shapes that may fit an input, the most likely first, and why."""

    candidates: tuple[TensorSpec, ...]
    reason: str


def parameters_of(forward: ast.FunctionDef) -> tuple[Parameter, ...]:
    """Return the parameters of `forward` after the module itself."""
    arguments = forward.args.args[1:]
    defaults: list[ast.expr | None] = [None] * len(arguments)
    given = forward.args.defaults[-len(arguments) :] if arguments else []
    if given:
        defaults[-len(given) :] = given
    return tuple(
        Parameter(argument.arg, _kind(argument.annotation), default, argument.annotation)
        for argument, default in zip(arguments, defaults, strict=True)
    )


def _kind(annotation: ast.expr | None) -> str:
    try:
        text = "Tensor" if annotation is None else ast.unparse(annotation)
    except RecursionError:
        return "other"
    if text in ("Tensor", "Optional[Tensor]"):
        return "Tensor"
    return "Tensors" if text in ("List[Tensor]", "Optional[List[Tensor]]") else "other"


def traced_inputs(archive: Archive) -> list[Any] | None:
    """Return the inputs that the model was traced with; None if unknown."""
    try:
        checkpoint = archive.traced_inputs()
    except (SnapshotError, OSError):
        return None
    if checkpoint is None:
        return None
    methods = Tree(checkpoint, is_bare=True).root()
    found = methods.get("forward") if isinstance(methods, dict) else None
    return found if isinstance(found, list) and found else None


def unknown_input(name: str) -> Unknown:
    """Return the placeholder of an input while its shape is inferred."""
    return Unknown(f"the shape of the input {name[:100]!r}")


def guess(nodes: Sequence[Node], name: str, published: int | None = None) -> Guess | None:
    """Infer the shape of an input from its first layer.

    Args:
        nodes: The operations of the model, interpreted with unknown inputs.
        name: The name of the input.
        published: The size of images for which such models were published.
    """
    mark = unknown_input(name)
    most = rows_of_positions(nodes)
    for node in nodes:
        found = _guess_from(node, mark, most)
        if found is not None:
            found = _at_published_size(found, published)
            # Attention is between the steps of a sequence, so features alone are not enough.
            is_sequence = any(node.op in _ATTENTION for node in nodes)
            if is_sequence and len(found.candidates[0].shape) == 2 and len(found.candidates) > 1:
                features, *sequences = found.candidates
                if len(sequences[0].shape) == 3:
                    return Guess((*sequences, features), f"{found.reason}, 128 steps")
            return found
    return None


def _at_published_size(found: Guess, published: int | None) -> Guess:
    """Put the published size of images first."""
    first = found.candidates[0]
    if published is None or len(first.shape) != 4:
        return found
    best = TensorSpec((*first.shape[:2], published, published), first.dtype)
    reason, _, _ = found.reason.rpartition(", ")
    side = f"{reason}, {published}×{published}, the size that such models were published for"
    return Guess((best, *found.candidates), side)


def _guess_from(node: Node, mark: Unknown, most: int | None) -> Guess | None:
    op = node.op.partition("::")[2]
    arguments = [*node.arguments, *(value for _, value in node.keywords)]
    if len(arguments) < 2:
        return None
    where = f"the first layer, {node.op}" + (f" in {node.module[:100]}" if node.module else "")
    if op == "embedding" and arguments[1] == mark and isinstance(arguments[0], TensorSpec):
        return _tokens(where, most)
    if arguments[0] != mark:
        return None
    weight = arguments[1]
    if node.op.startswith("quantized::") and isinstance(weight, tuple) and weight:
        # A packed weight appears as what it was packed from.
        packed, weight = weight, weight[0]
        if isinstance(weight, TensorSpec) and len(weight.shape) > 2 and len(packed) == 8:
            return _images_for(weight.shape, packed[5], packed[6] is True, "float32", where)
        if isinstance(weight, TensorSpec) and len(weight.shape) == 2:
            features = weight.shape[1]
            return _features(features, "float32", f"{where} takes {features} features")
    if isinstance(weight, TensorSpec) and "conv" in op and len(weight.shape) > 2:
        return _images(node, weight, where)
    if isinstance(weight, TensorSpec) and op in ("linear", "matmul", "mm") and weight.shape:
        features = (
            weight.shape[-1] if op == "linear" or len(weight.shape) == 1 else weight.shape[-2]
        )
        return _features(features, weight.dtype, f"{where} takes {features} features")
    if op in ("lstm", "gru", "rnn_tanh", "rnn_relu") and len(node.arguments) > 3:
        weights = node.arguments[2]
        first = weights[0] if isinstance(weights, tuple) and weights else None
        if isinstance(first, TensorSpec) and len(first.shape) == 2:
            spec = TensorSpec((1, 128, first.shape[1]), first.dtype)
            return Guess((spec,), f"{where} takes {first.shape[1]} features: 128 steps, batch of 1")
    if op == "layer_norm" and isinstance(weight, tuple) and weight:
        size = weight[-1]
        if isinstance(size, int):
            return _features(size, "float32", f"{where} normalises {size} features")
    if op == "batch_norm" and isinstance(weight, TensorSpec) and weight.shape:
        channels = weight.shape[0]
        sizes = [TensorSpec((1, channels, n, n), weight.dtype) for n in _IMAGE_SIZES]
        flat = TensorSpec((1, channels), weight.dtype)
        return Guess((*sizes, flat), f"{where} normalises {channels} channels")
    return None


_MIN_POSITIONS = 8


def rows_of_positions(nodes: Sequence[Node]) -> int | None:
    """Return the rows of an embedding of something else than an input: positions.

    A table with very few rows distinguishes segments of a text.
    """
    rows = [
        table.shape[0] or 0
        for node in nodes
        if node.op == "aten::embedding" and len(node.arguments) > 1
        if isinstance(node.arguments[1], TensorSpec)
        if isinstance(table := node.arguments[0], TensorSpec) and len(table.shape) == 2
    ]
    return max((count for count in rows if count >= _MIN_POSITIONS), default=None)


def _tokens(where: str, most: int | None) -> Guess:
    lengths: tuple[int, ...] = _LENGTHS
    why = ""
    if most is not None:
        why = f", of at most {most} (a table of positions has as many rows)"
        lengths = (min(_LENGTHS[0], most), *(length for length in _LENGTHS if length < most))
    specs = tuple(TensorSpec((1, length), "int64") for length in dict.fromkeys(lengths))
    return Guess(specs, f"{where} is an embedding: a batch of 1, {lengths[0]} tokens{why}")


def _images(node: Node, weight: TensorSpec, where: str) -> Guess:
    named = dict(node.keywords)
    name = node.op.partition("::")[2]
    place = 8 if name in ("_convolution", "convolution") else 6
    groups = named.get("groups", node.arguments[place] if len(node.arguments) > place else 1)
    is_transposed = "transpose" in name or (place == 8 and node.arguments[6:7] == (True,))
    return _images_for(weight.shape, groups, is_transposed, weight.dtype, where)


def _images_for(
    weight: tuple[int | None, ...], groups: object, is_transposed: bool, dtype: str, where: str
) -> Guess:
    count = len(weight) - 2
    per_group = weight[0] if is_transposed else weight[1]
    channels = per_group
    if not is_transposed and isinstance(groups, int) and per_group is not None:
        channels = per_group * groups
    spaces: Sequence[tuple[int, ...]]
    if count == 3:
        spaces = _VIDEO
    else:
        spaces = [(size,) * count for size in _IMAGE_SIZES]
        if count == 1:
            # One channel is audio: one second of it.
            spaces = [_AUDIO, *spaces] if channels == 1 else [*spaces, _AUDIO]
    specs = [TensorSpec((1, channels, *space), dtype) for space in spaces]
    if channels == 1:
        # Models of audio and spectrograms may add the channel themselves.
        bare = [(1, *_AUDIO)] if count == 1 else [(1, *space) for space in (_SPECTRUM, spaces[0])]
        specs[1:1] = [TensorSpec(shape, dtype) for shape in bare if len(shape) == count + 1]
    sizes = format_shape(spaces[0])
    return Guess(tuple(specs), f"{where} takes {channels} channels: a batch of 1, {sizes}")


def _features(features: int | None, dtype: str, reason: str) -> Guess:
    specs = [TensorSpec((1, features), dtype)]
    specs += [TensorSpec((1, length, features), dtype) for length in _LENGTHS]
    return Guess(tuple(specs), f"{reason}: a batch of 1")


_MAX_SIZE = 1 << 16
_FRAMES = 8


def adapted(spec: TensorSpec, differing: tuple[int, ...]) -> Iterator[TensorSpec]:
    """Yield shapes with which two sizes in a model, which differ with this input, may be equal.

    A table of 50 positions for 197 patches needs an image half as high and as wide.

    >>> [spec.shape for spec in adapted(TensorSpec((1, 3, 224, 224), "float32"), (197, 50))][0]
    (1, 3, 112, 112)
    >>> next(adapted(TensorSpec((1, 128), "int64"), (77, 128))).shape
    (1, 77)
    """
    shape = spec.shape
    if len(differing) != 2 or len(shape) < 2 or None in shape:
        return
    if len(shape) in (4, 5) and {shape[1], shape[2]} == set(differing):
        # The assumed channels were not: frames come first, or channels last.
        _, channels, *sides = shape
        frames = (_FRAMES,) if len(shape) == 4 else (sides.pop(0),)
        yield TensorSpec((1, *frames, channels, *sides), spec.dtype)
        yield TensorSpec((1, *shape[2:], channels), spec.dtype)
    has_sides = len(shape) >= 4 and shape[-1] == shape[-2]
    if has_sides:
        # The number of patches is the square of a side, plus tokens for the class.
        for power in (0.5, 1.0):
            for side in _scaled(shape[-1], differing, (1, 0, 2), power):
                yield TensorSpec((*shape[:-2], side, side), spec.dtype)
    if not has_sides or len(shape) == 5:
        is_steps = "int" in spec.dtype or shape[1] == _LENGTHS[0] or has_sides
        place = 1 if is_steps else len(shape) - 1
        for size in _scaled(shape[place], differing, (0, 1, 2), 1.0):
            yield TensorSpec((*shape[:place], size, *shape[place + 1 :]), spec.dtype)


def _scaled(
    old: int | None, differing: tuple[int, ...], beside: Sequence[int], power: float
) -> Iterator[int]:
    """Yield sizes in the proportion of two that differ, if that gives an integer."""
    for apart in beside:
        for have, want in (differing, differing[::-1]):
            if old is None or min(have, want) <= apart:
                continue
            rows, wanted = isqrt(have - apart), isqrt(want - apart)
            if power < 1 and rows**2 == have - apart and wanted**2 == want - apart:
                # As many patches of the same size; the old size may not be a multiple of it.
                yield min(old // rows * wanted, _MAX_SIZE)
                continue
            scaled = old * ((want - apart) / (have - apart)) ** power
            new = round(scaled)
            if 0 < new <= _MAX_SIZE and abs(scaled - new) < 1e-6 * new:
                yield new
