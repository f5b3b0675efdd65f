"""Files of weights that take no room on the disk, of any size."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path

_ITEM_BYTES = {"F32": 4, "BF16": 2}


def write_sparse(path: Path, shapes: Mapping[str, tuple[int, ...]], dtype: str = "F32") -> Path:
    """Write a safetensors file whose data is a hole."""
    header, start = {}, 0
    for name, shape in shapes.items():
        end = start + _ITEM_BYTES[dtype] * prod(shape)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + start)
    return path
