"""GPUs, and which of them a run fits on.

The memory of a GPU is what `nvidia-smi` shows, in MiB: less than in its name where error correction
takes a part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

Fit: TypeAlias = Literal["fits", "tight", "too-small"]

# For CUDA's context and libraries, if the log does not say.
ASSUMED_CONTEXT_BYTES = 512 * 2**20
HEADROOM = 0.10


class Card(NamedTuple):
    """A GPU."""

    name: str
    memory_mib: int
    is_datacenter: bool

    @property
    def memory_bytes(self) -> int:
        """Its memory in bytes."""
        return self.memory_mib * 2**20


CARDS = (
    Card("RTX 3070 (8GB)", 8192, False),
    Card("RTX 3060 (12GB)", 12288, False),
    Card("RTX 4070 (12GB)", 12282, False),
    Card("T4 (16GB)", 15360, True),
    Card("RTX 4080 (16GB)", 16376, False),
    Card("A10 / A10G (24GB)", 23028, True),
    Card("L4 (24GB)", 23034, True),
    Card("RTX 3090 (24GB)", 24576, False),
    Card("RTX 4090 (24GB)", 24564, False),
    Card("RTX 5090 (32GB)", 32607, False),
    Card("A100 (40GB)", 40960, True),
    Card("A40 / L40S (48GB)", 46068, True),
    Card("RTX 6000 Ada (48GB)", 49140, False),
    Card("H100 (80GB)", 81559, True),
    Card("A100 (80GB)", 81920, True),
    Card("RTX PRO 6000 (96GB)", 97887, False),
    Card("H200 (141GB)", 143771, True),
    Card("B200 (180GB)", 183359, True),
)


@dataclass(frozen=True, slots=True)
class Need:
    """How much memory a GPU must have for a run."""

    used_bytes: int
    """In use at the peak, including what is not PyTorch's."""
    is_context_assumed: bool
    needed_bytes: int
    """The same with headroom."""


def need_of(peak_bytes: int, device_peak_bytes: int | None = None) -> Need:
    """Return what a run needs.

    Args:
        peak_bytes: The measured peak of PyTorch's memory.
        device_peak_bytes: The measured peak of all memory in use on the GPU, if known.
    """
    is_assumed = device_peak_bytes is None or device_peak_bytes < peak_bytes
    used = peak_bytes + ASSUMED_CONTEXT_BYTES if is_assumed else device_peak_bytes or 0
    return Need(used, is_assumed, round(used * (1 + HEADROOM)))


def fit_of(card: Card, need: Need) -> Fit:
    """Return whether a run fits on a GPU with headroom, without, or not at all."""
    if need.needed_bytes <= card.memory_bytes:
        return "fits"
    return "tight" if need.used_bytes <= card.memory_bytes else "too-small"


def smallest(need: Need, cards: Iterable[Card] = CARDS) -> Card | None:
    """Return the smallest GPU that a run fits on, or None if there is none.

    >>> smallest(need_of(10 * 2**30)).name
    'RTX 4070 (12GB)'
    """
    fitting = [card for card in cards if fit_of(card, need) == "fits"]
    return min(fitting, key=lambda card: card.memory_mib, default=None)
