"""What a timeline takes and refuses, and how its images look."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snapviewer
from snapviewer import _core
from snapviewer.demo import DemoOptions, write_demo
from support import program
from support import timeline_reference as reference
from support.timeline_cases import Window
from support.timeline_reference import BACKGROUND, ORDERS, Reference

COLORS = ("stack", "size", "stream", "pool", "age", "category")
THEMES = ("light", "dark")
BASE = 0x7F00_0000_0000
EVENTS = 2000
SIZE = (90, 70)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot of a small training run."""
    path = tmp_path_factory.mktemp("demo") / "demo.pickle"
    write_demo(path, DemoOptions(events=EVENTS))
    return path


@pytest.fixture(scope="module")
def dev(demo: Path) -> Any:
    """The one device of it."""
    return snapviewer.load(demo).devices[0]


@pytest.fixture
def t(dev: Any) -> Any:
    """Its timeline, as it comes."""
    return dev.timeline()


def _image(t: Any, **options: Any) -> Any:
    """The whole of a timeline, or what the options say."""
    whole = {"bytes": (0, t.peak_bytes * 21 // 20), "size": SIZE}
    if "time" not in options:
        whole["events"] = (0, EVENTS)
    return t.image(**whole | options)


def _written(path: Path, trace: list[dict[str, Any]], *segments: dict[str, Any]) -> Any:
    path.write_bytes(pickle.dumps({"device_traces": [trace], "segments": list(segments)}))
    return snapviewer.load(path).devices[0]


def _event(action: str, place: int, size: int) -> dict[str, Any]:
    event = {"action": action, "addr": BASE + place * 512, "size": size, "stream": 0}
    return event | {"time_us": 1_700_000_000_000_000 + place, "frames": []}


def _trace(events: str) -> list[dict[str, Any]]:
    """Events from texts such as `alloc 0 2`: the action, the place and the size of each."""
    parts = [event.split() for event in events.split(",")]
    return [_event(action, int(place), int(size)) for action, place, size in parts]


# A timeline of which everything is known


def test_a_small_timeline_is_as_one_would_draw_it(tmp_path: Path) -> None:
    trace = _trace("alloc 0 2, alloc 1 1, free_completed 0 2, alloc 2 3")
    t = _written(tmp_path / "small.pickle", trace).timeline()

    image = t.image(events=(0, 4), bytes=(0, 5), size=(4, 5))

    _ = BACKGROUND
    assert image.events.tolist() == [0, 1, 2, 3]
    assert image.ids.tolist() == [
        [_, _, _, _],
        [_, _, _, 2],
        [_, 1, _, 2],
        [0, 0, _, 2],
        [0, 0, 1, 1],
    ]
    assert t.totals.tolist() == [2, 3, 1, 4]
    assert (t.peak_bytes, t.peak_event, t.shown) == (4, 3, 3)
    assert [part.tolist() for part in t.stack(3)] == [[1, 2], [0, 1]]
    assert [t.offset(which, 3) for which in range(3)] == [None, 0, 1]
    assert [t.at(3, byte) for byte in range(5)] == [1, 2, 2, 2, None]
    assert t.at(-1, 0) is None


def test_what_is_left_out_takes_no_room(tmp_path: Path) -> None:
    trace = _trace("alloc 0 2, alloc 1 1, alloc 2 3")
    dev = _written(tmp_path / "small.pickle", trace)
    t = dev.timeline(where=np.array([True, False, True]))

    image = t.image(events=(2, 3), bytes=(0, 6), size=(1, 6))

    assert image.ids[::-1, 0].tolist() == [0, 0, 2, 2, 2, BACKGROUND]
    assert t.totals.tolist() == [2, 2, 5]
    assert t.shown == 2


def test_a_block_thinner_than_half_a_pixel_is_drawn_as_its_heaviest(tmp_path: Path) -> None:
    sizes = [1] * 31 + [9] + [2**20] + [1] * 31
    trace = [_event("alloc", n, size) for n, size in enumerate(sizes)]
    t = _written(tmp_path / "small.pickle", trace).timeline()
    last = (len(sizes) - 1, len(sizes))

    coarse = t.image(events=last, bytes=(0, 80), size=(1, 1))
    fine = t.image(events=last, bytes=(0, 79), size=(1, 1))

    assert coarse.ids.tolist() == [[32]], "byte 40 is the huge one's"
    assert fine.ids.tolist() == [[31]], "byte 39 is the ninth of nine"
    assert t.image(events=last, bytes=(0, 40), size=(1, 1)).ids.tolist() == [[20]]
    assert t.image(events=last, bytes=(0, 4), size=(1, 1)).ids.tolist() == [[2]]


def test_the_largest_totals_that_a_file_may_have_are_exact(tmp_path: Path) -> None:
    sizes = [2**62 - 5, 1, 2**62 - 1, 4]
    dev = _written(tmp_path / "huge", [_event("alloc", n, size) for n, size in enumerate(sizes)])
    total, middle = 2**63 - 1, 2**62
    spans = [(0, total), (0, 2**64 - 1), (total - 6, total + 3), (middle - 9, middle + 9)]
    for order in ("allocation", "size"):
        t, model = dev.timeline(order=order), Reference(dev, order)

        assert t.totals.tolist() == [2**62 - 5, 2**62 - 4, 2**63 - 5, total]
        for span in spans:
            image = t.image(events=(0, 4), bytes=span, size=(4, 18))
            assert image.ids.tolist() == model.ids([0, 1, 2, 3], span, 18).tolist()
        for byte in (0, middle - 6, middle - 5, middle - 4, total - 5, total - 1, total, 2**64 - 1):
            assert t.at(3, byte) == model.at(3, byte)


def test_a_trace_without_events_is_a_picture_of_one_moment(tmp_path: Path) -> None:
    block = {"address": BASE, "size": 512, "requested_size": 7, "state": "active_allocated"}
    segment = {"device": 0, "address": BASE, "total_size": 512, "stream": 0, "blocks": [block]}
    t = _written(tmp_path / "state.pickle", [], segment).timeline()

    image = t.image(events=(-1, 2), bytes=(0, 10), size=(3, 10))

    assert image.events.tolist() == [-1, 0, -1]
    assert image.ids[::-1, 1].tolist() == [0] * 7 + [BACKGROUND] * 3
    assert set(image.ids[:, [0, 2]].ravel().tolist()) == {BACKGROUND}
    assert t.totals.tolist() == []
    assert (t.peak_bytes, t.peak_event) == (7, -1)
    for moment in (-1, 0):
        assert (t.at(moment, 6), t.at(moment, 7)) == (0, None)
        assert [part.tolist() for part in t.stack(moment)] == [[0], [0]]


def test_a_column_of_time_shows_what_there_was_before_it_and_what_happens_in_it(
    tmp_path: Path,
) -> None:
    trace = _trace("alloc 0 1, alloc 1 2, free_completed 1 2, alloc 2 1")
    for event, after_us in zip(trace, (0, 10, 10, 20), strict=True):
        event["time_us"] = 1_700_000_000_000_000 + after_us
    dev = _written(tmp_path / "times.pickle", trace)
    t, clock = dev.timeline(), dev.clock()

    image = t.image(time=(-5, 30), clock=clock, bytes=(0, 1), size=(7, 1))
    wider = t.image(time=(-5, 31), clock=clock, bytes=(0, 1), size=(3, 1))

    # A moment at an edge is of the column on its right; of several at once the last one stays.
    assert image.events.tolist() == [-1, 0, 0, 2, 2, 3, -1]
    assert wider.events.tolist() == [0, 1, 3]
    assert Reference(dev).moments_of_time(-5, 30, 7, clock) == image.events.tolist()


# Colours


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("color", COLORS)
def test_each_pixel_has_the_colour_of_its_allocation(
    dev: Any, t: Any, color: str, theme: str
) -> None:
    model, colors = Reference(dev), dev.colors(color=color, theme=theme)
    look = {"color": color, "theme": theme}
    assert (colors.shape, colors.dtype) == ((len(dev.allocations), 3), np.uint8)
    for events in ((0, EVENTS), (t.peak_event - 40, t.peak_event + 5)):
        window = Window(events, (0, t.peak_bytes * 21 // 20), SIZE)

        image = window.of(t, **look)

        assert image.rgb.tolist() == window.rgb(model, colors, look).tolist()
        is_background = image.ids == BACKGROUND
        assert is_background.any()
        assert (image.rgb[is_background] == reference.INKS[theme].background).all()


@pytest.mark.parametrize("theme", THEMES)
def test_what_is_dimmed_is_nearer_to_the_background(dev: Any, t: Any, theme: str) -> None:
    dim = np.arange(len(dev.allocations)) % 3 == 0
    paper = np.array(reference.INKS[theme].background, dtype=int)

    plain, image = _image(t, theme=theme), _image(t, theme=theme, dim=dim)

    assert image.ids.tolist() == plain.ids.tolist()
    is_faint = np.append(~dim, False)[np.minimum(image.ids, len(dim))]
    before, after = (abs(rgb.astype(int) - paper) for rgb in (plain.rgb, image.rgb))
    assert is_faint.any()
    assert (after[is_faint] * 3 <= before[is_faint] + 9).all()
    assert (image.rgb[~is_faint] == plain.rgb[~is_faint]).all()


def test_a_pending_free_is_hatched_while_it_waits(tmp_path: Path) -> None:
    trace = _trace(
        "alloc 0 40, alloc 1 40, free_requested 0 40, snapshot 9 0, snapshot 9 0, "
        "free_completed 0 40, free_requested 1 40, free_completed 1 40"
    )
    dev = _written(tmp_path / "pending.pickle", trace)
    t, model, colors = dev.timeline(), Reference(dev), dev.colors()

    image = t.image(events=(0, 8), bytes=(0, 80), size=(80, 40))

    waits = (image.ids == 0) & (image.events >= 2)[None, :]
    is_plain = (image.rgb == colors[0]).all(axis=2)
    assert waits.any()
    assert not is_plain[waits].all(), "there are stripes"
    assert is_plain[waits].any(), "and what is between them"
    for lo in (0, 0.53, 0.57, -1.06, -1.02, 0.05):
        window = Window((lo, lo + 8), (0, 80), (80, 40))
        assert window.of(t).rgb.tolist() == window.rgb(model, colors, {}).tolist(), lo


def test_a_copy_of_an_image_has_no_transparent_pixel(t: Any) -> None:
    image = _image(t)

    whole = image.marked(())

    assert (whole.shape, whole.dtype) == ((*SIZE[::-1], 4), np.uint8)
    assert (whole[..., 3] == 255).all()
    assert (whole[..., :3] == image.rgb).all()


def test_what_an_image_gave_stays_when_others_are_drawn(t: Any) -> None:
    image = _image(t)
    kept = [image.rgb, image.ids, image.events]
    copies = [array.copy() for array in kept]

    del image
    for theme in THEMES * 3:
        _image(t, theme=theme, bytes=(0, 2**40))

    assert all(np.array_equal(*pair) for pair in zip(kept, copies, strict=True))
    assert not any(array.flags.writeable for array in kept[:2])


def test_a_picture_given_up_for_the_next_is_empty_but_its_arrays_stay(t: Any) -> None:
    given, kept = _image(t), _image(t)
    rgb, expected = kept.rgb, kept.rgb.copy()

    after_given, after_kept = _image(t, previous=given), _image(t, previous=kept)

    for gone in (given, kept):
        with pytest.raises(ValueError, match="given up"):
            _ = gone.ids
    assert np.array_equal(rgb, expected)
    assert np.array_equal(after_given.rgb, expected)
    assert np.array_equal(after_kept.rgb, expected)


def test_the_selected_allocation_stands_out_and_nothing_else_changes(t: Any) -> None:
    plain = _image(t)
    shown, counts = np.unique(plain.ids[plain.ids != BACKGROUND], return_counts=True)
    selected = int(shown[counts.argmax()])

    image = _image(t, selected=selected)

    differs = (image.rgb != plain.rgb).any(axis=2)
    near = plain.ids == selected
    for shift in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        near |= np.roll(plain.ids == selected, shift, axis=(0, 1))
    assert differs.any()
    assert not (differs & ~near).any()
    assert image.ids.tolist() == plain.ids.tolist()


FINGERPRINT = """if True:
    import hashlib, sys, snapviewer
    dev = snapviewer.load(sys.argv[1]).devices[0]
    t = dev.timeline()
    for color in sys.argv[2:]:
        image = t.image(events=(0, 2000), bytes=(0, t.peak_bytes), size=(90, 70), color=color)
        for array in (dev.colors(color=color), image.rgb, image.ids):
            print(hashlib.sha256(array.tobytes()).hexdigest())
"""


def test_colours_are_the_same_in_every_process_and_of_a_bundle(
    demo: Path, dev: Any, t: Any, tmp_path: Path
) -> None:
    _core.convert(demo, tmp_path / "demo.zip")
    here = []
    for color in COLORS:
        image = _image(t, bytes=(0, t.peak_bytes), color=color)
        for array in (dev.colors(color=color), image.rgb, image.ids):
            here.append(hashlib.sha256(array.tobytes()).hexdigest())

    for path in (demo, tmp_path / "demo.zip"):
        ran = program.run(FINGERPRINT, path, *COLORS, program=("-c",))
        assert ran.err == ""
        assert ran.out.split() == here


# What is refused


def _says_why(error: pytest.ExceptionInfo[BaseException]) -> bool:
    """Whether an error's message is a sentence and not a word."""
    return len(str(error.value).split()) >= 4


@pytest.mark.parametrize(
    "size",
    [
        (0, 5),
        (5, 0),
        (0, 0),
        (-1, 5),
        (2**14, 2**14 + 1),
        (2**20, 2**20),
        (2**40, 2**40),
        (2**70, 1),
    ],
)
def test_a_size_of_nothing_or_too_much_is_refused(t: Any, size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"size|pixel") as error:
        _image(t, size=size)
    assert _says_why(error)


@pytest.mark.parametrize("axis", ["events", "time"])
@pytest.mark.parametrize(
    "ends",
    [
        (5, 5),
        (6, 5),
        (float("nan"), 5),
        (5, float("nan")),
        (0, float("inf")),
        (float("-inf"), 5),
        (0, 1e16),
        (5, 5 + 1e-9),
    ],
)
def test_a_range_without_length_or_end_is_refused(
    dev: Any, t: Any, axis: str, ends: tuple[float, float]
) -> None:
    options: dict[str, Any] = {axis: ends}
    if axis == "time":
        options["clock"] = dev.clock()

    with pytest.raises(ValueError, match=r"range|narrow") as error:
        _image(t, **options)
    assert _says_why(error)


@pytest.mark.parametrize("ends", [(5, 5), (6, 5), (-1, 5), (-5, -1), (0, 2**64 + 1), (0, 2**70)])
def test_a_range_of_bytes_that_cannot_be_is_refused(t: Any, ends: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="byte") as error:
        _image(t, bytes=ends)
    assert _says_why(error)


@pytest.mark.parametrize(("option", "choices"), [("color", COLORS), ("theme", THEMES)])
def test_an_unknown_look_is_refused_and_the_known_ones_named(
    dev: Any, t: Any, option: str, choices: tuple[str, ...]
) -> None:
    for draw in (lambda **look: _image(t, **look), dev.colors):
        with pytest.raises(ValueError, match="chartreuse") as error:
            draw(**{option: "chartreuse"})
        assert all(choice in str(error.value) for choice in choices)


def test_an_unknown_order_is_refused_and_the_known_ones_named(dev: Any) -> None:
    with pytest.raises(ValueError, match="chartreuse") as error:
        dev.timeline(order="chartreuse")
    assert all(order in str(error.value) for order in ORDERS)


@pytest.mark.parametrize("more", [-1, 1])
def test_a_mask_of_another_length_is_refused(dev: Any, t: Any, more: int) -> None:
    mask = np.ones(len(dev.allocations) + more, dtype=bool)

    with pytest.raises(ValueError, match=str(len(dev.allocations))) as error:
        dev.timeline(where=mask)
    assert _says_why(error)
    with pytest.raises(ValueError, match=str(len(dev.allocations))) as error:
        _image(t, dim=mask)
    assert _says_why(error)


def test_a_mask_that_is_longer_than_its_memory_is_refused(dev: Any, t: Any) -> None:
    endless = np.broadcast_to(np.True_, (2**42,))

    with pytest.raises(ValueError, match="entries"):
        dev.timeline(where=endless)
    with pytest.raises(ValueError, match="entries"):
        _image(t, dim=endless)


def test_any_byte_but_0_is_true_in_a_mask(dev: Any) -> None:
    odd = np.full(len(dev.allocations), 2, np.uint8).view(np.bool_)

    t = dev.timeline(where=odd)

    assert (t.shown, t.peak_bytes) == (len(dev.allocations), dev.peak_bytes)


def test_an_image_is_either_of_events_or_of_time(dev: Any, t: Any) -> None:
    rest = {"bytes": (0, 1), "size": (1, 1)}

    with pytest.raises((ValueError, TypeError)) as error:
        t.image(events=(0, 1), time=(0, 1), clock=dev.clock(), **rest)
    assert _says_why(error)
    with pytest.raises((ValueError, TypeError)) as error:
        t.image(**rest)
    assert _says_why(error)


def test_without_times_there_is_no_clock(tmp_path: Path) -> None:
    event = _event("alloc", 0, 2)
    del event["time_us"]
    dev = _written(tmp_path / "timeless.pickle", [event])

    assert dev.clock() is None
    assert dev.clock(compress=True) is None
    with pytest.raises(ValueError, match="no times") as error:
        dev.timeline().image(time=(0, 1), bytes=(0, 1), size=(1, 1))
    assert _says_why(error)


def test_time_without_a_clock_is_that_of_the_events(dev: Any, t: Any) -> None:
    ends = (0, dev.clock().length_us / 3)

    image = _image(t, time=ends)

    assert image.ids.tolist() == _image(t, time=ends, clock=dev.clock()).ids.tolist()


def test_an_overview_refuses_what_an_image_does(t: Any) -> None:
    for events, size in (((5, 5), 10), ((0, float("nan")), 10), ((0, 5), 0), ((0, 5), 2**40)):
        with pytest.raises(ValueError, match=r"range|pixels") as error:
            t.overview(events=events, size=size)
        assert _says_why(error)


@pytest.mark.parametrize("event", [-2, EVENTS, 2**40, -(2**40), 2**70])
def test_an_event_outside_the_trace_is_an_index_error(t: Any, event: int) -> None:
    with pytest.raises(IndexError, match=str(event)):
        t.at(event, 0)
    with pytest.raises(IndexError, match=str(event)):
        t.stack(event)
    with pytest.raises(IndexError, match=str(event)):
        t.offset(0, event)


@pytest.mark.parametrize("beyond", [-1, 100_000, 2**32, 2**70])
def test_a_selection_that_is_no_allocation_is_an_index_error(t: Any, beyond: int) -> None:
    with pytest.raises(IndexError, match=f"allocation {beyond} of"):
        _image(t, selected=beyond)


def test_nothing_is_above_the_total(dev: Any, t: Any) -> None:
    for event in (-1, 0, t.peak_event, EVENTS - 1):
        total = int(t.totals[event]) if event >= 0 else dev.initial_bytes
        assert t.at(event, total) is None
        assert t.at(event, 2**64 - 1) is None
    assert t.at(t.peak_event, t.peak_bytes - 1) is not None
