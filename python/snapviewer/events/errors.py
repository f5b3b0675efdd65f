"""What went wrong with a log, in a sentence of either language."""

from __future__ import annotations

import errno
from typing import Literal

from snapviewer.text.sanitize import replace_unprintable

_WORDS_ZH = {
    errno.ENOENT: "文件不存在",
    errno.EACCES: "没有读取权限",
    errno.EISDIR: "这是一个目录",
}


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
        """Say what went wrong in one line, with the whole path."""
        said = "无法读取或解析文件" if language == "zh" else "cannot read or parse the file"
        return f"{said} {_on_one_line(self.path)}: {_on_one_line(self._reasons[language])}"

    def __str__(self) -> str:
        return self.sentence("zh")


def system_error(path: str, error: OSError) -> LogError:
    """Tell of a file that the system does not let us read, in the system's words."""
    words = error.strerror or type(error).__name__
    known = _WORDS_ZH.get(error.errno or 0)
    return LogError(path, f"{known} ({words})" if known else words, words)


def _on_one_line(text: str) -> str:
    """Leave out what a terminal would obey; bytes of names that are no text stay to be told."""
    return replace_unprintable(text, keep_undecoded=True)
