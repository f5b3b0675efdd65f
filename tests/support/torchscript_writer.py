"""Writes TorchScript archives without torch, so that their code can be anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

from support.pth_writer import G, Obj, T, pickle_of, write_pth


def write_torchscript(
    path: Path,
    code: str | bytes,
    *,
    state: Mapping[str, Any] | None = None,
    traced: list[T] | None = None,
    deflate: bool = False,
    more: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a model of class `__torch__.M` whose file of code is `code`."""
    members = {
        "constants.pkl": b"\x80\x02).",
        "code/__torch__.py": code.encode() if isinstance(code, str) else code,
        **(more or {}),
    }
    if traced is not None:
        members["traced_inputs.pkl"] = pickle_of({"forward": traced})[0]
    root = Obj(G("__torch__", "M"), dict(state or {"training": False}))
    write_pth(path, root, extra_members=members, deflate=deflate)
    return path


def module(body: str, *, parameters: str = "x: Tensor", rest: str = "") -> str:
    """The code of a class M whose forward has this body."""
    inside = indent(dedent(body).strip("\n"), "    ")
    return (
        "class M(Module):\n  __parameters__ = []\n  training : bool\n"
        f"  def forward(self: __torch__.M,\n    {parameters}) -> Tensor:\n{inside}\n{dedent(rest)}"
    )
