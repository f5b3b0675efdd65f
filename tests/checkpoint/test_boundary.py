"""What crosses from the core to Python: values as values, members, elements, and one opening."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from snapviewer import SnapshotError, _core
from snapviewer.model.graph import TensorSpec
from snapviewer.model.torchscript import read_torchscript
from support.pth_writer import T, write_pth
from support.torchscript_writer import module, write_torchscript

VALUES: dict[str, Any] = {
    "none": None,
    "bool": True,
    "int": -(1 << 63),
    "unsigned": (1 << 64) - 1,
    "long": -(1 << 200) - 7,
    "float": 1e-300,
    "complex": complex(1.5, -0.0),
    "text": "a…" * 300 + "'\"\n",
    "cut": "fast…",
    "bytes": bytes(range(256)),
}


@pytest.mark.parametrize("protocol", [2, 4])
def test_plain_values_arrive_as_they_are(tmp_path: Path, protocol: int) -> None:
    import pickle

    path = tmp_path / "v.pkl"
    path.write_bytes(pickle.dumps({**VALUES, 7: 1, (1, 2): 2}, protocol=protocol))

    root = _core.read_checkpoint(path).root

    assert {name: value.value for name, value in root.items() if name in VALUES} == VALUES
    keys = [key for key, _ in root.entries()]
    assert [key.value for key in keys[:-1]] == [*VALUES, 7]
    for value in (root, keys[-1]):
        with pytest.raises(ValueError, match="is not a plain value"):
            _ = value.value


@pytest.mark.parametrize("deflate", [False, True])
def test_members_are_read_within_limits(tmp_path: Path, deflate: bool) -> None:
    path = tmp_path / "m.pt"
    members = {"code/a.py": b"x = 1\n" * 100, "inner.pkl": b"\x80\x02K\x05."}
    write_pth(path, {"w": T("float32", (2,))}, extra_members=members, deflate=deflate)

    checkpoint = _core.read_checkpoint(path)

    assert checkpoint.members["code/a.py"] == 600
    assert checkpoint.member("code/a.py", 600) == members["code/a.py"]
    assert checkpoint.open_member("inner.pkl", 100).root.value == 5
    with pytest.raises(SnapshotError, match=r"code/a\.py has 600 bytes, and at most 599 are read"):
        checkpoint.member("code/a.py", 599)
    with pytest.raises(SnapshotError, match="has no member nothing"):
        checkpoint.member("nothing", 1)


def test_elements_are_exact_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    large = (1 << 53) + 1
    data = struct.pack("<4q2?", 1, 2, large, -4, True, False)
    header = (
        b'{"a":{"dtype":"I64","shape":[2,2],"data_offsets":[0,32]},'
        b'"b":{"dtype":"BOOL","shape":[2],"data_offsets":[32,34]}}'
    )
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)

    checkpoint = _core.read_checkpoint(path)

    assert checkpoint.elements(0) == (1, 2, large, -4)
    assert repr(checkpoint.elements(1)) == "(True, False)"
    with pytest.raises(SnapshotError, match="at most 3 are listed"):
        checkpoint.elements(0, limit=3)
    with pytest.raises(IndexError):
        checkpoint.elements(2)


@pytest.mark.parametrize("mode", ["fast…", "x" * 500])
def test_an_attribute_that_looks_cut_off_is_compared_as_it_is(tmp_path: Path, mode: str) -> None:
    body = f"""
    if torch.eq(self.mode, "{mode}"):
      y = torch.relu(x)
    else:
      y = torch.matmul(x, x)
    return y
    """
    state = {"training": False, "mode": mode}
    path = write_torchscript(tmp_path / "m.pt", module(body), state=state)

    graph = read_torchscript(path, inputs=[TensorSpec((4, 4), "float32")])

    assert [node.op for node in graph.nodes] == ["aten::relu"]
    assert not graph.doubts


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_a_model_file_is_opened_once(tmp_path: Path) -> None:
    code = module("return torch.linear(torch.relu(x), self.w)")
    state = {"training": False, "w": T("float32", (3, 4))}
    path = write_torchscript(
        tmp_path / "traced.pt", code, state=state, traced=[T("float32", (2, 4))]
    )
    log = tmp_path / "log"
    traced = ["strace", "-f", "-qq", "-e", "trace=open,openat", "-o", str(log)]

    done = subprocess.run(
        [*traced, sys.executable, "-m", "snapviewer", "model", str(path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )

    if "Operation not permitted" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    assert log.read_text().count(f'"{path}"') == 1
