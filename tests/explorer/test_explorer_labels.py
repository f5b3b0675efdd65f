"""Lines of the tree say what modules are as people write it, whatever modules do."""

from __future__ import annotations

import pytest

from snapviewer.explorer.labels import MAX_ARGUMENT_CHARS, MAX_NAME_CHARS, label
from snapviewer.explorer.saved_types import Shapes, arguments_of_shapes, guessed_type
from snapviewer.explorer.tree import ModuleNode, Sums

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402 (after the line that skips)

from snapviewer.explorer.live import tree_of_module  # noqa: E402
from support import explorer_models as models  # noqa: E402 (it needs torch)

pytestmark = pytest.mark.torch


class _Block(nn.Sequential):  # type: ignore[misc]
    pass


# Lazy, so that no test waits for layers of others to be made.
LABELS = {
    "conv1: Conv2d(3→64, 7×7) [9.4K params]": lambda: nn.Conv2d(3, 64, 7, 2, 3, bias=False),
    "bn1: BatchNorm2d(64) [128 params]": lambda: nn.BatchNorm2d(64),
    "relu: ReLU(inplace=True) [0 params]": lambda: nn.ReLU(inplace=True),
    "relu: ReLU [0 params]": nn.ReLU,
    "maxpool: MaxPool2d(3×3, stride=2) [0 params]": lambda: nn.MaxPool2d(3, 2, 1),
    "pool: MaxPool1d(2) [0 params]": lambda: nn.MaxPool1d(2),
    "pool: AvgPool2d(2×3, stride=1×2) [0 params]": lambda: nn.AvgPool2d((2, 3), (1, 2)),
    "fc: Linear(2048→1000) [2.0M params]": lambda: nn.Linear(2048, 1000),
    "up: ConvTranspose2d(8→4, 2×2) [132 params]": lambda: nn.ConvTranspose2d(8, 4, 2),
    "conv: Conv2d(8→16, 3×3, groups=4) [304 params]": lambda: nn.Conv2d(8, 16, 3, groups=4),
    "conv: Conv1d(8→8, 3, depthwise) [32 params]": lambda: nn.Conv1d(8, 8, 3, groups=8),
    "conv: Conv2d(1→1, 3×3, dilation=2) [10 params]": lambda: nn.Conv2d(1, 1, 3, dilation=2),
    "conv: Conv2d(1→1, 3×3, dilation=2×1) [10 params]": lambda: nn.Conv2d(1, 1, 3, dilation=(2, 1)),
    "wte: Embedding(30522, 768) [23.4M params]": lambda: nn.Embedding(
        30522, 768, _weight=torch.empty(30522, 768)
    ),
    "ln: LayerNorm(768) [1.5K params]": lambda: nn.LayerNorm(768),
    "ln: LayerNorm(5×10) [100 params]": lambda: nn.LayerNorm((5, 10)),
    "n: RMSNorm(64) [64 params]": lambda: nn.RMSNorm(64),
    "n: GroupNorm(4 groups, 8) [16 params]": lambda: nn.GroupNorm(4, 8),
    "r: LSTM(64→128, 2 layers, bidirectional) [593.9K params]": lambda: nn.LSTM(
        64, 128, 2, bidirectional=True
    ),
    "r: GRUCell(2→3) [63 params]": lambda: nn.GRUCell(2, 3),
    "a: MultiheadAttention(768, 12 heads) [2.4M params]": lambda: nn.MultiheadAttention(768, 12),
    "d: Dropout(p=0.1) [0 params]": lambda: nn.Dropout(0.1),
    "p: AdaptiveAvgPool2d(1×1) [0 params]": lambda: nn.AdaptiveAvgPool2d(1),
    "p: AdaptiveMaxPool2d(7×same) [0 params]": lambda: nn.AdaptiveMaxPool2d((7, None)),
    "layer1: Sequential [6 params]": lambda: nn.Sequential(nn.Linear(2, 2)),
    "0: _Block [6 params]": lambda: _Block(nn.Linear(2, 2)),
    "lazy: LazyConv2d(?→4, 3×3) [0 params]": lambda: nn.LazyConv2d(4, 3),
    "lazy: LazyLinear(?→4) [0 params]": lambda: nn.LazyLinear(4),
    "lazy: LazyBatchNorm2d(?) [0 params]": nn.LazyBatchNorm2d,
}


@pytest.mark.promise("X24")
@pytest.mark.parametrize("said", LABELS)
def test_a_module_is_said_as_people_write_it(said: str) -> None:
    name = said.partition(":")[0]
    model = nn.ModuleDict({name: LABELS[said]()})

    assert label(tree_of_module(model).root.children[0]) == said


def test_what_an_unknown_module_says_of_itself_is_cleaned_and_shortened() -> None:
    class Chatty(nn.Module):  # type: ignore[misc]
        def extra_repr(self) -> str:
            return "a\n\x1b[31m" + "b" * 10**6

    said = tree_of_module(Chatty()).root.arguments

    assert said.startswith("a ?[31mbbb")
    assert len(said) <= MAX_ARGUMENT_CHARS


def test_a_module_whose_description_fails_has_none() -> None:
    broken = nn.Linear(2, 2)
    del broken.in_features  # so that its `extra_repr` fails, too

    assert tree_of_module(models.Rude()).root.arguments == ""
    assert tree_of_module(broken).root.arguments == ""


def test_a_layer_of_a_known_kind_that_lacks_what_is_known_says_its_own_words() -> None:
    class Linear(nn.Module):  # type: ignore[misc]
        def extra_repr(self) -> str:
            return "bits=4, bias=True"

    assert tree_of_module(Linear()).root.arguments == "bits=4"


def test_untrusted_names_are_sanitized() -> None:
    for (name, type_name), said in {
        ("", ""): "(no name)",
        ("a", ""): "a",
        ("", "Net"): "Net",
        ("[weights]", "X\x1b[2J"): "[weights]: X?[2J",
        ("層\u202e", ""): "層?",
    }.items():
        node = ModuleNode(name, name, type_name, "", (), (), Sums(1, 0, 0, 0, 0, 0))

        assert label(node) == f"{said} [0 params]"


def test_a_long_name_is_shortened() -> None:
    node = ModuleNode("n" * 500, "n" * 500, "T" * 500, "", (), (), Sums(1, 0, 0, 0, 0, 0))

    name, _, kind = label(node).removesuffix(" [0 params]").partition(": ")

    assert (len(name), len(kind)) == (MAX_NAME_CHARS, MAX_NAME_CHARS)
    assert (name[0], kind[0]) == ("n", "T")


# Saved modules


def shapes_of(module: nn.Module) -> Shapes:
    return {
        name: tuple(tensor.shape) for name, tensor in module.state_dict().items() if "." not in name
    }


@pytest.mark.parametrize(
    ("name", "module", "said"),
    [
        ("conv1", nn.Conv2d(3, 64, 7), "Conv2d(3→64, 7×7)"),
        ("c", nn.Conv1d(2, 4, 3), "Conv1d(2→4, 3)"),
        ("c", nn.Conv3d(2, 4, 3), "Conv3d(2→4, 3×3×3)"),
        ("fc", nn.Linear(4, 3), "Linear(4→3)"),
        ("fc", nn.Linear(4, 3, bias=False), "Linear(4→3)"),
        ("wte", nn.Embedding(7, 3), "Embedding(7, 3)"),
        ("embed_tokens", nn.Embedding(7, 3), "Embedding(7, 3)"),
        ("bn1", nn.BatchNorm2d(5), "BatchNorm(5)"),
        ("ln_1", nn.LayerNorm(5), "LayerNorm(5)"),
        ("norm", nn.RMSNorm(5), "RMSNorm(5)"),
        ("rnn", nn.LSTM(2, 3, 2, bidirectional=True), "LSTM(2→3, 2 layers, bidirectional)"),
        ("rnn", nn.GRU(2, 3), "GRU(2→3)"),
        ("rnn", nn.RNN(2, 3), "RNN(2→3)"),
        ("attn", nn.MultiheadAttention(8, 2), "MultiheadAttention(8)"),
        ("act", nn.PReLU(4), "()"),
    ],
)
def test_the_type_of_a_saved_module_is_guessed_from_its_tensors(
    name: str, module: nn.Module, said: str
) -> None:
    shapes = shapes_of(module)

    guess = guessed_type(name, shapes)

    assert f"{guess}({arguments_of_shapes(guess, shapes)})" == said


def test_a_linear_layer_with_its_weight_turned_is_known_by_its_bias() -> None:
    shapes = {"weight": (768, 2304), "bias": (2304,)}

    assert guessed_type("c_attn", shapes) == "Conv1D"
    assert arguments_of_shapes("Conv1D", shapes) == "768→2304"


@pytest.mark.parametrize("type_name", ["Conv2d", "LSTM", "Linear", "Embedding", "LayerNorm", ""])
@pytest.mark.parametrize("shape", [(), (0,), (0, 0), (1,) * 6])
def test_shapes_that_no_layer_has_do_no_harm(type_name: str, shape: tuple[int, ...]) -> None:
    names = ("weight", "bias", "weight_ih_l0", "weight_hh_l0", "in_proj_weight")
    for size in range(1, len(names) + 1):
        shapes = dict.fromkeys(names[:size], shape) | dict.fromkeys(names[size:], (3, 1))

        assert isinstance(guessed_type("x", shapes), str)
        assert isinstance(arguments_of_shapes(type_name, shapes), str)
