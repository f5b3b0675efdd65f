"""Writes exported programs (.pt2) without torch, so that they can contain anything."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

FLOAT = 7


def tensor(*sizes: Any, dtype: int = FLOAT) -> dict[str, Any]:
    """The JSON of a tensor: numbers, or expressions with a hint as (text, hint)."""
    return {
        "dtype": dtype,
        "sizes": [
            {"as_int": size}
            if isinstance(size, int)
            else {
                "as_expr": {
                    "expr_str": size[0],
                    "hint": None if size[1] is None else {"as_int": size[1]},
                }
            }
            for size in sizes
        ],
    }


def named(name: str) -> dict[str, Any]:
    """The JSON of a tensor that is used by its name."""
    return {"as_tensor": {"name": name}}


def operation(target: str, *inputs: tuple[str, Any], outputs: Any, stack: str = "") -> Any:
    """The JSON of a node."""
    return {
        "target": target,
        "inputs": [{"name": name, "arg": value, "kind": 1} for name, value in inputs],
        "outputs": outputs,
        "metadata": {"nn_module_stack": stack},
    }


def program(**changes: Any) -> dict[str, Any]:
    """The JSON of a program with one linear layer, whose batch varies."""
    stack = "L__self__,,app.Net;L__self__fc,fc,torch.nn.modules.linear.Linear"
    batch = ("Symbol('s0', positive=True, integer=True)", 4)
    graph = {
        "inputs": [named("p_fc_weight"), named("x")],
        "outputs": [named("linear")],
        "nodes": [
            operation(
                "torch.ops.aten.linear.default",
                ("input", named("x")),
                ("weight", named("p_fc_weight")),
                ("bias", {"as_none": True}),
                outputs=[named("linear")],
                stack=stack,
            )
        ],
        "tensor_values": {
            "p_fc_weight": tensor(10, 8),
            "x": tensor(batch, 8),
            "linear": tensor(batch, 10),
        },
        **changes,
    }
    signature = {
        "input_specs": [
            {"parameter": {"arg": {"name": "p_fc_weight"}, "parameter_name": "fc.weight"}},
            {"user_input": {"arg": named("x")}},
        ]
    }
    return {
        "graph_module": {"graph": graph, "signature": signature},
        "range_constraints": {"s0": {"min_val": 2, "max_val": 64}},
    }


def write_pt2(path: Path, description: Any, *, older: bool = False, packed: bool = False) -> Path:
    """Write an archive with a description: a document, or the bytes of one."""
    text = description if isinstance(description, bytes) else json.dumps(description).encode()
    how = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", how) as target:
        if older:
            target.writestr("serialized_exported_program.json", text)
            target.writestr("version", "5.1")
        else:
            target.writestr("m/archive_format", "pt2")
            target.writestr("m/archive_version", "0")
            target.writestr("m/models/model.json", text)
            target.writestr("m/byteorder", "little")
    return path
