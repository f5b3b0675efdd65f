"""Logs are read in every form that recorders write, and oddities are reported."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer.events import reader
from snapviewer.events.log import Event, Oddity, event_of, read_log
from snapviewer.events.reader import LogError, Torn, parse_entries, read_entries
from support.patience import PATIENT

SAMPLE = [
    {"event": "init", "peak_memory": 0},
    {"event": "t5_loaded", "incremental_memory": 11362869248},
    {"event": "model_loaded", "peak_memory": 24824987648},
    {"event": "step_0", "incremental_memory": 35122176},
]
MIB = 2**20

Writer = Callable[[list[object]], str]


def _pretty(values: list[object]) -> str:
    return "\n".join(json.dumps(value, indent=2) for value in values)


FORMS: dict[str, Writer] = {
    "list": json.dumps,
    "indented list": lambda values: json.dumps(values, indent=4, ensure_ascii=False),
    "airy list": lambda values: f" \r\n\t{json.dumps(values, separators=(' , ', ' :  '))} \n\n",
    "lines": lambda values: "".join(f"{json.dumps(value)}\n" for value in values),
    "lines of Windows": lambda values: "\r\n\r\n".join(map(json.dumps, values)),
    "one after another": _pretty,
    "object": lambda values: json.dumps({"version": [2, {}], "events": values, "end": None}),
    "indented object": lambda values: json.dumps({"events": values}, indent=1),
}
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16")


def _written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def _event(**fields: object) -> tuple[Event, list[Oddity]]:
    event, odd = event_of({"event": "x", **fields}, 7)
    assert event is not None
    return event, odd


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("form", FORMS)
def test_a_log_says_the_same_in_every_form(tmp_path: Path, form: str, encoding: str) -> None:
    path = _written(tmp_path / "log", FORMS[form](list(SAMPLE)), encoding)

    log = read_log(path)

    assert [event.name for event in log.events] == ["init", "t5_loaded", "model_loaded", "step_0"]
    assert [event.peak_bytes for event in log.events] == [0, None, 24824987648, None]
    assert [event.incremental_bytes for event in log.events] == [None, 11362869248, None, 35122176]
    assert (log.path, log.oddities, log.odd_count) == (str(path), (), 0)


NUMBERS = st.integers(-(10**30), 10**30) | st.floats()
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
NAMED = st.dictionaries(st.text(max_size=3), VALUES).map(lambda fields: {"event": "x", **fields})


@PATIENT
@given(
    first=NAMED,
    rest=st.lists(VALUES, max_size=5),
    form=st.sampled_from(sorted(FORMS)),
    encoding=st.sampled_from(ENCODINGS),
    size=st.integers(1, 40),
)
def test_entries_are_what_json_makes_of_them_wherever_the_text_is_cut(
    tmp_path_factory: pytest.TempPathFactory,
    first: object,
    rest: list[object],
    form: str,
    encoding: str,
    size: int,
) -> None:
    # An object comes first: a list that comes first would be the list of entries.
    values = [first, *rest]
    text = FORMS[form](values)
    path = _written(tmp_path_factory.getbasetemp() / "cut", text, encoding)

    found = list(parse_entries("cut", _cut(text, size)))

    # As text, since NaN is not equal to itself; json is the model.
    assert repr(found) == repr(json.loads(json.dumps(values)))
    assert repr(list(read_entries(path))) == repr(found)


def _cut(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _lines_model(text: str) -> list[object]:
    """Parse each line by itself; a line that is not JSON is torn."""
    found: list[object] = []
    for line in text.split("\n"):
        try:
            found += [json.loads(line)] if line.strip() else []
        except ValueError:
            found.append("torn")
    return found


@PATIENT
@given(
    lines=st.lists(
        st.tuples(
            st.fixed_dictionaries({"event": st.text(max_size=5), "v": SCALARS}).map(json.dumps),
            st.none() | st.integers(1, 20),
        ),
        max_size=8,
    ),
    size=st.integers(1, 30),
)
def test_lines_around_torn_ones_are_read(lines: list[tuple[str, int | None]], size: int) -> None:
    kept = [line if cut is None else line[: -min(cut, len(line) - 1)] for line, cut in lines]
    text = "\n".join([json.dumps(SAMPLE[0]), *kept])

    found = list(parse_entries("torn", _cut(text, size)))

    assert ["torn" if isinstance(entry, Torn) else entry for entry in found] == [
        json.loads(json.dumps(entry)) for entry in _lines_model(text)
    ]


def test_a_line_that_a_killed_run_left_is_odd_and_what_was_before_counts(tmp_path: Path) -> None:
    text = '{"event": "init", "peak_memory": 5}\n{"event": "step_0", "increm'
    path = _written(tmp_path / "log", text)

    log = read_log(path)

    assert [event.name for event in log.events] == ["init"]
    assert log.oddities == (Oddity("torn-line", 2, "", '{"event": "step_0", "increm'),)


def test_a_letter_that_was_cut_is_part_of_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes('{"event": "init"}\n{"event": "显'.encode()[:-1])

    log = read_log(path)

    assert [odd.kind for odd in log.oddities] == ["torn-line"]


def test_a_torn_object_over_several_lines_is_one_oddity(tmp_path: Path) -> None:
    whole = json.dumps({"event": "a", "inner": [{"event": "no"}], "b": {"c": 1}}, indent=2)
    torn = whole[: whole.index('"c"')]
    path = _written(tmp_path / "log", f"{whole}\n{torn}\n{whole}\n")

    log = read_log(path)

    assert [event.name for event in log.events] == ["a", "a"]
    assert [(odd.kind, odd.place) for odd in log.oddities] == [("torn-line", 2)]


@pytest.mark.parametrize(
    "text",
    [
        '{"event": "init", "peak',
        'oops\n{"event": "init"}',
        '[{"event": "init"}',
        '[{"event": "init"},',
        '[{"event": "init"},]',
        '[{"event": "init"} {"event": "x"}]',
        '[{"event": "init"}] 1',
        '[{"event": "init"}]\n[{"event": "init"}]',
        '{"events": [{"event": "init"}]',
        '{"events": [{"event": "init"}]} {"event": "x"}',
        '{"events": [{"event": "init"}], 5: 1}',
        '{"event" "init"}',
        "{'event': 'init'}",
        "<html>",
        "\0\0\0\0",
    ],
)
def test_what_is_no_json_is_refused(tmp_path: Path, text: str) -> None:
    path = _written(tmp_path / "log.json", text)

    with pytest.raises(LogError) as caught:
        read_log(path)

    assert str(caught.value).startswith(f"无法读取或解析文件 {path}: ")
    assert caught.value.sentence("en").startswith(f"cannot read or parse the file {path}: ")


REFUSALS = {
    ("其中没有事件", "there are no events in it"): [
        *("", " \n", "[]", "{}", '{"events": []}', "[1, 2]", '[{"event": " "}, {"event": 5}]')
    ],
    ("内容不完整", "it ends before its JSON does"): [
        "[1",
        "[1,",
        '[{"event": "a',
        '{"events": [{}]',
    ],
    ("不是有效的 JSON(第 3 行)", "it is not JSON (line 3)"): [
        '[\n {"event": "a"},\n {"event": oops}\n]'
    ],
}


@pytest.mark.parametrize(
    ("text", "reasons"), [(text, reasons) for reasons, texts in REFUSALS.items() for text in texts]
)
def test_the_reason_of_a_refusal_is_reported_in_both_languages(
    tmp_path: Path, text: str, reasons: tuple[str, str]
) -> None:
    path = _written(tmp_path / "log.json", text)

    with pytest.raises(LogError) as caught:
        read_log(path)

    assert caught.value.sentence("zh").endswith(f": {reasons[0]}")
    assert caught.value.sentence("en").endswith(f": {reasons[1]}")


def test_an_event_with_a_list_of_events_is_an_event(tmp_path: Path) -> None:
    path = _written(tmp_path / "log", '{"event": "a", "events": [{"event": "b"}]}')

    log = read_log(path)

    assert [event.name for event in log.events] == ["a"]


def test_every_field_of_the_richer_schema_is_read() -> None:
    event, odd = _event(
        peak_memory=10,
        incremental_memory=-3,
        timestamp="2025-07-08T08:35:45",
        duration=1.5,
        model_name=" wan\n2.1 ",
        cuda_runtime_peak=2,
        pytorch_runtime_peak=1.5,
        device="cuda:0",
        ok=True,
        rank=3,
        nothing=None,
        shape=[1, 2],
    )

    assert event == Event(
        name="x",
        peak_bytes=10,
        incremental_bytes=-3,
        time_s=1751963745.0,
        duration_s=1.5,
        model_name="wan 2.1",
        cuda_peak_bytes=2 * MIB,
        pytorch_peak_bytes=3 * MIB // 2,
        more=(("device", "cuda:0"), ("ok", "true"), ("rank", "3")),
    )
    assert odd == []


def test_what_is_not_recorded_is_none() -> None:
    event, odd = _event(peak_memory=None, timestamp=None, model_name="")

    assert event == Event("x", None, None, None, None, None, None, None, ())
    assert odd == []


def test_bytes_are_taken_before_mebibytes_in_whatever_order_they_stand() -> None:
    event, _ = _event(pytorch_tensor_peak_mb=3, peak_memory_mb=2, peak_memory=7)

    assert event.peak_bytes == 7
    assert event.more == (("pytorch_tensor_peak_mb", "3"), ("peak_memory_mb", "2"))


@pytest.mark.parametrize(
    ("fields", "peak_bytes"),
    [
        ({"peak_memory_mb": 1.25}, 5 * MIB // 4),
        ({"pytorch_tensor_peak_mb": 3}, 3 * MIB),
        ({"peak_memory": None, "peak_memory_mb": 2}, 2 * MIB),
        ({"peak_memory": "?", "peak_memory_mb": 2}, 2 * MIB),
        ({"peak_memory": 2.6}, 3),
        ({"peak_memory": 2**63 - 1}, 2**63 - 1),
    ],
)
def test_peaks_have_several_names(fields: dict[str, object], peak_bytes: int) -> None:
    event, _ = _event(**fields)

    assert event.peak_bytes == peak_bytes


BAD = [True, "12", "", [1], {}, math.nan, math.inf, -math.inf, 2**63, -(2**63), 1e300]


@pytest.mark.parametrize("value", BAD, ids=str)
@pytest.mark.parametrize("field", ["peak_memory", "incremental_memory_mb", "duration", "timestamp"])
def test_a_value_that_cannot_be_is_reported_and_left_out(field: str, value: object) -> None:
    event, odd = _event(**{field: value})

    assert event == Event("x", None, None, None, None, None, None, None, ())
    assert [(one.kind, one.place, one.field) for one in odd] == [("bad-value", 7, field)]


@pytest.mark.parametrize("field", ["peak_memory", "peak_memory_mb", "duration"])
@pytest.mark.parametrize("value", [-1, -1e-9])
def test_only_increments_may_be_negative(field: str, value: float) -> None:
    event, odd = _event(**{field: value, "incremental_memory": -1})

    assert (event.peak_bytes, event.duration_s, event.incremental_bytes) == (None, None, -1)
    assert odd == [Oddity("bad-value", 7, field, str(value))]


@pytest.mark.parametrize("entry", [None, 5, "init", [], {}, {"event": ""}, {"Event": "x"}], ids=str)
def test_an_entry_without_a_name_is_no_event(entry: object) -> None:
    event, odd = event_of(entry, 3)

    assert event is None
    assert [(one.kind, one.place, one.field) for one in odd] == [("not-an-event", 3, "")]


@PATIENT
@given(
    st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)),
    st.sampled_from(["", "Z", "+08:00", "-0330", "+05"]),
    st.sampled_from(["T", " "]),
    st.sampled_from(["seconds", "milliseconds", "microseconds"]),
)
def test_times_are_read_as_python_reads_them(
    time: datetime, zone: str, between: str, precision: str
) -> None:
    text = time.isoformat(between, precision) + zone
    east = {"+08:00": 480, "-0330": -210, "+05": 300}.get(zone, 0)
    shown = datetime.fromisoformat(time.isoformat(between, precision))
    expected = shown.replace(tzinfo=timezone(timedelta(minutes=east))).timestamp()

    event, _ = _event(timestamp=text)

    assert event.time_s is not None
    assert math.isclose(event.time_s, expected, rel_tol=0, abs_tol=1e-4)


@pytest.mark.parametrize("scale", [1, 10**3, 10**6, 10**9])
def test_clocks_may_count_in_smaller_units_than_seconds(scale: int) -> None:
    event, _ = _event(timestamp=1_751_963_745 * scale)

    assert event.time_s == pytest.approx(1_751_963_745, abs=1e-3)


@pytest.mark.parametrize(
    "text",
    ["2025-02-30", "2025-07-08T25:00:00", "now", "1751963745", "\uff12025-07-08", "0" * 200],
)
def test_a_time_that_no_calendar_has_is_a_bad_value(text: str) -> None:
    event, odd = _event(timestamp=text)

    assert event.time_s is None
    assert [one.field for one in odd] == ["timestamp"]


def test_the_first_oddities_are_kept_and_all_are_counted(tmp_path: Path) -> None:
    values = [{"event": "a"}, *range(250)]
    path = _written(tmp_path / "log", json.dumps(values))

    log = read_log(path)

    assert (len(log.oddities), log.odd_count) == (100, 250)
    assert log.oddities[0] == Oddity("not-an-event", 2, "", "0")


def test_progress_ends_at_the_size_of_the_file(tmp_path: Path) -> None:
    path = _written(tmp_path / "log", json.dumps([{"event": "a" * 200}] * 5000))
    reports: list[tuple[int, int]] = []

    read_log(path, progress=lambda done, total: reports.append((done, total)))

    size = path.stat().st_size
    assert len(reports) > 2
    assert reports == sorted(reports)
    assert reports[-1] == (size, size)


def test_what_progress_raises_is_not_hidden(tmp_path: Path) -> None:
    path = _written(tmp_path / "log", json.dumps(SAMPLE))

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_log(path, progress=stop)


def test_no_text_is_read_again_and_again() -> None:
    """The decoder gets a small multiple of the text: the cost is linear."""
    text = json.dumps([{"event": "x" * 900_000}, *({"event": "y" * 5000} for _ in range(400))])
    asked = 0

    def counting(held: str, start: int) -> tuple[object, int]:
        nonlocal asked
        try:
            value, end = decode(held, start)
        except json.JSONDecodeError:
            asked += len(held) - start
            raise
        asked += end - start
        return value, int(end)

    decode = reader._decode
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_decode", counting)
        count = sum(1 for _ in parse_entries("text", _cut(text, 1000)))

    assert count == 401
    assert asked < 4 * len(text)
