"""The call tree, steps, leaks, groups and the first answer in a real window."""

from __future__ import annotations

import numpy as np
import pytest

from snapviewer import Tree
from snapviewer.gui.dock.leaks_tab import LeaksTab
from snapviewer.gui.dock.steps_tab import StepsTab
from snapviewer.gui.dock.tree_tab import TreeTab
from snapviewer.gui.dock.tree_view import TreeView
from snapviewer.text.units import format_bytes
from support.display import click, key, move, screenshot, wheel, write
from support.driver import Driver, select_one

pytestmark = pytest.mark.gui


def _tab(driver: Driver) -> TreeTab:
    """The call tree, once it is there."""
    key("F3")
    tab = driver.window.dock.view("tree")
    assert isinstance(tab, TreeTab)
    driver.until(lambda: tab.view.icicle is not None and tab.view.winfo_ismapped())
    driver.done()
    return tab


def _corner(view: TreeView) -> tuple[int, int]:
    return view.surface.widget.winfo_rootx(), view.surface.widget.winfo_rooty()


def _middle(view: TreeView, node: int) -> tuple[int, int]:
    """A place on the screen in the middle of a node's box."""
    assert view.icicle is not None
    height = view.surface.widget.winfo_height()
    x, y, width = next(
        (x, y, width) for which, x, y, width in view.icicle.boxes(height=height) if which == node
    )
    left, top = _corner(view)
    return left + x + width // 2, top + y + view.row // 2


def _wide_nodes(view: TreeView) -> list[int]:
    """Nodes below the root with wide boxes."""
    assert view.icicle is not None
    height = view.surface.widget.winfo_height()
    boxes = view.icicle.boxes(least=60, height=height - view.row)
    return [node for node, *_ in boxes if node]


def test_a_key_shows_the_call_tree_and_hides_it(driver: Driver) -> None:
    tab = _tab(driver)

    total = format_bytes(int(driver.device.peak_bytes))
    assert tab.about.cget("text").startswith(total)
    key("F3")
    driver.until(lambda: not tab.winfo_ismapped())


def test_the_screen_has_the_icicle_that_the_core_draws(driver: Driver) -> None:
    view = _tab(driver).view
    driver.away()
    driver.settle()

    assert view.image is not None
    (left, top), widget = _corner(view), view.surface.widget
    picture = np.asarray(screenshot())
    shown = picture[top : top + widget.winfo_height(), left : left + widget.winfo_width()]
    assert (shown == view.image.rgb).all()


def test_a_click_on_a_node_highlights_its_allocations_in_the_plot(driver: Driver) -> None:
    view, state = _tab(driver).view, driver.state
    node = _wide_nodes(view)[0]
    tree = state.call_tree.tree()
    assert tree is not None

    click(*_middle(view, node))

    driver.until(lambda: state.marked is not None)
    assert state.marked is not None
    assert (state.marked == tree.mask(node)).all()
    assert state.selection == tree.node(node).largest
    dimmed = state.dimmed()
    assert dimmed is not None
    assert (dimmed == state.marked).all()
    assert state.call_tree.selected == node
    key("Escape")
    driver.until(lambda: state.marked is None)
    assert state.call_tree.selected is None


def test_a_selection_in_the_plot_is_selected_in_the_tree(driver: Driver) -> None:
    view, state = _tab(driver).view, driver.state
    node = _wide_nodes(view)[0]
    click(*_middle(view, node))
    driver.until(lambda: state.marked is not None)

    key("Escape")
    driver.done()
    select_one(driver)
    driver.until(lambda: state.selection is not None)
    driver.done()

    tree = state.call_tree.tree()
    assert tree is not None
    assert state.marked is None
    assert state.selection is not None
    assert state.call_tree.selected == tree.node_of(state.selection)


def test_a_double_click_gives_a_node_the_whole_width(driver: Driver) -> None:
    view, state = _tab(driver).view, driver.state
    node = _wide_nodes(view)[-1]
    place = _middle(view, node)

    click(*place)
    click(*place)

    driver.until(lambda: state.call_tree.focus == node)
    assert view.icicle is not None
    boxes = view.icicle.boxes(height=10_000)
    whole = view.surface.widget.winfo_width()
    assert next(width for which, _, _, width in boxes if which == node) == whole
    key("b")
    driver.until(lambda: state.call_tree.focus != node)


def test_hovering_describes_a_node(driver: Driver) -> None:
    view = _tab(driver).view
    node = _wide_nodes(view)[0]

    move(*_middle(view, node))

    driver.until(lambda: view._tip.text)
    tree = driver.state.call_tree.tree()
    assert tree is not None
    assert format_bytes(tree.node(node).weight) in view._tip.text


def test_searching_dims_what_is_not_found(driver: Driver) -> None:
    tab = _tab(driver)
    assert tab.view.image is not None
    before = tab.view.image.rgb.copy()
    click(tab.search.winfo_rootx() + 8, tab.search.winfo_rooty() + 8)

    write("forward")
    driver.done()

    assert "node" in tab.about.cget("text")
    assert (tab.view.image.rgb != before).any()
    tab.search.delete(0, "end")
    driver.state.call_tree.search("")


def test_the_tree_follows_the_cursor_and_the_way_of_looking(driver: Driver) -> None:
    view, state = _tab(driver).view, driver.state
    totals = []
    for event in (10, 100, int(driver.device.events) - 1):
        state.set_cursor(event)
        driver.done()
        tree = state.call_tree.tree()
        assert tree is not None
        totals.append((tree.event, tree.total))
        assert tree.total == int(driver.device.totals[event])
    assert len(set(totals)) == 3

    key("j")
    driver.until(lambda: state.call_tree.frames == "own")
    driver.done()
    key("J")
    driver.until(lambda: state.call_tree.is_callers)
    driver.done()
    assert view.icicle is not None
    state.call_tree.set_way(measure="time", frames="folded", is_callers=False)
    driver.done()
    assert "·s" in state.call_tree.about()
    state.call_tree.set_way(measure="alive")
    driver.done()


def test_the_heaviest_nodes_are_a_table_too(driver: Driver) -> None:
    tab, state = _tab(driver), driver.state

    key("q")
    driver.until(tab.table.winfo_ismapped)
    driver.done()

    tree = state.call_tree.tree()
    assert tree is not None
    assert tab.table.nodes[0].weight == tree.total
    weights = [node.weight for node in tab.table.nodes]
    assert len(weights) == min(len(set(_all_nodes(tree))), 300)
    state.call_tree.select(tab.table.nodes[1].index)
    driver.done()
    assert list(tab.table.marked) == [1]
    key("q")
    driver.until(lambda: not tab.table.winfo_ismapped())


def _all_nodes(tree: Tree) -> list[int]:
    found, waiting = [], [0]
    while waiting:
        found.append(waiting.pop())
        waiting += tree.node(found[-1]).children
    return found


def test_a_dock_that_is_low_can_be_scrolled(driver: Driver) -> None:
    view = _tab(driver).view
    driver.state.call_tree.set_way(frames="all")
    driver.until(lambda: view.icicle is not None and view.icicle.height > 300)
    driver.done()
    left, top = _corner(view)

    wheel(left + 50, top + 50, -3)

    driver.until(lambda: view.top > 0)
    driver.state.call_tree.set_way(frames="folded")
    driver.done()


def test_steps_are_listed_and_a_key_goes_to_the_next(driver: Driver) -> None:
    key("F11")
    tab = driver.window.dock.view("steps")
    assert isinstance(tab, StepsTab)
    driver.until(lambda: driver.state.answers.found is not None)
    driver.done()
    steps = driver.device.steps.steps

    assert len(steps) >= 2
    assert tab.table.count == len(steps)
    driver.state.set_cursor(steps[0].start)
    driver.plot.widget.focus_set()
    key("e")
    driver.until(lambda: driver.state.cursor == steps[1].peak_event)
    first, last = driver.state.visible_events()
    assert first <= steps[1].start
    assert last >= steps[1].end
    assert driver.state.answers.step_at_cursor() == 1
    key("F11")


def test_leaks_are_listed_or_their_absence_is_told(driver: Driver) -> None:
    key("F12")
    tab = driver.window.dock.view("leaks")
    assert isinstance(tab, LeaksTab)
    driver.until(lambda: driver.state.answers.found is not None)
    driver.done()
    leaks = driver.device.leaks.leaks

    if not leaks:
        assert tab.empty.winfo_ismapped()
        assert "grow" in tab.empty.cget("text").lower()
        return
    driver.state.answers.show_leak(0)
    assert driver.state.marked is not None
    assert set(np.flatnonzero(driver.state.marked)) == set(leaks[0].allocations.tolist())


def test_each_part_of_the_first_answer_is_a_link(driver: Driver) -> None:
    line, state = driver.window.first_line, driver.state
    driver.until(lambda: line.parts)
    texts = [part.text for part in line.parts]
    peak = next(place for place, part in enumerate(line.parts) if part.link == "peak")

    assert format_bytes(int(driver.device.peak_bytes)) in texts[peak]
    state.set_cursor(0)
    label = line.labels[2 * peak]  # separators are labels, too
    click(label.winfo_rootx() + 5, label.winfo_rooty() + 5)
    driver.until(lambda: state.cursor == driver.device.peak_event)
    state.answers.follow("reserved")
    assert state.is_docked("map")
    state.answers.follow("growth")
    assert state.is_docked("leaks")


def test_live_allocations_are_grouped_by_what_is_chosen(driver: Driver) -> None:
    state, pane = driver.state, driver.window.side.at_cursor
    driver.done()

    for by in ("category", "stream", "size", "step", "line"):
        state.group_by(by)
        driver.done()
        assert state.alive is not None
        expected = driver.device.alive(state.alive.event, by, top=200)
        groups = [one.size_bytes for one in state.alive.groups]
        assert sum(groups) + (state.alive.rest.size_bytes if state.alive.rest else 0) == (
            expected.total_bytes
        )
        assert state.settings.group_by == by
    assert pane.by.get() == "line of code"
