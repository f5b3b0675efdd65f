"""Panels survive modules whose own code raises, and names that no terminal should see."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("rich", reason="Textual is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402 (after the line that skips)

from snapviewer.explorer.app.panels import PANELS, attributes, details, source  # noqa: E402
from snapviewer.explorer.explored_model import ExploredModel, Item, module_finder  # noqa: E402
from snapviewer.explorer.live import tree_of_module  # noqa: E402
from snapviewer.explorer.tree import ModuleNode, Tree  # noqa: E402
from support.explorer_trees import module as node_of  # noqa: E402
from support.explorer_trees import tensor as entry_of  # noqa: E402
from support.panel_text import WIDTHS, lines_of, recorded, steps, text_of, timing  # noqa: E402

pytestmark = pytest.mark.torch


class Loud:
    """Raises whatever it is asked."""

    def __init__(self, error: BaseException) -> None:
        object.__setattr__(self, "_error", error)

    def __repr__(self) -> str:
        raise object.__getattribute__(self, "_error")

    __str__ = __repr__

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return Loud
        raise object.__getattribute__(self, "_error")


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class LoudText(str):
    __slots__ = ()

    def split(self, *_: Any) -> Any:
        raise AssertionError("a text was asked")

    __len__ = __iter__ = __getitem__ = split


class RaisingDoc:
    def __get__(self, *_: Any) -> str:
        raise RuntimeError("no documentation")


class Hostile(nn.Module):  # type: ignore[misc]
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error
        self.loud = Loud(error)
        self.text = LoudText("quiet")
        self.long = "x" * 1_000_000
        self.many = list(range(1_000_000))
        self.endless: list[Any] = []
        self.endless.append(self.endless)
        self.weight = nn.Parameter(torch.zeros(2))

    def __repr__(self) -> str:
        raise self.error

    def extra_repr(self) -> str:
        raise self.error

    def __getattr__(self, name: str) -> Any:
        if name in ("weight", "_parameters", "_modules", "_buffers"):
            return super().__getattr__(name)
        raise self.__dict__["error"]

    @property
    def training(self) -> Any:
        raise self.error

    @training.setter
    def training(self, value: bool) -> None:
        pass

    @property
    def device(self) -> Any:
        raise self.error


def hostile(error: BaseException) -> Any:
    """Make one whose class refuses its documentation, which tools that read this file ask for."""
    return type("Hostile", (Hostile,), {"__doc__": RaisingDoc()})(error)


def load_model(module: Any) -> ExploredModel:
    return ExploredModel(tree_of_module(module), module_finder(module))


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("[red]no[/red]"),
        UnprintableError(),
        SystemExit(3),
        RecursionError(),
        KeyError("k"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("content", PANELS.values(), ids=PANELS)
def test_a_module_that_raises_whatever_it_is_asked_is_shown(
    content: Any, error: BaseException
) -> None:
    module = hostile(RuntimeError())
    explored = load_model(module)
    module.__dict__.update(error=error, loud=Loud(error))

    for item in (explored.tree.root, *explored.tree.root.tensors):
        assert lines_of(content(explored, item, 60), 60)


def test_what_was_raised_is_shown_where_the_answer_would_be() -> None:
    explored = load_model(hostile(RuntimeError("[red]no[/red]")))

    about = text_of(details.content(explored, explored.tree.root, 100))
    kept = text_of(attributes.content(explored, explored.tree.root, 100))

    for line in (
        "arguments    (raised RuntimeError: [red]no[/red])",
        "docstring    (raised RuntimeError: no documentation)",
        "mode         (raised RuntimeError: [red]no[/red])",
    ):
        assert line in about
    assert "loud     Loud" in kept
    assert "'quiet'" in kept
    assert "[[...]]" in kept
    assert "device" in kept.partition("Properties, not evaluated")[2]


def test_a_module_that_is_gone_says_so() -> None:
    module = nn.Sequential(nn.Linear(2, 2))
    explored = load_model(module)
    gone = explored.index.nodes["0"]
    del module[0]

    for content in PANELS.values():
        assert lines_of(content(explored, gone, 60), 60)
    assert "cannot be read (raised KeyError: '0')" in text_of(details.content(explored, gone, 60))


@pytest.mark.parametrize(
    "answer",
    [3, None, b"bytes", LoudText("[b]settings\x1b[2J")],
    ids=["int", "None", "bytes", "text"],
)
def test_settings_that_are_no_plain_text_are_shown(answer: Any) -> None:
    class Odd(nn.Module):  # type: ignore[misc]
        def extra_repr(self) -> Any:
            return answer

    explored = load_model(Odd())

    text = text_of(details.content(explored, explored.tree.root, 80))

    assert "\x1b" not in text
    assert ("not a text" in text) == (answer is not None and not isinstance(answer, str))


def test_a_forward_that_wraps_itself_is_reported() -> None:
    class Wrapped(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x

    Wrapped.forward.__wrapped__ = Wrapped.forward  # type: ignore[attr-defined]
    partial = type("Partial", (nn.Module,), {"forward": functools.partial(print)})

    for kind in (Wrapped, partial):
        explored = load_model(kind())
        text = text_of(source.content(explored, explored.tree.root, 80))
        assert "No source code of" in text


def test_code_with_control_characters_is_made_harmless(tmp_path: Any) -> None:
    file = tmp_path / "odd.py"
    file.write_text(
        "class Odd(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return\t'\x1b[2J[red]\u202e'  # 宽\n" + "    # more\n" * 2000
    )
    namespace: dict[str, Any] = {"nn": nn}
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    namespace["Odd"].__module__ = "odd"
    explored = load_model(namespace["Odd"]())

    text = text_of(source.content(explored, explored.tree.root, 80))

    assert "return  '?[2J[red]?'  # 宽" in text
    assert "\x1b" not in text


NAMES = {
    "markup": "[bold red]x[/]",
    "broken markup": "[/",
    "control": "a\x1b[2Jb\x07\r\nc\x00",
    "direction": "a\u202eb\u2066c",
    "wide": "模型の重み" * 20,
    "combining": "e\u0301" * 100,
    "emoji": "👩\u200d👩\u200d👧" * 30,
    "long": "x" * 100_000,
    "long and wide": "模" * 100_000,
    "empty": "",
    "blanks": "   ",
    "surrogate": "a\ud800b",
}


def odd_tree(name: str) -> Tree:
    entry = replace(entry_of(f"{name}.{name}", 2, 3), name=name, dtype=name, device=name)
    inner = node_of(f"{name}", name, name, tensors=[entry])
    inner = replace(inner, name=name)
    twin = replace(inner, shared_with=name, tensors=(replace(entry, tied_to=entry.path),))
    return Tree(name, name, node_of("", name, children=[inner, twin]), notes=(name,))


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
@pytest.mark.parametrize("width", WIDTHS)
def test_any_name_is_shown_on_its_line_and_obeyed_by_no_terminal(name: str, width: int) -> None:
    tree = odd_tree(name)
    runs = recorded(
        timing("", 1e-3),
        timing(name, 1e-3),
        flow=steps(("", 0, (), 1), (name, 1, (name,), 2), (name, 1, (name,), 2)),
    )
    explored = ExploredModel(tree, stats=runs, other=odd_tree("other"))

    items: list[Item] = [*tree.root.walk()]
    items += [entry for node in tree.root.walk() for entry in node.tensors]
    for content in PANELS.values():
        for item in items:
            text = "\n".join(lines_of(content(explored, item, width), width))
            assert all(letter.isprintable() or letter == "\n" for letter in text)
            assert len(text) < 20_000


def test_markup_in_names_stays_text() -> None:
    tree = odd_tree("[bold red]x[/]")

    text = text_of(details.content(ExploredModel(tree), tree.root.children[0], 100))

    assert text.count("[bold red]x[/]") >= 5


def many(count: int) -> ModuleNode:
    return node_of(
        "bank", "Bank", tensors=[entry_of(f"bank.w{number}", 2) for number in range(count)]
    )


@pytest.mark.parametrize("content", PANELS.values(), ids=PANELS)
def test_ten_thousand_tensors_make_short_panels(content: Any) -> None:
    tree = Tree("m", "", node_of("", "M", children=[many(10_000)]))
    explored = ExploredModel(tree, other=Tree("n", "", node_of("", "M", children=[many(9_990)])))

    lines = lines_of(content(explored, tree.root.children[0], 80), 80)

    assert len(lines) < 60
    if content in (PANELS["Module Details"], PANELS["Comparison"]):
        assert "… 9,980 more" in lines


def test_ten_thousand_attributes_make_a_short_panel() -> None:
    module = nn.Module()
    module.__dict__.update({f"a{number}": number for number in range(10_000)})
    module.__dict__[3] = "not a name"
    explored = load_model(module)

    lines = lines_of(attributes.content(explored, explored.tree.root, 80), 80)

    assert len(lines) < 120
    assert "… 9,941 more" in lines
