"""The documents of the repository: README's size, links that lead somewhere, settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_README_BYTES = 8_000
# The pages under docs/ are checked by `mkdocs build --strict`.
PAGES = sorted(ROOT.glob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as web pages of repositories make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    links = [one or other for one, other in LINK.findall(page.read_text(encoding="utf-8"))]

    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize(
    "page",
    [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))],
    ids=lambda page: f"{page.parent.name}/{page.stem}",
)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    for path in re.findall(r"`((?:src|python|tests|docs|examples)/[\w./*-]+)`", text):
        assert list(ROOT.glob(path.rstrip("/"))), path


def test_the_readme_is_short() -> None:
    assert (ROOT / "README.md").stat().st_size <= MAX_README_BYTES


def test_every_environment_variable_is_described() -> None:
    page = (ROOT / "docs/reference/environment.md").read_text(encoding="utf-8")
    name = re.compile(r"SNAPVIEWER_[A-Z_]+")
    used = {
        found
        for folder in ("python", "tests", "src")
        for file in (ROOT / folder).rglob("*.[pr][ys]")
        for found in name.findall(file.read_text(encoding="utf-8"))
    }

    assert set(name.findall(page)) == used
