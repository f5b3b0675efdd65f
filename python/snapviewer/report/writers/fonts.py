"""Finds the font that a PDF embeds: one with Chinese letters, for both languages."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from snapviewer.report.blocks import Language

Lack: TypeAlias = Literal["library", "font", "chosen font"]

VARIABLE = "SNAPVIEWER_FONT"

_PACKAGE = "pylopdf_fonts_zh_cn"
_PACKAGE_FILE = "NotoSansSC-Regular.otf"
_LETTERS = "显存Aa0%"  # what a font must have to be of use

# The better come first. Linux distributions put them in different places, so that their folders
# are searched for the names.
_FILES = (
    "NotoSansSC-Regular.otf",
    "NotoSansSC-Regular.ttf",
    "NotoSansCJKsc-Regular.otf",
    "NotoSansCJK-Regular.ttc",
    "SourceHanSansSC-Regular.otf",
    "SourceHanSansCN-Regular.otf",
    "SourceHanSans-Regular.ttc",
    "PingFang.ttc",
    "Hiragino Sans GB.ttc",
    "msyh.ttc",
    "Deng.ttf",
    "wqy-microhei.ttc",
    "wqy-zenhei.ttc",
    "simhei.ttf",
    "DroidSansFallbackFull.ttf",
    "DroidSansFallback.ttf",
    "STHeiti Light.ttc",
    "Arial Unicode.ttf",
    "simsun.ttc",
)

_SENTENCES: dict[Lack, dict[Language, str]] = {
    "library": {
        "zh": "生成 PDF 需要 fpdf2，请安装：pip install fpdf2",
        "en": "a PDF needs fpdf2; install it with: pip install fpdf2",
    },
    "font": {
        "zh": (
            "没有找到含中文字形的字体，请安装：pip install pylopdf-fonts-zh-cn，"
            f"或者让环境变量 {VARIABLE} 指向一个字体文件"
        ),
        "en": (
            "no font with Chinese letters was found; install one with: "
            f"pip install pylopdf-fonts-zh-cn, or set {VARIABLE} to a font file"
        ),
    },
    "chosen font": {
        "zh": f"环境变量 {VARIABLE} 所指的文件不是含中文字形的字体",
        "en": f"the file that {VARIABLE} names is no font with Chinese letters",
    },
}


class PdfUnavailable(RuntimeError):  # noqa: N818 - it is no fault of the program
    """A PDF cannot be made here: something is not installed."""

    def __init__(self, lack: Lack) -> None:
        super().__init__(_SENTENCES[lack]["en"])
        self.lack: Lack = lack

    def sentence(self, language: Language) -> str:
        """Say what is missing and how to get it."""
        return _SENTENCES[self.lack][language]


def chinese_font() -> Path | None:
    """Find a font file with Chinese letters.

    The one that the environment variable `SNAPVIEWER_FONT` names, or else the one of the extra
    `pdf`, or else one of the system.

    Raises:
        PdfUnavailable: The variable names something else, or fonts cannot be read at all.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        if not _has_letters(Path(chosen)):
            raise PdfUnavailable("chosen font")
        return Path(chosen)
    return next((path for path in _candidates() if _has_letters(path)), None)


def face_number(path: Path) -> int:
    """Choose the font of a collection that is meant for Chinese as it is written in China."""
    from fontTools.ttLib import TTCollection

    if path.suffix.lower() not in (".ttc", ".otc"):
        return 0
    with path.open("rb") as file, TTCollection(file, lazy=True) as collection:
        names = [str(font["name"].getDebugName(4) or "") for font in collection.fonts]
    return next((index for index, name in enumerate(names) if " SC" in name), 0)


def _candidates() -> Iterator[Path]:
    package = find_spec(_PACKAGE)
    if package is not None and package.origin is not None:
        yield Path(package.origin).parent / _PACKAGE_FILE
    found: dict[str, Path] = {}
    for folder in _folders():
        for place, _, names in os.walk(folder):
            for name in names:
                found.setdefault(name.lower(), Path(place, name))
    yield from (found[name.lower()] for name in _FILES if name.lower() in found)
    yield from _font_of_fontconfig()


def _folders() -> Iterator[Path]:
    """Yield where systems keep fonts; those of a user come last."""
    windows = os.environ.get("WINDIR")
    yield from (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"))
    yield from (Path("/System/Library/Fonts"), Path("/Library/Fonts"))
    if windows:
        yield Path(windows, "Fonts")
    home = Path(os.path.expanduser("~"))
    yield from (home / ".fonts", home / ".local/share/fonts", home / "Library/Fonts")


def _font_of_fontconfig() -> Iterator[Path]:
    program = shutil.which("fc-match")
    if program is None:
        return
    try:
        answer = subprocess.run(
            [program, "-f", "%{file}", ":lang=zh-cn"], capture_output=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return
    yield Path(os.fsdecode(answer.stdout))


def _has_letters(path: Path) -> bool:
    """Tell whether a file is a font with the letters we need; fontconfig also names others."""
    try:
        from fontTools.ttLib import TTFont, TTLibError
    except ImportError:
        raise PdfUnavailable("library") from None
    try:
        # Opened here: fontTools would leave a file open that is no font.
        with path.open("rb") as file, TTFont(file, fontNumber=0, lazy=True) as font:
            return all(ord(letter) in font.getBestCmap() for letter in _LETTERS)
    except (OSError, TTLibError, KeyError, TypeError, ValueError):
        return False
