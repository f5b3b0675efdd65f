"""The details pane shows what is known of the selection, and each part of it can be used."""

from __future__ import annotations

import pickle
import tkinter as tk
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from snapviewer.gui.editor import EditorError
from snapviewer.gui.panes import details as module
from snapviewer.gui.panes.details import EMPTY, Details
from snapviewer.gui.settings import WindowSettings
from snapviewer.gui.state import State
from snapviewer.gui.theme import apply_theme, palette_of
from snapviewer.report.snapshot.allocation_details import as_text
from support.detailed_snapshot import BASE, FORWARD, detailed_snapshot
from support.inline_jobs import InlineJobs

pytestmark = pytest.mark.gui

EMOJI = "phase 🔥🔥"


class Pane:
    """A details pane in a window of its own, and a hand on it."""

    def __init__(self, root: tk.Tk) -> None:
        self.root = root
        self.jobs = InlineJobs(held={"convert"})
        self.state = State(self.jobs, WindowSettings())
        apply_theme(root, "light")
        self.details = Details(root, self.state)
        self.details.pack(fill="both", expand=True)
        self.text = self.details._text
        root.geometry("420x900+0+0")
        root.update()

    def open(self, plain: Any, directory: Path) -> None:
        path = directory / "snap.pickle"
        path.write_bytes(pickle.dumps(plain))
        self.state.open(path)

    def select(self, event: int, address: int) -> None:
        """Select what an event made at an address."""
        a = self.state.device.allocations  # type: ignore[union-attr]
        found = (a.alloc_event == event) & (a.address == address)
        self.state.select(int(found.argmax()))
        self.root.update()

    def shown(self) -> str:
        return self.text.get("1.0", "end-1c")

    def at(self, words: str) -> tuple[int, int]:
        """The pixel in the middle of the first place that says so."""
        index = self.text.search(words, "1.0")
        assert index, f"{words!r} is not in {self.shown()!r}"
        self.text.see(index)
        self.root.update()
        box = self.text.bbox(f"{index}+{len(words) // 2}c")
        assert box is not None
        return box[0] + box[2] // 2, box[1] + box[3] // 2

    def click(self, words: str, *, button: int = 1, modifiers: str = "") -> None:
        x, y = self.at(words)
        self.text.event_generate("<Motion>", x=x, y=y)
        self.text.event_generate(f"<{modifiers}ButtonPress-{button}>", x=x, y=y)
        self.text.event_generate(f"<{modifiers}ButtonRelease-{button}>", x=x, y=y)
        self.root.update()

    def double_click(self, words: str) -> None:
        self.click(words)
        self.click(words)

    def copied(self) -> str:
        return str(self.root.clipboard_get())

    def notice(self) -> str:
        return self.state.notice.text if self.state.notice else ""

    def menu(self, words: str) -> dict[str, Callable[[], object]]:
        """What a right click offers."""
        x, y = self.at(words)
        number = self.details._number_at(x, y)
        self.details._fill_menu(None if number is None else self.details._spots[number])
        menu = self.details._menu
        last = menu.index("end")
        assert last is not None
        return {
            menu.entrycget(entry, "label"): lambda entry=entry: menu.invoke(entry)  # type: ignore[misc]
            for entry in range(last + 1)
        }


@pytest.fixture
def pane(display: str) -> Iterator[Pane]:
    root = tk.Tk()
    yield Pane(root)
    root.destroy()


@pytest.fixture
def filled(pane: Pane, tmp_path: Path) -> Pane:
    """A pane that shows the allocation of which everything is known."""
    pane.open(detailed_snapshot(), tmp_path)
    pane.select(1, BASE)
    return pane


def test_without_a_selection_it_says_what_to_do(pane: Pane, tmp_path: Path) -> None:
    assert pane.shown() == ""

    pane.open(detailed_snapshot(), tmp_path)

    assert pane.shown().startswith(EMPTY)


@pytest.mark.promise("S07")
def test_everything_is_shown(filled: Pane) -> None:
    lines = filled.shown().splitlines()

    assert lines[:4] == [
        "b7f0000000000_1",
        "1,000 B",
        "model.py:77 attention",
        "2 allocations with this stack, 1.95 KiB together · 66 % of the peak",
    ]
    for row in (
        "alive\t1 – 5",
        "lifetime\t4 events · 2.00 ms",
        "pending\t2 events · 1.00 ms",
        "pool\tprivate pool 0, 3",
        "during\tstep › forward",
        "metadata\tlayer 3",
    ):
        assert row in lines
    assert lines[lines.index("Call stack   show all frames") + 1 :] == [
        "… 2 frames of torch",
        "model.py:77 attention",
        "utils.py:5 generate",
        "train.py:9 main",
        "",
        "Forward pass   2 frames",
        "",
        "Freed by   1 frame",
    ]


def test_a_size_is_said_in_units_and_to_the_byte(pane: Pane, tmp_path: Path) -> None:
    pane.open(detailed_snapshot(), tmp_path)

    pane.select(4, BASE + 2 * 4096)
    few = pane.shown().splitlines()[1]
    plain = detailed_snapshot()
    plain["device_traces"][0][1]["size"] = 5 * 2**28
    pane.open(plain, tmp_path)
    pane.select(1, BASE)

    assert few == "1,002 B"
    assert pane.shown().splitlines()[1] == "1.25 GiB   1,342,177,280 B"


@pytest.mark.parametrize(
    ("words", "copied"),
    [
        ("b7f0000000000_1", "b7f0000000000_1"),
        ("1,000 B", "1000"),
        ("0x7f0000000000", "0x7f0000000000"),
        ("4 events", "4"),
        ("2023-11-14 22:13:20.001000", "2023-11-14 22:13:20.001000 UTC"),
        ("private pool", "private pool 0, 3"),
        ("forward", "forward"),
    ],
)
def test_a_click_on_a_value_copies_it_and_says_so(filled: Pane, words: str, copied: str) -> None:
    filled.click(words)

    assert filled.copied() == copied
    assert filled.notice() == f"Copied {copied}"


def test_beside_a_value_nothing_is_clicked(filled: Pane) -> None:
    _, y = filled.at("0x7f0000000000")

    filled.text.event_generate("<ButtonPress-1>", x=400, y=y)
    filled.text.event_generate("<ButtonRelease-1>", x=400, y=y)
    filled.click("address")

    assert filled.state.notice is None


def test_characters_beyond_the_usual_are_where_they_are(pane: Pane, tmp_path: Path) -> None:
    plain = detailed_snapshot()
    for mark in plain["external_annotations"][::3]:
        mark["name"] = EMOJI
    plain["external_annotations"][3]["stage"] = "START"
    pane.open(plain, tmp_path)
    pane.select(1, BASE)

    pane.click("forward")

    assert f"during\t{EMOJI} › forward" in pane.shown()
    assert pane.copied() == "forward"


def test_a_selected_text_is_not_a_click_and_can_be_copied(filled: Pane) -> None:
    (x, y), (x_end, y_end) = filled.at("b7f0000"), filled.at("model.py:77")

    filled.text.event_generate("<ButtonPress-1>", x=x, y=y)
    filled.text.event_generate("<B1-Motion>", x=x_end, y=y_end)
    filled.text.event_generate("<ButtonRelease-1>", x=x_end, y=y_end)
    filled.text.event_generate("<<Copy>>")

    assert filled.state.notice is None
    assert "1,000 B\nmodel" in filled.copied()
    assert set(filled.menu("stream")) == {"Copy selection", "Copy details"}


def test_all_details_are_copied_by_a_link_or_the_menu(filled: Pane) -> None:
    facts = filled.state.allocation_details
    assert facts is not None

    filled.click("copy")
    by_link = filled.copied()
    filled.root.clipboard_clear()
    filled.menu("stream")["Copy details"]()

    assert by_link == filled.copied() == as_text(facts)


def test_links_step_through_what_the_same_stack_made(filled: Pane) -> None:
    first = filled.state.selection

    filled.click("next")
    second = filled.state.selection
    filled.click("previous")
    third = filled.state.selection

    assert second != first
    assert third == first
    assert "b7f0000000000_1" in filled.shown()


def test_a_link_that_is_clicked_fast_is_clicked_as_often(filled: Pane) -> None:
    steps: list[int] = []
    filled.state.step_same_stack = steps.append  # type: ignore[assignment,method-assign]

    filled.click("next")
    for _ in range(3):
        filled.click("next")

    assert steps == [1] * 4


def test_a_link_shows_only_what_the_same_stack_made(filled: Pane) -> None:
    filled.click("show\u00a0only")

    assert (filled.state.filter.text, filled.state.filter.mode) == ("model.py:77", "only")


def test_a_link_zooms_to_the_selection(filled: Pane) -> None:
    filled.click("zoom\u00a0to")

    assert filled.state.view != filled.state.world.whole()


def test_what_is_folded_unfolds_by_a_click(filled: Pane) -> None:
    filled.click("2 frames of torch")
    assert "at::native::linear\nmodule.py:17 _call_impl\nmodel.py:77" in filled.shown()

    filled.click("fold")
    assert "at::native::linear" not in filled.shown()

    filled.click("show all frames")
    assert "at::native::linear" in filled.shown()

    filled.click("2 frames")
    assert "model.py:70 f\nmodel.py:71 g" in filled.shown()

    filled.click("1 frame")
    assert filled.shown().endswith("Freed by\ntrain.py:31 clear\n")


def test_what_was_unfolded_stays_so_for_the_same_stack_only(filled: Pane) -> None:
    filled.click("2 frames of torch")

    filled.click("next")
    of_the_same = filled.shown()
    filled.select(4, BASE + 2 * 4096)
    filled.select(1, BASE)

    assert "module.py:17" in of_the_same
    assert "module.py:17" not in filled.shown()


def test_a_frame_is_opened_in_the_editor(filled: Pane, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, int]] = []

    def note(filename: str, line: int) -> Path:
        opened.append((filename, line))
        return Path(filename)

    monkeypatch.setattr(module, "open_in_editor", note)

    filled.click("model.py:77")
    assert opened == []

    filled.double_click("utils.py:5")
    filled.click("train.py:9", modifiers="Control-")
    filled.menu("model.py:77")["Open in editor"]()

    assert opened == [
        (FORWARD[3]["filename"], 5),
        (FORWARD[4]["filename"], 9),
        (FORWARD[2]["filename"], 77),
    ]
    assert filled.notice() == "Opening model.py, line 77 …"
    assert filled.text.tag_ranges("sel") == ()


def test_why_a_frame_is_not_opened_is_reported(
    filled: Pane, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(filename: str, line: int) -> Path:
        raise EditorError(f"{filename} is not here.")

    monkeypatch.setattr(module, "open_in_editor", refuse)

    filled.double_click("utils.py:5")

    assert filled.state.notice is not None
    assert filled.state.notice.is_error
    assert filled.notice() == "/x/site-packages/transformers/utils.py is not here."


def test_a_frame_is_copied_in_full(filled: Pane) -> None:
    filled.menu("model.py:77")["Copy attention (/home/a/model.py:77)"]()

    assert filled.copied() == "attention (/home/a/model.py:77)"


def test_a_tip_shows_where_a_frame_is(filled: Pane) -> None:
    x, y = filled.at("utils.py:5")

    filled.text.event_generate("<Motion>", x=x, y=y)
    tip = filled.details._tip.text
    filled.text.event_generate("<Leave>")

    assert tip.startswith("generate (/x/site-packages/transformers/utils.py:5)")
    assert filled.details._tip.text == ""


def test_until_the_new_details_are_there_the_old_page_stays_for_a_moment(filled: Pane) -> None:
    filled.jobs.held.add("details")

    filled.select(2, BASE + 4096)
    at_first = filled.shown()
    waiting = filled.details._waiting
    assert waiting is not None
    filled.details.after_cancel(waiting)
    filled.details._show_wait()
    later = filled.shown()
    filled.jobs.release("details")

    assert at_first.startswith("b7f0000000000_1")
    assert later.splitlines() == ["1,001 B", "reading details …"]
    assert filled.shown().startswith("b7f0000001000_0")


def test_another_file_empties_it(filled: Pane, tmp_path: Path) -> None:
    filled.open(detailed_snapshot(), tmp_path)

    assert filled.shown().startswith(EMPTY)


def test_an_allocation_without_a_stack_says_so(pane: Pane, tmp_path: Path) -> None:
    pane.open(detailed_snapshot(), tmp_path)

    pane.select(-1, BASE)

    assert "no stack recorded\n3 allocations without a stack" in pane.shown()
    assert "Call stack" not in pane.shown()


def _with_deep_stack() -> dict[str, Any]:
    plain = detailed_snapshot()
    frames = [{"name": f"f{n}", "filename": "/home/a/deep.py", "line": n} for n in range(1, 1501)]
    plain["device_traces"][0][1]["frames"] = frames
    return plain


def test_a_deep_stack_is_folded_and_unfolds(pane: Pane, tmp_path: Path) -> None:
    pane.open(_with_deep_stack(), tmp_path)

    pane.select(1, BASE)
    folded = pane.shown().count("deep.py")
    pane.click("1,465 more frames")

    assert folded == 36
    assert pane.shown().count("deep.py") == 1501


def test_what_is_read_stays_in_its_place_when_something_unfolds(pane: Pane, tmp_path: Path) -> None:
    pane.open(_with_deep_stack(), tmp_path)
    pane.select(1, BASE)
    pane.text.yview("20.0")
    pane.root.update()
    top = pane.text.get("@0,0 linestart", "@0,0 lineend")

    pane.click("1,465 more frames")

    assert pane.text.get("@0,0 linestart", "@0,0 lineend") == top


def test_untrusted_names_do_not_break_the_page(pane: Pane, tmp_path: Path) -> None:
    plain = detailed_snapshot()
    name = "evil\n{\\}[exit]$x\x07" + "x" * 100_000
    plain["device_traces"][0][1] |= {
        "frames": [{"name": name, "filename": "/a\n.py", "line": 3}],
        "user_metadata": name,
    }
    pane.open(plain, tmp_path)

    pane.select(1, BASE)
    lines = pane.shown().splitlines()

    assert ".py:3 evil {\\}[exit]$x?xx" in lines[2]
    assert max(map(len, lines)) < 500


def test_colours_follow_the_theme(filled: Pane) -> None:
    filled.state.set_look(theme="dark")

    assert filled.text.tag_cget("link", "foreground") == palette_of("dark").accent
