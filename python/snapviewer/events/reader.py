"""The JSON entries of a log, one by one, whatever the size of the file.

A log is a list, an object with a list under `events`, or JSON values one after another (JSON
Lines). Only the last form may have torn lines: a killed run leaves half a line, and a recorder that
appends to the file leaves that half in the middle.

Entries do not depend on where the text is cut into chunks. The cost is linear in the text; memory
is that of one entry (at most 1 MiB of text) and one chunk.
"""

from __future__ import annotations

import codecs
import errno
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from snapviewer.text.sanitize import replace_unprintable, sanitize

Progress: TypeAlias = Callable[[int, int], object]

MAX_ENTRY_CHARS = 2**20  # an event has a few hundred
MAX_TORN_LINES = 1000
MAX_TORN_CHARS = 2**23  # what is read of torn lines until they are noticed, and then read again
MAX_SHOWN_CHARS = 60
_CHUNK_BYTES = 2**18
_MAX_DIGITS = 400  # more than any float has before its point
_SPACE = re.compile(r"[ \t\n\r]*")


class LogError(Exception):
    """A log that cannot be read.

    Args:
        path: The file, as it was asked for.
        zh: Why, in Chinese.
        en: Why, in English.

    >>> str(LogError("log.json", "文件不存在", "no such file"))
    '无法读取或解析文件 log.json: 文件不存在'
    """

    def __init__(self, path: str, zh: str, en: str) -> None:
        super().__init__(path, zh, en)
        self.path = path
        self._reasons = {"zh": zh, "en": en}

    def sentence(self, language: Literal["zh", "en"]) -> str:
        """Return what went wrong in one line, with the whole path."""
        if language == "en" and self._reasons["en"] == os.strerror(errno.ENOENT):
            return replace_unprintable(f"no such file: {self.path}", keep_undecoded=True)
        failed = "无法读取或解析文件" if language == "zh" else "cannot read or parse the file"
        sentence = f"{failed} {self.path}: {self._reasons[language]}"
        return replace_unprintable(sentence, keep_undecoded=True)

    def __str__(self) -> str:
        return self.sentence("zh")


class _NotJsonError(LogError):
    """Text that is not JSON; `seen_chars` is how much of it was read until that was noticed."""

    seen_chars = 0


@dataclass(frozen=True, slots=True)
class Torn:
    """A line that was not written to its end."""

    shown: str


def read_entries(
    path: str | os.PathLike[str], *, progress: Progress | None = None
) -> Iterator[object]:
    """Yield the JSON values of a log in order, and a `Torn` for each line that is incomplete.

    Args:
        path: A regular file; reading anything else might never end.
        progress: Called now and then with the bytes read so far and the size of the file.

    Raises:
        LogError: It cannot be read, is not a log, or has an entry larger or deeper than any event.
    """
    name = os.fsdecode(path)
    return parse_entries(name, _chunks(name, progress))


def _chunks(path: str, progress: Progress | None) -> Iterator[str]:
    """Yield the text of a file of UTF-8, or of UTF-16 with a byte order mark.

    Bytes that are not text become U+FFFD: a name that was cut within a character, or is in another
    encoding, is no reason to lose the figures beside it.
    """
    descriptor = -1
    try:
        found = os.stat(path)
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            raise LogError(path, "这不是普通文件", "it is not a regular file")
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        done, decoder = 0, None
        while data := os.read(descriptor, _CHUNK_BYTES):
            if decoder is None:
                is_utf16 = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
                decode = codecs.getincrementaldecoder("utf-16" if is_utf16 else "utf-8-sig")
                decoder = decode(errors="replace")
            yield decoder.decode(data)
            done += len(data)
            if progress is not None:
                progress(done, max(found.st_size, done))  # the file may grow meanwhile
        yield decoder.decode(b"", final=True) if decoder else ""
    except OSError as error:
        reason = error.strerror or type(error).__name__
        known = _REASONS_ZH.get(error.errno or 0)
        raise LogError(path, f"{known} ({reason})" if known else reason, reason) from error
    except ValueError as error:  # a NUL, or characters that no file name can have
        raise LogError(path, "这不是文件名", "this is not a file name") from error
    finally:
        if descriptor >= 0:
            os.close(descriptor)


_REASONS_ZH = {
    errno.ENOENT: "文件不存在",
    errno.EACCES: "没有读取权限",
    errno.EISDIR: "这是一个目录",
}


def parse_entries(path: str, chunks: Iterator[str]) -> Iterator[object]:
    """Yield the entries of a text, as `read_entries` does.

    Args:
        path: The file, for error messages.
        chunks: Its text, cut anywhere.

    >>> list(parse_entries("log", iter(['[{"event"', ': "init"}, 1', "2]"])))
    [{'event': 'init'}, 12]
    """
    text = _Text(path, chunks)
    first = text.peek()
    if not first:
        return
    entry = None if first == "[" else text.value()
    events = entry.get("events") if isinstance(entry, dict) and "event" not in entry else None
    if first == "[" or isinstance(events, list):
        yield from events if isinstance(events, list) else _list(text)
        if text.peek():
            raise text.not_json("列表结束后还有其他内容", "there is more text after its list")
        return
    yield entry
    torn_lines = torn_chars = 0
    while text.peek():
        try:
            entry = text.value()
        except _NotJsonError as error:
            entry = Torn(text.skip_torn_line())
            torn_lines += 1
            torn_chars += error.seen_chars
            if torn_lines > MAX_TORN_LINES or torn_chars > MAX_TORN_CHARS:
                raise LogError(path, "不完整的行过多", "too many of its lines are torn") from error
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


def _parse_int(digits: str) -> int | float:
    """Parse an integer; one of very many digits, which takes long or raises, is infinite."""
    if len(digits) <= _MAX_DIGITS:
        return int(digits)
    return -math.inf if digits.startswith("-") else math.inf


_decode: Callable[[str, int], tuple[object, int]]
_decode = json.JSONDecoder(parse_int=_parse_int).raw_decode


class _Text:
    """A text that is read as far as needed, and a position in it."""

    def __init__(self, path: str, chunks: Iterator[str]) -> None:
        self._path = path
        self._chunks = chunks
        self._held = ""
        self._at = 0  # in what is held
        self._lines = 1  # up to what is held

    def peek(self) -> str:
        """Move to the next character that is not a space and return it, or "" at the end."""
        while not (found := self._held[self._at : self._at + 1]) or found in " \t\n\r":
            space = _SPACE.match(self._held, self._at)
            self._at = space.end() if space else self._at
            if self._at == len(self._held) and not self._read_more():
                return ""
        return found

    def take(self, wanted: str) -> str:
        """Move past one of the wanted characters, after spaces, and return it."""
        found = self.peek()
        if not found:
            raise self._too_short()
        if found not in wanted:
            raise self.not_json()
        self._at += 1
        return found

    def value(self) -> object:
        """Move past a JSON value, after spaces, and return it."""
        self.peek()
        while True:
            is_enough = len(self._held) - self._at > MAX_ENTRY_CHARS
            try:
                value, end = _decode(self._held, self._at)
            except RecursionError as error:
                zh, en = "嵌套层数过多", "an entry is nested deeper than any event"
                raise LogError(self._path, zh, en) from error
            except json.JSONDecodeError as error:
                # A string, or a word such as -Infinity, may be cut by the end of what is held.
                is_string = error.msg.startswith("Unterminated string")
                is_cut = is_string or error.pos + len("-Infinity") > len(self._held)
                if is_cut and is_enough:
                    raise self._too_large() from None
                if is_cut and self._read_more():
                    continue
                is_short = is_string or error.pos == len(self._held)
                refusal = self._too_short() if is_short else self.not_json()
                refusal.seen_chars = error.pos - self._at
                raise refusal from None
            if end - self._at > MAX_ENTRY_CHARS:
                raise self._too_large()
            # So may a number, at the worst after the sign of its exponent.
            if end + len("e+") < len(self._held) or not self._read_more():
                self._at = end
                return value

    def skip_torn_line(self) -> str:
        """Move to the next line that begins with an object; return the start of what is skipped.

        The inner lines of an object that was written over several lines are indented, so they are
        not taken for entries.
        """
        shown = self._held[self._at : self._at + 4 * MAX_SHOWN_CHARS].partition("\n")[0]
        while (found := self._held.find("\n{", self._at)) < 0:
            self._at = max(self._at, len(self._held) - 1)  # it may be a line break
            if not self._read_more():
                found = len(self._held) - 1
                break
        self._at = found + 1
        return sanitize(shown, MAX_SHOWN_CHARS)

    def not_json(self, zh: str = "不是有效的 JSON", en: str = "it is not JSON") -> _NotJsonError:
        """Return the error for other text than JSON at this position."""
        line = self._lines + self._held.count("\n", 0, self._at)
        return _NotJsonError(self._path, f"{zh}(第 {line:,} 行)", f"{en} (line {line:,})")

    def _too_short(self) -> _NotJsonError:
        return _NotJsonError(self._path, "内容不完整", "it ends before its JSON does")

    def _too_large(self) -> LogError:
        return LogError(self._path, "其中一个条目过大", "an entry is larger than any event")

    def _read_more(self) -> bool:
        """Hold at least twice as much, so that decoding it again keeps the cost linear."""
        rest = self._held[self._at :]
        parts, size = [rest], len(rest)
        for chunk in self._chunks:
            parts.append(chunk)
            size += len(chunk)
            if size > 2 * len(rest):
                break
        if size == len(rest):
            return False
        self._lines += self._held.count("\n", 0, self._at)
        self._held, self._at = "".join(parts), 0
        return True
