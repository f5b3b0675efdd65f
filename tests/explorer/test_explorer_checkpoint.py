"""Checkpoints of every kind are trees without torch, whatever names they have."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

import snapviewer
from snapviewer import CancelledError, SnapshotError
from snapviewer.explorer import checkpoint as product
from snapviewer.explorer.checkpoint import tree_of_checkpoint
from snapviewer.explorer.labels import label
from snapviewer.explorer.tree import ModuleNode, Tree
from snapviewer.report.tree.text import as_text
from support import hostile_checkpoints
from support.explorer_trees import node_at
from support.pth_writer import G, Obj, S, T, write_pth, write_safetensors

# Files written without torch


def tree_of(path: Path) -> Tree:
    return tree_of_checkpoint(snapviewer.read_checkpoint(path))


def written(path: Path, value: object) -> Tree:
    write_pth(path / "a.pth", value)
    return tree_of(path / "a.pth")


def lines(root: ModuleNode) -> list[str]:
    return [f"{node.path}: {label(node)}" for node in root.walk()]


def weight(*shape: int, **more: Any) -> T:
    return T("float32", shape, **more)


@pytest.mark.promise("X19", "X20")
def test_a_state_dict_is_a_tree_with_guessed_types(tmp_path: Path) -> None:
    tree = written(
        tmp_path,
        {
            "conv.weight": weight(4, 3, 3, 3),
            "bn.weight": weight(4),
            "bn.bias": weight(4),
            "bn.running_mean": weight(4),
            "bn.running_var": weight(4),
            "bn.num_batches_tracked": T("int64", ()),
            "head.fc.weight": weight(2, 4),
        },
    )

    assert lines(tree.root) == [
        ": a.pth [124 params]",
        "conv: conv: Conv2d(3→4, 3×3) [108 params]",
        "bn: bn: BatchNorm(4) [8 params]",
        "head: head [8 params]",
        "head.fc: fc: Linear(4→2) [8 params]",
    ]
    assert node_at(tree.root, "bn").is_type_guessed
    assert not node_at(tree.root, "head").is_type_guessed
    assert tree.root.sums.buffers == 9
    assert tree.root.sums.trainable == 124, "a state dict does not say what is frozen"
    assert any("guessed" in note for note in tree.notes)


def test_tensors_with_the_same_elements_are_counted_once(tmp_path: Path) -> None:
    shared = S("0", bytes(64))
    tree = written(
        tmp_path,
        {
            "wte.weight": weight(4, 4, storage=shared),
            "head.weight": weight(4, 4, storage=shared),
            "turned.weight": weight(4, 4, storage=shared, stride=(1, 4)),
        },
    )

    assert tree.root.sums.parameters == 32
    assert node_at(tree.root, "head").tensors[0].tied_to == "wte.weight"
    assert node_at(tree.root, "turned").tensors[0].tied_to is None


def test_what_a_training_keeps_beside_its_model_counts_as_buffers(tmp_path: Path) -> None:
    tree = written(
        tmp_path,
        {
            "epoch": 3,
            "model": OrderedDict({"fc.weight": weight(2, 3)}),
            "optimizer": {"state": {0: {"exp_avg": weight(2, 3)}}, "param_groups": []},
        },
    )

    assert (tree.root.sums.parameters, tree.root.sums.buffers) == (6, 6)
    assert [child.name for child in tree.root.children] == ["model", "optimizer"]
    assert tree.notes[0].startswith(
        "1 tensor beside the model (optimizer, inputs, states) is counted"
    )


def test_an_optimizer_alone_is_shown_as_what_it_is(tmp_path: Path) -> None:
    tree = written(tmp_path, {"optimizer": {"state": {0: {"exp_avg": weight(2, 3)}}}})

    assert tree.root.sums.parameters == 6


def module(name: str, **state: Any) -> Obj:
    parts = {"_parameters": {}, "_buffers": {}, "_modules": {}} | state
    return Obj(G("mine", name), parts)


def test_a_saved_module_has_its_types_and_shows_shared_parts_in_every_place(
    tmp_path: Path,
) -> None:
    layer = module("Layer", _parameters={"weight": weight(2, 2, is_parameter=True)})
    shared = module("Shared", _modules={"layer": layer})
    plain = weight(5)
    root = module(
        "Net",
        _modules={"a": shared, "b": shared, "act": module("Act")},
        _buffers={"step": weight(1)},
        table=plain,
        again=[weight(2, 2, storage=S("7", bytes(16)))],
    )

    tree = written(tmp_path, root)

    assert [(node.path, node.type_name, node.shared_with) for node in tree.root.walk()] == [
        ("", "Net", None),
        ("a", "Shared", None),
        ("a.layer", "Layer", None),
        ("b", "Shared", "a"),
        ("b.layer", "Layer", "a.layer"),
        ("act", "Act", None),
    ]
    assert node_at(tree.root, "b").sums.parameters == 4
    assert tree.root.sums.parameters == 4
    assert tree.root.sums.modules == 4
    assert node_at(tree.root, "b.layer").tensors[0].tied_to == "a.layer.weight"
    assert all(entry.is_buffer for entry in tree.root.tensors), "attributes are no parameters"


def test_a_module_beside_other_things_is_known_as_one(tmp_path: Path) -> None:
    layer = Obj(
        G("torch.nn.modules.linear", "Linear"),
        {
            "_parameters": {"weight": weight(2, 3, is_parameter=True)},
            "_buffers": {},
            "_modules": {},
        },
    )
    net = module("Net", _modules={"fc": layer}, spare=weight(7))
    tree = written(
        tmp_path,
        {
            "ema": {"net": net},
            "loose.fc.weight": weight(2, 3),
            "args": Obj(G("argparse", "Namespace"), {"lr": 1}),
        },
    )

    assert lines(tree.root) == [
        ": a.pth [12 params]",
        "ema: ema [6 params]",
        "ema.net: net: Net [6 params]",
        "ema.net.fc: fc: Linear(3→2) [6 params]",
        "loose: loose [6 params]",
        "loose.fc: fc: Linear(3→2) [6 params]",
    ]
    assert [node.is_type_guessed for node in tree.root.walk()] == [False] * 5 + [True]
    assert tree.root.sums.buffers == 7, "what is in no list of parameters"


def test_a_saved_module_that_holds_itself_is_named_and_not_entered(tmp_path: Path) -> None:
    root = module("Net", _parameters={"weight": weight(2, is_parameter=True)})
    root.state["_modules"] = {"up": root}

    tree = written(tmp_path, root)

    assert [(node.path, node.shared_with) for node in tree.root.walk()] == [("", None), ("up", "")]
    assert tree.root.sums.parameters == 2


def test_numbered_modules_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    names = ["layers.0.weight", "layers.10.weight", "layers.2.weight"]
    write_safetensors(tmp_path / "a.safetensors", {name: weight(2, 2) for name in names})

    tree = tree_of(tmp_path / "a.safetensors")

    assert [child.name for child in tree.root.children[0].children] == ["0", "2", "10"]


def test_the_shards_of_an_index_are_one_tree(tmp_path: Path) -> None:
    for number, name in enumerate(("a.weight", "b.weight")):
        write_safetensors(tmp_path / f"m-{number}.safetensors", {name: weight(2, 2)})
    index = {"weight_map": {"a.weight": "m-0.safetensors", "b.weight": "m-1.safetensors"}}
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(index))

    tree = tree_of(path)

    assert [child.path for child in tree.root.children] == ["a", "b"]
    assert tree.root.sums.parameters == 8


ODD_NAMES = (
    "",
    ".",
    "..",
    ".a",
    "a.",
    "a..b",
    "[weights]",
    "a[0].b",
    "a\x1b[31m\n.b",
    "日本.重み",
    "a" * 10_000,
    "." * 100_000,
    "a." * 100_000,
    "\u202e.x",
)


def test_every_tensor_is_there_once_whatever_it_is_called(tmp_path: Path) -> None:
    write_pth(tmp_path / "a.pth", {name: weight(1) for name in ODD_NAMES})
    checkpoint = snapviewer.read_checkpoint(tmp_path / "a.pth")

    tree = tree_of_checkpoint(checkpoint)

    entries = [entry for node in tree.root.walk() for entry in node.tensors]
    assert sorted(entry.path for entry in entries) == sorted(t.name for t in checkpoint.tensors)
    paths = [node.path for node in tree.root.walk()]
    assert len(paths) == len(set(paths)), "a path is that of one module"
    assert all(label(node).isprintable() for node in tree.root.walk())
    assert any("too many parts" in note for note in tree.notes)


def test_names_share_a_room_that_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(product, "_MAX_PATH_CHARS", 100)
    names = [f"{'x' * 9}{number}.{'y' * 9}.weight" for number in range(50)]

    tree = written(tmp_path, {name: weight(1) for name in names})

    assert sum(1 for _ in tree.root.walk()) < 10
    assert [
        entry.path for node in tree.root.walk() for entry in node.tensors
    ].sort() == names.sort()
    assert tree.root.sums.parameters == 50


def test_names_that_occur_twice_are_kept_apart(tmp_path: Path) -> None:
    tree = written(tmp_path, {1: weight(2), "1": weight(3), "x": {"1": weight(4)}})

    assert tree.root.sums.parameters == 9


def test_reading_reports_its_progress_and_can_be_stopped(tmp_path: Path) -> None:
    write_pth(tmp_path / "a.pth", {"a": weight(1)})
    checkpoint = snapviewer.read_checkpoint(tmp_path / "a.pth")
    reports: list[tuple[int, int]] = []
    stop = threading.Event()

    tree_of_checkpoint(checkpoint, progress=lambda done, total: reports.append((done, total)))
    stop.set()

    assert reports == [(0, 1)]
    with pytest.raises(CancelledError):
        tree_of_checkpoint(checkpoint, cancel=stop)


def test_every_hostile_file_that_can_be_read_is_a_tree(tmp_path: Path) -> None:
    path = tmp_path / "hostile"
    trees = 0
    for case in hostile_checkpoints.cases():
        if len(case.content) > 10_000:
            continue
        path.write_bytes(case.content)
        try:
            checkpoint = snapviewer.read_checkpoint(path)
        except SnapshotError:
            continue
        tree = tree_of_checkpoint(checkpoint)
        trees += 1

        entries = [entry for node in tree.root.walk() for entry in node.tensors]
        assert {entry.path for entry in entries} <= {t.name for t in checkpoint.tensors}, case.name
        assert all(line.isprintable() for line in as_text(tree).split("\n")), case.name
    assert trees > 50


# Files written by torch, compared with the live module


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tree]:
    """A model saved in every way, and its live tree."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from safetensors.torch import save_model

    from snapviewer.explorer.live import tree_of_module
    from support import explorer_models

    path = tmp_path_factory.mktemp("saved")
    model = explorer_models.Net().eval()
    image = torch.rand(1, 3, 8, 8)
    torch.save(model.state_dict(), path / "state.pth")
    torch.save(model, path / "whole.pth")
    torch.jit.trace(model, image).save(path / "script.pt")
    save_model(model, path / "model.safetensors")
    # As Adam has it, whose first step would import all of torch's compiler.
    state = {0: {"step": torch.tensor(1.0), "exp_avg": torch.zeros(8, 3, 3, 3)}}
    optimizer = {"state": state, "param_groups": [{"lr": 0.1, "params": [0]}]}
    training = {"model": model.state_dict(), "optimizer": optimizer, "epoch": 1}
    torch.save(training, path / "training.pth")
    return path, tree_of_module(model)


@pytest.mark.promise("X19", "X20")
@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")  # of torch, on its own ways to save
@pytest.mark.parametrize("file", ["state.pth", "whole.pth", "model.safetensors"])
def test_a_file_has_the_sums_of_the_model_that_was_saved(
    live: tuple[Path, Tree], file: str
) -> None:
    path, tree = live

    root = tree_of(path / file).root

    assert root.sums.parameters == tree.root.sums.parameters
    assert root.sums.parameter_bytes == tree.root.sums.parameter_bytes
    for node in root.walk():
        if node.path and file != "model.safetensors":  # which leaves out what is tied
            assert node.sums.parameters == node_at(tree.root, node.path).sums.parameters


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_a_scripted_file_has_what_the_model_learns(live: tuple[Path, Tree]) -> None:
    path, tree = live

    sums = tree_of(path / "script.pt").root.sums

    assert sums.trainable == tree.root.sums.trainable
    # It does not distinguish what is frozen from what is a buffer.
    kept = tree.root.sums.parameters + tree.root.sums.buffers
    assert sums.parameters + sums.buffers == kept


@pytest.mark.torch
@pytest.mark.exhaustive  # torch takes seconds to be ready to export
@pytest.mark.filterwarnings("ignore")
def test_an_exported_program_has_the_sums_of_the_model(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from snapviewer.explorer.live import tree_of_module
    from support import explorer_models

    model = explorer_models.Net().eval()
    program = torch.export.export(model, (torch.rand(1, 3, 8, 8),))
    torch.export.save(program, tmp_path / "export.pt2")

    root = tree_of(tmp_path / "export.pt2").root

    assert root.sums.parameters == tree_of_module(model).root.sums.parameters
    assert root.sums.trainable == tree_of_module(model).root.sums.trainable


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("file", ["whole.pth", "script.pt"])
def test_a_file_with_types_has_those_of_the_model(live: tuple[Path, Tree], file: str) -> None:
    path, tree = live

    root = tree_of(path / file).root

    types = {node.path: node.type_name for node in root.walk()}
    assert types == {node.path: node.type_name for node in tree.root.walk()}
    assert not any(node.is_type_guessed for node in root.walk())


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_a_whole_module_has_what_is_frozen_and_what_is_shared(live: tuple[Path, Tree]) -> None:
    path, tree = live

    root = tree_of(path / "whole.pth").root

    assert root.sums == tree.root.sums
    assert node_at(root, "same").shared_with == "bn"
    assert [(e.path, e.is_buffer, e.is_trainable, e.tied_to) for e in entries_of(root)] == [
        (e.path, e.is_buffer, e.is_trainable, e.tied_to) for e in entries_of(tree.root)
    ]


def entries_of(root: ModuleNode) -> list[Any]:
    found = (entry for node in root.walk() for entry in node.tensors)
    return sorted(found, key=lambda entry: entry.path)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_a_training_has_the_parameters_of_its_model(live: tuple[Path, Tree]) -> None:
    path, tree = live

    root = tree_of(path / "training.pth").root

    assert root.sums.parameters == tree.root.sums.parameters
    assert node_at(root, "model").sums.parameters == tree.root.sums.parameters
    assert node_at(root, "optimizer").sums.parameters == 0
