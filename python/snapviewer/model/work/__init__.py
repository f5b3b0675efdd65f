"""How much an operation computes and moves, from its shapes alone.

MACs are the multiply-adds of convolutions, matrix products, attention and recurrent layers.
FLOPs are two for each of them, plus a stated number for each element of everything else. What
only renames elements costs nothing; what has no formula is uncounted, with the reason.

    from snapviewer.model.work import register

    @register("my::rotary", "query cos sin", kind="Attention")
    def _rotary(call):
        return call.work(other_flops=3 * call.elements("query"))
"""

from __future__ import annotations

# What these modules do when they are imported is to register their formulas.
from snapviewer.model.work import (
    attention,
    convolution,
    einsum,
    elementwise,
    embedding,
    linalg,
    matmul,
    movement,
    normalization,
    packed,
    pooling,
    recurrent,
    reductions,
    vision,
)
from snapviewer.model.work.registry import (
    Call,
    Uncounted,
    Work,
    is_counted,
    kind_of,
    register,
    work_of,
)
from snapviewer.model.work.totals import (
    IMAGE_DIMENSIONS,
    MOSTLY_IMAGES,
    Totals,
    image_share,
    totals_of,
)

__all__ = [
    "IMAGE_DIMENSIONS",
    "MOSTLY_IMAGES",
    "Call",
    "Totals",
    "Uncounted",
    "Work",
    "attention",
    "convolution",
    "einsum",
    "elementwise",
    "embedding",
    "image_share",
    "is_counted",
    "kind_of",
    "linalg",
    "matmul",
    "movement",
    "normalization",
    "packed",
    "pooling",
    "recurrent",
    "reductions",
    "register",
    "totals_of",
    "vision",
    "work_of",
]
