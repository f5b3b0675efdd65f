"""The entries of a log, one by one: JSON as it comes, without holding all of it.

A log is a list, an object with a list under `events`, or values one after another, each on a line
of its own or over several. Only the last kind may be torn: a run that was killed leaves half a
line, and a recorder that goes on after it leaves that half in the middle.

# Invariants

What is yielded does not depend on where the pieces of text were cut, and is what `json` makes of
the same text.

# Cost

Linear in the text; memory of one entry, which is at most 1 MiB of text, and one piece.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from snapviewer.events.errors import LogError
from snapviewer.text.sanitize import sanitize

MOST_CHARACTERS = 2**20  # of an entry; events have some hundred
MOST_TORN = 1000  # lines
MOST_READ_TWICE = 2**23  # characters; a torn line is noticed in the next one, so this is far off
MAX_SHOWN_CHARS = 60  # characters of what is odd
_MOST_DIGITS = 400  # more than any float has before its point

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"[-+.0-9eE]*")
# The longest word that may be cut by the end of the text so far is `-Infinity`.
_LONGEST_WORD = 16


@dataclass(frozen=True, slots=True)
class Torn:
    """A line that was not written to its end."""

    shown: str


class _NotJsonError(LogError):
    """Something that is no JSON stands at the place where the text is."""


def entries_of(path: str, chunks: Iterator[str]) -> Iterator[object]:
    """Yield the raw values of a log in order, and a `Torn` for each line that is not whole.

    Args:
        path: The file, for the sentence of an error.
        chunks: Its text, cut anywhere.

    Raises:
        LogError: It is no log, or an entry is larger or deeper than any event.

    >>> list(entries_of("log", iter(['[{"event"', ': "init"}, 1', "2]"])))
    [{'event': 'init'}, 12]
    """
    text = _Text(path, chunks)
    try:
        yield from _entries(text)
    except MemoryError as error:
        raise LogError(path, "内存不足", "there is not enough memory for this") from error


def _entries(text: _Text) -> Iterator[object]:
    first = text.peek()
    is_list = False
    if first == "[":
        yield from _list(text)
        is_list = True
    elif first == "{":
        is_list = yield from _first_object(text)
    elif first:
        yield text.value()
    if is_list:
        if text.peek():
            raise text.not_json("列表结束后还有其他内容", "there is more text after its list")
        return
    torn = 0
    while text.peek():
        try:
            entry = text.value()
        except _NotJsonError as error:
            entry = Torn(text.skip_torn_line())
            torn += 1
            if torn > MOST_TORN or text.read_twice > MOST_READ_TWICE:
                zh, en = "不完整的行过多", "too many of its lines are torn"
                raise LogError(text.path, zh, en) from error
        yield entry


def _list(text: _Text) -> Iterator[object]:
    text.take("[")
    if text.peek() == "]":
        text.take("]")
        return
    while True:
        yield text.value()
        if text.take(",]") == "]":
            return


def _first_object(text: _Text) -> Generator[object, None, bool]:
    """Yield the object, or if it has a list of events, these; returns whether it has.

    It is read field by field: the list may be longer than what we would hold.
    """
    fields: dict[str, object] = {}
    has_events = False
    start, listed = text.offset, 0
    text.take("{")
    end = text.take("}") if text.peek() == "}" else ""
    while end != "}":
        if text.peek() != '"':
            raise text.not_json()
        key = str(text.value())
        text.take(":")
        if key == "events" and text.peek() == "[" and "event" not in fields:
            has_events = True
            before = text.offset
            yield from _list(text)
            listed += text.offset - before
        else:
            fields[key] = text.value()
        end = text.take(",}")
        if text.offset - start - listed > MOST_CHARACTERS:
            raise text.too_large()
    if not has_events:
        yield fields
    return has_events


def _whole_number(digits: str) -> int | float:
    """Read digits; so many that reading them takes long, or raises, are as good as infinity."""
    if len(digits) <= _MOST_DIGITS:
        return int(digits)
    return -math.inf if digits.startswith("-") else math.inf


_decode: Callable[[str, int], tuple[object, int]]
_decode = json.JSONDecoder(parse_int=_whole_number).raw_decode


class _Text:
    """The text of a log from a place on, as far as it was needed yet."""

    def __init__(self, path: str, chunks: Iterator[str]) -> None:
        self.path = path
        self._chunks = chunks
        self._held = ""
        self._place = 0  # in what is held
        self._dropped = 0  # characters before what is held
        self._dropped_lines = 0
        self._is_whole = False  # nothing comes after what is held
        self._looked = 0  # where something was no JSON
        self.read_twice = 0  # characters after torn lines, up to where they were noticed

    @property
    def offset(self) -> int:
        """Characters before the place."""
        return self._dropped + self._place

    def peek(self) -> str:
        """Go to the next character that is no space and return it, or nothing at the end."""
        found = self._held[self._place : self._place + 1]
        while not found or found in " \t\n\r":
            self._place = _end_of(_SPACE, self._held, self._place)
            if self._place == len(self._held) and not self._more():
                return ""
            found = self._held[self._place]
        return found

    def take(self, wanted: str) -> str:
        """Step over one of the wanted characters, after spaces."""
        found = self.peek()
        if not found:
            raise self._too_short()
        if found not in wanted:
            raise self.not_json()
        self._place += 1
        return found

    def value(self) -> object:
        """Step over a JSON value, after spaces, and return it."""
        first = self.peek()
        while True:
            # A number that ends where the text so far ends may go on.
            if first not in "-0123456789" or self._is_whole or self._number_ends():
                try:
                    value, end = _decode(self._held, self._place)
                except RecursionError as error:
                    zh, en = "嵌套层数过多", "an entry is nested deeper than any event"
                    raise LogError(self.path, zh, en) from error
                except json.JSONDecodeError as error:
                    if self._is_whole or not self._may_be_cut(error, _LONGEST_WORD):
                        self._looked = self._dropped + error.pos
                        is_short = self._may_be_cut(error, 0)
                        raise (self._too_short() if is_short else self.not_json()) from None
                else:
                    if end - self._place > MOST_CHARACTERS:
                        raise self.too_large()
                    self._place = end
                    return value
            if len(self._held) - self._place > MOST_CHARACTERS:
                raise self.too_large()
            self._more()

    def skip_torn_line(self) -> str:
        """Go on at the next line that begins an object; returns the beginning of what is left out.

        That an object begins its line keeps the inner lines of a torn one from being entries.
        """
        shown = self._held[self._place : self._place + 4 * MAX_SHOWN_CHARS].partition("\n")[0]
        while (found := self._held.find("\n{", self._place)) < 0:
            # The last character may be the end of a line.
            self._place = max(self._place, len(self._held) - 1)
            if not self._more():
                self._place = len(self._held)
                return sanitize(shown, MAX_SHOWN_CHARS)
        self._place = found + 1
        self.read_twice += max(0, self._looked - self.offset)
        return sanitize(shown, MAX_SHOWN_CHARS)

    def not_json(self, zh: str = "不是有效的 JSON", en: str = "it is not JSON") -> LogError:
        """Tell that something else than JSON stands here."""
        line = 1 + self._dropped_lines + self._held.count("\n", 0, self._place)
        return _NotJsonError(self.path, f"{zh}(第 {line:,} 行)", f"{en} (line {line:,})")

    def too_large(self) -> LogError:
        """Tell that what stands here is larger than it should be."""
        return LogError(self.path, "其中一个条目过大", "an entry is larger than any event")

    def _too_short(self) -> LogError:
        return _NotJsonError(self.path, "内容不完整", "it ends before its JSON does")

    def _number_ends(self) -> bool:
        return _end_of(_NUMBER, self._held, self._place) < len(self._held)

    def _may_be_cut(self, error: json.JSONDecodeError, word: int) -> bool:
        """Say whether what is no JSON may be some with more text, if a word may be cut, too."""
        is_string = error.msg.startswith("Unterminated string")
        return is_string or error.pos + word >= len(self._held)

    def _more(self) -> bool:
        """Hold more; at least twice as much, so that reading again costs no more than reading."""
        rest = self._held[self._place :]
        parts, size = [rest], len(rest)
        while size <= 2 * len(rest) and not self._is_whole:
            chunk = next(self._chunks, None)
            if chunk is None:
                self._is_whole = True
            else:
                parts.append(chunk)
                size += len(chunk)
        self._dropped += self._place
        self._dropped_lines += self._held.count("\n", 0, self._place)
        self._held = "".join(parts)
        self._place = 0
        return size > len(rest)


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start
