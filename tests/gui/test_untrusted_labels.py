"""Nothing that a file contains is more than plain letters on a label of the window."""

from __future__ import annotations

import pickle
import tkinter as tk
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tkinter import ttk

import pytest

from snapviewer.gui.values import TABS
from support.driver import Driver
from support.hostile_text import FILE_NAME, harmful, hostile_snapshot

pytestmark = pytest.mark.gui

MAX_CHARS = 5000


def _texts(widget: tk.Misc) -> Iterator[str]:
    """Everything that a widget and those inside it show."""
    with suppress(tk.TclError):
        yield str(widget.cget("text"))
    if isinstance(widget, tk.Text):
        yield widget.get("1.0", "end")
    if isinstance(widget, ttk.Treeview):
        for item in widget.get_children():
            yield from map(str, (widget.item(item, "text"), *widget.item(item, "values")))
    if isinstance(widget, tk.Menu):
        for place in range((widget.index("end") or -1) + 1):
            with suppress(tk.TclError):
                yield str(widget.entrycget(place, "label"))
    if isinstance(widget, tk.Canvas):
        for shape in widget.find_all():
            with suppress(tk.TclError):  # a line has no text
                yield str(widget.tk.call(str(widget), "itemcget", shape, "-text"))
    for child in widget.winfo_children():
        yield from _texts(child)


def _assert_harmless(driver: Driver) -> None:
    driver.settle()
    for text in (driver.root.title(), *_texts(driver.root)):
        assert harmful(text)[:1] == []
        assert max(map(len, text.splitlines()), default=0) <= MAX_CHARS
    assert driver.bugs == []


def test_labels_of_a_hostile_file_are_harmless(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / f"{FILE_NAME}.pickle"
    path.write_bytes(pickle.dumps(hostile_snapshot(), protocol=4))

    driver.open(path)
    driver.state.select(0)
    driver.done()

    assert driver.notice == ""
    for tab in TABS:
        driver.state.show_tab(tab)
        driver.done()
        _assert_harmless(driver)
    driver.window.show_completeness()
    _assert_harmless(driver)
    for window in driver.root.winfo_children():
        if isinstance(window, tk.Toplevel) and window.winfo_viewable():
            window.destroy()


def test_the_notice_of_a_hostile_name_is_harmless(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / f"{FILE_NAME}.pickle"
    path.write_bytes(b"not a snapshot")

    driver.state.open(path)
    driver.until(lambda: driver.notice)

    _assert_harmless(driver)
