"""A recorder writes what happens to memory, whatever happens to the run."""

from __future__ import annotations

import copy
import io
import logging
import pickle
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer.events import EventRecorder, analyze_log_file
from snapviewer.events.memory import Reading
from snapviewer.events.safe_values import event_name, is_good_end, is_out_of_memory, json_value
from support.fake_memory import FakeMemory, events_of, names_of
from support.hostile_values import HOSTILE, hostile_error, hostile_exit

MB = 2**20


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "memory_events.jsonl"


# What is written


def test_a_recording_begins_with_what_is_known_and_ends_with_the_peak(log: Path) -> None:
    memory = FakeMemory(known={"device_name": "A card", "device_total_memory": 24 * 2**30})

    with EventRecorder(log, model_name="ResNet-18", memory=memory):
        memory.set(900)
        memory.set(100)

    first, last = events_of(log)
    assert first["event"] == "init"
    assert first["model_name"] == "ResNet-18"
    assert first["memory_source"] == "cuda"
    assert first["device_name"] == "A card"
    assert first["device_total_memory"] == 24 * 2**30
    assert first["steps_are"] == "levels"
    assert first["peak_memory"] == 0
    assert first["python_version"].startswith("3.")
    assert first["recorder"].startswith("snapviewer ")
    assert last["event"] == "inference_end"
    assert (last["peak_memory"], last["memory_allocated"]) == (900, 100)
    assert last["duration"] >= 0
    assert last["timestamp"] >= first["timestamp"] > 1.6e9


def test_a_component_is_worth_what_it_added(log: Path) -> None:
    memory = FakeMemory(level=10)

    with EventRecorder(log, memory=memory) as recorder, recorder.component("unet"):
        memory.set(500)
        memory.set(310)

    _, start, loaded, _ = events_of(log)
    assert (start["event"], loaded["event"]) == ("unet_load_start", "unet_loaded")
    assert "incremental_memory" not in start
    assert loaded["incremental_memory"] == 300
    assert loaded["peak_memory"] == 500
    assert loaded["duration"] >= 0


def test_a_stage_may_leave_less_than_it_found(log: Path) -> None:
    memory = FakeMemory(level=100)

    with EventRecorder(log, memory=memory) as recorder, recorder.stage("vae_decode"):
        memory.set(40)

    _, start, end, _ = events_of(log)
    assert (start["event"], end["event"]) == ("vae_decode_start", "vae_decode_end")
    assert end["incremental_memory"] == -60


def test_an_event_has_the_given_fields_beside_the_measured_ones(log: Path) -> None:
    with EventRecorder(log, memory=FakeMemory(level=7)) as recorder:
        recorder.event("kv_cache", incremental_memory=123, batch=4, event="x", timestamp=0)

    kept = events_of(log)[1]
    assert (kept["event"], kept["incremental_memory"], kept["batch"]) == ("kv_cache", 123, 4)
    assert kept["timestamp"] > 0
    assert kept["memory_allocated"] == 7


@pytest.mark.parametrize(
    ("prepare", "base"),
    [
        ("", 100),
        ("component", 300),
        ("before_generate", 300),
        ("component before_generate", 500),
        ("before_generate component", 300),
        ("step component", 100),
        ("step before_generate", 500),
    ],
)
def test_steps_are_levels_above_the_last_base(log: Path, prepare: str, base: int) -> None:
    memory = FakeMemory(level=100)

    with EventRecorder(log, memory=memory) as recorder:
        for what in prepare.split():
            if what == "component":
                with recorder.component("part"):
                    memory.set(memory.level + 200)
            elif what == "step":
                memory.set(memory.level + 200)
                recorder.step()
            else:
                memory.set(memory.level + 200)
                recorder.event("before_generate")
        memory.set(1000)
        recorder.step()
        memory.set(1016)
        recorder.step()

    steps = [event for event in events_of(log) if event["event"].startswith("step_")]
    assert [step["incremental_memory"] for step in steps[-2:]] == [1000 - base, 1016 - base]
    assert [step["event"] for step in steps] == [f"step_{number}" for number in range(len(steps))]
    assert "duration" in steps[-1]


def test_the_moment_before_steps_adds_nothing_itself(log: Path) -> None:
    with EventRecorder(log, memory=FakeMemory(level=9)) as recorder:
        recorder.event("before_generate")

    assert events_of(log)[1]["incremental_memory"] == 0


def test_of_a_device_the_log_has_peaks_in_mb(log: Path) -> None:
    memory = FakeMemory(level=0, reserved=3 * MB, used=5 * MB // 2)

    with EventRecorder(log, memory=memory) as recorder:
        memory.used = 800 * MB
        recorder.event("busy")
        memory.used, memory.reserved = 700 * MB, 0
        recorder.event("less")

    first, busy, less, _ = events_of(log)
    assert (first["cuda_runtime_peak"], first["pytorch_runtime_peak"]) == (2.5, 3.0)
    assert busy["cuda_runtime_peak"] == 800.0
    assert (less["cuda_runtime_peak"], less["pytorch_runtime_peak"]) == (800.0, 3.0)


def test_of_a_process_the_log_has_no_device_peaks(log: Path) -> None:
    with EventRecorder(log, memory="process"):
        pass

    first, _ = events_of(log)
    assert first["memory_source"] == "process"
    assert "cuda_runtime_peak" not in first
    assert first["peak_memory"] >= first["memory_allocated"] > MB


def test_a_peak_is_that_of_the_recording_unless_asked_otherwise(log: Path) -> None:
    memory = FakeMemory(level=10, peak=5000)
    with EventRecorder(log, memory=memory, resets_peak=False):
        pass
    assert [event["peak_memory"] for event in events_of(log)] == [5000, 5000]
    assert events_of(log)[0]["peak_since"] == "process_start"

    with EventRecorder(log, memory=memory):
        pass
    assert [event["peak_memory"] for event in events_of(log)] == [10, 10]
    assert events_of(log)[0]["peak_since"] == "entry"


@given(
    st.lists(st.tuples(st.sampled_from(["event", "step", "base", "reset"]), st.integers(0, 999)))
)
def test_a_log_is_what_a_simple_account_of_the_run_is(
    tmp_path_factory: pytest.TempPathFactory, run: list[tuple[str, int]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "account.jsonl"
    memory = FakeMemory()
    expected: list[tuple[int, int, int | None]] = []
    base = most = 0

    with EventRecorder(path, memory=memory, is_synced=False) as recorder:
        for what, level in run:
            memory.set(level)
            most = max(most, level)
            if what == "reset":
                recorder.event("seen")
                memory.reset_peak()  # someone else does
                expected.append((level, most, None))
            elif what == "base":
                recorder.event("before_generate")
                base = level
                expected.append((level, most, 0))
            elif what == "step":
                recorder.step()
                expected.append((level, most, level - base))
            else:
                recorder.event("something")
                expected.append((level, most, None))

    assert [
        (event["memory_allocated"], event["peak_memory"], event.get("incremental_memory"))
        for event in events_of(path)[1:-1]
    ] == expected


# Hooks


def test_hooks_take_anything_and_count_steps(log: Path) -> None:
    with EventRecorder(log, memory=FakeMemory()) as recorder:
        assert recorder.step_hook("optimizer", (), {}) is None  # type: ignore[func-returns-value]
        recorder.step_hook()
        kept = {"latents": object()}
        assert recorder.on_step_end("pipe", 7, 981, kept) is kept

    assert names_of(log) == ["init", "step_0", "step_1", "step_2", "inference_end"]
    assert events_of(log)[3]["pipeline_step"] == 7


def test_hooks_do_nothing_where_nothing_is_recorded(log: Path) -> None:
    recorder = EventRecorder(log, memory=FakeMemory())
    recorder.step_hook()
    assert not log.exists()

    with recorder:
        pass
    recorder.step_hook()
    assert recorder.on_step_end(None, 0, 0, "kept") == "kept"
    assert names_of(log) == ["init", "inference_end"]


def test_a_copy_of_a_recorder_is_the_recorder(log: Path) -> None:
    with EventRecorder(log, memory=FakeMemory()) as recorder:
        hooks = copy.deepcopy([recorder.step_hook])
        hooks[0]()
        copy.copy(recorder).step()

    assert names_of(log) == ["init", "step_0", "step_1", "inference_end"]


def test_a_recorder_that_was_pickled_records_nothing(log: Path) -> None:
    with EventRecorder(log, memory=FakeMemory()) as recorder:
        hook = pickle.loads(pickle.dumps(recorder.step_hook))
        other = hook.__self__
        hook()
        other.event("something")
        with other.stage("something"):
            assert other.on_step_end(None, 0, 0, "kept") == "kept"
        with pytest.raises(RuntimeError, match="make another one"):
            other.__enter__()

    assert names_of(log) == ["init", "inference_end"]


def test_a_model_with_a_hook_can_be_copied_and_saved(log: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(2, 2)
    saved = io.BytesIO()

    with EventRecorder(log, memory=FakeMemory()) as recorder:
        model.register_forward_hook(recorder.step_hook)
        copy.deepcopy(model)(torch.zeros(1, 2))
        torch.save(model, saved)
        saved.seek(0)
        torch.load(saved, weights_only=False)(torch.zeros(1, 2))

    assert names_of(log) == ["init", "step_0", "inference_end"]


def test_only_components_and_stages_wait_for_the_device(log: Path) -> None:
    memory = FakeMemory()

    with EventRecorder(log, memory=memory) as recorder:
        recorder.step()
        recorder.event("something")
        assert memory.waits == 0
        with recorder.stage("forward"):
            assert memory.waits == 1
        assert memory.waits == 2
    with (
        EventRecorder(log, memory=memory, waits_for_device=False) as recorder,
        recorder.stage("forward"),
    ):
        pass
    assert memory.waits == 2


# Runs that fail


class OutOfMemoryError(RuntimeError):
    """The name of PyTorch's error."""


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (ValueError("no such layer"), "error"),
        (KeyboardInterrupt(), "error"),
        (SystemExit(3), "error"),
        (OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), "oom"),
        (RuntimeError("CUDA error: out of memory"), "oom"),
        (MemoryError(), "oom"),
    ],
)
def test_an_exception_is_recorded_and_goes_on(log: Path, error: BaseException, event: str) -> None:
    memory = FakeMemory()

    def generate() -> None:
        with (
            EventRecorder(log, memory=memory) as recorder,
            recorder.stage("generate"),
            recorder.stage("dit_forward"),
        ):
            memory.set(700)
            memory.set(5)
            raise error

    with pytest.raises(type(error)) as raised:
        generate()

    assert raised.value is error
    assert names_of(log) == ["init", "generate_start", "dit_forward_start", event]
    last = events_of(log)[-1]
    assert last["error_type"] == type(error).__name__
    assert last["message"] == str(error)
    assert last["failed_in"] == "dit_forward"
    assert last["peak_memory"] == 700


def test_an_exception_that_was_handled_is_not_blamed_later(log: Path) -> None:
    def generate() -> None:
        with EventRecorder(log, memory=FakeMemory()) as recorder:
            with suppress(LookupError), recorder.component("cache"):
                raise LookupError
            recorder.event("went_on")
            raise KeyError

    with pytest.raises(KeyError):
        generate()

    assert names_of(log) == ["init", "cache_load_start", "went_on", "error"]
    assert "failed_in" not in events_of(log)[-1]


def test_a_program_that_exits_well_ends_well(log: Path) -> None:
    with pytest.raises(SystemExit), EventRecorder(log, memory=FakeMemory()):
        sys.exit()

    assert names_of(log) == ["init", "inference_end"]


def test_a_generator_that_is_left_early_ends_well(log: Path) -> None:
    def batches() -> Iterator[int]:
        with (
            EventRecorder(log, memory=FakeMemory()) as recorder,
            recorder.stage("loading"),
        ):
            yield from range(10)

    left = batches()
    next(left)
    left.close()  # type: ignore[attr-defined]

    assert names_of(log) == ["init", "loading_start", "loading_end", "inference_end"]


def test_a_generator_that_is_left_early_is_not_blamed_later(log: Path) -> None:
    def run() -> None:
        with EventRecorder(log, memory=FakeMemory()) as recorder:
            with suppress(GeneratorExit), recorder.stage("loading"):
                raise GeneratorExit
            raise KeyError

    with pytest.raises(KeyError):
        run()

    assert names_of(log)[-2:] == ["loading_end", "error"]
    assert "failed_in" not in events_of(log)[-1]


def test_an_error_whose_words_fail_is_recorded_all_the_same(log: Path) -> None:
    class SilentError(Exception):
        def __str__(self) -> str:
            raise RecursionError

    with pytest.raises(SilentError), EventRecorder(log, memory=FakeMemory()):
        raise SilentError

    assert events_of(log)[-1]["error_type"] == "SilentError"


def test_memory_that_cannot_be_read_any_more_does_not_end_the_run(
    log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = FakeMemory(level=50)

    with EventRecorder(log, memory=memory) as recorder:
        memory.failure = RuntimeError("CUDA error: device-side assert triggered")
        recorder.event("blind")
        recorder.step()
        memory.failure = None
        recorder.event("well")

    _, blind, step, well, _ = events_of(log)
    assert blind["peak_memory"] == 50
    assert "memory_allocated" not in blind
    assert "incremental_memory" not in step
    assert well["memory_allocated"] == 50
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "device-side assert" in caplog.text


class NonsenseMemory(FakeMemory):
    """A custom source that returns nonsense."""

    answer: object = None

    def facts(self) -> Any:
        return self.answer

    def read(self) -> Any:
        return self.answer

    def wait(self) -> None:
        raise AttributeError


@pytest.mark.parametrize(
    "answer",
    [
        *(None, 5, "text", object(), {1: 2}),
        Reading(level_bytes="many", peak_bytes=0),  # type: ignore[arg-type]
        Reading(level_bytes=0, peak_bytes=None),  # type: ignore[arg-type]
        Reading(level_bytes=0, peak_bytes=0, reserved_peak_bytes=[]),  # type: ignore[arg-type]
        Reading(level_bytes=-1, peak_bytes=0),
        Reading(level_bytes=10**5000, peak_bytes=0),
        Reading(level_bytes=float("nan"), peak_bytes=0),  # type: ignore[arg-type]
    ],
)
def test_a_source_that_answers_nonsense_is_reported_once_and_does_not_end_the_run(
    log: Path, caplog: pytest.LogCaptureFixture, answer: object
) -> None:
    memory = NonsenseMemory()
    memory.answer = answer

    with EventRecorder(log, memory=memory) as recorder, recorder.stage("blind"):
        recorder.step()

    assert names_of(log) == ["init", "blind_start", "step_0", "blind_end", "inference_end"]
    assert not any("memory_allocated" in event for event in events_of(log))
    assert len(caplog.records) == 1
    assert "memory cannot be read" in caplog.text


def test_something_that_is_no_source_does_not_end_the_run(log: Path) -> None:
    with EventRecorder(log, memory=object()) as recorder:  # type: ignore[arg-type]
        recorder.step()

    assert names_of(log) == ["init", "step_0", "inference_end"]


def test_a_source_may_return_sizes_as_other_numbers(log: Path) -> None:
    with EventRecorder(log, memory=FakeMemory(level=2.5e9)):  # type: ignore[arg-type]
        pass

    assert events_of(log)[0]["memory_allocated"] == 2_500_000_000


def test_logging_that_raises_does_not_end_the_run(log: Path) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise ZeroDivisionError(record)

    memory, handler = FakeMemory(), Broken()
    logger = logging.getLogger("snapviewer.events")
    logger.addHandler(handler)
    try:
        with EventRecorder(log, memory=memory) as recorder:
            memory.failure = RuntimeError("no memory")
            recorder.step()
        recorder.event("late")
    finally:
        logger.removeHandler(handler)

    assert names_of(log) == ["init", "step_0", "inference_end"]


# Wrong use


def test_an_event_before_the_recording_is_a_mistake_and_one_after_it_is_reported(
    log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = EventRecorder(log, memory=FakeMemory())
    with pytest.raises(RuntimeError, match="with EventRecorder"):
        recorder.event("early")

    with recorder:
        pass
    recorder.event("late")
    recorder.step()
    with recorder.stage("late"):
        pass

    assert names_of(log) == ["init", "inference_end"]
    assert len(caplog.records) == 1
    with pytest.raises(RuntimeError, match="records once"), recorder:
        pass


# Untrusted values


class Odd:
    def __repr__(self) -> str:
        raise ZeroDivisionError


VALUES = st.one_of(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    st.text(st.characters(categories=["Cs", "Cc", "Zl", "Cf"])),
    st.complex_numbers() | st.binary() | st.decimals() | st.fractions(),
    st.recursive(st.integers(), st.lists).map(lambda value: [value]),
    st.sampled_from([Odd(), [Odd()], 10**5000, [10**5000], "x" * 10**6, [0] * 10**6, object]),
)


@given(name=st.text(), fields=st.dictionaries(st.text(), VALUES, max_size=5))
def test_an_event_is_one_line_of_json_whatever_its_fields(
    tmp_path_factory: pytest.TempPathFactory, name: str, fields: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "given.jsonl"

    with EventRecorder(path, memory=FakeMemory(), is_synced=False) as recorder:
        recorder.event(name, **fields)

    event = events_of(path)[1]
    assert event["event"].isprintable()
    assert event["event"]
    assert len(path.read_text().splitlines()) == 3
    assert path.stat().st_size < 100_000


@pytest.mark.parametrize("which", HOSTILE)
def test_a_value_whose_own_code_fails_does_not_end_the_run(log: Path, which: str) -> None:
    make, kept = HOSTILE[which]
    value = make()

    with EventRecorder(log, memory=FakeMemory(), model_name=value) as recorder:
        recorder.event("given", value=value)
        recorder.event(value)
        with recorder.stage(value):
            recorder.step(value=value)

    first, shown, named, start, step, _, _ = events_of(log)
    assert first["model_name"] == shown["value"] == step["value"] == kept
    assert named["event"] == event_name(kept)
    assert start["event"].endswith("_start")


def test_an_error_whose_kind_cannot_be_asked_goes_on(log: Path) -> None:
    error = hostile_error()
    raised: BaseException | None = None

    try:
        with EventRecorder(log, memory=FakeMemory()):
            raise error
    except BaseException as caught:  # pytest.raises would ask for its kind
        raised = caught

    assert raised is error
    last = events_of(log)[-1]
    assert (last["event"], last["error_type"]) == ("error", "_NamelessError")


def test_an_exit_whose_code_fails_is_no_good_end() -> None:
    assert not is_good_end(hostile_exit())
    assert not is_good_end(SystemExit(1))
    assert is_good_end(SystemExit())


@pytest.mark.parametrize("text", ["x", "\0", "é", "😀", "\ud800"])
def test_a_line_is_never_longer_than_the_reader_takes(log: Path, text: str) -> None:
    long = {f"long_{number}": text * 10**4 for number in range(300)}

    with EventRecorder(log, memory=FakeMemory(level=5), model_name=text * 10**6) as recorder:
        recorder.step()
        recorder.step(**long, loss=0.5)
        recorder.event("😀" * 1000, **{f"{number}{'😀' * 400}": number for number in range(1000)})
        recorder.event("many", **{f"f{number}": number for number in range(10**4)})

    assert max(map(len, log.read_bytes().split(b"\n"))) < 2**16
    _, _, step, odd, many, _ = events_of(log)
    assert step["loss"] == 0.5
    assert step["memory_allocated"] == 5
    assert "duration" in step
    assert step["dropped_fields"] == 300 - sum(name in step for name in long)
    assert 0 < odd["dropped_fields"] < 1000
    assert 0 < many["dropped_fields"] < 10**4
    assert analyze_log_file(log)


def test_the_longest_text_alone_is_kept(log: Path) -> None:
    with EventRecorder(log, memory=FakeMemory()) as recorder:
        recorder.event("given", note="😀" * 4000)

    shown = events_of(log)[1]
    assert shown["note"] == "😀" * 4000
    assert "dropped_fields" not in shown


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (True, True),
        (2**63 - 1, 2**63 - 1),
        (2**64, "0x10000000000000000"),
        (float("inf"), "inf"),
        ("déjà\n", "déjà\n"),
        ({"lr": 0.1}, "{'lr': 0.1}"),
        (Path, "<class 'pathlib.Path'>"),
    ],
)
def test_what_json_can_say_is_kept_and_the_rest_described(value: object, kept: object) -> None:
    assert json_value(value) == kept


def test_a_name_keeps_what_a_block_did_however_long_it_is(log: Path) -> None:
    with EventRecorder(log, memory=FakeMemory()) as recorder, recorder.component("x" * 10**6):
        pass

    names = names_of(log)
    assert names[1].endswith("…_load_start")
    assert names[2].endswith("…_loaded")
    assert max(map(len, names)) <= 300


def test_a_name_is_fit_to_be_shown() -> None:
    assert event_name("unet\x1b[31m\u202e\ud800") == "unet?[31m??"


def test_an_error_of_another_kind_is_not_out_of_memory() -> None:
    assert not is_out_of_memory(ValueError("CUDA out of memory"))
    assert not is_out_of_memory(RuntimeError("shapes do not match"))
    assert is_out_of_memory(
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
    )
