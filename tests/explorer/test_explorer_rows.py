"""Which rows are to be seen, against a slow model that walks the tree itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer.explorer.timing import ForwardStats, ModuleTiming, Spread
from snapviewer.explorer.tree import ModuleNode, TensorEntry, Tree
from snapviewer.explorer.view import folding
from snapviewer.explorer.view.browser import TreeBrowser
from snapviewer.explorer.view.outline import Outline, elements_of, outline_of
from snapviewer.explorer.view.rows import (
    MAX_GUIDE_CELLS,
    ORDERS,
    ViewState,
    can_unfold,
    filtered,
    neighbour,
    visible_rows,
)
from snapviewer.explorer.view.search import Query
from support import explorer_trees as trees


@st.composite
def small_trees(draw: st.DrawFn) -> Tree:
    def make(path: str, depth: int) -> ModuleNode:
        prefix = f"{path}." if path else ""
        sizes = draw(st.lists(st.integers(0, 9), max_size=2))
        tensors = [trees.tensor(f"{prefix}w{at}", size) for at, size in enumerate(sizes)]
        count = draw(st.integers(0, 3 if depth < 3 else 0))
        children = [make(f"{prefix}{'abA'[at]}{at}", depth + 1) for at in range(count)]
        kind = draw(st.sampled_from(["Linear", "Block", ""]))
        return trees.module(path, kind, tensors=tensors, children=children)

    return Tree("made", "", make("", 0))


@st.composite
def views(draw: st.DrawFn) -> tuple[Outline, ViewState]:
    outline = outline_of(draw(small_trees()))
    places = st.integers(0, len(outline.items) - 1)
    view = ViewState(
        unfolded=frozenset(draw(st.sets(places))),
        order=draw(st.sampled_from(ORDERS)),
        is_reversed=draw(st.booleans()),
        min_elements=draw(st.integers(0, 9)),
        has_tensors=draw(st.booleans()),
    )
    if draw(st.booleans()):
        view = filtered(outline, view, draw(st.sets(places, min_size=1)))
    return outline, view


def slow_items(tree: Tree) -> Iterator[tuple[ModuleNode | TensorEntry, ModuleNode | None]]:
    """Everything with the module that it is in, as one would read it."""

    def below(node: ModuleNode) -> Iterator[tuple[ModuleNode | TensorEntry, ModuleNode | None]]:
        for entry in node.tensors:
            yield entry, node
        for child in node.children:
            yield child, node
            yield from below(child)

    yield tree.root, None
    yield from below(tree.root)


SECONDS = {"a0": 3.0, "b1": 5.0, "a0.a0": 4.0}


def slow_rows(outline: Outline, view: ViewState) -> list[tuple[int, int]]:
    """TreeIndex with their depth: children by children, as the documentation says."""
    place_of = {id(item): place for place, item in enumerate(outline.items)}
    matches = view.filter.matches if view.filter else frozenset()

    def leads(item: ModuleNode | TensorEntry) -> bool:
        if place_of[id(item)] in matches:
            return True
        return isinstance(item, ModuleNode) and (
            any(map(leads, item.tensors)) or any(map(leads, item.children))
        )

    def children(node: ModuleNode) -> list[ModuleNode | TensorEntry]:
        found: list[ModuleNode | TensorEntry] = [*node.tensors, *node.children]
        if view.filter:
            return [child for child in found if leads(child)] or found
        if not view.has_tensors:
            found = list(node.children)
        return [child for child in found if elements_of(child) >= view.min_elements]

    def ordered(found: list[ModuleNode | TensorEntry]) -> list[ModuleNode | TensorEntry]:
        if view.order == "order":
            return found[::-1] if view.is_reversed else found
        keys = {
            "name": lambda item: item.name.lower(),
            "params": lambda item: (
                item.sums.parameters
                if isinstance(item, ModuleNode)
                else (not item.is_buffer) * item.elements,
                elements_of(item),
            ),
            "memory": lambda item: 4 * elements_of(item),
            "time": lambda item: SECONDS.get(item.path, -1.0),
        }
        falls = (view.order != "name") != view.is_reversed
        return sorted(found, key=keys[view.order], reverse=falls)

    def rows(item: ModuleNode | TensorEntry, depth: int) -> Iterator[tuple[int, int]]:
        yield place_of[id(item)], depth
        if isinstance(item, ModuleNode) and view.is_unfolded(place_of[id(item)]):
            for child in ordered(children(item)):
                yield from rows(child, depth + 1)

    return list(rows(outline.tree.root, 0))


@given(small_trees())
def test_the_outline_lists_everything_as_one_would_read_it(tree: Tree) -> None:
    outline = outline_of(tree)

    expected = list(slow_items(tree))
    assert [id(item) for item in outline.items] == [id(item) for item, _ in expected]
    for place, (item, parent) in enumerate(expected):
        found = outline.parents[place]
        assert (None if found < 0 else outline.items[found]) is parent
        below = len(list(slow_items(Tree("", "", item)))) if isinstance(item, ModuleNode) else 1
        assert outline.ends[place] == place + below


@given(views())
def test_rows_are_those_of_the_slow_model_in_any_view(case: tuple[Outline, ViewState]) -> None:
    outline, view = case

    rows = visible_rows(outline, view, SECONDS)

    expected = slow_rows(outline, view)
    assert list(rows.places) == [place for place, _ in expected]
    assert [len(guide) // 2 for guide in rows.guides] == [depth for _, depth in expected]


@given(views())
def test_guides_lead_to_the_last_sibling_and_no_further(case: tuple[Outline, ViewState]) -> None:
    rows = visible_rows(*case)

    depths = [len(guide) // 2 for guide in rows.guides]
    for row, guide in enumerate(rows.guides):
        for level in range(len(guide) // 2):
            following = next((depth for depth in depths[row + 1 :] if depth <= level + 1), 0)
            goes_on = following == level + 1
            is_own = level == len(guide) // 2 - 1
            expected = ("├─" if goes_on else "└─") if is_own else ("│ " if goes_on else "  ")
            assert guide[2 * level : 2 * level + 2] == expected


@given(views())
def test_an_arrow_is_where_unfolding_shows_more(case: tuple[Outline, ViewState]) -> None:
    outline, view = case

    for place in visible_rows(outline, view).places:
        opened = folding.revealed(outline, folding.toggled(outline, view, place), place)
        both = [len(visible_rows(outline, one).places) for one in (view, opened)]
        if isinstance(outline.items[place], ModuleNode):
            assert can_unfold(outline, view, place) == (both[0] != both[1])


@given(views(), st.data())
def test_folding_sets_exactly_the_modules_that_are_meant(
    case: tuple[Outline, ViewState], data: st.DataObject
) -> None:
    outline, view = case
    place = data.draw(st.integers(0, len(outline.items) - 1))
    module = outline.module_at(place)
    node = outline.items[module]
    assert isinstance(node, ModuleNode)
    parent = outline.parents[place]
    siblings = [at for at in range(len(outline.items)) if outline.parents[at] == parent]
    meant = {outline.module_at(at) for at in siblings}
    alike = {
        at
        for at, item in enumerate(outline.items)
        if isinstance(item, ModuleNode) and node.type_name and item.type_name == node.type_name
    } | {module}
    if module != place:
        alike = {module}
    cases = [
        (folding.toggled(outline, view, place), {module}),
        (folding.subtree_toggled(outline, view, place), _with_below(outline, {module})),
        (folding.siblings_toggled(outline, view, place), meant),
        (
            folding.siblings_toggled(outline, view, place, has_descendants=True),
            _with_below(outline, meant),
        ),
        (folding.class_toggled(outline, view, place), alike),
        (
            folding.class_toggled(outline, view, place, has_descendants=True),
            _with_below(outline, alike),
        ),
    ]

    for after, places in cases:
        for at in range(len(outline.items)):
            is_meant = at in places and outline.has_children(at)
            expected = not view.is_unfolded(module) if is_meant else view.is_unfolded(at)
            assert after.is_unfolded(at) == expected


def _with_below(outline: Outline, places: set[int]) -> set[int]:
    return {
        at
        for at in range(len(outline.items))
        if at in places or places.intersection(outline.ancestors(at))
    }


@given(views())
def test_the_whole_tree_unfolds_and_folds_to_the_children_of_the_root(
    case: tuple[Outline, ViewState],
) -> None:
    outline = case[0]
    folded = ViewState()

    unfolded = folding.all_toggled(outline, folded)

    assert len(visible_rows(outline, unfolded).places) == len(outline.items)
    assert folding.all_toggled(outline, unfolded) == folded


def test_a_first_view_unfolds_level_by_level_as_far_as_there_is_room() -> None:
    outline = outline_of(trees.resnet())

    def count(room: int) -> int:
        unfolded = folding.unfolded_to_fit(outline, room)
        return len(visible_rows(outline, ViewState(unfolded=unfolded)).places)

    assert [count(room) for room in (1, 11, 12, 31, 32, 1000)] == [8, 8, 12, 12, 32, 32]


def test_a_first_view_unfolds_to_a_depth() -> None:
    outline = outline_of(trees.resnet())

    counts = [
        len(visible_rows(outline, ViewState(folding.unfolded_to_depth(outline, depth))).places)
        for depth in range(5)
    ]

    assert counts == [1, 8, 12, 32, 32]


def test_a_chain_of_thousands_of_modules_is_not_indented_for_ever() -> None:
    node = trees.module("x" * 3000, "Deep")
    for depth in range(3000, 0, -1):
        node = trees.module("x" * depth, "Deep", children=[node])
    outline = outline_of(Tree("deep", "", node))

    rows = visible_rows(outline, folding.all_toggled(outline, ViewState()))

    assert len(rows.places) == 3001
    assert max(map(len, rows.guides)) <= MAX_GUIDE_CELLS + 2


def test_names_are_sorted_with_their_numbers_in_order() -> None:
    names = ("layer10", "layer2", "Head", "1" * 5000)
    children = [trees.module(name) for name in names]
    outline = outline_of(Tree("", "", trees.module("", children=children)))

    rows = visible_rows(outline, ViewState(order="name"))

    found = [outline.items[place].name[:7] for place in rows.places[1:]]
    assert found == ["1111111", "Head", "layer2", "layer10"]


@pytest.mark.parametrize(
    ("start", "step", "expected"), [(0, 1, 2), (2, 1, 4), (4, 1, 2), (0, -1, 4), (3, -1, 2)]
)
def test_the_next_match_is_around_the_end(start: int, step: int, expected: int) -> None:
    assert neighbour([10, 11, 12, 13, 14], {12, 14}, start, step) == expected
    assert neighbour([10, 11], {99}, 0, step) is None


def test_a_filter_shows_matches_with_what_they_are_in() -> None:
    outline = outline_of(trees.resnet())
    wanted = [at for at, item in enumerate(outline.items) if item.path == "layer2.0.bn1"]

    view = filtered(outline, ViewState(min_elements=10**9), wanted)

    def paths(one: ViewState) -> list[str]:
        return [outline.items[place].path for place in visible_rows(outline, one).places]

    assert paths(view) == ["", "layer2", "layer2.0", "layer2.0.bn1"]
    assert paths(folding.toggled(outline, view, wanted[0]))[4:] == [
        f"layer2.0.bn1.{name}"
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    ]
    assert paths(replace(view, filter=None)) == [""]


OPERATIONS: dict[str, Callable[[TreeBrowser, int], object]] = {
    "move": lambda browser, number: browser.move_to_row(browser.row + number - 5),
    "go to": lambda browser, number: browser.go_to(number % len(browser.outline.items)),
    "in": lambda browser, _: browser.go_in(),
    "out": lambda browser, _: browser.go_out(),
    "fold": lambda browser, _: browser.fold(folding.toggled),
    "fold below": lambda browser, _: browser.fold(folding.subtree_toggled),
    "fold all": lambda browser, _: browser.fold(folding.all_toggled),
    "fold alike": lambda browser, _: browser.fold(folding.class_toggled),
    "sort": lambda browser, _: browser.next_order(),
    "reverse": lambda browser, _: browser.reverse(),
    "hide": lambda browser, _: browser.hide_small(),
    "tensors": lambda browser, _: browser.toggle_tensors(),
    "search": lambda browser, number: browser.search(Query(["a", "b1", "w", "zz"][number % 4])),
    "regex": lambda browser, number: browser.search(Query(["a|b", "(", "w"][number % 3], True)),
    "clear": lambda browser, _: browser.clear(),
    "next": lambda browser, _: browser.next_match(1),
    "before": lambda browser, _: browser.next_match(-1),
}


@given(
    small_trees(),
    st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 30)), max_size=12),
)
def test_whatever_is_done_the_cursor_is_on_a_row_that_is_there(
    tree: Tree, done: list[tuple[str, int]]
) -> None:
    outline = outline_of(tree)
    browser = TreeBrowser(outline, room=6)

    for name, number in done:
        before = browser.place
        OPERATIONS[name](browser, number)

        places = browser.rows.places
        assert list(places) == list(visible_rows(outline, browser.view).places)
        assert len(set(places)) == len(places)
        assert 0 <= browser.row < len(places)
        if name == "go to":
            assert browser.place == number % len(outline.items)
        if name in ("sort", "reverse", "clear", "hide", "tensors") or "fold" in name:
            assert browser.place in (before, *outline.ancestors(before))
        if name in ("next", "before", "search") and browser.view.filter:
            matches = browser.view.filter.matches
            assert browser.place in matches or not matches


def test_times_are_of_all_calls_and_a_list_took_as_long_as_those_in_it() -> None:
    blocks = [trees.module(f"h.{number}", "Block") for number in range(2)]
    twin = replace(trees.module("twin", "Head"), shared_with="head")
    root = trees.module(
        "", "Net", children=[trees.module("head"), trees.module("h", children=blocks), twin]
    )
    seconds = {"": (5.0, 1), "head": (1.0, 1), "h.0": (0.5, 2), "h.1": (1.0, 3)}
    stats = ForwardStats(
        {path: _timing(path, median, calls) for path, (median, calls) in seconds.items()}
    )

    browser = TreeBrowser(outline_of(Tree("", "", root)), stats=stats)
    while browser.view.order != "time":
        browser.next_order()

    places = browser.rows.places
    shares = {browser.outline.items[place].path: browser.share(place) for place in places}
    assert shares == {"": 1.0, "h": 0.8, "h.1": 0.6, "h.0": 0.2, "head": 0.2, "twin": 0.2}
    assert [*shares] == ["", "h", "h.1", "h.0", "head", "twin"]


def _timing(path: str, median_s: float, calls: int) -> ModuleTiming:
    spread = Spread(calls, median_s, 0.0, median_s, median_s, calls * median_s)
    return ModuleTiming(path, "", calls, spread, spread, None, None, False, (), (), 0, None)


def test_an_optimizers_numbers_are_no_parameters() -> None:
    state = replace(trees.tensor("optimizer.step", 1000), is_buffer=True)
    parts = [trees.module("optimizer", tensors=[state]), trees.linear("model", 2, 2)]
    browser = TreeBrowser(outline_of(Tree("", "", trees.module("", children=parts))), max_depth=1)
    while browser.view.order != "params":
        browser.next_order()

    places = browser.rows.places[1:]
    assert [browser.outline.items[place].name for place in places] == ["model", "optimizer"]
    assert [browser.share(place) for place in places] == [1.0, 0.0]
