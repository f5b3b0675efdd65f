"""The demo's model, and what a program for it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

from .stacks import Stack

RECORD_STREAM = -1  # in place of a size: another stream uses the tensor from here on
FREE = 0


class Op(NamedTuple):
    """Allocate `size` bytes (or `FREE`, or `RECORD_STREAM`) under a name, from a stack."""

    tensor: str
    size: int
    stack: Stack
    lane: int = 0  # which stream, as an index; 0 is the default stream


@dataclass(frozen=True, slots=True)
class Phase:
    """Operations under one annotation and one torch.compile context."""

    name: str | None
    context: tuple[str, str] | None
    ops: list[Op]


@dataclass(frozen=True, slots=True)
class Model:
    """The sizes of a GPT: a dozen parameters, and about 50 live tensors, for each layer."""

    layers: int
    hidden: int
    vocabulary: int
    batch: int
    sequence: int

    @classmethod
    def with_live_tensors(cls, live: int | None) -> Model:
        """Choose a depth for so many live tensors, and a width that keeps the total in gigabytes.

        >>> Model.with_live_tensors(20_000).layers
        416
        """
        layers = 12 if live is None else max(1, round((live - 20) / 48))
        hidden = 768 if layers <= 12 else max(64, int(768 * sqrt(12 / layers)) // 64 * 64)
        tokens = 4096 if layers <= 12 else max(256, 4096 * 768 * 12 // (hidden * layers))
        sequence = min(1024, tokens)
        return cls(layers, hidden, 32_000 if layers <= 12 else 4096, tokens // sequence, sequence)

    def parameters(self) -> list[tuple[str, int]]:
        """Names and numbers of elements, in the order of `model.parameters()`."""
        h = self.hidden
        sizes = [("wte", self.vocabulary * h), ("wpe", 1024 * h)]
        for layer in range(self.layers):
            prefix = f"h{layer}."
            sizes += [
                (prefix + "ln1.w", h), (prefix + "ln1.b", h),
                (prefix + "qkv.w", 3 * h * h), (prefix + "qkv.b", 3 * h),
                (prefix + "proj.w", h * h), (prefix + "proj.b", h),
                (prefix + "ln2.w", h), (prefix + "ln2.b", h),
                (prefix + "fc1.w", 4 * h * h), (prefix + "fc1.b", 4 * h),
                (prefix + "fc2.w", 4 * h * h), (prefix + "fc2.b", h),
            ]  # fmt: skip
        return [*sizes, ("lnf.w", h), ("lnf.b", h)]


def peak_bytes(phases: list[Phase]) -> int:
    """The most bytes that a program holds at once, of those that it allocates itself."""
    held: dict[str, int] = {}
    total = peak = 0
    for phase in phases:
        for op in phase.ops:
            if op.size > 0:
                held[op.tensor] = op.size
                total += op.size
                peak = max(peak, total)
            elif op.size == FREE:
                total -= held.pop(op.tensor, 0)
    return peak
