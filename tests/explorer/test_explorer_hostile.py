"""The explorer and what would hang or end it: endless regexes, lying tensors, broken settings."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.events import Paste

from snapviewer import SnapshotError
from snapviewer.explorer import live
from snapviewer.explorer.app.export import write_export
from snapviewer.explorer.app.opening import restore_terminal_on_signal
from snapviewer.explorer.app.search_bar import SearchInput
from snapviewer.explorer.app.settings import ExplorerSettings, load_settings
from snapviewer.explorer.explored_model import load_model
from snapviewer.explorer.live import tree_of_module
from snapviewer.explorer.tree import Tree
from snapviewer.explorer.view.browser import TreeBrowser
from snapviewer.explorer.view.outline import outline_of
from snapviewer.explorer.view.search import MAX_QUERY_CHARS, Query, highlights, search, search_texts
from snapviewer.report.tree.json import to_json
from snapviewer.report.tree.text import as_text
from snapviewer.text.sanitize import json_text
from support.explorer_driver import Driver, drive
from support.explorer_trees import module, tensor
from support.pth_writer import T, write_pth

ENDLESS = "(a+)+$"
LONG = "a" * 60 + "!"


def _tree(name: str = "model") -> Tree:
    return Tree(name, "live module", module("", "Net", children=[module("conv1"), module(LONG)]))


# Regexes


def test_a_regex_that_would_backtrack_without_end_finds_what_it_matches() -> None:
    found = search(search_texts(outline_of(_tree())), Query(f"conv|{ENDLESS}", is_regex=True))

    assert found.matches == [1]
    assert not found.error


def test_the_letters_that_such_a_regex_matches_are_found() -> None:
    (_, long) = _tree().root.children

    assert highlights(Query(ENDLESS, is_regex=True), long) == ([], [])


def test_a_paste_of_a_megabyte_is_not_searched_for() -> None:
    async def script(driver: Driver) -> None:
        await driver.press("slash")
        driver.app.post_message(Paste("a" * 1_000_000))
        await driver.settle()
        assert len(driver.app.query_one(SearchInput).value) <= MAX_QUERY_CHARS

    drive(_tree(), script)


# ExplorerSettings and exports


@pytest.mark.parametrize(
    "content", ['{"labels": [[], {}, null, 5]}', '{"switched_on": [{}]}', "[" * 100_000, "\xff"]
)
def test_broken_settings_are_as_in_the_beginning(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNAPVIEWER_CONFIG", str(tmp_path))
    (tmp_path / "explorer.json").write_text(content, encoding="latin-1")
    assert load_settings().labels == ExplorerSettings().labels


def test_settings_that_are_a_pipe_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNAPVIEWER_CONFIG", str(tmp_path))
    os.mkfifo(tmp_path / "explorer.json")
    assert load_settings() == ExplorerSettings()


def test_an_export_of_a_model_with_a_long_wide_name_has_a_name_that_fits(tmp_path: Path) -> None:
    path = write_export(TreeBrowser(outline_of(_tree("模型" * 200))), "text", tmp_path)
    assert path.name.startswith("模型")
    assert len(path.name.encode()) < 120


def test_an_export_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise RecursionError("too deep")

    monkeypatch.setattr("snapviewer.explorer.app.program.write_export", fail)

    async def script(driver: Driver) -> None:
        driver.app._export_as("json")
        await driver.settle()
        (notice,) = driver.app._notifications
        assert (notice.title, notice.message) == ("Not written", "too deep")

    drive(_tree(), script)


# Live models


class _Held:
    """Like a module, as far as the explorer asks."""

    def __init__(self, **tensors: Any) -> None:
        self._tensors = tensors

    def named_children(self) -> Iterator[tuple[str, Any]]:
        return iter(())

    def named_parameters(self, *, recurse: bool = True) -> Iterator[tuple[str, Any]]:
        assert not recurse
        return iter(self._tensors.items())


class _Lying:
    """A tensor that says anything."""

    layout = dtype = device = "torch.\x1b[31m" + "x" * 1000
    requires_grad: Any = "maybe"

    def __init__(self, shape: Any, elements: Any) -> None:
        self.shape = shape
        self._elements = elements

    def numel(self) -> Any:
        return self._elements

    def element_size(self) -> Any:
        return 4


@pytest.mark.parametrize(
    "lying",
    [
        _Lying((10**400,), 1),
        _Lying((3,), -1),
        _Lying((float("nan"),), 1),
        _Lying(("[bold]",), 1),
        _Lying((3,), "many"),
        _Lying(None, 3),
    ],
)
def test_a_tensor_with_impossible_sizes_counts_as_nothing(lying: _Lying) -> None:
    tree = tree_of_module(_Held(weight=lying))
    (entry,) = tree.root.tensors
    assert (entry.shape, entry.elements, entry.size_bytes) == ((), 0, 0)
    assert tree.notes == ("1 tensor could not be read and count as empty.",)
    assert "\x1b" not in as_text(tree)
    assert to_json(tree)["totals"]["parameters"] == 0


def test_what_a_tensor_says_of_itself_is_plain_and_short() -> None:
    (entry,) = tree_of_module(_Held(weight=_Lying((2, 2), 4))).root.tensors
    assert entry.is_trainable is True
    assert entry.dtype.isprintable()
    assert len(entry.dtype) <= 80
    assert entry.size_bytes == 16


def test_a_tensor_that_is_made_of_itself_is_not_followed_for_ever() -> None:
    class Wrapped(_Lying):
        def __tensor_flatten__(self) -> tuple[list[str], None]:
            return ["me"] * 500, None

        @property
        def me(self) -> Wrapped:
            return self

    (entry,) = tree_of_module(_Held(weight=Wrapped((2, 2), 4))).root.tensors
    assert entry.size_bytes == 16


def test_a_tensor_whose_code_leaves_does_not_end_the_explorer() -> None:
    class Leaving(_Lying):
        def numel(self) -> int:
            raise SystemExit(3)

    (entry,) = tree_of_module(_Held(weight=Leaving((2,), 2))).root.tensors
    assert entry.elements == 0


def test_names_that_are_no_texts_or_strange_ones_are_made_plain() -> None:
    class Strange(str):
        def __radd__(self, _: object) -> str:
            raise RuntimeError

        def __str__(self) -> str:
            raise RuntimeError

    class Odd(_Held):
        def __init__(self) -> None:
            self._parameters = {5: _Lying((2,), 2), Strange("w"): _Lying((2,), 2)}
            self._buffers: dict[str, Any] = {}
            self._modules = {None: _Held(), Strange("q"): _Held()}

    root = tree_of_module(Odd()).root
    assert [entry.path for entry in root.tensors] == ["5", "w"]
    assert [(child.path, type(child.path)) for child in root.children] == [
        ("None", str),
        ("q", str),
    ]


def test_a_model_that_makes_modules_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(_Held):
        def named_children(self) -> Iterator[tuple[str, Any]]:
            return iter([("a", Endless())])

    monkeypatch.setattr(live, "MAX_MODULES", 100)
    tree = tree_of_module(Endless())
    assert tree.root.sums.modules == 100
    assert tree.notes == ("Only the first 100 modules are shown and counted.",)


def test_what_raises_when_it_is_asked_for_modules_is_no_model() -> None:
    class Raising:
        @property
        def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
            raise RuntimeError("no")

    with pytest.raises(SnapshotError, match="could not be searched for modules"):
        tree_of_module(Raising())


def test_a_model_that_hides_its_class_is_reported() -> None:
    class Silent(_Held):
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError("no")

    assert load_model(Silent()).tree.notes == (
        "the root could not be read (raised RuntimeError: no).",
    )


def test_arguments_of_known_layers_are_shown_inert_and_short() -> None:
    class Linear(_Held):
        in_features = "\x1b[31m"
        out_features = "x" * 1000

    arguments = tree_of_module(Linear()).root.arguments
    assert arguments.startswith("?[31m→xxx")
    assert len(arguments) <= 60


def test_half_a_letter_in_a_name_is_escaped_in_json() -> None:
    text = json_text(to_json(Tree("m", "x", module("", tensors=[tensor("\ud800", 2)]))))
    assert json.loads(text.encode())["modules"][0]["tensors"][0]["name"] == "\ud800"


# Signals


def test_a_signal_that_ends_the_program_is_minded_after_it_left() -> None:
    happened: list[str] = []
    before = signal.signal(signal.SIGTERM, lambda *_: happened.append("the user's own"))
    try:
        with restore_terminal_on_signal(lambda: happened.append("leave")):
            signal.raise_signal(signal.SIGTERM)
            happened.append("left")
        assert happened == ["leave", "left", "the user's own"]
        signal.raise_signal(signal.SIGTERM)
        assert happened[3:] == ["the user's own"]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with restore_terminal_on_signal(pytest.fail):
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_closes_the_explorer() -> None:
    async def script(driver: Driver) -> None:
        driver.app.quit_soon()
        await driver.pilot.pause()
        assert not driver.app.is_running

    drive(_tree(), script)


# Files


def test_tensors_with_the_same_path_never_show_the_numbers_of_each_other(tmp_path: Path) -> None:
    write_pth(
        tmp_path / "m.pth",
        {"a.b": T("float32", [2]), "a": {"b": T("float32", [3])}, "c": T("float32", [4])},
    )
    explored = load_model(tmp_path / "m.pth")
    entries = [entry for node in explored.tree.root.walk() for entry in node.tensors]
    kept = {entry.shape: explored.file_tensor_of(entry) for entry in entries}
    assert kept[(2,)] is None
    assert kept[(3,)] is None
    assert kept[(4,)] is not None
