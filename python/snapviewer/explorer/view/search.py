"""Finds modules and tensors by their paths and classes, as fast as one types.

Fuzzy: all words must occur in the path or the class; words that occur nowhere are matched letter by
letter (`l1cv` finds `layer1.0.conv1`). Regex: the syntax of filters, without look-around and
back-references. Only a regex with capitals is case-sensitive.

A match must end in the item's own name or class: `layer1` finds the module of that name and not its
descendants; `layer1.` finds its children.

# Cost

A word is one scan of the texts in C, about 5 ms for 60,000. A query that extends the previous one
searches only its candidates. Letter by letter and regex take 20–40 ms for as many; no regex takes
more than linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from snapviewer._core import Pattern
from snapviewer.explorer.explored_model import Item
from snapviewer.explorer.tree import ModuleNode
from snapviewer.explorer.view.outline import Outline, display_name

MAX_QUERY_CHARS = 1000
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Query:
    """A search as it was typed."""

    text: str = ""
    is_regex: bool = False


@dataclass(frozen=True, slots=True)
class SearchTexts:
    """The searched texts by place: paths as shown, and paths with classes in lower case.

    `starts` is where the item's own name begins in the path, with the dot before it; `tails` is the
    rest of `lowered` from there.
    """

    paths: Sequence[str]
    lowered: Sequence[str]
    starts: Sequence[int]
    tails: Sequence[str]
    types: Sequence[str]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The matches of a query, in order; `error` if the query is invalid.

    `candidates` contain the words anywhere: a longer query needs to search these only.
    """

    query: Query
    matches: Sequence[int]
    candidates: Sequence[int] = ()
    is_loose: bool = False
    error: str = ""


def search_texts(outline: Outline) -> SearchTexts:
    """Prepare a tree for searching."""
    paths, lowered, starts, tails, types = [], [], [], [], []
    for item in outline.items:
        path = display_name(item.path)
        type_name = display_name(item.type_name) if isinstance(item, ModuleNode) else ""
        paths.append(path)
        lowered.append(_lower(f"{path} {type_name}"))
        starts.append(max(0, len(path) - len(display_name(item.name)) - 1))
        tails.append(lowered[-1][starts[-1] :])
        types.append(type_name)
    return SearchTexts(paths, lowered, starts, tails, types)


def search(texts: SearchTexts, query: Query, before: SearchResult | None = None) -> SearchResult:
    """Search for a query.

    Args:
        texts: The texts to search.
        query: The query; an empty one matches nothing.
        before: The result of an earlier query, to narrow down.
    """
    if not query.text.strip():
        return SearchResult(query, ())
    if query.is_regex:
        return _by_regex(texts, query)
    return _by_words(texts, query, before)


def highlights(query: Query, item: Item) -> tuple[list[Span], list[Span]]:
    """Return the spans of an item's name and of its class that a query matches."""
    path, name = display_name(item.path), display_name(item.name)
    type_name = display_name(item.type_name) if isinstance(item, ModuleNode) else ""
    start = len(path) - len(name)
    spans_in_path: list[Span] = []
    spans_in_type: list[Span] = []
    if query.is_regex:
        pattern = _compiled(query.text)
        if isinstance(pattern, Pattern):
            spans_in_path, spans_in_type = pattern.spans(path), pattern.spans(type_name)
    else:
        text = _lower(f"{path} {type_name}")
        for word in _lower(query.text).split():
            for span in _word_spans(word, text, start):
                spans_in_path.append(span)
                spans_in_type.append((span[0] - len(path) - 1, span[1] - len(path) - 1))
    in_name = [(low - start, high - start) for low, high in spans_in_path]
    return _within(in_name, len(name)), _within(spans_in_type, len(type_name))


def _by_words(texts: SearchTexts, query: Query, before: SearchResult | None) -> SearchResult:
    words = _lower(query.text).split()
    looked_at: Sequence[int] = range(len(texts.lowered))
    is_loose = False
    if before is not None and _goes_on(query, before.query):
        # A word that occurs nowhere occurs nowhere with more letters, either.
        looked_at, is_loose = before.candidates, before.is_loose
    if not is_loose:
        lowered, candidates = texts.lowered, looked_at
        for word in words:
            candidates = [at for at in candidates if word in lowered[at]]
        if candidates:
            return SearchResult(query, _ending(texts, candidates, words), candidates)
        looked_at = range(len(lowered))
    return _by_letters(texts, query, words, looked_at)


def _goes_on(query: Query, before: Query) -> bool:
    """Return whether a query can only match candidates of the one before."""
    return (
        not query.is_regex
        and not before.is_regex
        and bool(before.text.strip())
        and query.text.startswith(before.text)
    )


def _ending(texts: SearchTexts, candidates: Sequence[int], words: Sequence[str]) -> Sequence[int]:
    """Keep the candidates in whose own name or class one of the words ends."""
    lowered, starts, tails = texts.lowered, texts.starts, texts.tails
    if len(words) == 1 and "." not in words[0]:
        # The usual case, five times as fast: without a dot, a word cannot begin before the name.
        word = words[0]
        return [at for at in candidates if word in tails[at]]
    return [
        at
        for at in candidates
        if any(lowered[at].find(word, max(0, starts[at] - len(word) + 1)) >= 0 for word in words)
    ]


def _by_letters(
    texts: SearchTexts, query: Query, words: Sequence[str], looked_at: Sequence[int]
) -> SearchResult:
    lowered, starts, candidates = texts.lowered, texts.starts, looked_at
    for word in words:
        search_all = _letters(word).search
        candidates = [at for at in candidates if search_all(lowered[at])]
    patterns = [(_letters(word[:-1]), word[-1]) for word in words]
    matches = []
    for at in candidates:
        text, start = lowered[at], starts[at]
        for pattern, last in patterns:
            found = pattern.search(text)
            if found is not None and text.find(last, max(found.end(), start)) >= 0:
                matches.append(at)
                break
    return SearchResult(query, matches, candidates, is_loose=True)


def _letters(word: str) -> re.Pattern[str]:
    # A class that excludes the next letter leaves nothing to try twice: linear on any text.
    parts = [re.escape(word[:1]), *(f"[^{re.escape(c)}]*{re.escape(c)}" for c in word[1:])]
    return re.compile("".join(parts), re.DOTALL)


def _by_regex(texts: SearchTexts, query: Query) -> SearchResult:
    pattern = _compiled(query.text)
    if isinstance(pattern, str):
        return SearchResult(query, (), error=pattern)
    by_type = {name: pattern.is_match(name) for name in set(texts.types) if name}
    rows = zip(texts.paths, texts.starts, texts.types, strict=True)
    matches = [
        at
        for at, (path, start, type_name) in enumerate(rows)
        if by_type.get(type_name) or pattern.ends_behind(path, start)
    ]
    return SearchResult(query, matches)


def _compiled(text: str) -> Pattern | str:
    """Return a pattern, or an error message."""
    try:
        return Pattern(text)
    except ValueError as error:
        return f"not a regex: {error}"


def _word_spans(word: str, text: str, start: int) -> list[Span]:
    spans = [(found.start(), found.end()) for found in re.finditer(re.escape(word), text)]
    if spans:
        return spans
    # Letter by letter, from the end, so that the highlighted letters are in the own name.
    spans, end = [], len(text)
    for letter in reversed(word):
        end = text.rfind(letter, 0, end)
        if end < 0:
            return []
        spans.append((end, end + 1))
    return spans


def _within(spans: Sequence[Span], length: int) -> list[Span]:
    cut = ((max(0, low), min(high, length)) for low, high in spans)
    return sorted((low, high) for low, high in cut if low < high)


def _lower(text: str) -> str:
    """Return a text in lower case, letter for letter, so that positions stay the same."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(letter.lower()[0] for letter in text)
