"""A checkpoint as the document that `pth --json` prints.

Other programs build on its keys: they keep their meaning, and there may be more of them later. NaN
and infinities, which JSON does not have, are null.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from snapviewer.checkpoint.statistics import TensorStats
from snapviewer.checkpoint.summary import (
    USUAL_ROWS,
    RowChoice,
    Summary,
    TensorGroup,
    elements_of,
    groups_of,
    order_of,
)
from snapviewer.checkpoint.values import plain_values

if TYPE_CHECKING:
    from snapviewer._core import Stats, Tensor


def to_json(
    summary: Summary, choice: RowChoice = USUAL_ROWS, *, measured: TensorStats | None = None
) -> dict[str, Any]:
    """Return the document: by default all tensors in the order of the file; groups are added."""
    sort, top, depth = choice
    checkpoint, tensors = summary.checkpoint, summary.tensors
    ledger = checkpoint.ledger
    order = order_of(tensors, sort or "file")
    shown = order if top is None else order[:top]
    document: dict[str, Any] = {
        "file": summary.file,
        "format": checkpoint.format,
        "files": list(checkpoint.files),
        "file_bytes": checkpoint.file_bytes,
        "ledger": {
            "tensors": ledger.tensors,
            "unreferenced": ledger.unreferenced,
            "pickle": ledger.pickle,
            "padding": ledger.padding,
            "archive": ledger.archive,
        },
        "logical_bytes": checkpoint.logical_bytes,
        "unique_bytes": checkpoint.unique_bytes,
        "wasted_bytes": checkpoint.wasted_bytes,
        "num_tensors": len(tensors),
        "num_elements": summary.elements,
        "tensors": [_tensor(tensors[index], index, measured) for index in shown],
        "dtypes": [_share(share, "dtype") for share in summary.dtypes],
        "storages": [
            {
                "key": storage.key,
                "file": storage.file,
                "start": storage.start,
                "bytes": storage.bytes,
                "packed_bytes": storage.packed_bytes,
                "reached_bytes": storage.reached_bytes,
                "clone_bytes": storage.clone_bytes,
                "tensors": _names([tensors[index] for index in storage.tensors]),
            }
            for storage in checkpoint.storages
        ],
        "sharing": [
            {
                "storage": sharing.storage.key,
                "bytes": sharing.storage.bytes,
                "tensors": _names(sharing.tensors),
            }
            for sharing in summary.sharing
        ],
        "advice": [
            {
                "action": "clone" if advice.tensors else "drop",
                "storage": advice.storage.key,
                "tensors": _names(advice.tensors),
                "from_bytes": advice.storage.bytes,
                "to_bytes": advice.storage.clone_bytes,
                "saved_bytes": advice.saved_bytes,
            }
            for advice in summary.advice
        ],
        "imports": {
            "allowed": list(checkpoint.allowed_imports),
            "flagged": list(checkpoint.flagged_imports),
        },
        "values": {value.name: value.preview for value in plain_values(checkpoint.root)},
        "metadata": dict(checkpoint.metadata),
        "warnings": list(checkpoint.warnings),
    }
    if depth is not None:
        document["groups"] = [_share(share, "name") for share in groups_of(tensors, depth)]
    return document


def _names(tensors: Sequence[Tensor]) -> list[str]:
    return [tensor.name for tensor in tensors]


def _share(share: TensorGroup, key: str) -> dict[str, Any]:
    return {
        key: share.name,
        "tensors": share.tensors,
        "elements": share.elements,
        "logical_bytes": share.logical_bytes,
    }


def tensor_to_json(tensor: Tensor) -> dict[str, Any]:
    """Return the entry of a tensor, without statistics."""
    document: dict[str, Any] = {
        "name": tensor.name,
        "kind": tensor.kind,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "stride": None if tensor.stride is None else list(tensor.stride),
        "offset": tensor.offset,
        "storage": tensor.storage,
        "device": tensor.device,
        "requires_grad": tensor.requires_grad,
        "elements": elements_of(tensor),
        "logical_bytes": tensor.logical_bytes,
        "stored_bytes": tensor.stored_bytes,
        "unique_bytes": tensor.unique_bytes,
        "wasted_bytes": tensor.wasted_bytes,
        "class": tensor.class_name,
        "file": tensor.file,
    }
    if tensor.parts:
        document["parts"] = [
            {
                "role": part.role,
                "dtype": part.dtype,
                "shape": list(part.shape),
                "stride": list(part.stride),
                "offset": part.offset,
                "storage": part.storage,
            }
            for part in tensor.parts
        ]
    return document


def _tensor(tensor: Tensor, index: int, measured: TensorStats | None) -> dict[str, Any]:
    document = tensor_to_json(tensor)
    if measured is not None:
        found = measured[index]
        if isinstance(found, str):
            document |= {"stats": None, "stats_unavailable": found}
        else:
            document["stats"] = _stats(found)
    return document


def _stats(stats: Stats) -> dict[str, Any]:
    low, high = stats.edges or (None, None)
    return {
        "count": stats.count,
        "mean": finite(stats.mean),
        "std": finite(stats.std),
        "min": finite(stats.min),
        "max": finite(stats.max),
        "zeros": stats.zeros,
        "nan": stats.nan,
        "inf": stats.inf,
        "denormal": stats.denormal,
        "l1": finite(stats.l1),
        "l2": finite(stats.l2),
        "skewness": finite(stats.skewness),
        "kurtosis": finite(stats.kurtosis),
        "entropy": finite(stats.entropy),
        "histogram": {"min": finite(low), "max": finite(high), "counts": list(stats.histogram)},
    }


def finite(value: float | None) -> float | None:
    """Return a number that JSON can hold, or None.

    >>> finite(1.5), finite(float("nan")), finite(None)
    (1.5, None, None)
    """
    return value if value is not None and math.isfinite(value) else None
