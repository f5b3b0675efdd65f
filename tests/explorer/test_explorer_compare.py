"""Two trees side by side: everything is listed once, and only what differs is marked."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import snapviewer
from snapviewer.explorer.checkpoint import tree_of_checkpoint
from snapviewer.explorer.compare import TreeComparison, compare_trees, value_changes
from snapviewer.explorer.tree import ModuleNode, Tree, walk
from snapviewer.report.tree.comparison import as_text
from support.explorer_trees import linear, module, tensor
from support.pth_writer import T, write_pth


def tree(*children: ModuleNode, name: str = "Net") -> Tree:
    return Tree(name, f"{name}.pth", module("", name, children=children))


def verdicts(comparison: TreeComparison) -> dict[str, str]:
    return {item.node.path: item.verdict for item in walk(comparison.root)}


def test_modules_go_together_by_path() -> None:
    before = tree(linear("gone", 2, 2), linear("same", 2, 2), linear("other", 2, 2))
    after = tree(linear("same", 2, 2), linear("new", 2, 3), linear("other", 2, 5))

    comparison = compare_trees(before, after)

    assert verdicts(comparison) == {
        "": "equal",
        "gone": "removed",
        "same": "equal",
        "new": "added",
        "other": "changed",
    }
    assert list(verdicts(comparison)) == ["", "gone", "same", "new", "other"], "in their places"
    assert comparison.root.has_changes
    assert not comparison.is_equal
    assert comparison.modules == {"added": 1, "removed": 1, "changed": 1, "equal": 2}


def test_sums_of_differences_are_those_of_the_trees() -> None:
    before, after = tree(linear("a", 2, 2)), tree(linear("a", 2, 5), linear("b", 1, 1))

    root = compare_trees(before, after).root

    assert root.more_parameters == (15 + 2) - 6
    assert root.more_bytes == 4 * root.more_parameters
    assert [child.more_parameters for child in root.children] == [9, 2]


def test_what_is_other_about_a_tensor_is_said() -> None:
    one = tensor("a.w", 2, 3)
    others = {
        "2×3 → 3×2": tensor("a.w", 3, 2),
        "float32 → bfloat16": tensor("a.w", 2, 3, dtype="bfloat16"),
        "trainable → frozen": tensor("a.w", 2, 3, is_trainable=False),
        "parameter → buffer": tensor("a.w", 2, 3, is_buffer=True),
        "not tied → tied to b.w": tensor("a.w", 2, 3, tied_to="b.w"),
    }
    for said, other in others.items():
        before, after = (tree(module("a", tensors=[each])) for each in (one, other))

        found = compare_trees(before, after).root.children[0].tensors[0]

        assert (found.verdict, found.changes) == ("changed", (said,))


def test_another_type_is_a_change_and_a_guess_is_none() -> None:
    known = tree(module("bn", "BatchNorm2d", "4"))
    guessed = tree(module("bn", "BatchNorm", "4", is_type_guessed=True))
    other = tree(module("bn", "GroupNorm", "2 groups, 4"))

    assert compare_trees(known, guessed).is_equal
    changed = compare_trees(known, other).root.children[0]
    assert changed.changes == ("BatchNorm2d → GroupNorm",)


def test_the_text_shows_what_differs_in_its_place() -> None:
    same = module("rest", "Sequential", children=[linear("rest.0", 4, 4)])
    before = tree(same, module("head", "Head", children=[linear("head.fc", 4, 10)]), name="a")
    after = tree(
        same,
        module("head", "Head", children=[linear("head.fc", 4, 3)]),
        linear("extra", 1, 1),
        name="b",
    )

    assert as_text(compare_trees(before, after)).splitlines() == [
        "before  a (a.pth)",
        "after   b (b.pth)",
        "",
        "~ a  a → b  −33 params (−132 B)",
        "  ├── head: Head  −35 params (−140 B)",
        "~ │   └── fc: Linear(4→10)  (4→10) → (4→3)  −35 params (−140 B)",
        "~ │         weight: 10×4 → 3×4",
        "~ │         bias: 10 → 3",
        "+ └── extra: Linear(1→1) [2 params]",
        "",
        "Modules: 1 added, 2 changed, 3 equal",
        "Tensors: 2 added, 2 changed, 2 equal",
        "Parameters: −33 params (−132 B)",
        "Values were not compared; `snapviewer pth BEFORE --compare AFTER` compares them.",
    ]


def test_equal_trees_are_said_to_be_equal() -> None:
    same = tree(linear("a", 1, 1)), tree(linear("a", 1, 1))

    shapes, values = as_text(compare_trees(*same)), as_text(compare_trees(*same, {}))

    assert "\nAll 2 modules are of the same shapes and types.\nValues were not" in shapes
    assert values.splitlines()[-1] == "All 2 modules are equal."


def test_modules_of_the_same_name_go_together_in_order() -> None:
    twins = [linear("x", 1, 1), linear("x", 2, 2)]

    comparison = compare_trees(tree(*twins), tree(*twins, linear("x", 3, 3)))

    assert [item.verdict for item in comparison.root.children] == ["equal", "equal", "added"]


def test_trees_deeper_than_pythons_stack_are_compared() -> None:
    node = module("x", "Leaf")
    for _ in range(3000):
        node = module("x", "Chain", children=[node])

    comparison = compare_trees(Tree("", "", node), Tree("", "", replace(node, type_name="Other")))

    assert comparison.modules == {"added": 0, "removed": 0, "changed": 1, "equal": 3000}


names = st.lists(st.sampled_from("abcd"), max_size=5)


@given(names, names)
def test_every_module_of_both_is_listed_once(old: Sequence[str], new: Sequence[str]) -> None:
    comparison = compare_trees(
        tree(*(module(name) for name in old)), tree(*(module(name) for name in new))
    )

    children = comparison.root.children
    before = [child.before.name for child in children if child.before]
    after = [child.after.name for child in children if child.after]
    assert before == list(old), "in the order of before"
    assert Counter(after) == Counter(new)
    gone = Counter(old) - Counter(new)
    assert Counter(c.node.name for c in children if c.verdict == "removed") == gone


def test_the_elements_of_checkpoints_are_compared_on_demand(tmp_path: Path) -> None:
    for name, numbers in (("a", (3.0, 4.0)), ("b", (3.0, 4.5)), ("c", (1.0, float("nan")))):
        state = {
            "w": T("float32", (2,), data=struct.pack("<2f", *numbers)),
            "same": T("int8", (1,)),
        }
        write_pth(tmp_path / f"{name}.pth", state)
    a, b, c = (snapviewer.read_checkpoint(tmp_path / f"{name}.pth") for name in "abc")

    changes = value_changes(a, b)
    comparison = compare_trees(tree_of_checkpoint(a), tree_of_checkpoint(b), changes)

    assert changes == {"w": "50 % of values, max |Δ| 0.5, 10 % of the norm"}
    assert value_changes(a, c) == {"w": "all values, 1 now NaN or Inf"}
    assert comparison.has_values
    assert comparison.tensors == {"added": 0, "removed": 0, "changed": 1, "equal": 1}
    assert "w: 50 % of values" in as_text(comparison)
