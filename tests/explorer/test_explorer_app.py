"""The explorer, driven with keys and mouse."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text
from textual.widgets import Input, Static

import snapviewer.explorer.app
from snapviewer import CancelledError, SnapshotError
from snapviewer.explorer.app import panel as panel_module
from snapviewer.explorer.app import panels
from snapviewer.explorer.app import program as program_module
from snapviewer.explorer.app.dialogs import HelpScreen, LabelScreen
from snapviewer.explorer.app.export import ExportScreen, write_export
from snapviewer.explorer.app.keys import GROUPS
from snapviewer.explorer.app.opening import explore
from snapviewer.explorer.app.panel import TABS, SidePanel, Splitter, TabLine
from snapviewer.explorer.app.panels import PANELS, statistics
from snapviewer.explorer.app.program import ExplorerApp
from snapviewer.explorer.app.search_bar import SearchBar
from snapviewer.explorer.app.settings import ExplorerConfig, ExplorerSettings, load_settings
from snapviewer.explorer.app.tree_view import TreeView
from snapviewer.explorer.checkpoint import tree_of_checkpoint
from snapviewer.explorer.compare import compare_trees, value_changes
from snapviewer.explorer.explored_model import ExploredModel
from snapviewer.explorer.labels import label
from snapviewer.explorer.timing import ForwardStats, ModuleTiming, Spread, TensorShape
from snapviewer.explorer.tree import ModuleNode, Tree
from snapviewer.explorer.view.browser import TreeBrowser
from snapviewer.explorer.view.outline import outline_of
from snapviewer.report.tree.comparison import as_text
from support import explorer_trees as trees
from support.explorer_driver import Driver, drive, text_of
from support.pth_writer import T, write_pth


@pytest.fixture(autouse=True)
def choices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where choices are remembered; panels are filled without waiting."""
    monkeypatch.setenv("SNAPVIEWER_CONFIG", str(tmp_path / "config"))
    monkeypatch.setattr(panel_module, "SECONDS_BEFORE", 0.001)
    return tmp_path / "config" / "explorer.json"


def timed() -> ExploredModel:
    """A network with recorded times."""

    def timing(path: str, seconds: float) -> ModuleTiming:
        spread = Spread(2, seconds, 0.0, seconds, seconds, 2 * seconds)
        shape = (TensorShape("x", (1, 3, 8, 8), "float32", "cpu", 768),)
        return ModuleTiming(path, "", 2, spread, spread, None, None, False, shape, shape, 768, None)

    seconds = {"": 0.010, "conv1": 0.001, "layer1": 0.002, "layer2": 0.006}
    stats = ForwardStats({path: timing(path, spent) for path, spent in seconds.items()}, runs=2)
    return ExploredModel(trees.resnet(), stats=stats)


# The tree.


@pytest.mark.promise("X20", "X24")
def test_rows_say_what_the_known_tree_says() -> None:
    async def script(driver: Driver) -> None:
        text = "\n".join(driver.lines)
        for line in (
            "├─▸ conv1: Conv2d(3→64, 7×7) [9.4K params]",
            "├─▸ bn1: BatchNorm2d(64) [128 params]",
            "├── maxpool: MaxPool2d(3×3, stride=2) [0 params]",
            "└─▸ fc: Linear(2048→1000) [2.0M params]",
        ):
            assert line in text
        assert "73.2 %" in driver.lines[-1]
        assert "2.8M parameters" in driver.title
        for place in driver.browser.rows.places[1:]:
            item = driver.browser.outline.items[place]
            assert isinstance(item, ModuleNode)
            assert label(item) in text

    drive(trees.resnet(), script, size=(200, 40))


@pytest.mark.promise("X20", "X21")
def test_arrows_and_letters_move_and_fold() -> None:
    async def script(driver: Driver) -> None:
        await driver.press("down", "j", "j")
        assert driver.path == "relu"
        await driver.press("k", "up", "up", "up")
        assert driver.path == ""
        await driver.press("end")
        assert driver.path == "fc"
        await driver.press("right")
        assert "│" not in driver.lines[-1]
        assert "weight" in driver.lines[-2]
        await driver.press("l", "down")
        assert driver.path == "fc.bias"
        await driver.press("left")
        assert driver.path == "fc"
        await driver.press("h")
        assert "fc: Linear" in driver.lines[-1]
        await driver.press("h")
        assert driver.path == ""
        await driver.press("enter")
        assert len(driver.lines) == 1
        await driver.press("enter")
        assert len(driver.lines) == 12

    drive(trees.resnet(), script, size=(120, 30))


def test_pages_and_ends_are_reached() -> None:
    async def script(driver: Driver) -> None:
        await driver.press("Z", "Z")
        height = driver.app.query_one(TreeView).size.height
        await driver.press("pagedown")
        assert driver.browser.row == height - 1
        await driver.press("G")
        assert driver.browser.row == len(driver.browser.rows.places) - 1
        assert driver.lines[-1].startswith("▌")
        await driver.press("pageup", "g")
        assert driver.browser.row == 0
        assert driver.lines[0].startswith("▌")

    drive(trees.resnet(), script, size=(80, 24))


def test_folding_keys_unfold_what_they_say_and_fold_it_again() -> None:
    async def script(driver: Driver) -> None:
        browser = driver.browser

        async def count_after(key: str) -> int:
            await driver.pilot.press(key)
            return len(browser.rows.places)

        browser.move_to_row(driver.row_of("layer1.0"))
        for key, unfolded in (("s", 22), ("S", 46), ("o", 32), ("O", 80), ("z", 29)):
            assert [await count_after(key), await count_after(key)] == [unfolded, 12]
        assert [await count_after("Z"), await count_after("Z")] == [8, 88]

    drive(trees.resnet(), script)


def test_tensors_and_what_is_small_can_be_hidden() -> None:
    async def script(driver: Driver) -> None:
        await driver.press("Z", "Z")
        everything = len(driver.browser.rows.places)
        await driver.press("w")
        assert len(driver.browser.rows.places) == 32
        assert "tensors hidden" in driver.title
        await driver.press("w", "x", "x")
        assert "below 1 % hidden" in driver.title
        names = [driver.browser.outline.items[at].name for at in driver.browser.rows.places]
        assert "bn1" not in names
        assert "conv1" in names
        await driver.press("x", "x")
        assert len(driver.browser.rows.places) == everything

    drive(trees.resnet(), script)


def test_rows_are_sorted_and_the_other_way_round() -> None:
    async def script(driver: Driver) -> None:
        def first() -> list[str]:
            items = driver.browser.outline.items
            return [items[place].path for place in driver.browser.rows.places[1:4]]

        await driver.press("Z", "r")
        assert first() == ["bn1", "conv1", "fc"]
        await driver.press("r")
        assert first() == ["fc", "layer2", "layer1"]
        await driver.press("R")
        assert first() == ["relu", "maxpool", "bn1"]
        await driver.press("r")
        assert driver.title.startswith("resnet  ·  by memory  ·  ")
        await driver.press("r")
        assert first() == ["layer2", "layer1", "conv1"]
        assert "60.0 %" in driver.lines[1]
        await driver.press("r")
        assert "by" not in driver.title

    drive(timed(), script, size=(120, 40))


@pytest.mark.parametrize("width", [60, 140])
def test_rows_sorted_by_time_show_the_times_that_they_are_sorted_by(width: int) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("Z", "f", "r", "r", "r")
        assert "7.82 MiB" in driver.lines[1], "sorted by memory, fc is first"

        await driver.press("r")

        assert re.search(r"layer2: .* 12\.00ms .*60\.0 %$", driver.lines[1])
        assert re.search(r"layer1: .* 4\.00ms .*20\.0 %$", driver.lines[2])

    drive(timed(), script, size=(width, 60))


# Labels.


def test_labels_are_switched_by_their_keys_and_remembered(choices: Path) -> None:
    words = {
        "p": "[9.4K params]",
        "b": "36.8 KiB",
        "t": "64×3×7×7",
        "d": "float32 cpu",
        "f": "1.00ms ×2  1×3×8×8 → 1×3×8×8",
        "percent_sign": "0.3 %",
    }

    def seen(driver: Driver) -> set[str]:
        return {key for key, said in words.items() if said in driver.lines[1]}

    async def script(driver: Driver) -> None:
        expected = set(words) - {"d"}
        assert seen(driver) == expected
        for key in words:
            await driver.pilot.press(key)
            expected ^= {key}
            assert seen(driver) == expected

    async def look(driver: Driver) -> None:
        assert seen(driver) == {"d"}

    drive(timed(), script, size=(260, 40))
    drive(timed(), look, size=(260, 40))
    assert json.loads(choices.read_text())["switched_on"] == ["kind"]


def test_aligned_labels_stand_below_each_other() -> None:
    def columns(driver: Driver) -> set[int]:
        return {line.index("params]") for line in driver.lines[1:] if "params]" in line}

    async def script(driver: Driver) -> None:
        assert len(columns(driver)) > 1
        await driver.press("A")
        starts = {line.index("[") for line in driver.lines[1:]}
        assert len(starts) == 1

    config = ExplorerConfig(max_depth=1)
    drive(trees.resnet(), script, size=(140, 30), config=config)


def test_labels_are_chosen_and_reordered() -> None:
    async def script(driver: Driver) -> None:
        await driver.press("L")
        assert isinstance(driver.app.screen, LabelScreen)
        await driver.press("j", "K", "j", "space", "escape")
        assert "conv1: Conv2d(3→64, 7×7)  36.8 KiB" in driver.lines[1]
        assert "params]" not in driver.lines[1]
        await driver.press("L")
        await driver.pilot.click("#labels", offset=(4, 3))
        await driver.press("escape")
        assert "params]" in driver.lines[1]

    app = drive(trees.resnet(), script, size=(160, 30))

    assert app.settings.labels[:2] == ("memory", "params")


# Searching.


@pytest.mark.promise("X22")
def test_typing_filters_enter_keeps_and_escape_clears() -> None:
    async def script(driver: Driver) -> None:
        await driver.type("/bn2")
        assert "4 matches" in text_of(driver.app.query_one("#found", Static))
        paths = [driver.browser.outline.items[at].path for at in driver.browser.rows.places]
        assert paths == [
            *("", "layer1", "layer1.0", "layer1.0.bn2", "layer1.1", "layer1.1.bn2"),
            *("layer2", "layer2.0", "layer2.0.bn2", "layer2.1", "layer2.1.bn2"),
        ]
        assert driver.path == "layer1.0.bn2"
        await driver.press("down")
        assert driver.path == "layer1.1.bn2"
        await driver.press("enter", "n")
        assert driver.path == "layer2.0.bn2"
        await driver.press("N", "N", "N")
        assert driver.path == "layer2.1.bn2"
        assert "4 found" in driver.title
        await driver.press("slash")
        assert "slash" not in driver.app.screen.active_bindings, "it types a letter here"
        await driver.press("escape")
        assert driver.path == "layer2.1.bn2"
        assert len(driver.browser.rows.places) == 17
        assert not driver.app.query_one(SearchBar).has_class("-open")
        await driver.press("n")
        assert driver.path == "layer1.0.bn2"

    drive(trees.resnet(), script)


def test_letters_that_match_are_highlighted() -> None:
    async def script(driver: Driver) -> None:
        await driver.type("/fc")
        tree = driver.app.query_one(TreeView)
        style = tree.get_component_rich_style("tree--match", partial=True)
        marked = [
            segment.text
            for segment in tree.render_line(driver.browser.row)
            if segment.style is not None and segment.style.color == style.color
        ]
        assert marked == ["fc"]

    drive(trees.resnet(), script)


@pytest.mark.promise("X22")
def test_a_broken_regex_is_reported_and_leaves_what_was_found() -> None:
    async def script(driver: Driver) -> None:
        await driver.press("slash", "ctrl+r")
        await driver.type("fc|conv")
        found = len(driver.browser.rows.places)
        await driver.type("(")
        assert len(driver.browser.rows.places) == found > 2
        assert driver.browser.found.query.text == "fc|conv"
        assert "not a regex" in text_of(driver.app.query_one("#found", Static))
        await driver.press("backspace", "backspace", "backspace", "backspace", "backspace")
        await driver.press("backspace")
        assert driver.path == "fc"

    app = drive(trees.resnet(), script)

    assert app.settings.is_regex


def test_a_search_without_matches_says_so_and_loses_nothing() -> None:
    async def script(driver: Driver) -> None:
        await driver.type("/zzz")
        assert "no match" in text_of(driver.app.query_one("#found", Static))
        assert len(driver.lines) == 1
        await driver.press("escape")
        assert len(driver.lines) == 12
        await driver.press("slash", "enter")
        assert not driver.app.query_one(SearchBar).has_class("-open")
        assert not isinstance(driver.app.focused, Input)

    drive(trees.resnet(), script)


# Panels.


@pytest.mark.promise("X21", "X23")
def test_tab_switches_panels_and_the_last_is_remembered() -> None:
    async def script(driver: Driver) -> None:
        panel = driver.app.query_one(SidePanel)
        seen = [panel.title]
        for key in ("tab", "tab", "tab", "shift+tab", "6", "tab", "c", "a"):
            await driver.press(key)
            seen.append(panel.title)
        assert [tab.name for tab in TABS] == list(PANELS)
        assert seen == [
            *("Module Details", "Performance Stats", "Source Code", "Tensor Flow"),
            *("Source Code", "Comparison", "Module Details", "Source Code", "Attributes"),
        ]

    async def look(driver: Driver) -> None:
        assert driver.app.query_one(SidePanel).title == "Attributes"

    drive(trees.resnet(), script)
    drive(trees.resnet(), look)


@pytest.mark.promise("X21")
def test_the_panel_shows_the_module_under_the_cursor_or_the_pinned_one() -> None:
    async def script(driver: Driver) -> None:
        await driver.press("down")
        assert "9,408" in driver.panel
        await driver.press("space", "down")
        assert "9,408" in driver.panel
        assert driver.app.query_one(SidePanel).has_class("-pinned")
        await driver.press("space")
        assert "9,408" not in driver.panel
        await driver.press("up", "space", "down", "escape")
        assert "9,408" not in driver.panel

    drive(trees.resnet(), script)


def test_a_panel_that_fails_says_so_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Any:
        raise RuntimeError("[red]no\x1b")

    monkeypatch.setattr(panels, "PANELS", dict.fromkeys(PANELS, fail))

    async def script(driver: Driver) -> None:
        assert "cannot be shown: RuntimeError: [red]no?" in driver.panel

    drive(trees.resnet(), script, size=(160, 30))


def test_what_a_slow_panel_says_of_a_module_left_behind_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first_may_end, first_began = threading.Event(), threading.Event()

    def content(_subject: ExploredModel, item: Any, _width: int) -> Text:
        if item.path == "conv1":
            first_began.set()
            first_may_end.wait(10)
        return Text(f"details of {item.path}")

    monkeypatch.setattr(panels, "PANELS", dict.fromkeys(PANELS, content))

    async def script(driver: Driver) -> None:
        await driver.pilot.press("down")
        await asyncio.to_thread(first_began.wait, 10)
        await driver.pilot.press("down")
        await driver.settle()
        assert driver.panel == "details of bn1"
        first_may_end.set()
        await asyncio.sleep(0.05)
        await driver.settle()
        assert driver.panel == "details of bn1"

    drive(trees.resnet(), script)


def test_statistics_are_measured_aside_and_can_be_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    was_cancelled = threading.Event()

    def measure(_subject: Any, _item: Any, *, progress: Any, cancel: threading.Event) -> Any:
        while not cancel.wait(0.01):
            progress(1, 4)
        was_cancelled.set()
        raise CancelledError("cancelled")

    monkeypatch.setattr(panel_module, "measure", measure)
    monkeypatch.setattr(panel_module, "SECONDS_BETWEEN", 0.0)

    async def script(driver: Driver) -> None:
        await driver.pilot.press("i")
        await _until(lambda: "25%" in driver.panel)
        await driver.pilot.press("escape")
        await driver.settle()
        assert await asyncio.to_thread(was_cancelled.wait, 10)
        assert "Parameters" in driver.panel

    drive(trees.resnet(), script)


def test_what_was_measured_stays_with_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_module, "measure", lambda *_args, **_kwargs: "numbers")
    monkeypatch.setattr(
        statistics, "content", lambda measured, _width: Text(f"measured {measured}")
    )

    async def script(driver: Driver) -> None:
        await driver.press("down", "2", "i")
        assert driver.panel.startswith("measured numbers")
        await driver.press("down")
        assert "numbers" not in driver.panel
        await driver.press("up")
        assert driver.panel.startswith("measured numbers")

    drive(trees.resnet(), script)


async def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < end, "it never was so"
        await asyncio.sleep(0.01)


# Mouse.


def test_the_mouse_selects_folds_scrolls_and_chooses_tabs() -> None:
    async def script(driver: Driver) -> None:
        await driver.pilot.click("#tree", offset=(30, 2))
        await driver.settle()
        assert driver.path == "bn1"
        row = driver.row_of("layer2")
        await driver.pilot.click("#tree", offset=(3, row))
        await driver.settle()
        assert driver.path == "layer2"
        assert len(driver.browser.rows.places) == 10
        await driver.pilot.click("#tree", offset=(20, row), times=2)
        await driver.settle()
        assert len(driver.browser.rows.places) == 12
        await driver.pilot.click("#tree", offset=(20, 25))
        assert driver.path == "layer2"
        await driver.press("Z", "Z")
        driver.app.query_one(TreeView).scroll_down(animate=False)
        await driver.settle()
        assert "ResNet" not in driver.lines[0]
        await driver.pilot.click(TabLine, offset=(12, 0))
        await driver.settle()
        assert driver.app.query_one(SidePanel).title == "Performance Stats"

    drive(trees.resnet(), script, size=(120, 30))


def test_the_chosen_tab_is_in_sight_however_narrow_the_panel_is() -> None:
    async def script(driver: Driver) -> None:
        for _ in range(6):
            await driver.pilot.press("less_than_sign")
        await driver.press("6")
        line = driver.app.query_one(TabLine)
        assert line.size.width < 30
        text = line.render_line(0).text
        assert "Compare" in text
        assert "Details" not in text
        await driver.pilot.click(TabLine, offset=(text.index("Attrs"), 0))
        await driver.settle()
        assert driver.app.query_one(SidePanel).title == "Attributes"

    drive(trees.resnet(), script, size=(110, 24))


@pytest.mark.parametrize(("size", "to"), [((120, 30), (80, 10)), ((80, 24), (10, 8))])
def test_the_border_is_dragged(size: tuple[int, int], to: tuple[int, int]) -> None:
    async def script(driver: Driver) -> None:
        splitter = driver.app.query_one(Splitter)
        await driver.pilot.mouse_down(Splitter)
        await driver.pilot.hover("#main", offset=(to[0], to[1] - 1))
        await driver.settle()
        assert (splitter.region.x if size[0] > 100 else splitter.region.y) in (
            range(to[0] - 2, to[0] + 3) if size[0] > 100 else range(to[1] - 2, to[1] + 3)
        )
        await driver.pilot.mouse_up(Splitter)
        assert not splitter.has_class("-dragged")

    drive(trees.resnet(), script, size=size)


# Layout and colours.


def test_the_panel_lies_below_where_there_is_little_room_and_beside_where_there_is_more() -> None:
    async def script(driver: Driver) -> None:
        tree, panel = driver.app.query_one(TreeView), driver.app.query_one(SidePanel)
        assert panel.region.y > tree.region.bottom - 1
        assert panel.region.width == tree.region.width == 80
        await driver.pilot.resize_terminal(200, 60)
        await driver.settle()
        assert panel.region.y == tree.region.y
        assert panel.region.x > tree.region.x
        before = panel.region.width
        await driver.press("greater_than_sign")
        assert panel.region.width > before
        await driver.press("less_than_sign", "less_than_sign")
        assert panel.region.width < before
        await driver.press("v")
        assert tree.region.width == 200
        await driver.press("v")
        assert panel.display
        await driver.press("G")
        await driver.pilot.resize_terminal(60, 12)
        await driver.settle()
        assert "fc: Linear" in driver.lines[-1], "the cursor is in sight"

    drive(trees.resnet(), script, size=(80, 24))


def test_dark_and_light_are_ours_and_remembered() -> None:
    backgrounds = []

    async def script(driver: Driver) -> None:
        backgrounds.append(driver.app.query_one(TreeView).styles.background.hex)
        await driver.press("T")
        backgrounds.append(driver.app.query_one(TreeView).styles.background.hex)

    async def look(driver: Driver) -> None:
        backgrounds.append(driver.app.query_one(TreeView).styles.background.hex)

    drive(trees.resnet(), script)
    drive(trees.resnet(), look)

    assert backgrounds == ["#16181D", "#FFFFFF", "#FFFFFF"]


def test_without_colours_all_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def script(driver: Driver) -> None:
        assert driver.app.no_color
        await driver.press("down")
        assert driver.lines[1].startswith("▌")

    drive(trees.resnet(), script)


@pytest.mark.promise("X13")
def test_a_callers_choices_come_first() -> None:
    config = ExplorerConfig(
        show_parameter_counts=False, show_memory=False, color_scheme="light", max_depth=1
    )

    async def script(driver: Driver) -> None:
        assert len(driver.lines) == 8
        assert "params" not in driver.lines[1]
        assert "36.8 KiB" not in driver.lines[1]

    app = drive(trees.resnet(), script, config=config)
    assert app.settings.theme == "light"

    async def look(driver: Driver) -> None:
        assert not driver.app.query_one(SidePanel).display

    drive(trees.resnet(), look, config=ExplorerConfig(compact_view=True))


# Untrusted names.


def test_marks_names_and_wide_letters_are_shown_as_they_are() -> None:
    async def script(driver: Driver) -> None:
        await driver.press("Z")
        text = "\n".join(driver.lines)
        for line in (
            "[bold red]: Öl模型([/])",
            "tied to embed.weight",
            "same module as adapter",
            "frozen",
            "buffer",
            "94 % trainable",
        ):
            assert line in text
        tree = driver.app.query_one(TreeView)
        widths = {tree.render_line(y).cell_length for y in range(tree.size.height)}
        assert len(widths) == 1
        for key in ("down", *"123456"):
            await driver.press(key)
            assert "cannot be shown" not in driver.panel

    drive(trees.tied(), script, size=(220, 40))


HOSTILE = ("\x1b[31mred", "a\nb", "\u202eabc", "[", "x" * 5000, "", " ", "😀🏽", "\ud800", "[/x]")


def test_hostile_names_are_drawn_in_one_line_each() -> None:
    nodes = [trees.module(name, name, name, tensors=[trees.tensor(name, 2)]) for name in HOSTILE]
    hostile = Tree(HOSTILE[0], HOSTILE[1], trees.module("", HOSTILE[3], children=nodes))

    async def script(driver: Driver) -> None:
        await driver.press("Z", "A", "d", "slash", "x", "enter", "y", "escape")
        for row in range(0, 2 * len(HOSTILE), 2):
            driver.browser.move_to_row(row + 1)
            await driver.press("y", "1")
            assert "cannot be shown" not in driver.panel
        tree = driver.app.query_one(TreeView)
        for y in range(tree.size.height):
            line = tree.render_line(y)
            assert line.cell_length == tree.scrollable_content_region.width
            assert line.text.isprintable()

    drive(hostile, script, size=(80, 24))


# Reading.


@pytest.mark.promise("X30")
def test_the_window_is_there_while_a_model_is_read() -> None:
    may_end = threading.Event()

    def read(progress: Callable[[int, int], object], _cancel: threading.Event) -> ExploredModel:
        progress(3, 4)
        may_end.wait(10)
        return ExploredModel(trees.resnet())

    async def script(driver: Driver) -> None:
        reading = driver.app.query_one("#reading", Static)
        await _until(lambda: "75%" in text_of(reading))
        assert "Reading big.pth" in text_of(reading)
        may_end.set()
        await driver.settle()
        assert len(driver.lines) == 12

    drive(read, script, name="big.pth")


@pytest.mark.promise("X30")
@pytest.mark.parametrize("key", ["escape", "q"])
def test_reading_is_cancelled(key: str) -> None:
    was_cancelled = threading.Event()

    def read(_progress: object, cancel: threading.Event) -> ExploredModel:
        assert cancel.wait(10)
        was_cancelled.set()
        raise CancelledError("cancelled")

    async def script(driver: Driver) -> None:
        await driver.pilot.pause()
        await driver.pilot.press(key)
        await _until(was_cancelled.is_set)

    app = drive(read, script)

    assert app.browser is None
    assert app.failure is None


def test_a_second_reading_takes_the_place_of_the_first() -> None:
    ended = []

    def first(_progress: object, cancel: threading.Event) -> ExploredModel:
        ended.append(cancel.wait(10))
        raise CancelledError("cancelled")

    async def script(driver: Driver) -> None:
        await driver.pilot.pause()
        driver.app.analyze_model_async(lambda _progress, _cancel: ExploredModel(trees.resnet()))
        await _until(lambda: driver.app.browser is not None and bool(ended))
        assert ended == [True]
        await driver.settle()
        assert len(driver.lines) == 12

    drive(first, script)


def test_what_cannot_be_read_is_reported_on_the_screen_and_to_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(_progress: object, _cancel: threading.Event) -> ExploredModel:
        raise SnapshotError("not a checkpoint: it begins with [/b]")

    async def script(driver: Driver) -> None:
        await driver.settle()
        text = text_of(driver.app.query_one("#reading", Static))
        assert "not a checkpoint: it begins with [/b]" in text
        await driver.pilot.press("j", "slash", "e", "i", "D", "tab", "z", "x", "q")

    def run(app: ExplorerApp, **_: object) -> None:
        async def scripted() -> None:
            async with app.run_test() as pilot:
                await script(Driver(app, pilot))

        asyncio.run(scripted())

    monkeypatch.setattr(ExplorerApp, "run", run)

    with pytest.raises(SnapshotError, match="not a checkpoint"):
        explore(read)


@pytest.mark.promise("X30")
def test_fifty_thousand_modules_are_there_at_once_and_searched() -> None:
    async def script(driver: Driver) -> None:
        assert driver.lines[0].startswith("▌▾ Wide")
        await driver.press("Z", "end")
        assert driver.path == "layers.4544.part9_proj"
        await driver.type("/4000.part5")
        assert driver.path == "layers.4000.part5_proj"

    drive(trees.wide(50_000), script)


# Two models.


def test_differences_are_marked_and_found_one_after_another() -> None:
    before = trees.resnet()
    kept = [child for child in before.root.children if child.name not in ("maxpool", "fc")]
    parts = [*kept, trees.linear("fc", 2048, 10), trees.linear("head", 10, 2)]
    after = Tree("tuned", "", trees.module("", "ResNet", children=parts))

    async def script(driver: Driver) -> None:
        marks = {line.split(":")[0].split(" ")[-1]: line[1] for line in driver.lines}
        assert marks["conv1"] == " "
        assert driver.app.query_one(SidePanel).title == "Comparison"
        assert (marks["maxpool"], marks["fc"], marks["head"]) == ("-", "~", "+")
        await driver.press("D")
        assert driver.path == "maxpool"
        await driver.press("D")
        assert driver.path == "fc"
        await driver.press("D")
        assert driver.path == "fc.weight"
        assert "1000×2048" in driver.lines[driver.browser.row]
        await driver.press("slash", *"bn1", "enter", "D")
        assert driver.path == "maxpool"
        assert not driver.app.query_one(SearchBar).has_class("-open"), "what hid it is gone"
        await driver.press("e", "h")
        assert not driver.app.workers, "a comparison is exported as text only"

    drive(ExploredModel(before, other=after), script, size=(160, 40))


def test_values_of_two_files_are_compared_on_demand_and_can_be_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        weights = T("float32", (2,), data=name.encode() * 8)
        write_pth(tmp_path / f"{name}.pth", {"same": T("int8", (1,)), "w": weights})
    a, b = (snapviewer.read_checkpoint(tmp_path / f"{name}.pth") for name in "ab")
    here, there = tree_of_checkpoint(a), tree_of_checkpoint(b)
    compare, is_waiting = value_changes, threading.Event()

    def wait(*_files: Any, progress: Any, cancel: threading.Event) -> dict[str, str]:
        progress(1, 2)
        is_waiting.set()
        cancel.wait(10)
        raise CancelledError("as asked")

    async def script(driver: Driver) -> None:
        assert "to b.pth: 0 tensors, 0 modules differ, values not compared (V)" in driver.title
        monkeypatch.setattr(program_module, "value_changes", wait)
        await driver.pilot.press("V")
        await _until(is_waiting.is_set)
        await _until(lambda: "values 50% …" in driver.title)
        await driver.press("escape")
        assert "values not compared" in driver.title
        monkeypatch.setattr(program_module, "value_changes", compare)
        await driver.press("V", "D")
        assert "to b.pth: 1 tensor, 1 module differ, values compared" in driver.title
        assert driver.path == "w"
        assert "~" in driver.lines[driver.browser.row]
        assert "all values, max |Δ|" in driver.lines[driver.browser.row]

    drive(
        ExploredModel(here, checkpoint=a, other=there, other_checkpoint=b), script, size=(120, 30)
    )


# The rest.


def test_what_is_seen_is_exported_and_never_over_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def script(driver: Driver) -> None:
        await driver.press("e")
        assert isinstance(driver.app.screen, ExportScreen)
        await driver.press(*"tZetejehes")

    drive(trees.resnet(), script, config=ExplorerConfig(max_depth=1))

    first, *others = (
        (tmp_path / f"resnet-summary{end}").read_text()
        for end in (".txt", "-2.txt", ".json", ".html")
    )
    assert "3→64" in first
    assert "BasicBlock" not in first
    assert all("BasicBlock" in other for other in others)
    assert (tmp_path / "resnet-summary.svg").read_text().startswith("<svg")


def test_an_export_has_the_order_of_the_rows_and_of_a_comparison_what_differs(
    tmp_path: Path,
) -> None:
    browser = TreeBrowser(outline_of(trees.resnet()), stats=timed().stats, max_depth=1)
    for _ in range(4):
        browser.next_order()
    browser.reverse()
    comparison = compare_trees(trees.resnet(), trees.tied())

    seen = write_export(browser, "text", tmp_path).read_text()
    differs = write_export(browser, "text", tmp_path, comparison).read_text()

    assert browser.view.order == "time"
    assert seen.index("conv1") < seen.index("layer1") < seen.index("layer2")
    assert differs == as_text(comparison)


def test_an_export_that_cannot_be_written_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    reports: list[str] = []
    monkeypatch.setattr(ExplorerApp, "notify", lambda _app, text, **_: reports.append(text))

    async def script(driver: Driver) -> None:
        folder.rmdir()
        await driver.press("e", "t")

    drive(trees.resnet(), script)

    assert len(reports) == 1


def test_help_has_every_key_and_every_key_does_something() -> None:
    async def script(driver: Driver) -> None:
        await driver.press("question_mark")
        assert isinstance(driver.app.screen, HelpScreen)
        reports = " ".join(text_of(one) for one in driver.app.screen.query(Static))
        text = re.sub(r"\s+", " ", reports)
        for keys in GROUPS.values():
            for key in keys:
                assert re.search(rf"{re.escape(key.shown)} {re.escape(key.words)}", text)
        await driver.press("j", "pagedown", "escape")
        assert not isinstance(driver.app.screen, HelpScreen)

    drive(trees.resnet(), script, size=(150, 80))

    actions = [
        binding.action.removeprefix("app.").split("(")[0]
        for owner in (ExplorerApp, TreeView)
        for binding in owner.BINDINGS
        if not isinstance(binding, tuple)
    ]
    assert [name for name in actions if not hasattr(ExplorerApp, f"action_{name}")] == []


def test_the_path_is_copied() -> None:
    async def script(driver: Driver) -> None:
        await driver.press("down", "y")
        assert driver.app.clipboard == "conv1"

    drive(trees.resnet(), script)


@pytest.mark.parametrize(
    "text", ["", "[]", "nonsense", '{"labels": 3, "theme": "pink", "panel_percent": 900, "x": 1}']
)
def test_damaged_choices_are_as_in_the_beginning(text: str, choices: Path) -> None:
    choices.parent.mkdir()
    choices.write_text(text)

    assert load_settings() in (ExplorerSettings(), replace(ExplorerSettings(), panel_percent=80))


def test_only_what_textual_makes_public_is_used() -> None:
    folder = Path(snapviewer.explorer.app.__file__).parent
    private = []
    for path in sorted(folder.parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [node.module or "", *(f".{alias.name}" for alias in node.names)]
                if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else []
            )
            if names and names[0].split(".")[0] in ("textual", "rich"):
                private += [f"{path.name}: {name}" for name in names if re.search(r"(^|\.)_", name)]

    assert private == []
