"""Turns what we know of the machine into what documents hold."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from snapviewer.model.quantity import Quantity


def document_of(value: Any) -> Any:
    """Return records as dicts, pairs of a name and a value as a dict, and the rest as it is.

    >>> document_of((("L1", Quantity(32.0, "B", "measured", "sysfs")),))["L1"]["value"]
    32.0
    """
    if isinstance(value, Quantity):
        return value.to_dict()
    if is_dataclass(value):
        return {field.name: document_of(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        if value and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
            return {str(name): document_of(held) for name, held in value}
        return [document_of(held) for held in value]
    return value
