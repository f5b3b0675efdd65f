"""What `torch.load` returns is a tree: a state dict, or any mapping of tensors."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from snapviewer import SnapshotError, explorer  # noqa: E402
from snapviewer.explorer.explored_model import load_model  # noqa: E402
from snapviewer.explorer.measuring import measure  # noqa: E402
from support.explorer_trees import node_at  # noqa: E402

pytestmark = pytest.mark.torch


def _network() -> Any:
    return torch.nn.Sequential(
        OrderedDict(conv1=torch.nn.Conv2d(3, 4, 3), bn1=torch.nn.BatchNorm2d(4))
    )


@pytest.mark.promise("X19")
def test_a_loaded_state_dict_has_the_tree_of_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.pth"
    torch.save(_network().state_dict(), path)

    explorer.explore_model(torch.load(path))
    shown = capsys.readouterr().out
    explorer.explore_model(path)

    assert "├── conv1: Conv2d(3→4, 3×3) [112 params]\n" in shown
    of_file = capsys.readouterr().out
    assert shown == of_file.replace("model.pth(", "OrderedDict(").replace(
        "the file", "a state dict"
    )


@pytest.mark.promise("X19")
def test_a_training_is_a_tree_with_its_optimizer_as_buffers() -> None:
    model = _network()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3, 5, 5)).sum().backward()
    optimizer.step()
    training = {"model": model.state_dict(), "opt": optimizer.state_dict(), "epoch": 3}

    root = load_model(training).tree.root

    assert [child.name for child in root.children] == ["model", "opt"]
    assert root.sums.parameters == sum(p.numel() for p in model.parameters())
    assert node_at(root, "opt").sums.parameters == 0
    assert node_at(root, "opt.state[0]").tensors[1].path == "opt.state[0].exp_avg"


def test_tensors_that_share_memory_are_counted_once_and_flags_are_kept() -> None:
    weight = torch.nn.Parameter(torch.ones(2, 3))

    tree = load_model({"a.weight": weight, "b": [weight], "c": torch.ones(5)}).tree

    assert (tree.root.sums.parameters, tree.root.sums.trainable) == (11, 6)
    assert node_at(tree.root, "a").tensors[0].tied_to == "b[0]"


def test_the_elements_of_a_loaded_state_dict_are_measured() -> None:
    explored = load_model({"fc.weight": torch.tensor([[1.0, 3.0]])})

    measurement = measure(explored, explored.tree.root)

    assert measurement.summary.mean == 2.0


def test_a_mapping_that_holds_itself_and_one_without_tensors() -> None:
    endless: dict[str, Any] = {"weight": torch.ones(2)}
    endless["self"] = endless

    assert load_model(endless).tree.root.sums.parameters == 2
    with pytest.raises(SnapshotError, match="does not contain any"):
        load_model({"epoch": 3})
