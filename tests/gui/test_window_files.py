"""The window opens files, whatever is in them, and is the same window in every surrounding."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from tkinter import ttk
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pictures

import snapviewer
from snapviewer import _core
from snapviewer.gui.theme import palette_of
from snapviewer.report.picture.drawing import draw
from snapviewer.report.picture.options import PictureOptions
from snapviewer.report.snapshot.allocation_details import as_text
from support import hostile, program
from support.display import click, focus_window, key, resize_window, screenshot, write, xvfb
from support.driver import TIME_LIMIT_SECONDS, Driver, real

pytestmark = pytest.mark.gui

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {"Open…", "Open directory…", "Save picture…", "Quit"}


@pytest.fixture(scope="module")
def small_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a small snapshot in every form that can be opened."""
    directory = tmp_path_factory.mktemp("forms")
    pickled = directory / "small.pickle"
    assert program.run("demo", "-o", pickled, "--events", "600").code == 0
    for bundle in ("small.zip", "small"):
        assert program.run("convert", "-i", pickled, "-o", directory / bundle).code == 0
    content = pickled.read_bytes()
    (directory / "small.pickle.gz").write_bytes(gzip.compress(content))
    (directory / "small.json").write_text(json.dumps(pickle.loads(content)))
    (directory / "small.html").write_bytes(hostile.page(content))
    return directory


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot of 300,000 events, packed, which takes a moment to read."""
    path = tmp_path_factory.mktemp("long") / "long.pickle"
    assert program.run("demo", "-o", path, "--events", "300000").code == 0
    packed = path.with_suffix(".pickle.gz")
    packed.write_bytes(gzip.compress(path.read_bytes(), compresslevel=1))
    return packed


# Opening


@pytest.mark.promise("S04")
@pytest.mark.parametrize(
    "name", ["small.pickle", "small.pickle.gz", "small.json", "small.html", "small.zip", "small"]
)
def test_every_form_of_a_snapshot_opens_alike(driver: Driver, small_demo: Path, name: str) -> None:
    expected = snapviewer.load(small_demo / "small.pickle").devices[0]

    driver.open(small_demo / name)

    assert driver.notice == ""
    assert driver.root.title() == f"{name} – snapviewer"
    assert driver.window.toolbar._name.cget("text") == name
    assert driver.device.peak_bytes == expected.peak_bytes
    assert (driver.device.totals == expected.totals).all()
    assert driver.state.cursor == expected.peak_event
    assert driver.state.settings.recent[0] == str(small_demo / name)
    driver.assert_drawn()
    driver.until(lambda: driver.document.bundle is not None)


def test_a_file_is_chosen_in_a_dialog(driver: Driver, small_demo: Path) -> None:
    _in_dialog(driver, str(small_demo / "small.pickle"))
    key("ctrl+o")
    driver.until(lambda: driver.document.name == "small.pickle")

    assert driver.device.events == 600


def test_a_directory_is_chosen_in_a_dialog(driver: Driver, small_demo: Path) -> None:
    _in_dialog(driver, str(small_demo / "small"), returns=2)  # go there, and take it
    key("ctrl+shift+o")
    driver.until(lambda: driver.document.name == "small")

    assert driver.device.events == 600


def _in_dialog(driver: Driver, answer: str, *, returns: int = 1) -> None:
    """Type a path into the dialog that opens next; one that stays is left, so that tests end."""

    def is_there() -> bool:
        return "__tk_" in str(driver.root.tk.call("focus"))

    def look() -> None:
        driver.root.after(200 if is_there() else 20, type_answer if is_there() else look)

    def type_answer() -> None:
        key("ctrl+slash")  # all of what is there already
        write(answer)
        key(*["Return"] * returns)
        driver.root.after(3000, lambda: key("Escape") if is_there() else None)

    driver.root.after(20, look)


def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read as from a slow disk."""
    load = _core.load

    def slowly(
        path: Path, *, progress: Callable[[int, int], object] | None = None, **rest: Any
    ) -> Any:
        def go_on(done: int, total: int) -> None:
            sleep(0.1)
            if progress is not None:
                progress(done, total)

        return load(path, progress=go_on, **rest)

    monkeypatch.setattr(_core, "load", slowly)


def _is_reading(driver: Driver) -> bool:
    return any(job.name == "open" for job in driver.state.jobs.running())


@pytest.mark.promise("S10")
def test_reading_reports_its_progress_and_can_be_cancelled(
    driver: Driver, long: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _slow(monkeypatch)
    before, view, loading = driver.document, driver.state.view, driver.window.overlay._loading

    driver.state.open(long)
    driver.until(lambda: float(loading._bar.cget("value")) > 0)
    first = float(loading._bar.cget("value"))
    key("plus")
    driver.until(lambda: driver.state.view != view)
    driver.until(lambda: float(loading._bar.cget("value")) > first)
    assert _is_reading(driver), "it moved while the file was being read"
    assert loading._title.cget("text").startswith("reading long.pickle.gz … ")
    assert loading._title.cget("text").endswith("%")
    click(*driver.middle(loading._stop))
    driver.until(lambda: not _is_reading(driver))

    assert not loading.winfo_ismapped()
    assert driver.document is before, "what was open stays"
    assert driver.notice == ""
    driver.away()
    driver.assert_drawn()


@pytest.mark.promise("S08", "S10")
def test_the_window_goes_on_while_a_long_file_is_read(driver: Driver, long: Path) -> None:
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        ticks += _is_reading(driver)
        driver.root.after(1, tick)

    ticking = driver.root.after(1, tick)
    driver.state.open(long)
    driver.until(lambda: not _is_reading(driver))
    driver.root.after_cancel(ticking)
    driver.done()

    assert ticks > 2
    assert driver.device.events == 300_000
    driver.assert_drawn()
    driver.state.cancel("convert")


def test_another_file_that_is_opened_meanwhile_wins(
    driver: Driver, long: Path, small_demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _slow(monkeypatch)

    driver.state.open(long)
    driver.settle()
    driver.open(small_demo / "small.pickle")
    driver.done()

    assert driver.document.name == "small.pickle"
    assert not driver.window.overlay._loading.winfo_ismapped()


def test_recent_files_are_in_the_menu(driver: Driver, small_demo: Path, demo: Path) -> None:
    driver.open(small_demo / "small.zip")
    assert driver.state.settings.recent[:2] == [str(small_demo / "small.zip"), str(demo)]

    driver.root.after(200, lambda: key("Down", "Down", "Right", "Down", "Return"))
    key("alt+f")
    driver.until(lambda: driver.document.name == demo.name)

    assert driver.state.settings.recent[:2] == [str(demo), str(small_demo / "small.zip")]


# Files that are no snapshots, or strange ones


def _older_directory(directory: Path) -> Path:
    polygon = {"timesteps": [0, 1, 5], "offsets": [0, 0, 512], "size": 512}
    directory.mkdir()
    (directory / "allocations.json").write_text(json.dumps([polygon]))
    with sqlite3.connect(directory / "elements.db") as database:
        database.execute("create table allocs(idx, size, start_time, end_time, callstack)")
    database.close()
    return directory


def _newer_bundle(path: Path, bundle: Path) -> Path:
    with zipfile.ZipFile(bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(files["allocations.json"])
    versions = [name for name in document if "version" in name]
    newer = {**document, **dict.fromkeys(versions, 1_000_000)}
    return _written(path, hostile.zip_of({**files, "allocations.json": json.dumps(newer).encode()}))


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def _unreadable(path: Path) -> Path:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    path.write_bytes(b"")
    path.chmod(0)
    return path


class _Runs:
    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch ran-code",)


BAD: dict[str, tuple[Callable[[Path, Path], Path], str]] = {
    "text": (lambda path, _: _written(path, b"hello, world\n" * 9), "not a"),
    "nothing": (lambda path, _: _written(path, b""), "empty"),
    "no file": (lambda path, _: path, "No such file"),
    "no permission": (lambda path, _: _unreadable(path), "denied"),
    "an empty directory": (lambda path, _: _made(path), ""),
    "a pickle that runs code": (lambda path, _: _written(path, pickle.dumps(_Runs())), "GLOBAL"),
    "a pickle that is cut": (
        lambda path, forms: _written(path, (forms / "small.pickle").read_bytes()[:5000]),
        "",
    ),
    "an older program's directory": (lambda path, _: _older_directory(path), "convert"),
    "a newer program's bundle": (
        lambda path, forms: _newer_bundle(path, forms / "small.zip"),
        "newer",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_snapshot_is_reported_and_what_was_open_stays(
    driver: Driver, small_demo: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, words = BAD[kind]
    path, before = make(tmp_path / "bad.pickle", small_demo), driver.document

    driver.open(path)

    assert driver.notice.startswith("Could not open bad.pickle: ")
    assert words in driver.notice
    assert "Traceback" not in driver.notice
    notice, area = driver.window.overlay._notice, driver.window.area
    assert notice.winfo_ismapped()
    assert notice.winfo_x() >= 0
    assert notice.winfo_x() + notice.winfo_width() <= area.winfo_width()
    assert str(notice._text.cget("style")) == "Error.TLabel"
    assert driver.document is before
    assert driver.state.settings.recent[0] != str(path)
    assert not (tmp_path / "ran-code").exists()
    key("Escape")
    driver.settle()
    assert not notice.winfo_ismapped()
    driver.assert_drawn()


def _press_every_key(driver: Driver) -> None:
    """Everything that a key does, but for dialogs and help."""
    for command in driver.window.commands:
        if command.label not in OUTSIDE and command.menu != "Help":
            command.run()
            driver.root.update()
    driver.done()
    driver.plot.widget.focus_set()
    key("d", "w", "plus", "Home", "p", "f", "bracketright", "o", "x", "c", "v", "t", "m", "Escape")
    driver.done()


EMPTY_TRACE: dict[str, list[Any]] = {"segments": [], "device_traces": [[]]}
STRANGE: dict[str, tuple[Any, str, str]] = {
    "an empty trace": (EMPTY_TRACE, "GPU 0 (empty)", "no events recorded"),
    "segments only": (
        hostile.small_snapshot()["segments"],
        "GPU 0",
        "no events recorded",
    ),
    "one of each": (hostile.small_snapshot(), "GPU 0", "event 2 of 7"),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_a_strange_snapshot_is_shown_as_far_as_it_goes(
    driver: Driver, tmp_path: Path, kind: str
) -> None:
    content, device, where = STRANGE[kind]
    path = _written(tmp_path / "strange.pickle", pickle.dumps(content))

    driver.open(path)

    assert driver.notice == ""
    assert driver.window.toolbar._device._box.get() == device
    assert driver.window.status._event.label.cget("text").startswith(where)
    assert driver.window.status._badge.cget("text")
    driver.assert_drawn()
    for x, y in ((0.5, 0.95), (0.1, 0.2)):
        click(*driver.at(*driver.spot(x, y)))
        click(*driver.at(*driver.spot(x, y)), button=3)
        driver.done()
    _press_every_key(driver)
    assert driver.bugs == []
    driver.away()
    driver.assert_drawn()


def test_a_file_without_devices_says_so_and_recent_files_are_offered(
    driver: Driver, tmp_path: Path, demo: Path
) -> None:
    path = _written(tmp_path / "bare.pickle", pickle.dumps({"segments": [], "device_traces": []}))

    driver.open(path)

    assert driver.notice.startswith("This file contains no devices")
    welcome = driver.window.overlay._welcome
    assert welcome.winfo_ismapped()
    _press_every_key(driver)
    assert driver.bugs == []
    links = {
        str(one.cget("text")): one
        for one in welcome._middle.winfo_children()
        if isinstance(one, ttk.Label)
    }
    click(*driver.middle(links[demo.name]))
    driver.until(lambda: driver.document.name == demo.name)
    driver.done()
    assert not welcome.winfo_ismapped()
    driver.away()
    driver.state.set_look(axis="event", color="stack", order="allocation", theme="light")
    driver.assert_drawn()


def test_a_state_without_a_trace_is_one_moment(driver: Driver) -> None:
    driver.open(real("private-pools-state-only"))

    a = driver.device.allocations
    assert driver.window.status._badge.cget("text").startswith("✓ state only, no trace")
    title = driver.window.side.at_cursor.title.cget("text")
    assert title.startswith("In the snapshot")
    assert f"{len(a):,} allocations" in title
    x, y, allocation = driver.pixel_with(lambda _: True)
    click(*driver.at(x, y))
    driver.done()
    assert driver.state.selection == allocation
    assert f"{int(a.size[allocation]):,} B" in driver.window.side.details._text.get("1.0", "end")


# Taking along


def test_the_picture_is_saved_as_it_is_shown(driver: Driver, tmp_path: Path) -> None:
    key("slash")
    write("forward")
    driver.done()
    key("Escape", "t", "plus", "plus")
    driver.done()
    path = tmp_path / "saved.png"

    driver.window.save_picture_to(path)
    driver.until(lambda: driver.notice)

    assert driver.notice == "Saved saved.png."
    width, height = driver.state.plot_px
    options = PictureOptions(
        size=(max(width, 900), max(height, 500)),
        span=driver.state.view.x_span,
        byte_span=driver.state.view.byte_span,
        filters=("forward",),
        dim=True,
        theme="dark",
    )
    picture = draw(driver.document.snapshot, driver.device, options, file=driver.document.name)
    with Pictures.open(path) as saved:
        assert saved.format == "PNG"
        assert saved.size == options.size
        assert (np.asarray(saved.convert("RGB")) == np.asarray(picture.image.convert("RGB"))).all()


def test_where_to_save_is_asked(driver: Driver, tmp_path: Path) -> None:
    _in_dialog(driver, str(tmp_path / "asked.png"))
    key("ctrl+s")
    driver.until(lambda: driver.notice == "Saved asked.png.")

    assert (tmp_path / "asked.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_saved_is_reported(driver: Driver, tmp_path: Path) -> None:
    driver.window.save_picture_to(tmp_path / "nowhere" / "saved.png")
    driver.until(lambda: driver.notice)

    assert driver.notice.startswith("Could not save the picture: ")
    assert driver.window.overlay._notice.winfo_ismapped()


def test_details_are_copied(driver: Driver) -> None:
    key("ctrl+shift+c")
    driver.settle()
    assert driver.notice == "Click an allocation to select it first."
    x, y, _ = driver.pixel_with(lambda _: True)
    click(*driver.at(x, y))
    driver.done()

    key("ctrl+shift+c")
    driver.settle()

    assert driver.state.allocation_details is not None
    assert driver.root.clipboard_get() == as_text(driver.state.allocation_details)
    assert driver.notice == "Copied the details."


# Processes of their own


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the window of another process keeps its settings."""
    path = tmp_path / "config"
    monkeypatch.setenv("SNAPVIEWER_CONFIG", str(path))
    return path


@pytest.fixture
def other_display(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A screen for a process of its own: keys go to it alone."""
    with xvfb() as name:
        monkeypatch.setenv("DISPLAY", name)
        yield name


def _watched(*arguments: str | Path) -> Any:
    """What a window of its own shows once it has opened its file."""
    program_file = str(ROOT / "tests" / "support" / "watched_window.py")
    ran = program.run(*arguments, program=(program_file,), directory=ROOT)
    assert ran.code == 0, ran.err
    shown = json.loads(ran.out)
    assert shown["bugs"] == []
    return shown


def _start(*arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)], cwd=ROOT, stderr=subprocess.PIPE
    )


def test_the_command_line_opens_files_and_the_window_remembers(
    other_display: str, config: Path, small_demo: Path, demo: Path
) -> None:
    zipped = small_demo / "small.zip"
    with _start("-m", "snapviewer", "open", zipped, demo) as process:
        focus_window("small.zip")
        key("F7", "t")
        _until_drawn((10, 400), "dark")  # left of the plot
        key("ctrl+q")
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors

    remembered = json.loads((config / "window.json").read_text())
    assert remembered["recent"] == [str(zipped), str(demo)]
    assert remembered["theme"] == "dark"
    assert remembered["show_minimap"] is False
    (config / "window.json").write_text(
        json.dumps({**remembered, "side_width": 520, "width": 1400, "height": 810})
    )
    again = _watched(zipped)
    assert again["theme"] == "dark"
    assert not again["has_minimap"]
    assert again["differing"] == 0
    assert again["size"] == [1400, 810]
    assert again["side_width"] == pytest.approx(520, abs=2)
    assert json.loads((config / "window.json").read_text())["side_width"] == again["side_width"]


def _until_drawn(at: tuple[int, int], theme: str = "light") -> None:
    """Wait until the window is seen to have a theme's background at a place."""
    end = monotonic() + TIME_LIMIT_SECONDS
    while screenshot().getpixel(at) != _rgb(palette_of(theme).background):
        assert monotonic() < end, f"it never became {theme}"
        sleep(0.02)


def _rgb(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color[1:]))


@pytest.mark.promise("S03")
def test_gui_py_with_its_old_options_has_a_plot_of_that_size(
    display: str, config: Path, small_demo: Path
) -> None:
    shown = _watched("--log", "info", "--res", "1200", "500", "-d", small_demo / "small")

    assert shown["plot"] == [1200, 500]
    assert shown["title"] == "small – snapviewer"
    assert shown["differing"] == 0
    assert shown["recent"] == [str(small_demo / "small")]


@pytest.mark.promise("S03")
def test_the_drawing_has_the_size_of_the_original_command_where_the_screen_has_room(
    config: Path, small_demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with xvfb(size=(3200, 1600)) as name:
        monkeypatch.setenv("DISPLAY", name)
        shown = _watched("--log", "info", "--res", "2400", "1000", "-d", small_demo / "small")

    assert shown["plot"] == [2400, 1000]
    assert shown["differing"] == 0
    left, top, right, bottom = shown["outer"]
    assert (left, top) >= (0, 0)
    assert (right, bottom) <= (3200, 1600)


@pytest.mark.promise("S03")
def test_a_window_of_a_given_size_can_be_resized(
    other_display: str, config: Path, small_demo: Path
) -> None:
    with _start("gui.py", "--res", "800", "400", "-d", small_demo / "small") as process:
        focus_window("small")
        assert screenshot().getpixel((1480, 700)) == (0, 0, 0), "nothing is there yet"
        resize_window("small", 1500, 900)
        _until_drawn((1480, 700))
        key("ctrl+q")
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors


@pytest.mark.promise("S03")
@pytest.mark.parametrize("level", ["trace", "debug", "info", "warning", "error"])
def test_gui_py_takes_every_level_of_messages(
    level: str, small_demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    arguments = ("--log", level, "--res", "2400", "1000", "-d", small_demo / "small")

    ran = program.run(*arguments, program=(str(ROOT / "gui.py"),))
    wrong = program.run("--log", "loud", program=(str(ROOT / "gui.py"),))

    assert (ran.code, wrong.code) == (1, 2)
    assert "no display" in ran.err
    assert ("Traceback" in ran.err) == (level in ("trace", "debug"))


@pytest.mark.promise("S03")
@pytest.mark.parametrize("screen", [(1920, 1080), (1024, 700)])
def test_the_window_is_never_larger_than_the_screen(
    config: Path, demo: Path, screen: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with xvfb(size=screen) as name:
        monkeypatch.setenv("DISPLAY", name)
        shown = _watched("--res", "2400", "1000", demo)

    left, top, right, bottom = shown["outer"]
    assert (left, top) >= (0, 0)
    assert right <= screen[0]
    assert bottom <= screen[1]
    assert right >= screen[0] - 2, "the plot takes what there is"
    assert bottom >= screen[1] - 2
    assert shown["cut_off"] == []
    assert shown["differing"] == 0


def test_on_a_screen_of_twice_the_density_everything_is_twice_as_large(
    config: Path, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.mkdir()
    with xvfb("-dpi", "192") as name:
        monkeypatch.setenv("DISPLAY", name)
        large = _watched(demo, "--theme", "dark")
        settings = {
            **json.loads((config / "window.json").read_text()),
            "width": 1800,
            "height": 1200,
        }
        (config / "window.json").write_text(json.dumps(settings))
        small = _watched(demo)

    for shown in (large, small):
        assert shown["unit"] == pytest.approx(2, abs=0.05)
        assert shown["differing"] == 0, "the plot has the engine's pixels, one for one"
        assert shown["cut_off"] == []
        assert shown["theme"] == "dark"
    assert large["size"] > small["size"]
    assert small["side_width"] == 0, "it folded"


def test_a_file_that_is_not_there_opens_a_window_that_says_so(
    display: str, config: Path, tmp_path: Path
) -> None:
    shown = _watched(tmp_path / "none.pickle")

    assert shown["notice"].startswith("Could not open none.pickle: No such file")
    assert shown["recent"] == []
    assert shown["title"] == "snapviewer"


def test_damaged_settings_do_no_harm(display: str, config: Path, small_demo: Path) -> None:
    config.mkdir()
    (config / "window.json").write_text('{"width": "7", "theme": "pink", "recent": "x"}')

    shown = _watched(small_demo / "small")

    assert shown["title"] == "small – snapviewer"
    assert shown["theme"] == "light"


@pytest.mark.parametrize("name", [None, ":12345"])
def test_without_a_display_it_says_what_works_there(
    name: str | None, small_demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name is None:
        monkeypatch.delenv("DISPLAY", raising=False)
    else:
        monkeypatch.setenv("DISPLAY", name)

    for command in (("-m", "snapviewer", "open"), (str(ROOT / "gui.py"),)):
        ran = program.run(small_demo / "small", program=command)

        assert ran.code == 1
        assert ran.out == ""
        assert "no display" in ran.err
        assert "snapviewer render" in ran.err
        assert "snapviewer report" in ran.err
        assert len(ran.err.splitlines()) == 1


def test_a_bundle_opens_where_it_can_only_be_read(
    driver: Driver, small_demo: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(small_demo / "small", copy)
    for file in copy.iterdir():
        file.chmod(0o444)
    copy.chmod(0o555)

    driver.open(copy)

    assert driver.notice == ""
    assert driver.device.events == 600
    copy.chmod(0o755)
