"""Panels show what is known of a module, in as many cells as there are."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("rich", reason="Textual is not installed")

from rich.cells import cell_len

from snapviewer.explorer.app.panels import (
    PANELS,
    attributes,
    comparison,
    details,
    flow,
    performance,
    source,
)
from snapviewer.explorer.explored_model import ExploredModel
from snapviewer.explorer.formats import format_time
from snapviewer.explorer.tree import ModuleNode, Tree
from support.explorer_trees import linear, module, resnet, tensor, tied
from support.panel_text import WIDTHS, lines_of, recorded, shape, steps, text_of, timing

IMAGE = shape(1, 64, 56, 56)
CONV = timing("layer1.0.conv1", 0.85e-3, backward_s=0.38e-3, inputs=(IMAGE,), outputs=(IMAGE,))
RECORDED = recorded(
    timing("", 10e-3, own_s=1e-3, inputs=(shape(1, 3, 224, 224),), outputs=(shape(1, 1000),)),
    timing("layer1", 5e-3, own_s=0.0, inputs=(IMAGE,), outputs=(IMAGE,)),
    timing("layer1.0", 4e-3, own_s=1e-3, inputs=(IMAGE,), outputs=(IMAGE,)),
    CONV,
    flow=steps(
        ("", 0, (), 5),
        ("conv1", 1, (), 7),
        ("layer1", 1, ("conv1",), 9),
        ("layer1.0", 2, ("conv1",), 9),
        ("layer1.0.conv1", 3, ("conv1",), 9),
        ("layer1.1", 2, ("layer1.0", "conv1"), 9),
        ("fc", 1, ("layer1",), 5),
    ),
)


def at(explored: ExploredModel, path: str) -> ModuleNode:
    return explored.index.nodes[path]


def shown(panel: Any, explored: ExploredModel, item: Any = "", *, width: int = 100) -> str:
    """The text of a panel for a module, by default the root, or a tensor."""
    item = at(explored, item) if isinstance(item, str) else item
    return text_of(panel.content(explored, item, width), width)


@pytest.fixture(scope="module")
def network() -> ExploredModel:
    return ExploredModel(resnet(), stats=RECORDED)


@pytest.mark.promise("X23")
def test_the_panels_of_the_seed_come_first_under_their_names() -> None:
    names = list(PANELS)

    assert names[:4] == ["Module Details", "Performance Stats", "Source Code", "Tensor Flow"]
    assert names[4:] == ["Attributes", "Comparison"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("content", PANELS.values(), ids=PANELS)
def test_every_panel_keeps_to_its_width_for_every_module(content: Any, width: int) -> None:
    for tree in (resnet(), tied()):
        explored = ExploredModel(tree, stats=RECORDED, other=resnet())
        for node in tree.root.walk():
            for item in (node, *node.tensors):
                assert lines_of(content(explored, item, width), width)


OVERLAYS = {
    100: """
layer1.0.conv1    36.9K params   Shape: 64×64×3×3   Time: 1.23ms   Mem: 147KB
├─ forward()      ⚡ 850.00μs   Input: 1×64×56×56   Output: 1×64×56×56
├─ backward()     ⚡ 380.00μs   Gradient: computed
└─ memory         📊 147KB      Parameters: 36,864 × 4 bytes
""",
    40: """
layer1.0.conv1
  36.9K params   Shape: 64×64×3×3
  Time: 1.23ms   Mem: 147KB
├─ forward()      ⚡ 850.00μs
│    Input: 1×64×56×56
│    Output: 1×64×56×56
├─ backward()     ⚡ 380.00μs
│    Gradient: computed
└─ memory         📊 147KB
     Parameters: 36,864 × 4 bytes
""",
}


@pytest.mark.promise("X25")
@pytest.mark.parametrize("width", OVERLAYS)
def test_the_overlay_is_that_of_the_seed_and_wraps_where_there_is_no_room(
    network: ExploredModel, width: int
) -> None:
    content = shown(performance, network, "layer1.0.conv1", width=width)

    assert f"\n{content}".startswith(f"{OVERLAYS[width]}\n")


def test_the_overlays_columns_stand_below_each_other_in_cells(network: ExploredModel) -> None:
    lines = shown(performance, network, "layer1").splitlines()[1:4]

    places = [
        cell_len(line[: re.search("Input|Gradient|Parameters", line).start()])  # type: ignore[union-attr]
        for line in lines
    ]

    assert len(set(places)) == 1


@pytest.mark.promise("X28")
def test_times_are_shown_with_spread_calls_and_shares(network: ExploredModel) -> None:
    content = shown(performance, network, "layer1.0")

    assert "calls        3 calls in 3 runs" in content
    assert "per call     4.00ms ± 400.00μs" in content
    assert "range        2.00ms to 8.00ms" in content
    assert re.search(r"own +[\d.]+.s.*\n +━+─+ +25\.0 % of the call", content)
    assert re.search(r"share +━+─+ +80\.0 % of layer1\n +━+╸?─+ +40\.0 % of the model", content)
    assert re.search(r"Slowest children\nmodule .*\nconv1 +Conv2d +850\.00μs +21\.2 %", content)
    assert "Most own time" not in content, "there is nothing below the children"


def test_the_modules_with_most_time_of_their_own_are_found_however_deep_they_are(
    network: ExploredModel,
) -> None:
    content = shown(performance, network)

    timings = network.stats.timings if network.stats else {}
    slowest = max((one for path, one in timings.items() if path), key=lambda one: one.own.sum_s)
    table = content.partition("Most own time\n")[2].splitlines()
    assert table[1].split()[0] == slowest.path
    assert format_time(slowest.own.median_s) in table[1]


def test_a_list_of_modules_that_is_never_called_is_looked_through() -> None:
    inner = module("blocks.0", "Block", tensors=[tensor("blocks.0.weight", 2)])
    tree = Tree("m", "", module("", "M", children=[module("blocks", children=[inner])]))
    explored = ExploredModel(tree, stats=recorded(timing("", 4e-3), timing("blocks.0", 1e-3)))

    whole = shown(performance, explored)
    part = shown(performance, explored, inner)
    blocks = shown(performance, explored, tree.root.children[0])

    assert re.search(r"blocks\.0 +Block +1\.00ms +25\.0 %", whole)
    assert re.search(r"not called in the recorded runs[\s\S]+0 +Block +1\.00ms +100\.0 %", blocks)
    assert "25.0 % of the model" in part


@pytest.mark.promise("X29")
def test_memory_of_calls_is_shown_or_that_it_was_not_counted(network: ExploredModel) -> None:
    counted = recorded(replace(CONV, allocated_bytes=2_000_000))

    without = shown(performance, network, "layer1.0.conv1")
    content = shown(
        performance, ExploredModel(resnet(), stats=counted), at(network, "layer1.0.conv1")
    )

    assert "activations  784 KiB per call" in content
    assert "allocated    1.91 MiB more" in content
    assert "allocated    not counted" in without


def test_parameters_of_several_sizes_are_distinguished_and_tied_ones_once() -> None:
    tree = tied()

    content = shown(performance, ExploredModel(tree))

    assert "64,000 × 2 bytes + 4,296 × 4 bytes" in content


@pytest.mark.parametrize("panel", [performance, flow])
def test_without_a_recording_the_lines_that_make_one_are_shown(panel: object) -> None:
    live = ExploredModel(resnet(), find_module=lambda path: None)

    content = shown(panel, live, width=52)

    assert "No run of this model was recorded." in content
    assert "with record_torch_module_forward_stats(model):\n      model(x)\n" in content
    lines = re.search(r"  from .*explore_model\(model\)", content, re.DOTALL)
    assert lines
    compile(textwrap.dedent(lines[0]), "", "exec")  # they can be copied as they are


def test_a_module_that_was_not_called_says_so(network: ExploredModel) -> None:
    content = shown(performance, network, "layer2")

    assert "This module was not called in the recorded runs." in content


def test_a_tensors_performance_is_that_of_its_module(network: ExploredModel) -> None:
    node = at(network, "layer1.0.conv1")

    of_tensor = shown(performance, network, node.tensors[0])

    assert of_tensor == shown(performance, network, node)


@pytest.mark.promise("X26", "X27")
def test_details_of_a_saved_module(network: ExploredModel) -> None:
    content = shown(details, network, "bn1")

    assert content.startswith("bn1\nbn1: BatchNorm2d(64) [128 params]\n")
    assert "class        BatchNorm2d" in content
    assert re.search(r"total +128  < 0\.1 % of the model", content)
    assert "buffers      129" in content
    assert "memory       1.00 KiB  including 516 B of buffers" in content
    assert "dtypes       float32 4, int64 1" in content
    assert "devices      cpu" in content
    assert re.search(r"running_mean +buffer +64 +256 B +float32 +cpu", content)
    assert re.search(r"num_batches_tracked +buffer +scalar +4 B +int64", content)


def test_narrow_tables_leave_out_columns_and_keep_their_numbers(network: ExploredModel) -> None:
    content = shown(details, network, "bn1", width=40)

    assert re.search(r"name +shape +size\nweight +64 +256 B\n", content)
    assert "float32  cpu" not in content


def test_tied_tensors_are_shown_on_both_sides() -> None:
    explored = ExploredModel(tied())

    first = shown(details, explored, "embed")
    other = shown(details, explored, "head")
    shared = shown(details, explored, "again")
    single = shown(details, explored, at(explored, "head").tensors[0])

    assert "also used at head.weight" in first
    assert "tied to embed.weight" in other
    assert "The same module as adapter." in shared
    assert "tied         tied to embed.weight" in single


def test_frozen_parameters_are_shown() -> None:
    explored = ExploredModel(tied())

    part = shown(details, explored, "adapter")
    whole = shown(details, explored)

    assert "trainable    none: frozen" in part
    assert re.search(r"trainable +64,2\d\d, 4,096 \(4\.1K\) frozen", whole)


def test_children_are_counted_by_class(network: ExploredModel) -> None:
    content = shown(details, network)

    assert "2 ×          Sequential" in content
    assert "32 modules including this one" in content


def test_a_guessed_type_is_called_so() -> None:
    node = replace(linear("fc", 3, 4), is_type_guessed=True)
    explored = ExploredModel(Tree("m", "", module("", children=[node])))

    content = shown(details, explored, node)

    assert "Linear, guessed from the names and shapes of its tensors" in content


def test_the_flow_of_a_module_has_its_sources_its_calls_and_its_targets(
    network: ExploredModel,
) -> None:
    content = lines_of(flow.content(network, at(network, "layer1"), 100), 100)

    assert content[3:] == [
        "in  1×3  from conv1",
        "│",
        "├─ 0         1×9  Linear",
        "│  └─ conv1  1×9  Linear",
        "├─ 1         1×9  Linear  ← 0, conv1",
        "│",
        "out 1×9  to fc",
    ]


def test_the_flow_of_the_root_is_that_of_the_model(network: ExploredModel) -> None:
    content = shown(flow, network)

    for line in (
        "in  1×3  from the caller",
        "├─ layer1       1×9  Linear",
        "│  │  └─ conv1  1×9  Linear",
        "├─ fc           1×5  Linear",
        "out 1×5  to the caller",
    ):
        assert line in content


def test_the_last_call_in_a_module_goes_to_its_end(network: ExploredModel) -> None:
    last = shown(flow, network, "layer1.0.conv1")
    first = shown(flow, network, "conv1")

    assert "out 1×9  to the end of layer1.0" in last
    assert "in  1×3  from no other module" in first
    assert "out 1×7  to layer1" in first


def test_of_many_calls_only_the_outer_ones_are_drawn() -> None:
    calls = [("", 0, (), 1)]
    for number in range(30):
        calls += [(f"layers.{number}", 1, (), 2), (f"layers.{number}.fc", 2, (), 3)]
    tree = Tree("m", "", module("", "M"))
    explored = ExploredModel(tree, stats=recorded(flow=steps(*calls)))

    content = shown(flow, explored, width=80)

    assert "├─ layers.0   1×2  Linear  1 call inside" in content
    assert "fc" not in content


def test_a_thousand_calls_of_a_module_are_not_all_drawn() -> None:
    calls = [("", 0, (), 1), *(("cell", 1, (), 2) for _ in range(1000))]
    tree = Tree("m", "", module("", "M", children=[module("cell", "Cell")]))
    explored = ExploredModel(tree, stats=recorded(flow=steps(*calls)))

    whole = lines_of(flow.content(explored, tree.root, 80), 80)
    cell = shown(flow, explored, tree.root.children[0], width=80)

    assert "… 900 more" in whole
    assert len(whole) < 120
    assert "Call 1 of 1000" in cell
    assert "… 997 more" in cell


def test_without_a_recording_the_modules_are_listed_as_they_are_written() -> None:
    tree = resnet()

    content = shown(flow, ExploredModel(tree), width=80)

    assert "Modules in definition order\n├─ conv1  Conv2d(3→64, 7×7)\n├─ bn1" in content
    assert content.endswith("└─ fc  Linear(2048→1000)")


def test_a_tree_alone_has_neither_code_nor_attributes_nor_a_counterpart() -> None:
    explored = ExploredModel(resnet())
    root = explored.tree.root

    assert "There is no live module." in shown(source, explored, root, width=80)
    assert "No values here besides tensors" in shown(attributes, explored, root, width=80)
    assert "--compare OTHER" in shown(comparison, explored, root, width=80)


def test_a_module_is_compared_with_its_counterpart() -> None:
    here, there = linear("fc", 3, 4), linear("fc", 3, 5)
    only, gone = module("extra", "ReLU"), linear("gone", 2, 2)
    explored = ExploredModel(
        Tree("a", "", module("", "Net", children=[here, only])),
        other=Tree("b", "", module("", "Net", children=[there, gone])),
    )

    part = shown(comparison, explored, here, width=60)
    whole = shown(comparison, explored, width=60)
    alone = shown(comparison, explored, only, width=60)

    assert re.search(r"~  class +Linear\(3→4\) +Linear\(3→5\)", part)
    assert re.search(r"~  parameters +16 +20", part)
    assert re.search(r"~  weight  4×3 float32  5×3 float32", part)
    assert re.search(r"   modules +1 +1", part)
    assert re.search(r"changed +1 +2\nequal +1 +0", whole)
    assert "~ fc: Linear(3→4)  +4 params (+16 B)" in whole
    assert "- extra: ReLU" in whole
    assert "+ gone: Linear(2→2)" in whole
    assert "removed" in alone
    assert "V compares values" in part


def test_what_is_only_in_the_other_model_is_shown_as_it_is_there() -> None:
    gone = linear("gone", 2, 2)
    explored = ExploredModel(resnet(), other=Tree("b", "", module("", "Net", children=[gone])))

    for item in (gone, gone.tensors[0]):
        for content in PANELS.values():
            assert "gone" in text_of(content(explored, item, 60))
    assert "Only in b, the model compared with." in shown(details, explored, gone, width=60)
    assert "added" in shown(comparison, explored, gone, width=60)


def test_values_that_differ_are_shown_for_a_module() -> None:
    trees = [Tree(name, "", module("", "Net", children=[linear("fc", 3, 4)])) for name in "ab"]
    explored = ExploredModel(trees[0], other=trees[1], value_changes={"fc.bias": "all values"})

    content = shown(comparison, explored, trees[0].root.children[0], width=60)

    assert "V compares values" not in content
    assert re.search(r"\nchanged\n", content)
    assert "Values\nbias: all values" in content


def test_a_module_of_both_trees_is_shown_as_it_is_here() -> None:
    here, both = linear("fc", 3, 4), replace(linear("fc", 3, 4), type_name="Both")
    explored = ExploredModel(Tree("a", "", module("", "Net", children=[here])))

    assert explored.node_of(both) is here
