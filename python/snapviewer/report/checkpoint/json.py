"""A checkpoint as the document that `pth --json` prints.

The keys are a contract that others build on; there may be more of them later. Numbers that JSON has
not (NaN, infinities) are null.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from snapviewer.checkpoint.statistics import Measured
from snapviewer.checkpoint.summary import Share, Summary, elements_of, groups_of, order_of
from snapviewer.checkpoint.values import plain_values

from .values import values_dict

if TYPE_CHECKING:
    from snapviewer._core import Stats, Tensor


def to_json(
    summary: Summary,
    *,
    measured: Measured | None = None,
    sort: str | None = None,
    top: int | None = None,
    depth: int | None = None,
) -> dict[str, Any]:
    """Return a checkpoint as a document.

    Args:
        summary: The checkpoint.
        measured: The tensors' statistics, if there are any.
        sort: The order of the tensors; the file's if not given.
        top: How many tensors are told of; all if not given.
        depth: Also add up by so many parts of the names.
    """
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
        "values": values_dict(plain_values(checkpoint.root)),
        "metadata": dict(checkpoint.metadata),
        "warnings": list(checkpoint.warnings),
    }
    if depth is not None:
        document["groups"] = [_share(share, "name") for share in groups_of(tensors, depth)]
    return document


def _names(tensors: Sequence[Tensor]) -> list[str]:
    return [tensor.name for tensor in tensors]


def _share(share: Share, key: str) -> dict[str, Any]:
    return {
        key: share.name,
        "tensors": share.tensors,
        "elements": share.elements,
        "logical_bytes": share.logical_bytes,
    }


def tensor_dict(tensor: Tensor) -> dict[str, Any]:
    """Return what the structure tells of a tensor."""
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


def _tensor(tensor: Tensor, index: int, measured: Measured | None) -> dict[str, Any]:
    document = tensor_dict(tensor)
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
        "mean": number(stats.mean),
        "std": number(stats.std),
        "min": number(stats.min),
        "max": number(stats.max),
        "zeros": stats.zeros,
        "nan": stats.nan,
        "inf": stats.inf,
        "denormal": stats.denormal,
        "l1": number(stats.l1),
        "l2": number(stats.l2),
        "skewness": number(stats.skewness),
        "kurtosis": number(stats.kurtosis),
        "entropy": number(stats.entropy),
        "histogram": {"min": number(low), "max": number(high), "counts": list(stats.histogram)},
    }


def number(value: float | None) -> float | None:
    """Return a number that JSON has.

    >>> number(1.5), number(float("nan")), number(None)
    (1.5, None, None)
    """
    return value if value is not None and math.isfinite(value) else None
