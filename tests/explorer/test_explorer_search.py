"""Searching, against slow models of what fuzzy and regex mean."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer.explorer.tree import ModuleNode, Tree
from snapviewer.explorer.view.outline import Outline, outline_of
from snapviewer.explorer.view.search import Query, SearchTexts, highlights, search, search_texts
from support import explorer_trees as trees

RESNET = outline_of(trees.resnet())
TEXTS = search_texts(RESNET)
BLOCKS = ("", "layer1.0.", "layer1.1.", "layer2.0.", "layer2.1.")


def paths(outline: Outline, found: object) -> list[str]:
    assert isinstance(found, list | tuple)
    return [outline.items[place].path for place in found]


def found_in_resnet(text: str, *, is_regex: bool = False) -> list[str]:
    return paths(RESNET, search(TEXTS, Query(text, is_regex)).matches)


def slow_matches(texts: SearchTexts, text: str) -> list[int]:
    """Words as they are, or else letter by letter; one of them ending in the own name or class."""
    words = text.lower().split()

    def ends(place: int, word: str) -> set[int]:
        whole = texts.lowered[place]
        return {at + len(word) for at in range(len(whole)) if whole.startswith(word, at)}

    def loose_ends(place: int, word: str) -> set[int]:
        reached = {0}
        for letter in word:
            reached = {
                at + 1
                for low in reached
                for at, other in enumerate(texts.lowered[place])
                if at >= low and other == letter
            }
        return reached

    for find in (ends, loose_ends):
        having = [
            place for place in range(len(texts.lowered)) if all(find(place, word) for word in words)
        ]
        if having:
            break
    return [
        place
        for place in having
        if any(end > texts.starts[place] for word in words for end in find(place, word))
    ]


names = st.text("ab1.", min_size=1, max_size=3).filter(lambda name: "." not in name)


@st.composite
def named_trees(draw: st.DrawFn) -> Tree:
    def make(path: str, depth: int) -> ModuleNode:
        count = draw(st.integers(0, 3 if depth < 3 else 0))
        found = draw(st.lists(names, min_size=count, max_size=count, unique=True))
        prefix = f"{path}." if path else ""
        children = [make(f"{prefix}{name}", depth + 1) for name in found]
        return trees.module(path, draw(st.sampled_from(["AB", "Ba", ""])), children=children)

    return Tree("", "", make("", 0))


@given(named_trees(), st.text("aB1. ", max_size=5))
def test_words_find_what_the_slow_model_finds(tree: Tree, text: str) -> None:
    texts = search_texts(outline_of(tree))

    found = search(texts, Query(text))

    assert list(found.matches) == (slow_matches(texts, text) if text.strip() else [])


@given(named_trees(), st.text("aB1. ", max_size=6))
def test_a_query_that_grows_finds_the_same_as_if_it_were_new(tree: Tree, text: str) -> None:
    texts = search_texts(outline_of(tree))
    found = None

    for end in range(len(text) + 1):
        found = search(texts, Query(text[:end]), found)

        assert found.matches == search(texts, Query(text[:end])).matches


@pytest.mark.promise("X22")
@given(named_trees(), st.sampled_from(["a", "^a", r"a.*1$", "b|1", r"\.", "AB", "(?:a.)+", "a*"]))
def test_a_regex_finds_what_ends_in_the_own_name_or_is_in_the_class(tree: Tree, text: str) -> None:
    outline = outline_of(tree)
    texts = search_texts(outline)
    flags = 0 if text == "AB" else re.IGNORECASE

    found = search(texts, Query(text, is_regex=True))

    assert list(found.matches) == [
        place
        for place in range(len(texts.paths))
        if any(
            one.end() > texts.starts[place] for one in re.finditer(text, texts.paths[place], flags)
        )
        or (texts.types[place] and re.search(text, texts.types[place], flags))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("layer1", ["layer1"]),
        ("layer1.", ["layer1.0", "layer1.1"]),
        ("LAYER1.1.conv", ["layer1.1.conv1", "layer1.1.conv2"]),
        ("conv1.w", [f"{path}conv1.weight" for path in BLOCKS]),
        ("maxpool2d", ["maxpool"]),
        ("layer2 linear", []),
        ("fc linear", ["fc"]),
        ("l20b1mean", ["layer2.0.bn1.running_mean"]),
    ],
)
def test_words_mean_what_one_expects(text: str, expected: list[str]) -> None:
    assert found_in_resnet(text) == expected


def test_a_regex_with_capitals_minds_case() -> None:
    assert found_in_resnet("RELU", is_regex=True) == []
    assert len(found_in_resnet("ReLU", is_regex=True)) == 5
    assert found_in_resnet(r"^.*\Sool$", is_regex=True) == ["maxpool"]


@pytest.mark.parametrize("text", ["(", "[a", "*", "a{9999999999999}", "(?P<n>a)(?P<n>b)"])
def test_what_is_no_regex_is_reported_in_words(text: str) -> None:
    found = search(TEXTS, Query(text, is_regex=True))

    assert found.error.startswith("not a regex: ")
    assert not found.matches


def test_highlights_are_the_letters_that_match() -> None:
    item = next(item for item in RESNET.items if item.path == "layer2.0.bn1")

    assert highlights(Query("bn1"), item) == ([(0, 3)], [])
    assert highlights(Query("batchNORM"), item) == ([], [(0, 9)])
    assert highlights(Query("layer2"), item) == ([], [])
    assert highlights(Query(r"n\d|2d", is_regex=True), item) == ([(1, 3)], [(9, 11)])
    assert highlights(Query("(", is_regex=True), item) == ([], [])


@given(named_trees(), st.text("aB1. ", min_size=1, max_size=4), st.booleans())
def test_highlights_are_within_the_name_and_the_class(
    tree: Tree, text: str, is_regex: bool
) -> None:
    for item in outline_of(tree).items:
        assert isinstance(item, ModuleNode)
        in_name, in_type = highlights(Query(text, is_regex), item)
        assert all(0 <= low < high <= len(item.name) for low, high in in_name)
        assert all(0 <= low < high <= len(item.type_name) for low, high in in_type)


def test_letters_whose_small_ones_are_longer_keep_their_places() -> None:
    item = trees.module("İx", "İİ")
    texts = search_texts(outline_of(Tree("", "", trees.module("", children=[item]))))

    assert list(search(texts, Query("X")).matches) == [1]
    assert highlights(Query("x"), item) == ([(1, 2)], [])


def test_a_name_that_a_terminal_would_obey_is_searched_as_it_is_shown() -> None:
    item = trees.module("a\x1b[31mb\n", "T")
    outline = outline_of(Tree("", "", trees.module("", children=[item])))

    assert list(search(search_texts(outline), Query("a?[31mb")).matches) == [1]
