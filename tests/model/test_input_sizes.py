"""Which sizes of a model's inputs may vary, how far, and which are suggested."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from snapviewer.model import analyze_file
from snapviewer.model.graph import InputSize
from snapviewer.report.model.formats import rendered
from snapviewer.report.model.json import to_json
from snapviewer.report.model.text import as_text
from support.promised_model import shown
from support.torch_marks import torch_marks

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import Tensor, nn  # noqa: E402 (after the line that skips)

pytestmark = torch_marks(":DeprecationWarning", ":FutureWarning")


class Gpt(nn.Module):  # type: ignore[misc] # its base is torch's
    """GPT-2 in small: 1,024 positions, and a mask of as many rows unless it has none."""

    def __init__(self, *, has_table: bool = True, has_mask: bool = True) -> None:
        super().__init__()
        self.wte = nn.Embedding(3000, 16)
        self.wpe = nn.Embedding(1024, 16) if has_table else None
        self.attention = nn.Linear(16, 48)
        mask = torch.tril(torch.ones(1024, 1024)).view(1, 1024, 1024)
        self.register_buffer("mask", mask if has_mask else None)

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.size(1)
        x = self.wte(tokens)
        if self.wpe is not None:
            x = x + self.wpe(torch.arange(length))
        q, k, v = self.attention(x).split(16, dim=2)
        scores = q @ k.transpose(1, 2)
        if self.mask is not None:
            scores = scores.masked_fill(self.mask[:, :length, :length] == 0, float("-inf"))
        return scores.softmax(-1) @ v


def sizes(path: Path) -> dict[str, InputSize]:
    graph = analyze_file(path, has_stats=False).graph
    assert graph is not None
    return {size.role: size for size in graph.input_sizes}


def traced(path: Path, module: Any, *inputs: Any) -> Path:
    torch.jit.trace(module.eval(), inputs).save(str(path))
    return path


@pytest.mark.promise("M46")
@pytest.mark.parametrize("has_table", [True, False])
@pytest.mark.parametrize("has_mask", [True, False])
def test_a_traced_gpt_has_a_batch_of_any_size_and_at_most_its_positions(
    has_table: bool, has_mask: bool, tmp_path: Path
) -> None:
    module = Gpt(has_table=has_table, has_mask=has_mask)
    path = traced(tmp_path / "gpt.pt", module, torch.ones(1, 12, dtype=torch.int64))

    found = sizes(path)

    assert found["batch"].varies
    assert found["batch"].most is None
    length = found["length"]
    assert (length.size, length.varies) == (12, True)
    if has_table or has_mask:
        assert length.most == 1024, "M46: a GPT-2 of 1,024 positions takes at most as many tokens"
        assert length.suggested == (128, 512, 1024)
    else:
        assert length.most is None
    # What is said is so.
    loaded = torch.jit.load(str(path))
    for size in (length.most or 1024, *length.suggested):
        assert loaded(torch.ones(3, size, dtype=torch.int64)).shape == (3, size, 16)
    if length.most is not None:
        with pytest.raises(Exception, match=r"index out of range|must match"):
            loaded(torch.ones(1, length.most + 1, dtype=torch.int64))


@pytest.mark.promise("M46")
def test_the_limits_are_in_every_form(tmp_path: Path) -> None:
    path = traced(tmp_path / "gpt.pt", Gpt(), torch.ones(1, 12, dtype=torch.int64))
    found = analyze_file(path, has_stats=False)

    line = "length: at most 1,024 (the rows of its table of positions); suggested: 128, 512, 1,024"
    assert f"    {line}" in shown(found)
    assert f"    {line}\n" in as_text(found)
    assert f"  - {line}\n" in rendered(found, ".txt").decode()
    assert line in rendered(found, ".html").decode()
    (length,) = [
        size for size in to_json(found)["compute"]["input_sizes"] if size["role"] == "length"
    ]
    assert length["places"] == [{"input": 0, "dimension": 1}]
    assert (length["varies"], length["most"]) == (True, 1024)
    assert length["suggested"] == [128, 512, 1024]


@pytest.mark.promise("M46")
def test_inputs_that_must_have_one_length_vary_together(tmp_path: Path) -> None:
    class Masked(nn.Module):  # type: ignore[misc] # its base is torch's
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(50, 4)

        def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
            return self.table(tokens) * mask.unsqueeze(2)

    tokens = torch.ones(2, 9, dtype=torch.int64)

    found = sizes(traced(tmp_path / "masked.pt", Masked(), tokens, tokens))

    assert found["length"].places == ((0, 1), (1, 1))
    assert found["length"].varies
    assert found["batch"].varies


@pytest.mark.promise("M46")
def test_images_may_be_larger_unless_a_layer_takes_all_of_them(tmp_path: Path) -> None:
    pooled = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    flat = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 6 * 6, 2))

    free = sizes(traced(tmp_path / "pooled.pt", pooled, torch.ones(1, 3, 8, 8)))
    fixed = sizes(traced(tmp_path / "flat.pt", flat, torch.ones(1, 3, 8, 8)))

    sides = free["height and width"]
    assert (sides.size, sides.varies, sides.suggested) == (8, True, (8, 224, 256, 384, 512))
    assert not free["channels"].varies
    assert not fixed["height and width"].varies
    assert fixed["height and width"].reason == "its layers do not fit 16"


@pytest.mark.promise("M46")
def test_an_exported_program_names_its_ranges(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Embedding(100, 8), nn.Linear(8, 3))
    length = torch.export.Dim("length", min=2, max=300)
    tokens = torch.ones(2, 16, dtype=torch.int64)
    exported = torch.export.export(module, (tokens,), dynamic_shapes=({1: length},))
    torch.export.save(exported, tmp_path / "exported.pt2")

    found = sizes(tmp_path / "exported.pt2")

    assert not found["batch"].varies
    assert (found["length"].least, found["length"].most) == (2, 300)
    assert found["length"].suggested == (128, 300)


@pytest.mark.promise("M44", "M46")
@pytest.mark.filterwarnings("ignore")  # what torchvision does
def test_scripted_inception_is_inferred_at_the_size_it_was_published_for(tmp_path: Path) -> None:
    models = pytest.importorskip("torchvision.models", reason="torchvision is not installed")
    module = models.inception_v3(weights=None, init_weights=False).eval()
    torch.jit.script(module).save(str(tmp_path / "inception.pt"))

    found = analyze_file(tmp_path / "inception.pt", has_stats=False)

    assert found.graph is not None
    assert found.totals is not None
    assert found.graph.inputs[0].shape == (1, 3, 299, 299)  # type: ignore[union-attr]
    # 5.71 GMAC are published, with its convolutions and its last layer.
    assert found.totals.work.macs == pytest.approx(5.71e9, rel=0.005)
    assert any("the size that such models were published for" in note for note in found.notes)
    (sides,) = [size for size in found.graph.input_sizes if size.role == "height and width"]
    assert sides.suggested[:2] == (299, 224)
