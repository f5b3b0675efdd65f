"""Pictures, as somebody makes them: what is in the PNG, and how the command ends."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

import snapviewer
from snapviewer._core import Timeline
from snapviewer.cli import main
from snapviewer.report.picture.options import core_color
from snapviewer.report.theme import THEMES
from snapviewer.text.units import format_bytes
from support import hostile
from support.program import Ran, run

Pixels = npt.NDArray[np.uint8]
BACKGROUND = 2**32 - 1


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot with two devices, two streams and pinned memory."""
    path = tmp_path_factory.mktemp("demo") / "demo.pickle"
    options = ("--devices", "2", "--streams", "2", "--host", "--leak")
    assert run("demo", "-o", path, "--events", "3000", *options).code == 0
    return path


class Renderer:
    """Runs `render` in this process, and reads back what it made."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.output = directory / "out.png"
        self._capsys = capsys

    def run(self, file: Path, *options: str | Path) -> Ran:
        try:
            code = main(["render", str(file), "-o", str(self.output), *map(str, options)])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else -1
        captured = self._capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    def picture(self, file: Path, *options: str) -> tuple[dict[str, Any], Pixels]:
        """What `--json` says, and the picture's pixels."""
        ran = self.run(file, "--json", "--force", *options)
        assert (ran.code, ran.err) == (0, "")
        with Image.open(self.output) as image:
            assert (image.format, image.mode) == ("PNG", "RGB")
            return json.loads(ran.out), np.asarray(image)


@pytest.fixture
def render(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Renderer:
    return Renderer(tmp_path, capsys)


def _plot(document: dict[str, Any], pixels: Pixels) -> Pixels:
    left, top, width, height = document["plot"]
    return pixels[top : top + height, left : left + width]


def _ink(pixels: Pixels, theme: str = "light") -> int:
    """How many pixels are not background."""
    return int((pixels != THEMES[theme].background).any(axis=2).sum())


def _assert_timeline(
    document: dict[str, Any], pixels: Pixels, timeline: Timeline, **how: Any
) -> None:
    """Every pixel of an allocation is the engine's; over the rest there may be lines."""
    if "time" not in how:
        how["events"] = tuple(document["events"])
    size = tuple(document["plot"][2:])
    image = timeline.image(bytes=tuple(document["shown_bytes"]), size=size, **how)
    plot = _plot(document, pixels)
    is_data = np.asarray(image.ids) != BACKGROUND
    assert is_data.any()
    assert (plot[is_data] == image.rgb[is_data]).all()
    assert np.mean((plot == image.rgb).all(axis=2)) > 0.8


# What is in a picture


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("color", ["stack", "size", "stream", "lifetime", "pool", "category"])
def test_the_plot_is_the_engines_picture(
    theme: str, color: str, demo: Path, render: Renderer
) -> None:
    document, pixels = render.picture(
        demo, "--res", "1000", "500", "--device", "0", "--color", color, "--theme", theme
    )

    assert document["events"] == [0, 3000]
    timeline = snapviewer.load(demo).devices[0].timeline()
    _assert_timeline(document, pixels, timeline, color=core_color(color), theme=theme)


def test_lifetime_was_called_age(demo: Path, render: Renderer) -> None:
    _, by_lifetime = render.picture(demo, "--color", "lifetime")
    _, by_age = render.picture(demo, "--color", "age")
    assert np.array_equal(by_lifetime, by_age)


@pytest.mark.parametrize("order", ["allocation", "stack", "size", "lifetime", "pool", "stream"])
def test_allocations_lie_in_the_order_that_was_asked_for(
    order: str, demo: Path, render: Renderer
) -> None:
    document, pixels = render.picture(demo, "--res", "800", "400", "-d", "0", "--order", order)

    timeline = snapviewer.load(demo).devices[0].timeline(order=order)
    _assert_timeline(document, pixels, timeline)


@pytest.mark.parametrize("compress", [False, True])
def test_an_axis_of_time_is_the_clocks(compress: bool, demo: Path, render: Renderer) -> None:
    option = ["--compress-idle"] if compress else []
    document, pixels = render.picture(
        demo, "--res", "800", "400", "-d", "0", "--axis", "time", *option
    )

    device = snapviewer.load(demo).devices[0]
    clock = device.clock(compress=compress)
    assert clock is not None
    assert document["time_us"] == [0, clock.length_us + 1]
    span = (0, clock.length_us + 1)
    _assert_timeline(document, pixels, device.timeline(), time=span, clock=clock)


def test_a_part_is_shown_alone(demo: Path, render: Renderer) -> None:
    part = ("--range", "1,000", "1200", "--bytes", "100MiB", "1GiB")

    document, pixels = render.picture(demo, "--res", "800", "400", "-d", "0", *part)

    assert document["events"] == [1000, 1200]
    assert document["shown_bytes"] == [100 * 2**20, 2**30]
    device = snapviewer.load(demo).devices[0]
    totals = device.totals[1000:1200]
    assert document["peak_bytes"] == totals.max()
    assert document["peak_event"] == 1000 + totals.argmax()
    _assert_timeline(document, pixels, device.timeline())


def test_a_part_in_time_is_the_events_of_that_time(demo: Path, render: Renderer) -> None:
    clock = snapviewer.load(demo).devices[0].clock()
    assert clock is not None
    low, high = clock.at(1000) / 1000, clock.at(2000) / 1000

    document, _ = render.picture(
        demo, "-d", "0", "--axis", "time", "--range", f"{low}ms", f"{high / 1000}"
    )

    first, last = document["events"]
    assert abs(first - 1000) <= 5
    assert abs(last - 2000) <= 5


def test_a_real_time_is_found_behind_shortened_ones(tmp_path: Path, render: Renderer) -> None:
    snapshot = hostile.small_snapshot()
    for event, time_s in zip(
        snapshot["device_traces"][0], (0, 1, 2, 3, 503, 504, 505), strict=True
    ):
        event["time_us"] = 1_700_000_000_000_000 + time_s * 1_000_000
    path = tmp_path / "idle.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    options = ("--axis", "time", "--compress-idle", "--range", "503s", "9min")

    document, _ = render.picture(path, *options)

    assert document["events"] == [4, 7]


def test_a_filter_leaves_others_out_and_dimming_keeps_them(demo: Path, render: Renderer) -> None:
    view = ("--res", "800", "400", "-d", "0")
    filters = ("--filter", "forward", "--filter", "size>=1MiB")

    filtered, filtered_pixels = render.picture(demo, *view, *filters)
    dimmed, dimmed_pixels = render.picture(demo, *view, *filters, "--dim")

    device = snapviewer.load(demo).devices[0]
    timeline = device.timeline(where="forward size>=1MiB")
    assert 0 < timeline.shown < len(device.allocations)
    assert filtered["shown_allocations"] == timeline.shown
    assert filtered["peak_bytes"] == timeline.peak_bytes < device.peak_bytes
    assert (dimmed["shown_allocations"], dimmed["peak_bytes"]) == (
        len(device.allocations),
        device.peak_bytes,
    )
    for document, pixels, which, dim in (
        (filtered, filtered_pixels, timeline, None),
        (dimmed, dimmed_pixels, device.timeline(), "forward size>=1MiB"),
    ):
        _assert_timeline(document, pixels, which, dim=dim)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_around_the_plot_are_words_on_the_themes_background(
    theme: str, demo: Path, render: Renderer
) -> None:
    document, pixels = render.picture(demo, "-d", "0", "--theme", theme)

    left, top, width, height = document["plot"]
    assert tuple(pixels[0, 0]) == tuple(pixels[-1, -1]) == THEMES[theme].background
    parts = {
        "title and facts": pixels[: top - 12],
        "labels of bytes": pixels[top : top + height, : left - 8],
        "labels of events": pixels[top + height + 6 :, left : left + width],
        "legend": pixels[top : top + height, left + width + 8 :],
    }
    assert {name: _ink(part, theme) > 200 for name, part in parts.items()} == dict.fromkeys(
        parts, True
    )
    edges = np.concatenate([pixels[:8].reshape(-1, 3), pixels[:, :8].reshape(-1, 3)])
    assert (edges == THEMES[theme].background).all(), "nothing touches the border"


def test_the_peak_and_out_of_memory_are_marked(small: Path, render: Renderer) -> None:
    document, pixels = render.picture(small)

    plot = _plot(document, pixels)
    light = THEMES["light"]
    rows = np.flatnonzero((plot == light.peak).all(axis=2).sum(axis=1) > plot.shape[1] // 3)
    low, high = document["shown_bytes"]
    height = document["plot"][3]
    exact = height - (document["peak_bytes"] - low) * height / (high - low)
    assert len(rows) == 1
    assert exact - 2 <= rows[0] <= exact
    columns = np.flatnonzero((plot == light.oom).all(axis=2).any(axis=0))
    (oom,) = snapviewer.load(small).devices[0].oom_at
    assert list(columns) == [oom * plot.shape[1] // 7]


def test_twice_the_scale_is_twice_as_large_in_everything(demo: Path, render: Renderer) -> None:
    once, _ = render.picture(demo, "--res", "900", "500")
    twice, pixels = render.picture(demo, "--res", "900", "500", "--scale", "2")

    assert pixels.shape == (1000, 1800, 3)
    assert (twice["width"], twice["height"]) == (1800, 1000)
    for one, two in zip(once["plot"], twice["plot"], strict=True):
        assert abs(two - 2 * one) <= 40, "text does not grow evenly"
    with Image.open(render.output) as image:
        assert round(image.info["dpi"][0]) == 192


@pytest.mark.parametrize("size", [(400, 300), (401, 333), (700, 500), (899, 901), (3000, 400)])
def test_pictures_of_all_sizes_have_room_for_their_plot(
    size: tuple[int, int], demo: Path, render: Renderer
) -> None:
    document, pixels = render.picture(demo, "--res", *map(str, size))

    left, top, width, height = document["plot"]
    assert pixels.shape == (size[1], size[0], 3)
    assert width >= 0.6 * size[0]
    assert height >= 0.35 * size[1]
    assert (left + width, top + height) < size
    assert _ink(pixels[: top - 12]) > 100


@pytest.mark.slow
def test_the_largest_picture_can_be_drawn(demo: Path, render: Renderer) -> None:
    _, pixels = render.picture(demo, "--res", "8000", "4000")

    assert pixels.shape == (4000, 8000, 3)


def test_the_device_with_the_largest_peak_is_shown_unless_another_is_named(
    demo: Path, render: Renderer
) -> None:
    devices = snapviewer.load(demo).devices
    largest = max(devices, key=lambda device: device.peak_bytes)

    assert render.picture(demo)[0]["device"] == largest.index
    for device in devices:
        document, _ = render.picture(demo, "--device", str(device.index))
        assert document["device"] == device.index
        assert document["peak_bytes"] == device.peak_bytes


def test_the_peak_may_be_before_the_first_event(tmp_path: Path, render: Renderer) -> None:
    path = tmp_path / "falling.pickle"
    path.write_bytes(pickle.dumps(hostile.falling_snapshot()))
    (device,) = snapviewer.load(path).devices

    document, pixels = render.picture(path)

    assert (document["peak_event"], document["peak_bytes"]) == (-1, device.initial_bytes)
    assert document["shown_bytes"][1] > device.initial_bytes
    peak = _plot(document, pixels) == THEMES["light"].peak
    assert peak.all(axis=2).any(), "the line of the peak is in the picture"
    later, _ = render.picture(path, "--range", "1", "3")
    assert later["peak_event"] == 1


def test_a_file_without_events_is_one_moment(tmp_path: Path, render: Renderer) -> None:
    snapshot = hostile.small_snapshot()
    snapshot["device_traces"] = [[]]
    path = tmp_path / "state.pickle"
    path.write_bytes(pickle.dumps(snapshot))

    document, pixels = render.picture(path)

    assert (document["events"], document["peak_event"]) == ([0, 0], -1)
    assert document["peak_bytes"] == 2000
    plot = _plot(document, pixels)
    assert len(np.unique(plot[-1], axis=0)) == 1, "the bottom is one allocation"
    assert _ink(plot) > plot.shape[0] * plot.shape[1] * 0.8


def test_an_empty_plot_says_why(demo: Path, render: Renderer) -> None:
    document, pixels = render.picture(demo, "--filter", "nowhere", "--quiet")

    plot = _plot(document, pixels)
    middle = plot[plot.shape[0] // 2 - 12 : plot.shape[0] // 2 + 6]
    assert (middle == THEMES["light"].secondary).all(axis=2).any()


def test_a_title_is_shown_and_kept_in_the_file(small: Path, render: Renderer) -> None:
    _, plain = render.picture(small)
    _, titled = render.picture(small, "--title", "Größe: 雪 before the fix")

    assert (plain[:40] != titled[:40]).any()
    assert (plain[60:] == titled[60:]).all()
    with Image.open(render.output) as image:
        assert image.info["Title"] == "Größe: 雪 before the fix"


def test_a_file_name_that_is_no_text_is_shown_as_far_as_it_is(
    small: Path, render: Renderer
) -> None:
    odd = small.with_name(os.fsdecode(b"\xff.pickle"))
    small.rename(odd)

    render.picture(odd)

    with Image.open(render.output) as image:
        assert image.info["Title"] == "?.pickle  ·  device 0"


def test_the_same_picture_is_the_same_file(small: Path, render: Renderer) -> None:
    render.picture(small)
    first = render.output.read_bytes()
    render.picture(small)

    assert render.output.read_bytes() == first


# How the command ends


def test_a_picture_is_announced_in_one_line(small: Path, render: Renderer) -> None:
    ran = render.run(small, "--res", "640", "480", "--scale", "2")

    size = render.output.stat().st_size
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"{render.output}: 1280 × 960 pixels, {format_bytes(size)}\n"


def test_json_describes_the_picture(small: Path, render: Renderer) -> None:
    document, _ = render.picture(small, "--res", "500", "400")

    assert document.pop("plot")
    assert document.pop("bytes") == render.output.stat().st_size
    assert document.pop("shown_bytes")[0] == 0
    assert [one["output"] for one in document.pop("outputs")] == [str(render.output)]
    assert document == {
        "output": str(render.output),
        "width": 500,
        "height": 400,
        "device": 0,
        "events": [0, 7],
        "time_us": None,
        "shown_allocations": 2,
        "peak_bytes": 3000,
        "peak_event": 2,
    }


def test_an_output_that_exists_is_replaced_by_force_only(small: Path, render: Renderer) -> None:
    render.output.write_bytes(b"mine")

    refused = render.run(small)
    kept = render.output.read_bytes()
    forced = render.run(small, "--force")

    assert (refused.code, refused.out, kept) == (1, "", b"mine")
    assert refused.err == (
        "snapviewer: the output exists already; choose another name, or replace it with --force: "
        f"{render.output}\n"
    )
    assert forced.code == 0
    assert render.output.read_bytes().startswith(b"\x89PNG")


def _assert_refused(ran: Ran, render: Renderer, *words: str) -> None:
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("snapviewer: ")
    assert len(ran.err.splitlines()) == 1, ran.err
    assert [word for word in words if word not in ran.err] == [], ran.err
    assert list(render.output.parent.glob("*.p*")) == list(render.output.parent.glob("*.pickle"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--device", "3"), ("no device 3", "0, 1, -1")),
        (("--range", "3000", "4000"), ("the range is empty", "3,000 events")),
        (("--axis", "time", "--range", "3h", "4h"), ("the range is empty", " long")),
        (("--bytes", "1TiB", "2TiB"), ("the range of bytes is empty", "at most ", " are alive")),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence_and_leaves_nothing(
    options: tuple[str, ...], words: tuple[str, ...], demo: Path, render: Renderer
) -> None:
    _assert_refused(render.run(demo, *options), render, *words)


def test_a_file_without_times_has_no_axis_of_time(tmp_path: Path, render: Renderer) -> None:
    snapshot = hostile.small_snapshot()
    for event in snapshot["device_traces"][0]:
        del event["time_us"]
    path = tmp_path / "timeless.pickle"
    path.write_bytes(pickle.dumps(snapshot))

    _assert_refused(render.run(path, "--axis", "time"), render, "no times")


@pytest.mark.parametrize("output", ["absent/out.png", "."])
def test_an_output_that_cannot_be_written_is_one_sentence(
    output: str, small: Path, render: Renderer
) -> None:
    render.output = small.parent / output

    ran = render.run(small)

    assert (ran.code, ran.out) == (1, "")
    assert len(ran.err.splitlines()) == 1
    assert list(small.parent.iterdir()) == [small]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--res 399 300", "at least 400 × 300"),
        ("--res 400 299", "at least 400 × 300"),
        ("--res 8001 300", "at most 8000 × 4000"),
        ("--res 4001 1000 --scale 2", "at most 8000 × 4000"),
        ("--res 800", "--res"),
        ("--res wide 300", "whole number"),
        ("--scale 3", "--scale"),
        ("--color red", "--color"),
        ("--order none", "--order"),
        ("--theme blue", "--theme"),
        ("--axis bytes", "--axis"),
        ("--range 5 5", "less than TO"),
        ("--range a b", "such as 1000 2000"),
        ("--range 1s 2s", "such as 1000 2000"),
        ("--axis time --range 1 soon", "such as 1.5s"),
        ("--axis time --range 1 nan", "such as 1.5s"),
        ("--bytes 2GiB 1GiB", "LOW must be less"),
        ("--bytes 1 much", "such as 512MiB"),
        ("--bytes 1 99EiB", "too large"),
        ("--compress-idle", "--axis time"),
        ("--dim", "--filter"),
        ("--filter (", "filter: "),
        ("--filter size>=many", "size>=1.5MiB"),
        ("-o out.jpg", ".png"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_would_be_right(
    options: str, words: str, small: Path, render: Renderer
) -> None:
    ran = render.run(small, *options.split())

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("usage: snapviewer render")
    assert words in ran.err.splitlines()[-1]
    assert not render.output.exists()


# Untrusted files and names


def _event(name: str, filename: str, time_us: int = 1, place: int = 0) -> dict[str, Any]:
    frame = {"name": name, "filename": filename, "line": 1}
    event = {"action": "alloc", "addr": 4096 + 512 * place, "size": 512, "stream": 0}
    return event | {"frames": [frame], "time_us": time_us}


def _file(path: Path, *events: dict[str, Any]) -> Path:
    path.write_bytes(pickle.dumps({"device_traces": [list(events)], "segments": []}))
    return path


@pytest.mark.parametrize(
    ("name", "filename"),
    [
        ("n" * 200_000, "a.py"),
        ("\ufdfa" * 5000, "a.py"),
        ("e" + "\u0301" * 50_000, "a.py"),
        ("f", "/" + "python" * 30_000 + ".py"),
        ("\x1b[31m\n\u202e", "\U0001f600/\x00.py"),
    ],
    ids=["long", "ligatures", "accents", "python", "odd"],
)
def test_any_name_of_a_frame_can_be_drawn(
    name: str, filename: str, tmp_path: Path, render: Renderer
) -> None:
    ran = render.run(_file(tmp_path / "names.pickle", _event(name, filename)))

    assert (ran.code, ran.err) == (0, "")


def test_a_title_without_end_is_cut(small: Path, render: Renderer) -> None:
    assert render.run(small, "--title", "t" * 100_000).code == 0


def test_a_time_that_no_calendar_has_is_drawn_without_its_date(
    tmp_path: Path, render: Renderer
) -> None:
    events = (_event("f", "a.py", 4 * 10**17 + place, place) for place in range(3))

    assert render.run(_file(tmp_path / "far.pickle", *events), "--axis", "time").code == 0


def test_a_time_too_long_to_be_marked_is_one_sentence(tmp_path: Path, render: Renderer) -> None:
    file = _file(tmp_path / "gap.pickle", _event("f", "a.py", 1), _event("f", "a.py", 2**64 - 1, 1))

    for size in (("400", "300"), ("1600", "900")):
        ran = render.run(file, "--axis", "time", "--res", *size)

        assert (ran.code, ran.out, len(ran.err.splitlines())) == (1, "", 1)
    assert render.run(file, "--axis", "time", "--compress-idle").code == 0


def test_a_filter_that_matches_nothing_is_reported(small: Path, render: Renderer) -> None:
    for text in ("no such frame", "\udcff"):
        ran = render.run(small, "--filter", text, "--force")

        assert ran.code == 0
        assert ran.err == "snapviewer: no allocation matches the filter; the picture is empty\n"


def test_what_is_no_regular_file_or_the_snapshot_itself_is_never_replaced(
    small: Path, render: Renderer
) -> None:
    before = small.read_bytes()
    os.mkfifo(render.output)
    assert "not a regular file" in render.run(small, "--force").err
    render.output.unlink()
    render.output.symlink_to("nowhere")
    assert "exists already" in render.run(small).err
    render.output.unlink()
    render.output.symlink_to(small)

    assert "the output is the input itself" in render.run(small, "--force").err
    assert small.read_bytes() == before
