"""Panels of live modules show what torch knows, and those of files what is in the files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rich", reason="Textual is not installed")
from support.torch_marks import torch_marks

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402 (after the line that skips)

from snapviewer import read_checkpoint  # noqa: E402
from snapviewer.explorer.app.panels import PANELS, attributes, details, source  # noqa: E402
from snapviewer.explorer.checkpoint import tree_of_checkpoint  # noqa: E402
from snapviewer.explorer.explored_model import ExploredModel, Item, module_finder  # noqa: E402
from snapviewer.explorer.live import tree_of_module  # noqa: E402
from support.panel_text import WIDTHS, lines_of, text_of  # noqa: E402 (it needs rich)

# Of torch.jit.
pytestmark = torch_marks(":DeprecationWarning", ":FutureWarning")


class Net(nn.Module):  # type: ignore[misc]
    """Two layers, the second with the weights of the first.

    HiddenRows about it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.first = nn.Linear(4, 4, bias=False)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.rate = 0.5
        self._hidden = (1, 2)

    @property
    def loud(self) -> Any:
        raise AssertionError("a property was asked")

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x))  # the end of forward


def load_model(module: Any) -> ExploredModel:
    return ExploredModel(tree_of_module(module), module_finder(module))


@pytest.fixture(scope="module")
def net() -> ExploredModel:
    return load_model(Net())


def shown(
    content: Callable[[ExploredModel, Any, int], Any],
    explored: ExploredModel,
    path: str,
    width: int = 100,
) -> str:
    return text_of(content(explored, explored.index.nodes[path], width), width)


@pytest.mark.promise("X26")
def test_the_type_is_shown_with_its_inheritance_and_its_module(net: ExploredModel) -> None:
    conv = shown(details.content, net, "conv")
    root = shown(details.content, net, "")

    for line in (
        "class        Conv2d",
        "inheritance  Conv2d → _ConvNd → Module",
        "defined in   torch.nn.modules.conv",
        "arguments    3, 4, kernel_size=(3, 3), stride=(1, 1)",
    ):
        assert line in conv
    assert "inheritance  Net → Module" in root
    assert "docstring    Two layers, the second with the weights of the first." in root


@pytest.mark.promise("X27")
def test_sums_are_those_of_torch_and_tied_weights_count_once(net: ExploredModel) -> None:
    module = Net()
    count = sum(parameter.numel() for parameter in module.parameters())
    size = sum(each.numel() * each.element_size() for each in module.parameters())
    size += sum(each.numel() * each.element_size() for each in module.buffers())

    content = shown(details.content, net, "")

    assert f"total        {count:,}" in content
    assert f"memory       {size} B" in content
    assert "dtypes       float32 8, int64 1" in content


def test_mode_and_hooks_are_those_of_now() -> None:
    module = Net()
    explored = load_model(module)
    before = shown(details.content, explored, "conv")
    module.eval()
    module.conv.register_forward_hook(lambda *_: None)
    module.conv.register_full_backward_hook(lambda *_: None)

    after = shown(details.content, explored, "conv")

    assert "mode         training" in before
    assert "hooks        none" in before
    assert "mode         evaluation" in after
    assert "hooks        1 after forward, 1 after backward" in after


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (torch.zeros(2, 3, 4, 5), ("stride       60×20×5×1", "contiguous", "480 B, not shared")),
        (
            torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last),
            ("stride       60×1×15×3", "channels last"),
        ),
        (torch.zeros(4, 6).t(), ("stride       1×6", "not contiguous")),
        (torch.zeros(100)[10:20], ("offset       10 elements", "400 B, of which it needs 40 B")),
        (torch.zeros(1).expand(50), ("4 B: elements are repeated",)),
        (torch.zeros(3, device="meta"), ("device       meta", "none: no elements")),
        (torch.eye(3).to_sparse(), ("layout       sparse_coo",)),
        (torch.zeros(()), ("shape        scalar", "stride       scalar")),
    ],
    ids=["plain", "channels last", "transposed", "view", "expanded", "meta", "sparse", "scalar"],
)
def test_a_tensor_shows_its_layout_in_memory(tensor: Any, words: tuple[str, ...]) -> None:
    module = nn.Module()
    module.register_buffer("x", tensor)
    explored = load_model(module)

    content = text_of(details.content(explored, explored.tree.root.tensors[0], 100))

    for word in words:
        assert word in content


def test_a_parameter_shows_whether_it_has_a_gradient() -> None:
    module = nn.Linear(2, 2)
    explored = load_model(module)
    weight = explored.tree.root.tensors[0]
    before = text_of(details.content(explored, weight, 80))
    module(torch.ones(1, 2)).sum().backward()

    after = text_of(details.content(explored, weight, 80))

    assert "gradient     none" in before
    assert "gradient     computed" in after


def test_the_code_begins_with_forward_and_says_where_it_is(net: ExploredModel) -> None:
    content = shown(source.content, net, "")

    forward, _, whole = content.partition("class Net")
    assert re.search(r"forward\n\S*test_explorer_panels_live\.py:\d+\n", forward)
    assert "return self.second(self.first(x))  # the end of forward" in forward
    assert "self.rate = 0.5" in whole


def test_a_class_without_a_file_says_that_python_does_not_find_it() -> None:
    namespace: dict[str, Any] = {"nn": nn}
    exec("class Made(nn.Module):\n    def forward(self, x): return x", namespace)

    content = shown(source.content, load_model(namespace["Made"]()), "", 60)

    assert "No source code of" in content


def test_a_scripted_module_shows_its_torchscript(tmp_path: Path) -> None:
    scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    scripted.save(tmp_path / "m.pt")
    kept = read_checkpoint(tmp_path / "m.pt")
    saved = ExploredModel(tree_of_checkpoint(kept), checkpoint=kept)

    live = shown(source.content, load_model(scripted), "0")
    linear, root = shown(source.content, saved, "0"), shown(source.content, saved, "")

    assert "return torch.linear(input, weight, bias)" in live
    assert "return torch.linear(input, weight, bias)" in linear
    assert re.search(r"code/__torch__/torch/nn/modules/linear\S*\.py:1\n +1 class Linear", linear)
    assert "class Sequential" in root


def test_a_checkpoint_without_code_says_so(tmp_path: Path) -> None:
    torch.save(Net().state_dict(), tmp_path / "m.pth")
    kept = read_checkpoint(tmp_path / "m.pth")
    explored = ExploredModel(tree_of_checkpoint(kept), checkpoint=kept)

    content = shown(source.content, explored, "conv")

    assert "The file contains tensors but no code." in content


def test_a_tensor_of_a_file_shows_where_it_is(tmp_path: Path) -> None:
    whole = torch.arange(100.0)
    torch.save({"a": {"weight": whole[10:20]}, "b": {"weight": whole}}, tmp_path / "m.pth")
    kept = read_checkpoint(tmp_path / "m.pth")
    explored = ExploredModel(tree_of_checkpoint(kept), checkpoint=kept)
    entry = explored.index.nodes["a"].tensors[0]

    content = text_of(details.content(explored, entry, 200), 200)

    assert f"file         {tmp_path / 'm.pth'}" in content
    assert "storage      0" in content
    assert "offset       10 elements" in content
    assert "size         400 B, of which it needs 40 B" in content
    assert f"file offset  byte {kept.storages[0].start:,}" in content


def test_attributes_are_listed_as_kept_and_no_property_is_asked(net: ExploredModel) -> None:
    content = shown(attributes.content, net, "")

    assert re.search(r"rate +float +0\.5", content)
    assert re.search(r"conv +Conv2d +Conv2d\(…\)", content)
    assert re.search(r"_hidden +tuple +\(1, 2\)", content)
    assert re.search(r"Properties, not evaluated\n.*loud", content)
    assert "empty: _backward_hooks" in content


def test_tensors_among_attributes_are_shown_by_their_shape(net: ExploredModel) -> None:
    content = shown(attributes.content, net, "norm")

    assert re.search(r"weight +Parameter +4 float32 cpu", content)
    assert re.search(r"num_batches_tracked +Tensor +scalar int64 cpu", content)


def test_the_plain_values_of_a_file_are_at_its_root(tmp_path: Path) -> None:
    torch.save({"epoch": 7, "note": "[b]", "model": Net().state_dict()}, tmp_path / "m.pth")
    kept = read_checkpoint(tmp_path / "m.pth")
    explored = ExploredModel(tree_of_checkpoint(kept), checkpoint=kept)

    content = shown(attributes.content, explored, "")

    assert re.search(r"epoch +int +7", content)
    assert re.search(r"note +str +'\[b\]'", content)


def test_the_attributes_of_a_scripted_module_are_those_of_the_file(tmp_path: Path) -> None:
    torch.jit.script(nn.Sequential(nn.Linear(2, 3)).eval()).save(tmp_path / "m.pt")
    kept = read_checkpoint(tmp_path / "m.pt")
    explored = ExploredModel(tree_of_checkpoint(kept), checkpoint=kept)

    linear = shown(attributes.content, explored, "0")
    weight = text_of(attributes.content(explored, explored.index.nodes["0"].tensors[0], 80))

    assert re.search(r"training +bool +False", linear)
    assert "No values here besides tensors." in weight


@pytest.mark.parametrize("width", WIDTHS)
def test_every_panel_keeps_to_its_width_for_every_live_module(
    net: ExploredModel, width: int
) -> None:
    norm = net.index.nodes["norm"]
    for content in PANELS.values():
        items: list[Item] = [net.tree.root, norm, *norm.tensors]
        for item in items:
            assert lines_of(content(net, item, width), width)


def test_the_modules_of_a_pipeline_are_found_by_their_paths() -> None:
    class Pipeline:
        def __init__(self) -> None:
            self.unet = Net()

    pipeline = Pipeline()

    found = module_finder(pipeline)("unet.conv")

    assert found is pipeline.unet.conv
