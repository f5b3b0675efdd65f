"""Energy comes from the best source that the machine offers, and says which and why."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer.model.energy import (
    Energy,
    EnergyMeter,
    EnergySetting,
    Range,
    Term,
    WorkTotals,
    carbon_of,
    energy_model,
    energy_models,
    estimate,
    register_energy_model,
)
from snapviewer.model.energy.assumptions import (
    CACHE,
    CLASSES,
    MEMORY,
    OPERATION,
    STATIC,
    THERMAL,
)
from snapviewer.model.energy.gpu import GpuPower
from snapviewer.model.energy.rapl import Rapl, WrappingCounter
from snapviewer.model.energy.sensors import NoReadingError
from snapviewer.model.nvml import NoAnswerError, NvmlGpu, find_gpu, open_nvml
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.sampling import TimeIntegral
from snapviewer.report.model.json import energy_json
from support.fake_nvml import FakeNvml, FakeNvmlError, full_card
from support.patience import PATIENT


@dataclass(frozen=True)
class Work:
    flops: int
    read_bytes: int
    written_bytes: int


WORK = Work(flops=2_000_000_000, read_bytes=30_000_000, written_bytes=10_000_000)


@pytest.fixture
def nowhere(tmp_path: Path) -> Path:
    """A machine without RAPL."""
    return tmp_path / "not there"


@pytest.fixture(autouse=True)
def all_gpus_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def add_zone(
    powercap: Path, directory: str, name: str, energy_uj: object, range_uj: object = 262_143_328_850
) -> Path:
    zone = powercap / directory
    zone.mkdir(parents=True)
    (zone / "name").write_text(f"{name}\n")
    (zone / "energy_uj").write_text(f"{energy_uj}\n")
    if range_uj is not None:
        (zone / "max_energy_range_uj").write_text(f"{range_uj}\n")
    return zone


def advance(zone: Path, energy_uj: int) -> None:
    (zone / "energy_uj").write_text(f"{energy_uj}\n")


def why(energy: Energy, name: str) -> str:
    return next(attempt.message for attempt in energy.attempts if attempt.name == name)


def used(energy: Energy) -> list[str]:
    return [attempt.name for attempt in energy.attempts if attempt.is_used]


class TestTheGpu:
    def test_the_counter_is_the_first_choice(self, nowhere: Path) -> None:
        nvml = FakeNvml(**full_card())

        with EnergyMeter(device="cuda", nvml=nvml, powercap=nowhere) as meter:
            pass
        energy = meter.result()

        assert energy.energy.value == 12.5
        assert energy.energy.status == "measured"
        assert "energy counter" in energy.energy.source
        assert used(energy) == ["NVML energy counter"]
        assert energy.low_j is None
        assert nvml.opened == 0, "the library was given back"

    def test_energy_and_time_are_those_of_one_run(self, nowhere: Path) -> None:
        with EnergyMeter(device="cuda", nvml=FakeNvml(**full_card()), powercap=nowhere) as meter:
            time.sleep(0.01)
        one, five = meter.result(), meter.result(runs=5)

        assert five.energy.value == 2.5
        assert one.seconds.value is not None
        assert five.seconds.value == pytest.approx(one.seconds.value / 5)
        assert five.power.value == pytest.approx(one.power.value), "power is the same"

    def test_power_is_sampled_where_there_is_no_counter(self, nowhere: Path) -> None:
        nvml = FakeNvml(**full_card(TotalEnergyConsumption=FakeNvmlError("Not Supported")))

        with EnergyMeter(device="cuda:0", nvml=nvml, powercap=nowhere, interval_s=0.005) as meter:
            time.sleep(0.03)
        energy = meter.result()

        assert energy.energy.status == "measured"
        assert energy.power.value is not None
        assert energy.power.value >= 249, "from before the run to after it"
        assert energy.peak_power.value == 250
        assert "one every 0.005 s" in energy.energy.source
        assert why(energy, "NVML energy counter") == "NVML: Not Supported"

    def test_power_is_sampled_where_the_counter_did_not_move(self, nowhere: Path) -> None:
        nvml = FakeNvml(**full_card(TotalEnergyConsumption=7))

        with EnergyMeter(device="cuda", nvml=nvml, powercap=nowhere) as meter:
            pass
        energy = meter.result()

        assert used(energy) == ["NVML sampled power"]
        assert "did not change: the run is too short" in why(energy, "NVML energy counter")

    def test_a_counter_that_went_back_is_not_believed(self, nowhere: Path) -> None:
        nvml = FakeNvml(**full_card(TotalEnergyConsumption=[500, 20]))

        with EnergyMeter(device="cuda", nvml=nvml, powercap=nowhere) as meter:
            pass

        assert "driver was reloaded" in why(meter.result(), "NVML energy counter")

    def test_a_card_that_stops_reporting_its_power_gives_no_energy(self) -> None:
        nvml = FakeNvml(PowerUsage=[250_000, FakeNvmlError("GPU is lost")])
        sensor = GpuPower(NvmlGpu(nvml, "card", "GPU 0"))
        sensor.start()

        with pytest.raises(NoReadingError, match="stopped reporting"):
            sensor.stop()

    def test_without_a_driver_each_rung_says_so(self, nowhere: Path) -> None:
        nvml = FakeNvml()
        nvml.init_error = FakeNvmlError("Driver Not Loaded")

        with EnergyMeter(device="cuda", nvml=nvml, powercap=nowhere) as meter:
            pass
        energy = meter.result()

        assert why(energy, "NVML energy counter") == "NVML: Driver Not Loaded"
        assert why(energy, "NVML sampled power") == "NVML: Driver Not Loaded"
        assert energy.energy.status == "unavailable"

    def test_a_run_on_the_processor_is_not_measured_on_the_gpu(self, nowhere: Path) -> None:
        nvml = FakeNvml(**full_card())

        with EnergyMeter(nvml=nvml, powercap=nowhere) as meter:
            pass
        energy = meter.result()

        assert energy.energy.status == "unavailable"
        assert why(energy, "NVML energy counter") == "the run is on the processor"
        assert nvml.asked == []

    def test_the_processor_is_reported_beside_a_run_on_a_gpu(self, tmp_path: Path) -> None:
        zone = add_zone(tmp_path, "intel-rapl:0", "package-0", 0)

        with EnergyMeter(device="cuda", nvml=FakeNvml(**full_card()), powercap=tmp_path) as meter:
            advance(zone, 4_000_000)
        energy = meter.result()

        assert energy.energy.value == 12.5, "the GPU's alone"
        assert [(name, joules.value) for name, joules in energy.beside] == [("package-0", 4.0)]

    def test_the_processor_does_not_stand_for_a_gpu_without_readings(self, tmp_path: Path) -> None:
        zone = add_zone(tmp_path, "intel-rapl:0", "package-0", 0)

        with EnergyMeter(device="cuda", nvml=FakeNvml(), powercap=tmp_path, tdp_w=100) as meter:
            advance(zone, 4_000_000)
        energy = meter.result()

        assert used(energy) == ["TDP estimate"]
        assert "utilisation 100 % assumed" in energy.energy.source

    @pytest.mark.parametrize(
        ("visible", "index", "asked"),
        [
            ("2,3", 1, ("HandleByIndex", 3)),
            ("GPU-8a, GPU-9b", 1, ("HandleByUUID", "GPU-9b")),
        ],
    )
    def test_the_card_is_the_one_that_cuda_sees(
        self, monkeypatch: pytest.MonkeyPatch, visible: str, index: int, asked: tuple[object, ...]
    ) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        nvml = FakeNvml(HandleByUUID="card")

        find_gpu(nvml, index)

        assert nvml.asked == [asked]

    @pytest.mark.parametrize("visible", ["", "0", "-1"])
    def test_a_hidden_card_is_not_measured(
        self, monkeypatch: pytest.MonkeyPatch, visible: str
    ) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

        with pytest.raises(NoAnswerError):
            find_gpu(FakeNvml(), 1 if visible == "0" else 0)

    def test_what_to_install_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pynvml", None)

        with pytest.raises(NoAnswerError, match="pip install nvidia-ml-py"):
            open_nvml()

    def test_an_old_library_without_a_function_is_reported(self) -> None:
        class Old:
            NVMLError = FakeNvmlError

        with pytest.raises(NoAnswerError, match="no nvmlInit"):
            open_nvml(Old())


class TestRapl:
    def test_packages_and_memory_are_summed(self, tmp_path: Path) -> None:
        zones = [
            add_zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000),
            add_zone(tmp_path, "intel-rapl:1", "package-1", 5_000_000),
            add_zone(tmp_path, "intel-rapl:0:1", "dram", 0),
        ]

        with EnergyMeter(powercap=tmp_path) as meter:
            for zone, energy_uj in zip(zones, (3_000_000, 6_000_000, 500_000), strict=True):
                advance(zone, energy_uj)
        energy = meter.result()

        assert energy.energy.value == 3.5
        assert energy.energy.status == "measured"
        assert {name: joules.value for name, joules in energy.domains} == {
            "package-0": 2.0,
            "package-1": 1.0,
            "dram of package-0": 0.5,
        }
        assert "all programs together" in energy.energy.source

    @pytest.mark.parametrize(
        ("directory", "name"),
        [
            ("intel-rapl:0:0", "core"),
            ("intel-rapl:0:1", "uncore"),
            ("intel-rapl:1", "psys"),
            ("intel-rapl-mmio:0", "package-0"),
            ("dtpm", "package-0"),
        ],
    )
    def test_what_is_part_of_a_package_is_not_counted_twice(
        self, tmp_path: Path, directory: str, name: str
    ) -> None:
        package = add_zone(tmp_path, "intel-rapl:0", "package-0", 0)
        other = add_zone(tmp_path, directory, name, 0)

        with EnergyMeter(powercap=tmp_path) as meter:
            advance(package, 2_000_000)
            advance(other, 1_000_000)

        assert meter.result().energy.value == 2.0

    def test_a_counter_that_wrapped_goes_on(self, tmp_path: Path) -> None:
        zone = add_zone(tmp_path, "intel-rapl:0", "package-0", 9_000_000, range_uj=10_000_000)

        with EnergyMeter(powercap=tmp_path) as meter:
            advance(zone, 2_000_000)

        assert meter.result().energy.value == 3.0

    @pytest.mark.parametrize("range_uj", [None, 0, "nonsense", 5])
    def test_a_wrap_of_unknown_range_is_left_out_and_reported(
        self, tmp_path: Path, range_uj: object
    ) -> None:
        one = add_zone(tmp_path, "intel-rapl:0", "package-0", 9_000_000, range_uj=range_uj)
        two = add_zone(tmp_path, "intel-rapl:1", "package-1", 0)

        with EnergyMeter(powercap=tmp_path) as meter:
            advance(one, 2_000_000)
            advance(two, 1_000_000)
        energy = meter.result()

        assert energy.energy.value == 1.0
        assert "lower bound: 1 reading decreased and left out" in energy.energy.source

    def test_counters_are_read_during_a_long_run_too(self, tmp_path: Path) -> None:
        zone = add_zone(tmp_path, "intel-rapl:0", "package-0", 0, range_uj=10_000_000)
        rapl = Rapl(tmp_path, poll_s=0.001)

        rapl.start()
        for energy_uj in (8_000_000, 6_000_000, 4_000_000):  # it wraps twice
            advance(zone, energy_uj)
            while rapl._zones[0].counter._last_uj != energy_uj:
                time.sleep(0.001)

        assert rapl.stop().joules == 24.0

    def test_a_package_that_may_not_be_read_is_a_reason(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        zone = add_zone(tmp_path, "intel-rapl:0", "package-0", 0)
        forbid(monkeypatch, zone / "energy_uj")

        with EnergyMeter(powercap=tmp_path) as meter:
            pass
        energy = meter.result()

        assert energy.energy.status == "unavailable"
        assert "to root only" in why(energy, "RAPL")

    def test_memory_that_may_not_be_read_is_left_out_and_reported(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        package = add_zone(tmp_path, "intel-rapl:0", "package-0", 0)
        forbid(monkeypatch, add_zone(tmp_path, "intel-rapl:0:0", "dram", 0) / "energy_uj")

        with EnergyMeter(powercap=tmp_path) as meter:
            advance(package, 1_000_000)

        assert meter.result().energy.value == 1.0
        assert "without dram of package-0" in meter.result().energy.source

    def test_a_run_shorter_than_the_step_is_not_free(self, tmp_path: Path) -> None:
        add_zone(tmp_path, "intel-rapl:0", "package-0", 77)

        with EnergyMeter(powercap=tmp_path) as meter:
            pass

        assert meter.result().energy.value is None
        assert "did not change: the run is too short" in why(meter.result(), "RAPL")

    @pytest.mark.parametrize(
        ("content", "reason"), [("", "no number"), ("12x", "no number"), ("-", "no number")]
    )
    def test_a_counter_without_a_number_is_a_reason(
        self, tmp_path: Path, content: str, reason: str
    ) -> None:
        add_zone(tmp_path, "intel-rapl:0", "package-0", content)

        with pytest.raises(NoReadingError, match=reason):
            Rapl(tmp_path).start()

    def test_a_machine_without_zones_says_so(self, tmp_path: Path, nowhere: Path) -> None:
        with pytest.raises(NoReadingError, match="usual in virtual machines"):
            Rapl(nowhere).start()
        with pytest.raises(NoReadingError, match="no processor package in"):
            Rapl(tmp_path).start()

    @PATIENT
    @given(
        range_uj=st.integers(1, 1000),
        start=st.integers(0, 1000),
        steps=st.lists(st.integers(0, 1000), max_size=30),
    )
    def test_a_wrapping_counter_sums_what_was_used(
        self, range_uj: int, start: int, steps: list[int]
    ) -> None:
        start %= range_uj
        steps = [step % range_uj for step in steps]  # read often enough: less than a turn
        counter = WrappingCounter(range_uj)

        position = start
        counter.add(position)
        for step in steps:
            position = (position + step) % range_uj
            counter.add(position)

        assert counter.total_uj == sum(steps)
        assert counter.dropped == 0

    @PATIENT
    @given(st.one_of(st.none(), st.integers(1, 50)), st.lists(st.integers(0, 100)))
    def test_a_wrapping_counter_never_falls(
        self, range_uj: int | None, readings: list[int]
    ) -> None:
        counter = WrappingCounter(range_uj)

        for reading_uj in readings:
            before_uj = counter.total_uj
            counter.add(reading_uj)
            assert counter.total_uj >= before_uj


def forbid(monkeypatch: pytest.MonkeyPatch, forbidden: Path) -> None:
    """Let a file be closed to us, whoever runs the tests."""
    read_text = Path.read_text

    def refuse(self: Path, encoding: str | None = None, errors: str | None = None) -> str:
        if self == forbidden:
            raise PermissionError(13, "Permission denied", str(self))
        return read_text(self, encoding=encoding, errors=errors)

    monkeypatch.setattr(Path, "read_text", refuse)


class TestEstimates:
    def test_a_tdp_gives_an_estimate_with_its_range(self, nowhere: Path) -> None:
        with EnergyMeter(powercap=nowhere, tdp_w=65, utilisation=0.5) as meter:
            time.sleep(0.01)
        energy = meter.result()

        assert energy.seconds.value is not None
        assert energy.energy.value is not None
        assert energy.energy.status == "estimated"
        assert energy.energy.value == pytest.approx(65 * 0.5 * energy.seconds.value)
        assert energy.low_j == pytest.approx(energy.energy.value / 2)
        assert energy.high_j == pytest.approx(65 * energy.seconds.value)
        assert energy.power.status == "estimated"
        assert "TDP 65 W as given × utilisation 50 % as given" in energy.energy.source

    def test_utilisation_is_measured_where_it_is_not_given(self, nowhere: Path) -> None:
        with EnergyMeter(powercap=nowhere, tdp_w=65) as meter:
            time.sleep(0.05)
        energy = meter.result()

        assert energy.low_j is not None
        assert energy.high_j is not None
        assert energy.energy.value is not None
        assert "measured × time" in energy.energy.source
        assert energy.energy.value < energy.high_j / 2, "it slept"

    def test_a_measured_energy_is_preferred_to_an_estimate(self, tmp_path: Path) -> None:
        zone = add_zone(tmp_path, "intel-rapl:0", "package-0", 0)

        with EnergyMeter(powercap=tmp_path, tdp_w=65) as meter:
            advance(zone, 1_000_000)
        energy = meter.result(work=WORK)

        assert energy.energy.value == 1.0
        assert energy.efficiency.value == WORK.flops
        assert energy.efficiency.status == "computed"

    def test_work_gives_an_estimate_where_nothing_else_does(self, nowhere: Path) -> None:
        with EnergyMeter(powercap=nowhere) as meter:
            pass
        energy = meter.result(work=WORK)

        assert used(energy) == ["energy model"]
        assert energy.energy.status == "estimated"
        assert energy.efficiency.status == "estimated"
        assert why(energy, "TDP estimate") == "no TDP was given"
        assert energy.low_j is not None
        assert energy.high_j is not None
        assert energy.energy.value is not None
        assert energy.low_j < energy.energy.value < energy.high_j

    def test_without_any_source_every_reason_is_reported(self, nowhere: Path) -> None:
        with EnergyMeter(powercap=nowhere) as meter:
            pass
        energy = meter.result()

        assert energy.energy.value is None
        for quantity in (energy.power, energy.carbon, energy.efficiency, energy.above_idle):
            assert quantity.status == "unavailable"
        assert used(energy) == []
        assert [attempt.name for attempt in energy.attempts] == [
            "NVML energy counter",
            "NVML sampled power",
            "RAPL",
            "TDP estimate",
            "energy model",
        ]
        assert all(attempt.message in energy.energy.source for attempt in energy.attempts)

    def test_a_measured_energy_bounds_nothing(self) -> None:
        usual = estimate.tdp_estimate(100, 3.0, 1.0)

        assert usual == Range(50, 100, 100), "no chip is busier than busy"

    def test_terms_are_work_times_the_table(self) -> None:
        setting = EnergySetting("cpu", "float32", logical_cpus=4, temperature_c=75)

        modelled = energy_model(WORK, 0.5, setting=setting)

        operation, memory, static, thermal = (term.joules.usual for term in modelled.terms)
        assert [term.name for term in modelled.terms] == [
            "operation",
            "memory",
            "static",
            "thermal",
        ]
        assert operation == pytest.approx(2e9 * OPERATION["cpu", "float32"].range.usual * 1e-12)
        fetched = 4 * 2e9 / CLASSES["linear"].reuse.range.usual
        assert memory == pytest.approx(
            (40e6 * MEMORY["cpu"].range.usual + fetched * CACHE.range.usual) * 1e-12
        )
        assert static == pytest.approx(4 * STATIC["cpu"].range.usual * 0.5)
        assert thermal == pytest.approx(static * 25 * THERMAL.range.usual)
        assert modelled.energy.value == pytest.approx(operation + memory + static + thermal)
        assert modelled.power.value == pytest.approx(2 * (operation + memory + static + thermal))
        assert all(term.assumption for term in modelled.terms)

    def test_a_cool_chip_leaks_no_more(self) -> None:
        cool = energy_model(WORK, 1.0, setting=EnergySetting(temperature_c=20))

        assert cool.terms[3].joules == Range(0, 0, 0)

    def test_an_idle_power_that_is_known_is_used(self) -> None:
        known = energy_model(WORK, 2.0, setting=EnergySetting(static_w=7))

        assert known.terms[2].joules == Range(14, 14, 14)

    @PATIENT
    @given(
        flops=st.integers(0, 10**18),
        moved=st.integers(0, 10**15),
        seconds=st.floats(0, 1e6),
        device=st.sampled_from(["cpu", "gpu"]),
        dtype=st.sampled_from(["float32", "float64", "torch.float16", "int8", "", "nonsense"]),
    )
    def test_an_estimate_lies_in_its_range(
        self, flops: int, moved: int, seconds: float, device: object, dtype: str
    ) -> None:
        setting = EnergySetting(device, dtype)  # type: ignore[arg-type]

        modelled = energy_model(Work(flops, moved, moved), seconds, setting=setting)

        assert modelled.energy.status == "estimated"
        for joules in (modelled.range, *(term.joules for term in modelled.terms)):
            assert 0 <= joules.low <= joules.usual <= joules.high
        assert all(term.quantity("picojoules").status == "estimated" for term in modelled.terms)

    def test_every_row_of_the_tables_is_a_range_with_its_basis(self) -> None:
        classes = [row for kind in CLASSES.values() for row in kind.assumptions]
        rows = (*OPERATION.values(), *MEMORY.values(), *STATIC.values(), THERMAL, CACHE, *classes)
        assert len({row.name for row in rows}) == len(rows)
        for row in rows:
            assert 0 < row.range.low <= row.range.usual <= row.range.high
            assert row.unit
            assert row.basis

    def test_no_work_in_no_time_has_neither_power_nor_efficiency(self) -> None:
        nothing = energy_model(Work(0, 0, 0), 0.0)

        assert nothing.energy.value == 0
        assert nothing.power.status == "unavailable"
        assert nothing.efficiency.status == "unavailable"

    def test_a_new_model_is_registered_by_name(self) -> None:
        @register_energy_model("my board")
        def my_board(work: WorkTotals, seconds: float, setting: EnergySetting) -> tuple[Term, ...]:
            return (Term("operation", Range(1, 2, 3) * (work.flops * 1e-12), "2 pJ/FLOP"),)

        try:
            modelled = energy_model(WORK, 1.0, model="my board")

            assert "my board" in energy_models()
            assert modelled.energy.value == pytest.approx(0.004)
            assert "'my board'" in modelled.energy.source
        finally:
            del estimate._MODELS["my board"]

    def test_bad_numbers_are_refused_with_a_sentence(self) -> None:
        with pytest.raises(ValueError, match="no energy model 'x'; there are: picojoules"):
            energy_model(WORK, 1.0, model="x")
        with pytest.raises(ValueError, match="at least 0 s"):
            energy_model(WORK, -1.0)
        with pytest.raises(ValueError, match="more than 0 W"):
            EnergyMeter(tdp_w=0)
        with pytest.raises(ValueError, match="not 'tpu'"):
            EnergyMeter(device="tpu")


class TestIdle:
    @pytest.fixture
    def warm_machine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
        """A machine whose counter gains a joule while the meter sleeps."""
        powercap = tmp_path / "powercap"
        zone = add_zone(powercap, "intel-rapl:0", "package-0", 0)
        sleep = time.sleep

        def idle(seconds: float) -> None:
            sleep(seconds)
            advance(zone, 1_000_000)

        monkeypatch.setattr(time, "sleep", idle)
        return powercap, zone

    def test_what_the_run_adds_to_an_idle_machine_is_reported(
        self, warm_machine: tuple[Path, Path]
    ) -> None:
        powercap, zone = warm_machine

        with EnergyMeter(powercap=powercap, idle_s=0.02) as meter:
            advance(zone, 6_000_000)
        energy = meter.result()

        assert energy.energy.value == 5.0
        assert energy.idle.value is not None
        assert energy.seconds.value is not None
        assert 0 < energy.idle.value <= 1.0 / 0.02
        assert energy.above_idle.value == pytest.approx(
            5.0 - energy.idle.value * energy.seconds.value
        )
        assert energy.above_idle.status == "computed"

    def test_nothing_is_left_open_if_watching_is_cut_short(
        self, nowhere: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(seconds: float) -> None:
            raise KeyboardInterrupt

        nvml = FakeNvml(**full_card())
        meter = EnergyMeter(device="cuda", nvml=nvml, powercap=nowhere, idle_s=9)
        monkeypatch.setattr(time, "sleep", interrupted)

        with pytest.raises(KeyboardInterrupt):
            meter.__enter__()

        assert nvml.opened == 0
        assert not [one for one in threading.enumerate() if one.name == "snapviewer samples"]

    def test_an_idle_machine_that_was_not_watched_is_unknown(self, nowhere: Path) -> None:
        with EnergyMeter(powercap=nowhere) as meter:
            pass

        assert meter.result().idle == unavailable("W", "the idle machine was not watched")

    def test_an_idle_machine_without_counters_is_unknown(self, nowhere: Path) -> None:
        with EnergyMeter(powercap=nowhere, idle_s=0.001, tdp_w=10) as meter:
            pass

        assert meter.result().idle.status == "unavailable"
        assert meter.result().above_idle.status == "unavailable"


class TestTheMeter:
    def test_the_result_comes_after_the_block(self, nowhere: Path) -> None:
        meter = EnergyMeter(powercap=nowhere)

        with pytest.raises(RuntimeError, match="after the `with` block"), meter:
            meter.result()

    def test_an_error_in_the_run_is_not_swallowed_and_all_is_given_back(
        self, nowhere: Path
    ) -> None:
        nvml = FakeNvml(**full_card())

        with (
            pytest.raises(ZeroDivisionError),
            EnergyMeter(device="cuda", nvml=nvml, powercap=nowhere),
        ):
            raise ZeroDivisionError

        assert nvml.opened == 0

    def test_a_meter_can_be_used_again(self, tmp_path: Path) -> None:
        zone = add_zone(tmp_path, "intel-rapl:0", "package-0", 0)
        meter = EnergyMeter(powercap=tmp_path)

        with meter:
            advance(zone, 3_000_000)
        first = meter.result().energy.value
        with meter:
            advance(zone, 4_000_000)

        assert (first, meter.result().energy.value) == (3.0, 1.0)

    def test_less_than_one_run_is_refused(self, nowhere: Path) -> None:
        with EnergyMeter(powercap=nowhere) as meter:
            pass

        with pytest.raises(ValueError, match="at least one run"):
            meter.result(runs=0)

    def test_the_document_has_a_status_for_every_quantity(self, tmp_path: Path) -> None:
        zone = add_zone(tmp_path, "intel-rapl:0", "package-0", 0)

        with EnergyMeter(powercap=tmp_path) as meter:
            advance(zone, 1_000_000)
        document = energy_json(meter.result(work=WORK))

        assert document["energy"] == {
            "value": 1.0,
            "unit": "J",
            "status": "measured",
            "source": "RAPL of package-0 (all programs together)",
        }
        assert document["domains"]["package-0"]["value"] == 1.0
        assert {"seconds", "power", "carbon", "efficiency", "idle", "attempts"} <= set(document)


class TestCarbon:
    def test_the_worlds_average_is_named_with_its_year(self) -> None:
        carbon = carbon_of(Quantity(3.6e6, "J", "measured", "RAPL"))

        assert carbon.value == 481
        assert carbon.unit == "g CO2"
        assert carbon.status == "estimated"
        assert "481 g CO2/kWh, world average of 2023" in carbon.source

    def test_an_intensity_of_ones_own_is_used(self) -> None:
        carbon = carbon_of(Quantity(7.2e6, "J", "measured", "RAPL"), 56)

        assert carbon.value == pytest.approx(112)
        assert "56 g CO2/kWh, as given" in carbon.source

    def test_no_energy_has_no_carbon(self) -> None:
        assert carbon_of(unavailable("J", "no RAPL")) == unavailable("g CO2", "no RAPL")

    @pytest.mark.parametrize("intensity", [-1.0, float("nan"), float("inf")])
    def test_a_bad_intensity_is_refused(self, intensity: float) -> None:
        with pytest.raises(ValueError, match="carbon intensity"):
            carbon_of(Quantity(1.0, "J", "measured", "RAPL"), intensity)


@PATIENT
@given(
    st.lists(st.tuples(st.floats(0.001, 10), st.floats(0, 1000)), min_size=1, max_size=30),
)
def test_the_area_of_a_course_is_the_sum_of_its_trapezoids(
    steps: list[tuple[float, float]],
) -> None:
    times, values, course = [0.0], [steps[0][1]], TimeIntegral()
    for step_s, value in steps[1:]:
        times.append(times[-1] + step_s)
        values.append(value)

    for at_s, value in zip(times, values, strict=True):
        course.add(value, at_s=at_s)

    area = sum(
        (times[i + 1] - times[i]) * (values[i] + values[i + 1]) / 2 for i in range(len(times) - 1)
    )
    assert course.area == pytest.approx(area)
    assert course.peak == max(values)
    assert course.mean is not None
    assert min(values) - 1e-6 <= course.mean <= max(values) + 1e-6


def test_energy_needs_no_extras() -> None:
    code = (
        "import sys\n"
        "for name in ('torch', 'psutil', 'pynvml'): sys.modules[name] = None\n"
        "from snapviewer.model.energy import EnergyMeter\n"
        "with EnergyMeter(device='cuda') as meter: pass\n"
        "print(meter.result().attempts[0].message)\n"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "nvidia-ml-py is not installed" in ran.stdout
