"""The work of operations, computed and moved, from their shapes alone.

MACs are the multiply-adds of convolutions, matrix products, attention and recurrent layers.
FLOPs are two for each of them, plus a stated number per element of everything else. Views cost
nothing; an operation without a formula is uncounted, with the reason.

    from snapviewer.model.work import register

    @register("my::rotary", "query cos sin", kind="Attention")
    def _rotary(call):
        return call.work(other_flops=3 * call.elements("query"))
"""

from __future__ import annotations

# Importing these modules registers their formulas.
from snapviewer.model.work import (
    attention,
    convolution,
    einsum,
    elementwise,
    images,
    linalg,
    matmul,
    movement,
    normalization,
    packed,
    recurrent,
    reductions,
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
    main_dtype,
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
    "image_share",
    "images",
    "is_counted",
    "kind_of",
    "linalg",
    "main_dtype",
    "matmul",
    "movement",
    "normalization",
    "packed",
    "recurrent",
    "reductions",
    "register",
    "totals_of",
    "work_of",
]
