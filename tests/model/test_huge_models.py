"""Models of more than 100 billion parameters: right, linear and small."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from snapviewer.model import analyze_file
from snapviewer.model.torchscript import reader
from snapviewer.report.model.document import overview_blocks
from snapviewer.report.model.formats import rendered
from snapviewer.report.writers.text import text_lines
from support.program import run
from support.promised_model import shown
from support.sparse_files import write_sparse
from support.torch_marks import torch_marks

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import Tensor, nn  # noqa: E402 (after the line that skips)

pytestmark = torch_marks(":DeprecationWarning")

# GPT-3.
WIDTH, LAYERS, WORDS, POSITIONS = 12_288, 96, 50_257, 2_048
BLOCK = 12 * WIDTH * WIDTH


def gpt3() -> dict[str, tuple[int, ...]]:
    """The shapes of its matrices."""
    shapes: dict[str, tuple[int, ...]] = {
        "transformer.wte.weight": (WORDS, WIDTH),
        "transformer.wpe.weight": (POSITIONS, WIDTH),
    }
    for number in range(LAYERS):
        block = f"transformer.h.{number}"
        shapes[f"{block}.attn.c_attn.weight"] = (WIDTH, 3 * WIDTH)
        shapes[f"{block}.attn.c_proj.weight"] = (WIDTH, WIDTH)
        shapes[f"{block}.mlp.c_fc.weight"] = (WIDTH, 4 * WIDTH)
        shapes[f"{block}.mlp.c_proj.weight"] = (4 * WIDTH, WIDTH)
    return shapes


@pytest.mark.promise("M55")
def test_the_parameters_of_gpt_3_are_counted_and_shown_right(tmp_path: Path) -> None:
    path = write_sparse(tmp_path / "gpt3.safetensors", gpt3(), "BF16")
    count = LAYERS * BLOCK + (WORDS + POSITIONS) * WIDTH

    found = analyze_file(path)

    assert count > 174_000_000_000
    assert path.stat().st_blocks * 512 < 2**20, "the file must be a hole"
    assert found.parameters.count == count
    assert found.parameters.size_bytes == 2 * count == path.stat().st_size - _header_bytes(path)
    assert found.architecture.model_class == "GPT"
    lines = shown(found)
    assert f"Total Parameters: {count}" in lines
    assert f"Parameter Memory: {2 * count / 2**20:.2f} MB" in lines
    overview = "\n".join(text_lines(overview_blocks(found), 100))
    assert f"{count:,} (174.6 B)" in overview
    assert "325 GiB" in overview
    assert json.loads(rendered(found, ".json"))["parameters"]["count"]["value"] == count
    assert f"{count:,} (174.6 B)" in rendered(found, ".html").decode()


def _header_bytes(path: Path) -> int:
    with path.open("rb") as file:
        return 8 + int.from_bytes(file.read(8), "little")


@pytest.mark.promise("M55")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_gpt_3_takes_little_memory(tmp_path: Path) -> None:
    path = write_sparse(tmp_path / "gpt3.safetensors", gpt3(), "BF16")
    program = (
        "import sys\n"
        "from snapviewer.cli import main\n"
        "code = main(['model', sys.argv[1], '--json', '-o', sys.argv[2]])\n"
        "status = open('/proc/self/status').read()\n"
        "print(status.partition('VmHWM:')[2].split()[0], file=sys.stderr)\n"
        "sys.exit(code)"
    )

    ran = run("-c", program, path, tmp_path / "report.txt", program=())

    assert ran.code == 0, ran.err
    assert int(ran.err.split()[-1]) < 150 * 1024, "M55: kibibytes of memory"


def huge(rows: int, columns: int) -> Any:
    """A parameter of which one element is stored."""
    return nn.Parameter(torch.full((1, 1), 0.5).expand(rows, columns), requires_grad=False)


class Layer(nn.Module):  # type: ignore[misc] # its base is torch's
    def __init__(self, takes: int, gives: int) -> None:
        super().__init__()
        self.weight = huge(gives, takes)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight)


class Block(nn.Module):  # type: ignore[misc] # its base is torch's
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.projection = Layer(WIDTH, 3 * WIDTH), Layer(WIDTH, WIDTH)
        self.up, self.down = Layer(WIDTH, 4 * WIDTH), Layer(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(attended)
        return x + self.down(torch.relu(self.up(x)))


class Gpt(nn.Module):  # type: ignore[misc] # its base is torch's
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.words = huge(WORDS, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(layers)))

    def forward(self, tokens: Tensor) -> Tensor:
        x = nn.functional.embedding(tokens, self.words)
        return nn.functional.linear(self.blocks(x), self.words)


@pytest.mark.promise("M55")
def test_the_work_of_100_billion_parameters_is_counted_exactly(tmp_path: Path) -> None:
    path = tmp_path / "gpt.pt"
    torch.jit.script(Gpt(56)).save(str(path))

    found = analyze_file(path)

    assert path.stat().st_size < 2**20
    assert found.parameters.count == 56 * BLOCK + WORDS * WIDTH > 100_000_000_000
    assert found.totals is not None
    assert found.totals.uncounted == ()
    # 128 tokens through all matrices, and attention among them.
    attention = 56 * 2 * 128 * 128 * WIDTH
    assert found.totals.work.macs == 128 * found.parameters.count + attention
    assert found.totals.work.flops > 2**44
    assert "102.1 B" in "\n".join(text_lines(overview_blocks(found), 100))


@pytest.mark.promise("M55")
def test_twice_as_many_layers_take_twice_as_many_steps(tmp_path: Path) -> None:
    steps = []
    for layers in (24, 48):
        path = tmp_path / f"{layers}.pt"
        torch.jit.script(Gpt(layers)).save(str(path))
        model = reader._open(path)
        ran, is_whole = model.interpret(reader._arranged(model, [_tokens()]))
        assert is_whole
        steps.append(ran.steps)

    assert steps[1] < 2.1 * steps[0]


def _tokens() -> Any:
    from snapviewer.model import TensorSpec
    from snapviewer.model.torchscript.values import Tensor as Shaped

    return Shaped(TensorSpec((1, 128), "int64"))
