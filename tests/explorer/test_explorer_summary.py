"""A tree is exported as it is seen: text, JSON, HTML, and a diagram."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from snapviewer.explorer.timing import FlowStep, ForwardStats
from snapviewer.explorer.tree import ModuleNode, Sums, Tree
from snapviewer.report.tree import html as page
from snapviewer.report.tree import json as document
from snapviewer.report.tree.boxes import Limits, boxes_of
from snapviewer.report.tree.diagram import as_svg, kind_of
from snapviewer.report.tree.selection import TreeSelection, rows_of
from snapviewer.report.tree.text import as_text
from support.explorer_trees import linear, module, tensor


def counted(
    path: str, type_name: str, arguments: str, parameters: int, *children: ModuleNode
) -> ModuleNode:
    """A module of which only the sum counts."""
    name = path.rpartition(".")[2]
    size = 1 + sum(child.sums.modules for child in children)
    sums = Sums(size, parameters, parameters, 0, 4 * parameters, 0)
    return ModuleNode(name, path, type_name, arguments, (), children, sums)


def seeds_tree() -> Tree:
    """The tree of the promise."""
    block = (
        counted("layer1.0.conv1", "Conv2d", "64→64, 3×3", 36_864),
        counted("layer1.0.bn1", "BatchNorm2d", "64", 128),
        counted("layer1.0.relu", "ReLU", "", 0),
    )
    layer = (
        counted("layer1.0", "BasicBlock", "", 147_700, *block),
        counted("layer1.1", "BasicBlock", "", 147_700),
    )
    root = counted(
        "",
        "ResNet",
        "",
        145_500_000,
        counted("conv1", "Conv2d", "3→64, 7×7", 9408),
        counted("bn1", "BatchNorm2d", "64", 128),
        counted("relu", "ReLU", "inplace=True", 0),
        counted("maxpool", "MaxPool2d", "3×3, stride=2", 0),
        counted("layer1", "Sequential", "", 295_900, *layer),
        counted("fc", "Linear", "2048→1000", 2_049_000),
    )
    return Tree("ResNet", "live module", root)


@pytest.mark.promise("X24")
def test_the_text_is_the_tree_of_the_promise() -> None:
    assert as_text(seeds_tree()) == (
        "ResNet(\n"
        "├── 145.5M parameters\n"
        "├── 555 MiB of parameters\n"
        "├── conv1: Conv2d(3→64, 7×7) [9.4K params]\n"
        "├── bn1: BatchNorm2d(64) [128 params]\n"
        "├── relu: ReLU(inplace=True) [0 params]\n"
        "├── maxpool: MaxPool2d(3×3, stride=2) [0 params]\n"
        "├── layer1: Sequential [295.9K params]\n"
        "│   ├── 0: BasicBlock [147.7K params]\n"
        "│   │   ├── conv1: Conv2d(64→64, 3×3) [36.9K params]\n"
        "│   │   ├── bn1: BatchNorm2d(64) [128 params]\n"
        "│   │   └── relu: ReLU [0 params]\n"
        "│   └── 1: BasicBlock [147.7K params]\n"
        "└── fc: Linear(2048→1000) [2.0M params]\n"
    )


def test_what_is_hidden_is_noted_and_the_rest_is_in_the_chosen_order() -> None:
    text = as_text(seeds_tree(), TreeSelection(max_depth=1, hide_below=1000, sort="params"))

    assert text.splitlines()[3:] == [
        "├── fc: Linear(2048→1000) [2.0M params]",
        "├── layer1: Sequential [295.9K params]",
        "│   └── ... 2 more",
        "├── conv1: Conv2d(3→64, 7×7) [9.4K params]",
        "└── ... 3 more",
    ]


def test_only_what_is_on_the_screen_is_exported_with_the_lines_that_are_there() -> None:
    shown = {"layer1", "layer1.1"}

    text = as_text(seeds_tree(), TreeSelection(shown=shown, line=lambda node: f"<{node.path}>"))

    assert text.splitlines()[3:] == [
        "├── <layer1>",
        "│   ├── <layer1.1>",
        "│   └── ... 1 more",
        "└── ... 5 more",
    ]


def tied_tree() -> Tree:
    table = tensor("wte.weight", 5, 2)
    head = tensor("head.weight", 5, 2, tied_to="wte.weight")
    children = [
        module("wte", "Embedding", "5, 2", tensors=[table]),
        module("head", "Linear", "2→5", tensors=[head]),
    ]
    root = module("", "Net", children=children)
    return Tree("[b]Net[/b]<script>", "a\x1b[2J.pth", root, ("odd <b>&\x1b",))


def test_what_is_tied_and_what_is_odd_is_noted() -> None:
    text = as_text(tied_tree())

    assert "head: Linear(2→5) [0 params] (weight tied to wte.weight)" in text
    assert text.splitlines()[-1] == "Note: odd <b>&?"


def test_the_document_has_every_module_after_its_parent() -> None:
    tree = seeds_tree()

    found = document.to_json(tree, TreeSelection(max_depth=2))

    assert (found["format"], found["version"]) == ("snapviewer-model-summary", 1)
    assert found["totals"]["parameters"] == 145_500_000
    assert [
        (item["path"], item["depth"], item["hidden_children"]) for item in found["modules"]
    ] == [
        ("", 0, 0),
        ("conv1", 1, 0),
        ("bn1", 1, 0),
        ("relu", 1, 0),
        ("maxpool", 1, 0),
        ("layer1", 1, 0),
        ("layer1.0", 2, 3),
        ("layer1.1", 2, 0),
        ("fc", 1, 0),
    ]


def test_the_document_has_every_field_of_a_tensor() -> None:
    found = document.to_json(tied_tree())["modules"][2]["tensors"]

    assert found == [
        {
            "name": "weight",
            "path": "head.weight",
            "shape": [5, 2],
            "dtype": "float32",
            "device": "cpu",
            "elements": 10,
            "bytes": 40,
            "is_buffer": False,
            "is_trainable": True,
            "tied_to": "wte.weight",
        }
    ]


class Outline(HTMLParser):
    """Follows the elements of a page; what is open is on a stack."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.deepest = 0
        self.words: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)
            self.deepest = max(self.deepest, len(self.open))

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def outline_of(text: str) -> Outline:
    outline = Outline()
    outline.feed(text)
    outline.close()
    assert outline.open == []
    return outline


@pytest.mark.promise("X14")
def test_the_page_folds_and_obeys_no_name() -> None:
    text = page.as_html(tied_tree())

    outline = outline_of(text)

    assert {"details", "summary", "table"} <= outline.tags
    assert not {"b", "script"} & outline.tags
    assert "tied to wte.weight" in outline.words
    assert "\x1b" not in text


def chain(levels: int) -> Tree:
    node = counted(".".join("m" * levels), "Leaf", "", 1)
    for level in range(levels - 1, -1, -1):
        node = counted(".".join("m" * level), "Chain", "", 1, node)
    return Tree("chain", "", node)


def test_nesting_deeper_than_any_reader_bears_is_exported_flat() -> None:
    tree = chain(2000)

    assert outline_of(page.as_html(tree)).deepest < 500
    assert len(document.to_json(tree)["modules"]) == 2001
    assert as_text(tree).count("\n") == 2003
    assert max(map(len, as_text(tree).splitlines())) < 400
    assert ElementTree.fromstring(as_svg(tree)).tag.endswith("svg")


def test_rows_know_whether_more_follows() -> None:
    rows = {
        row.node.path: row
        for row in rows_of(seeds_tree().root, TreeSelection())
        if hasattr(row, "node")
    }

    assert rows["layer1.0.relu"].guides == (True, True, False)
    assert rows["fc"].guides == (False,)


# The diagram


def words_of(svg: str) -> list[str]:
    return [
        "".join(text.itertext())
        for text in ElementTree.fromstring(svg).iter()
        if text.tag.endswith("}text")
    ]


def blocks(count: int) -> Tree:
    children = [
        counted(f"h.{n}", "Block", "", 10, counted(f"h.{n}.fc", "Linear", "1→9", 10))
        for n in range(count)
    ]
    layers = counted("h", "ModuleList", "", 10 * count, *children)
    return Tree("Gpt", "", counted("", "Gpt", "", 10 * count, layers))


def test_like_modules_in_a_row_are_drawn_once_with_their_number() -> None:
    words = words_of(as_svg(blocks(12)))

    assert "0…11×12Block" in words
    assert words.count("fcLinear(1→9)") == 1


def test_modules_that_differ_inside_are_drawn_apart() -> None:
    tree = blocks(2)
    odd = counted("h.2", "Block", "", 10, counted("h.2.fc", "Linear", "2→5", 10))
    layers = tree.root.children[0]
    root = counted("", "Gpt", "", 30, counted("h", "ModuleList", "", 30, *layers.children, odd))

    box = boxes_of(Tree("", "", root), None, Limits())

    assert [len(child.members) for child in box.children[0].children] == [2, 1]


def test_a_diagram_of_many_modules_stays_small_and_says_what_it_leaves_out() -> None:
    children = [counted(f"m{n}", "Linear", f"{n}→1", n) for n in range(5000)]
    svg = as_svg(Tree("Big", "", counted("", "Big", "", 10**6, *children)))

    assert len(svg) < 50_000
    assert "… 4,976 more" in words_of(svg)


def step(order: int, path: str, *sources: str) -> FlowStep:
    return FlowStep(order, path, "", 1, sources, (), ())


def test_a_recorded_run_gives_the_order_and_the_arrows() -> None:
    names = ("unused", "c", "b", "a")
    tree = Tree("", "", counted("", "Net", "", 0, *(counted(n, "Linear", "", 0) for n in names)))
    flow = (step(0, ""), step(1, "a"), step(2, "b", "a"), step(3, "c", "b", "a"))

    box = boxes_of(tree, ForwardStats(flow=flow), Limits())

    assert [child.node.name for child in box.children] == ["a", "b", "c", "unused"]
    assert [child.has_run for child in box.children] == [True, True, True, False]
    assert box.arrows == [(0, 1), (1, 2), (0, 2)]
    svg = as_svg(tree, ForwardStats(flow=flow))
    assert svg.count('class="arrow"') == 2
    assert svg.count('class="arrow skip"') == 1


def test_what_flows_between_parts_is_drawn_between_those_that_hold_them() -> None:
    tree = blocks(3)
    out = counted("out", "Linear", "", 0)
    root = counted("", "Gpt", "", 30, *tree.root.children, out)
    flow = (step(0, "h.0.fc"), step(1, "h.1.fc", "h.0.fc"), step(2, "out", "h.1.fc"))

    box = boxes_of(Tree("", "", root), ForwardStats(flow=flow), Limits())

    assert box.arrows == [(0, 1)], "from the blocks to what follows them"
    assert box.children[0].arrows == [], "blocks drawn as one have nothing between them"


def test_names_in_a_diagram_are_words() -> None:
    root = counted("", "</svg><script>", "", 5, counted("a&\x1b<b", "X", "", 5))

    svg = as_svg(Tree("", "", root))

    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert any("a&?<b" in words for words in words_of(svg))


@pytest.mark.parametrize(
    ("type_name", "kind"),
    [
        ("Conv2d", "convolution"),
        ("Conv1D", "linear"),
        ("LayerNorm", "normalization"),
        ("GELU", "activation"),
        ("SelfAttention", "attention"),
        ("Dropout", "dropout"),
        ("MaxPool2d", "pooling"),
        ("LSTM", "recurrent"),
        ("Embedding", "embedding"),
        ("Thing", "other"),
    ],
)
def test_layers_of_a_kind_have_a_colour(type_name: str, kind: str) -> None:
    assert kind_of(type_name)[0] == kind


def test_what_is_frozen_is_marked_where_it_is() -> None:
    frozen = replace(tensor("base.weight", 2, 2), is_trainable=False)
    parts = [module("base", "Linear", tensors=[frozen]), linear("head", 2, 2)]

    lines = as_text(Tree("m", "", module("", "M", children=parts))).splitlines()

    assert [line.endswith(" (frozen)") for line in lines[-2:]] == [True, False]
