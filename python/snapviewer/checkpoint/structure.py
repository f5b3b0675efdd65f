"""Checks that a file holds what a pipeline promised: which variables, of which types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Field(NamedTuple):
    """What is expected of one variable."""

    type: str | None
    """Its type as the results name it; None if any will do."""
    is_required: bool = True


# What WanVideo's data processing saves. There may be more in a file.
WANVIDEO: Mapping[str, Field] = {
    "video_latent": Field("torch.Tensor"),
    "prompt": Field("str"),
    "video_id": Field("str"),
    "video": Field("torch.Tensor", is_required=False),
}


def check_structure(
    results: Mapping[str, Any], expected_keys: Mapping[str, Field] | Iterable[str] = WANVIDEO
) -> list[str]:
    """Compare what is in a file with what should be.

    Args:
        results: What `analyze_pth_file` returned, or one of its entries that has contents.
        expected_keys: Names, or names with the types that are expected.

    Returns:
        A sentence for each difference; nothing if all is as expected.

    >>> check_structure({"variables": {"prompt": {"type": "int"}}}, {"prompt": Field("str")})
    ["'prompt' is of type int, not str"]
    >>> check_structure({"variables": {}}, ["prompt"])
    ["Missing expected key 'prompt'"]
    """
    if isinstance(expected_keys, Mapping):
        expected = dict(expected_keys)
    else:
        expected = {key: Field(None) for key in expected_keys}
    there = results.get("variables", results.get("contents", {}))
    complaints = []
    for key, field in expected.items():
        if key not in there:
            if field.is_required:
                complaints.append(f"Missing expected key {key!r}")
        elif field.type is not None and there[key]["type"] != field.type:
            complaints.append(f"{key!r} is of type {there[key]['type']}, not {field.type}")
    return complaints


def structure_of(results: Mapping[str, Any]) -> str | None:
    """Name the known structure that a file has, or one of its variables; None if it has none."""
    owners = [results, *results["variables"].values()]
    is_wanvideo = any(not check_structure(owner) for owner in owners)
    return "WanVideo" if is_wanvideo else None
