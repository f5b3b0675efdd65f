"""A tree has the sums that torch has, in every subtree, and any model can be looked at."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapviewer import CancelledError, SnapshotError
from snapviewer.explorer import live
from snapviewer.explorer.assembly import Draft, assemble
from snapviewer.explorer.live import tree_of_module
from snapviewer.explorer.tree import Sums, TensorEntry
from support.explorer_trees import node_at

# Sums, compared with what is too simple to be wrong


def entry(key: int, place: int) -> TensorEntry:
    """A tensor; all that have the same key are the same one."""
    return TensorEntry(
        name=f"t{place}",
        path=f"{place}",
        shape=(key + 1,),
        dtype="float32",
        device="cpu",
        elements=key + 1,
        size_bytes=4 * (key + 1),
        is_buffer=key % 3 == 0,
        is_trainable=key % 2 == 0,
    )


@st.composite
def drafts(draw: st.DrawFn) -> list[Draft]:
    """Modules in walk order, any of which may share tensors, and be the same as others."""
    depths = [0]
    for _ in range(draw(st.integers(0, 12))):
        depths.append(draw(st.integers(1, depths[-1] + 1)))
    made = []
    place = 0
    for number, depth in enumerate(depths):
        tensors: list[tuple[Hashable, TensorEntry]] = []
        for key in draw(st.lists(st.integers(0, 5), max_size=3)):
            tensors.append((("t", key), entry(key, place)))
            place += 1
        module = draw(st.integers(0, 20))
        made.append(Draft(str(number), str(number), "", "", tensors, depth, ("m", module)))
    return made


def oracle(subtree: list[Draft]) -> Sums:
    """The sums of modules, by sets."""
    tensors = {key: item for draft in subtree for key, item in draft.tensors}.values()
    parameters = [item for item in tensors if not item.is_buffer]
    buffers = [item for item in tensors if item.is_buffer]
    return Sums(
        modules=len({draft.key for draft in subtree}),
        parameters=sum(item.elements for item in parameters),
        trainable=sum(item.elements for item in parameters if item.is_trainable),
        buffers=sum(item.elements for item in buffers),
        parameter_bytes=sum(item.size_bytes for item in parameters),
        buffer_bytes=sum(item.size_bytes for item in buffers),
    )


@pytest.mark.promise("X20")
@settings(deadline=None)  # slow while other tests run, not in itself
@given(drafts())
def test_every_subtree_counts_each_tensor_once(given_drafts: list[Draft]) -> None:
    nodes = list(assemble(given_drafts).walk())

    for number, node in enumerate(nodes):
        size = sum(1 for _ in node.walk())
        assert node.name == str(number), "parents first, in order"
        assert node.sums == oracle(given_drafts[number : number + size])


@settings(deadline=None)  # slow while other tests run, not in itself
@given(drafts())
def test_the_first_of_equal_tensors_is_what_the_others_are_tied_to(made: list[Draft]) -> None:
    keys = [(key, item.path) for draft in made for key, item in draft.tensors]
    first: dict[Hashable, str] = {}
    for key, path in keys:
        first.setdefault(key, path)

    tied = [item.tied_to for node in assemble(made).walk() for item in node.tensors]

    assert tied == [first[key] if first[key] != path else None for key, path in keys]


# Live modules, compared with torch

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402 (after the line that skips)

from support import explorer_models as models  # noqa: E402 (it needs torch)
from support import live_models  # noqa: E402


def agree_with_torch(model: nn.Module) -> None:
    """Compare the sums of every module with those that torch's own walk gives."""
    modules = dict(model.named_modules(remove_duplicate=False))
    nodes = {node.path: node for node in tree_of_module(model).root.walk()}
    assert nodes.keys() == modules.keys()
    for path, module in modules.items():
        parameters, buffers = list(module.parameters()), list(module.buffers())
        assert nodes[path].sums == Sums(
            modules=len(list(module.modules())),
            parameters=sum(p.numel() for p in parameters),
            trainable=sum(p.numel() for p in parameters if p.requires_grad),
            buffers=sum(b.numel() for b in buffers),
            parameter_bytes=sum(p.numel() * p.element_size() for p in parameters),
            buffer_bytes=sum(b.numel() * b.element_size() for b in buffers),
        ), path


@pytest.mark.torch
@pytest.mark.exhaustive  # importing torchvision takes eight seconds
def test_sums_are_those_of_torch_in_resnet50() -> None:
    torchvision = pytest.importorskip("torchvision")

    model = torchvision.models.resnet50(weights=None)

    agree_with_torch(model)
    assert tree_of_module(model).root.sums.parameters == 25_557_032, "as published"


@pytest.mark.promise("X20")
@pytest.mark.torch
def test_sums_are_those_of_torch_in_a_language_model_with_tied_weights() -> None:
    model = live_models.Gpt(vocabulary=100, width=16, heads=2, layers=2, positions=8)

    agree_with_torch(model)
    assert node_at(tree_of_module(model).root, "head").tensors[0].tied_to == "tokens.weight"


@pytest.mark.torch
@pytest.mark.exhaustive
def test_sums_are_those_of_torch_in_gpt2() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"n_layer": 2, "n_embd": 32, "n_head": 2, "vocab_size": 100, "n_positions": 16}
    ends = {"bos_token_id": None, "eos_token_id": None}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **ends))

    agree_with_torch(model)
    head = node_at(tree_of_module(model).root, "lm_head")
    assert head.tensors[0].tied_to == "transformer.wte.weight"


@pytest.mark.torch
def test_tied_weights_shared_modules_and_buffers_are_distinguished() -> None:
    model = models.Net()

    agree_with_torch(model)
    root = tree_of_module(model).root
    assert node_at(root, "tied").tensors[0].tied_to == "blocks.0.weight"
    assert node_at(root, "same").shared_with == "bn"
    assert [(t.name, t.is_buffer, t.is_trainable) for t in node_at(root, "norm").tensors] == [
        ("weight", False, False),
        ("bias", False, True),
    ]
    assert [(t.name, t.is_buffer) for t in root.tensors] == [("scale", True)]


@pytest.mark.torch
def test_two_parameters_over_the_same_memory_are_tied() -> None:
    model = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2), "c": nn.Linear(2, 2)})
    model["b"].weight.data = model["a"].weight.data
    model["c"].weight.data = model["a"].weight.data.t()

    root = tree_of_module(model).root

    assert node_at(root, "b").tensors[0].tied_to == "a.weight"
    assert node_at(root, "c").tensors[0].tied_to is None, "its elements stand in another order"


@pytest.mark.torch
def test_a_module_that_holds_itself_ends_the_walk_and_is_reported() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].add_module("up", model)

    tree = tree_of_module(model)

    assert [node.path for node in tree.root.walk()] == ["", "0", "0.up"]
    assert node_at(tree.root, "0.up").shared_with == ""
    assert tree.root.sums.parameters == 6
    assert "0.up is one of its own ancestors" in tree.notes[0]


@pytest.mark.torch
def test_modules_used_without_end_are_closed_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_REPEATED", 50)
    inner: Any = nn.Linear(2, 2)
    for _ in range(60):  # 2^60 ways lead to the layer
        inner = nn.ModuleDict({"a": inner, "b": inner})

    tree = tree_of_module(inner)

    assert tree.root.sums.parameters == 6
    assert tree.root.sums.modules == 61
    assert len(list(tree.root.walk())) < 200
    assert "not opened again" in tree.notes[0]


@pytest.mark.torch
def test_nesting_deeper_than_pythons_stack_is_walked() -> None:
    tree = tree_of_module(models.deep(5000))

    assert tree.root.sums == Sums(5001, 2, 2, 0, 8, 0)
    assert sum(1 for _ in tree.root.walk()) == 5001


@pytest.mark.torch
def test_tensors_without_elements_or_without_shape_have_their_line() -> None:
    with torch.device("meta"):
        meta = nn.Linear(1000, 1000)
    lazy = nn.LazyLinear(10)

    tree = tree_of_module(nn.Sequential(meta, lazy))

    weight = node_at(tree.root, "0").tensors[0]
    assert (weight.device, weight.elements, weight.size_bytes) == ("meta", 10**6, 4 * 10**6)
    unmade = node_at(tree.root, "1").tensors[0]
    assert (unmade.shape, unmade.elements, unmade.dtype) == ((), 0, "float32")
    assert unmade.is_trainable
    assert node_at(tree.root, "1").arguments == "?→10"
    assert "without a shape yet" in tree.notes[0]


@pytest.mark.torch
def test_meta_tensors_are_tied_only_if_they_are_the_same() -> None:
    with torch.device("meta"):
        model = nn.ModuleDict({"a": nn.Linear(2, 2, bias=False), "b": nn.Linear(2, 2, bias=False)})
    apart = tree_of_module(model).root.sums.parameters
    model["b"].weight = model["a"].weight

    assert (apart, tree_of_module(model).root.sums.parameters) == (8, 4)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::UserWarning")  # sparse CSR is called beta by torch
def test_sparse_quantized_and_fake_tensors_are_read() -> None:
    from torch._subclasses import FakeTensorMode

    model = nn.Module()
    model.register_buffer("coo", torch.eye(100).to_sparse())
    model.register_buffer("csr", torch.eye(100).to_sparse_csr())
    with FakeTensorMode():
        model.register_buffer("fake", torch.empty(5, 5))
    model.register_buffer("empty", torch.empty(0, 3))

    entries = {item.name: item for item in tree_of_module(model).root.tensors}

    assert entries["coo"].elements == 10_000
    assert entries["coo"].size_bytes == 100 * 4 + 2 * 100 * 8, "values, and two indices each"
    assert entries["csr"].size_bytes == 100 * 4 + 100 * 8 + 101 * 8
    assert entries["fake"].shape == (5, 5)
    assert entries["empty"].elements == 0


@pytest.mark.torch
def test_a_module_that_raises_wherever_it_is_asked_is_shown_with_its_parts() -> None:
    tree = tree_of_module(nn.Sequential(models.Rude(), models.Refusing()))

    assert [(node.path, node.type_name) for node in tree.root.walk()] == [
        ("", "Sequential"),
        ("0", "Rude"),
        ("0.inner", "Linear"),
        ("1", "Refusing"),
    ]
    assert tree.notes == ("1 could not be read (raised RuntimeError: ?[31mno).",)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch means to give TorchScript up
def test_a_scripted_module_has_the_types_that_it_was_made_of() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())

    root = tree_of_module(torch.jit.script(model)).root

    assert [node.type_name for node in root.walk()] == ["Sequential", "Linear", "ReLU"]
    assert root.sums == tree_of_module(model).root.sums


@pytest.mark.torch
@pytest.mark.parametrize("holder", [models.Pipeline(), vars(models.Pipeline())])
def test_what_is_no_module_but_holds_some_is_opened(holder: Any) -> None:
    root = tree_of_module(holder).root

    assert [node.path for node in root.children] == ["unet", "decoder"]
    assert root.sums.parameters == 9 + 8


@pytest.mark.torch
def test_what_is_like_a_module_is_asked_as_one() -> None:
    root = tree_of_module(models.Duck(models.Duck(), models.Duck(models.Duck()))).root

    assert [node.path for node in root.walk()] == ["", "child0", "child1", "child1.child0"]
    assert root.sums.parameters == 12


@pytest.mark.torch
def test_what_holds_no_module_is_refused_in_words() -> None:
    with pytest.raises(SnapshotError, match="int is not a module and does not contain any"):
        tree_of_module(3)


@pytest.mark.torch
def test_the_walk_reports_its_progress_and_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_BETWEEN_REPORTS", 4)
    model = nn.Sequential(*(nn.ReLU() for _ in range(10)))
    reports: list[tuple[int, int]] = []
    stop = threading.Event()

    tree_of_module(model, progress=lambda done, known: reports.append((done, known)))
    stop.set()

    assert reports == [(4, 11), (8, 11)]
    with pytest.raises(CancelledError):
        tree_of_module(model, cancel=stop)
