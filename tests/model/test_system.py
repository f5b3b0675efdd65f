"""Each number of the machine is there with its source, or is unavailable and says why."""

from __future__ import annotations

import errno
import json
import os
import platform
import struct
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from snapviewer.model.nvml import NoAnswerError
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.sampling import SampledQuantity
from snapviewer.model.system import SystemMonitor, counters, flop_counters, perf_events, read_system
from snapviewer.model.system import cpu as cpu_module
from snapviewer.model.system.cache_hits import CacheCounters
from snapviewer.model.system.cgroup import cpu_quota, memory_limit_bytes
from snapviewer.model.system.counters import busy_share, change, read_counters, read_processors
from snapviewer.model.system.cpu import last_cache_bytes, read_cpu, read_temperatures
from snapviewer.model.system.gpu import read_gpus
from snapviewer.model.system.memory import read_memory
from snapviewer.model.system.perf_events import PerfEvent
from snapviewer.report.model.json import record_json
from support.fake_flops import FakeFlops
from support.fake_nvml import FakeNvml, FakeNvmlError, full_card, record
from support.program import output_of

psutil = pytest.importorskip("psutil")


def quantities(document: Any) -> list[dict[str, Any]]:
    """All quantities of a document, however deep."""
    if isinstance(document, dict):
        if "status" in document:
            return [document]
        return [found for held in document.values() for found in quantities(held)]
    if isinstance(document, list):
        return [found for held in document for found in quantities(held)]
    return []


def file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


class TestTheMachine:
    def test_every_number_has_a_status_and_a_source(self) -> None:
        document = record_json(read_system(nvml=FakeNvml(**full_card())))

        found = quantities(document)
        assert len(found) > 20
        for quantity in found:
            assert quantity["source"]
            assert (quantity["value"] is None) == (quantity["status"] == "unavailable")
        json.dumps(document)

    def test_without_psutil_it_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "psutil", None)

        system = read_system(nvml=FakeNvml())

        for quantity in (
            system.cpu.physical_cpus,
            system.cpu.frequency,
            system.cpu.utilisation,
            system.memory.total,
            system.temperatures[0][1],
        ):
            assert quantity.status == "unavailable"
            assert "pip install psutil" in quantity.source
        assert system.cpu.logical_cpus.value == os.cpu_count(), "this needs no psutil"

    def test_memory_is_psutils(self) -> None:
        memory = read_memory()

        assert memory.total.value == psutil.virtual_memory().total
        assert memory.program_peak.value is not None
        assert memory.program_peak.value > 1_000_000

    def test_the_processor_is_read_from_linuxs_files(self, tmp_path: Path) -> None:
        file(tmp_path / "cpuinfo", "processor\t: 0\nmodel name\t: Test 9000 @ 3 GHz\nflags\t: x\n")
        for index, (level, kind, size) in enumerate(
            [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("3", "Unified", "36M")]
        ):
            directory = tmp_path / "cpu0" / "cache" / f"index{index}"
            file(directory / "level", f"{level}\n")
            file(directory / "type", f"{kind}\n")
            file(directory / "size", f"{size}\n")

        cpu = read_cpu(proc=tmp_path, cpus=tmp_path, watch_s=0.001)

        assert cpu.name == "Test 9000 @ 3 GHz"
        assert {name: size.value for name, size in cpu.caches} == {
            "L1d": 48 << 10,
            "L1i": 32 << 10,
            "L3": 36 << 20,
        }
        assert last_cache_bytes(tmp_path) == 36 << 20

    def test_what_psutil_is_not_allowed_to_report_is_unavailable(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> object:
            raise psutil.AccessDenied(1)

        for name in ("cpu_freq", "cpu_percent", "cpu_times", "virtual_memory", "Process"):
            monkeypatch.setattr(psutil, name, refuse)

        assert read_cpu(watch_s=0.001).frequency.status == "unavailable"
        assert read_memory().program.status == "unavailable"
        assert read_processors().busy.status == "unavailable"

    def test_a_system_that_reports_nothing_of_its_processor_is_no_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delattr(os, "sched_getaffinity", raising=False)
        monkeypatch.setattr(psutil, "cpu_freq", lambda: None)
        file(tmp_path / "cpu0/cache/index0/size", "huge")

        cpu = read_cpu(proc=tmp_path, cpus=tmp_path, watch_s=0.001)

        assert cpu.name
        assert cpu.usable_cpus.value == os.cpu_count()
        assert cpu.frequency.status == "unavailable"
        assert cpu.highest_frequency.status == "unavailable"
        assert cpu.caches[0][1].status == "unavailable"
        assert last_cache_bytes(tmp_path) is None

    def test_temperatures_are_named_by_chip_and_sensor(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sensors = {
            "k10temp": [SimpleNamespace(label="Tctl", current=62.5)],
            "nvme": [
                SimpleNamespace(label="", current=40.0),
                SimpleNamespace(label="broken", current=None),
            ],
        }
        monkeypatch.setattr(psutil, "sensors_temperatures", lambda: sensors, raising=False)

        found = {name: quantity.value for name, quantity in read_temperatures()}

        assert found == {"k10temp Tctl": 62.5, "nvme": 40.0}

    def test_the_processors_temperature_is_that_of_its_warmest_sensor(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sensors = {
            "coretemp": [SimpleNamespace(label=f"Core {n}", current=50.0 + n) for n in range(4)],
            "nvme": [SimpleNamespace(label="", current=90.0)],
        }
        monkeypatch.setattr(psutil, "sensors_temperatures", lambda: sensors, raising=False)
        warmest = cpu_module.processor_temperature()
        del sensors["coretemp"]

        assert warmest.value == 53
        unknown = "no sensor is known to be that of the processor"
        assert cpu_module.processor_temperature().source == unknown

    @pytest.mark.parametrize("way", ["none", "missing", "refused"])
    def test_hidden_temperatures_say_so(self, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
        def refused() -> object:
            raise psutil.AccessDenied(1)

        if way == "missing":
            monkeypatch.delattr(psutil, "sensors_temperatures", raising=False)
        else:
            answer = dict if way == "none" else refused
            monkeypatch.setattr(psutil, "sensors_temperatures", answer, raising=False)

        ((name, quantity),) = read_temperatures()

        assert name == "machine"
        assert quantity.status == "unavailable"

    def test_slow_downs_for_heat_are_counted_over_all_cores(self, tmp_path: Path) -> None:
        for core, count in enumerate((3, 4)):
            file(tmp_path / f"cpu{core}/thermal_throttle/core_throttle_count", f"{count}\n")

        assert cpu_module.throttle_count(tmp_path).value == 7
        assert cpu_module.throttle_count(tmp_path / "none").status == "unavailable"


def control_group(folder: Path, mine: str, limits: Mapping[str, str]) -> tuple[Path, Path]:
    """Write the files of control groups; return `/proc` and the top of the groups."""
    file(folder / "proc/self/cgroup", f"{mine}\n")
    for path, text in limits.items():
        file(folder / "cgroup" / path, f"{text}\n")
    return folder / "proc", folder / "cgroup"


class TestContainers:
    @pytest.fixture
    def second(self, tmp_path: Path) -> tuple[Path, Path]:
        """A group of version 2, two levels deep."""
        return control_group(
            tmp_path,
            "0::/pod/container",
            {
                "pod/memory.max": "8000",
                "pod/container/memory.max": "max",
                "pod/cpu.max": "max 100000",
                "pod/container/cpu.max": "150000 100000",
            },
        )

    def test_the_smallest_limit_above_us_holds(self, second: tuple[Path, Path]) -> None:
        assert memory_limit_bytes(*second) == 8000
        assert cpu_quota(*second) == 1.5

    def test_version_1_is_read_too(self, tmp_path: Path) -> None:
        limits = {"memory/memory.limit_in_bytes": "9223372036854771712"}
        limits |= {"memory/box/memory.limit_in_bytes": "4096"}
        limits |= {"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"}
        group = control_group(tmp_path, "4:memory:/box\n3:cpu,cpuacct:/\n0::/", limits)

        assert memory_limit_bytes(*group) == 4096
        assert cpu_quota(*group) == 0.5

    @pytest.mark.parametrize("content", ["", "nonsense", "0::", "0::/../../x\n::::\n", "\x00"])
    def test_no_limit_or_nonsense_is_no_limit(self, tmp_path: Path, content: str) -> None:
        file(tmp_path / "proc/self/cgroup", content)
        file(tmp_path / "cgroup/cpu.max", "-1 0\n")

        assert memory_limit_bytes(tmp_path / "proc", tmp_path / "cgroup") is None
        assert cpu_quota(tmp_path / "proc", tmp_path / "cgroup") is None

    def test_the_limit_is_part_of_the_memory(self, second: tuple[Path, Path]) -> None:
        proc, top = second

        assert read_memory(proc=proc, cgroup=top).limit.value == 8000
        assert read_memory(proc=proc, cgroup=top / "none").limit.status == "unavailable"

    def test_a_quota_is_what_may_be_used(
        self, second: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cpu_module, "cpu_quota", lambda proc: 0.5)

        usable = cpu_module.usable_cpus(second[0])

        assert usable.value == 0.5
        assert usable.source == "quota of the control group"


class TestGpus:
    def test_a_card_reports_everything(self) -> None:
        nvml = FakeNvml(**full_card(CurrentClocksEventReasons=0x4 | 0x40 | 0x1))

        (gpu,), note = read_gpus(nvml)

        assert note == ""
        assert gpu.name == "NVIDIA Test 100"
        assert gpu.memory_total.value == 80 << 30
        assert gpu.memory_used.value == 2 << 30
        assert gpu.utilisation.value == 97
        assert gpu.memory_utilisation.value == 41
        assert gpu.temperature.value == 71
        assert gpu.power.value == 250
        assert gpu.power_limit.value == 300
        assert gpu.clock.value == 1410
        assert gpu.slowed == Quantity(1.0, "", "measured", "NVML: power limit, heat (hardware)")
        assert nvml.opened == 0

    def test_a_card_that_hides_something_reports_the_rest(self) -> None:
        answers = dict(full_card(Name=b"Old card", PowerUsage=FakeNvmlError("Not Supported")))
        del answers["CurrentClocksEventReasons"]

        (gpu,), _ = read_gpus(FakeNvml(**answers, CurrentClocksThrottleReasons=0x1))

        assert gpu.name == "Old card"
        assert gpu.power == unavailable("W", "NVML: Not Supported")
        assert gpu.temperature.value == 71
        assert gpu.slowed.value == 0, "an idle card is not slowed down"

    def test_a_card_that_hides_everything_is_still_a_card(self) -> None:
        (gpu,), note = read_gpus(FakeNvml())

        assert (gpu.name, note) == ("GPU 0", "")
        assert gpu.slowed.status == "unavailable"

    @pytest.mark.parametrize(
        ("nvml", "reason"),
        [
            (FakeNvml(Count=0), "NVML sees no GPU"),
            (FakeNvml(Count=FakeNvmlError("Unknown Error")), "NVML: Unknown Error"),
            (FakeNvml(HandleByIndex=FakeNvmlError("No Permission")), "NVML: No Permission"),
        ],
    )
    def test_no_card_has_a_reason(self, nvml: FakeNvml, reason: str) -> None:
        assert read_gpus(nvml) == ((), reason)
        assert nvml.opened == 0

    def test_without_the_library_it_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "pynvml", None)

        assert read_gpus() == ((), "nvidia-ml-py is not installed (pip install nvidia-ml-py)")


class TestTheMonitor:
    def test_a_busy_program_is_seen(self) -> None:
        with SystemMonitor(interval_s=0.01, nvml=FakeNvml(Count=0)) as monitor:
            until_s = time.process_time() + 0.1
            while time.process_time() < until_s:
                pass
        use = monitor.result()

        assert use.seconds.value is not None
        assert use.program_cpus.value is not None
        assert use.program_cpus.value * use.seconds.value >= 0.099
        assert use.cpu_efficiency.status == "computed"
        assert use.memory_peak.value is not None
        assert use.memory_peak.value > 1_000_000
        assert use.gpu_note == "NVML sees no GPU"

    def test_a_peak_of_memory_between_two_looks_is_seen(self) -> None:
        # Larger than whatever this process held before: the kernel then notes a new peak.
        code = """
            from snapviewer.model.system import SystemMonitor
            with SystemMonitor(interval_s=60) as monitor:
                block = bytearray(b"x") * (200 << 20)
                del block
            print(monitor.result().memory_peak.value)
        """

        assert float(output_of(code)) > 200 << 20

    @pytest.mark.promise("M38")
    def test_disk_and_network_are_what_the_counters_gained(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        io = "rchar: 9000\nwchar: 8000\nread_bytes: {}\nwrite_bytes: {}\n"
        nets = iter([(5, 1), (5, 1), (9, 2), (9, 2)])
        # What the disks of the machine do is no part of it.
        monkeypatch.setattr(psutil, "disk_io_counters", lambda: pytest.fail("the whole machine"))
        file(tmp_path / "self" / "io", io.format(100, 10))
        monkeypatch.setattr(
            psutil,
            "net_io_counters",
            lambda: record(**dict(zip(("bytes_recv", "bytes_sent"), next(nets), strict=True))),
        )

        with SystemMonitor(interval_s=60, nvml=FakeNvml(Count=0), proc=tmp_path) as monitor:
            file(tmp_path / "self" / "io", io.format(350, 30))
        use = monitor.result()

        assert (use.disk_read.value, use.disk_written.value) == (250, 20)
        assert use.disk_read.source == f"{tmp_path / 'self' / 'io'}, this process"
        assert (use.network_received.value, use.network_sent.value) == (4, 1)
        assert "the whole machine" in use.network_received.source

    @pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="not Linux, or not permitted")
    @pytest.mark.promise("M38")
    def test_the_disk_is_what_this_process_wrote(self, tmp_path: Path) -> None:
        before = read_counters().disk_written

        with (tmp_path / "own").open("wb") as own:
            own.write(b"x" * 2**20)
            own.flush()
            os.fsync(own)

        gained = change(before, read_counters().disk_written).value
        assert gained is not None
        assert gained >= 2**20 or gained == 0, "a file system in memory writes to no disk"

    def test_a_machine_that_counts_neither_says_so(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        def refuse(*_: object) -> object:
            raise AttributeError("'Process' object has no attribute 'io_counters'")

        monkeypatch.setattr(psutil, "net_io_counters", lambda: None)
        monkeypatch.setattr(psutil.Process, "io_counters", refuse, raising=False)

        refused, elsewhere = read_counters(tmp_path), read_counters(tmp_path / "no proc")

        assert "No such file" in refused.disk_read.source
        assert "no attribute 'io_counters'" in elsewhere.disk_read.source
        assert refused.sent == unavailable("B", "psutil sees no network")
        file(tmp_path / "self" / "io", "rchar: 1\n")
        assert "does not report it here" in read_counters(tmp_path).disk_read.source

    def test_gpus_are_watched(self) -> None:
        nvml = FakeNvml(
            **full_card(
                UtilizationRates=[record(gpu=share, memory=0) for share in (10, 90, 50)],
                Temperature=[60, 80, 75],
                CurrentClocksEventReasons=[0, 0x40, 0],
            )
        )

        with SystemMonitor(interval_s=0.005, nvml=nvml) as monitor:
            while len(nvml.asked) < 30:
                time.sleep(0.001)
        (gpu,) = monitor.result().gpus

        assert gpu.utilisation_peak.value == 90
        assert gpu.temperature_peak.value == 80
        assert gpu.power.value == pytest.approx(250)
        assert gpu.memory_peak.value == 2 << 30
        assert gpu.slowed.value is not None
        assert 0 < gpu.slowed.value < 1
        assert "heat (hardware)" in gpu.slowed.source
        assert nvml.opened == 0

    def test_without_psutil_the_rest_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "psutil", None)

        with SystemMonitor(interval_s=0.005, nvml=FakeNvml(Count=0)) as monitor:
            time.sleep(0.02)
        use = monitor.result()

        for quantity in (use.cpu_utilisation, use.cpu_utilisation_peak, use.network_sent):
            assert "pip install psutil" in quantity.source
        assert use.program_cpus.value is not None
        json.dumps(record_json(use))

    def test_the_result_comes_after_the_block(self) -> None:
        monitor = SystemMonitor(nvml=FakeNvml(Count=0))

        with pytest.raises(RuntimeError, match="after the `with` block"), monitor:
            monitor.result()

    def test_an_error_in_the_run_is_not_swallowed(self) -> None:
        nvml = FakeNvml(**full_card())

        with pytest.raises(ZeroDivisionError), SystemMonitor(nvml=nvml):
            raise ZeroDivisionError

        assert nvml.opened == 0

    def test_a_counter_that_went_back_is_not_negative(self) -> None:
        before, after = (Quantity(value, "B", "measured", "disk") for value in (9.0, 4.0))

        assert change(before, after).status == "unavailable"

    def test_guests_time_is_not_counted_twice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Times(SimpleNamespace):
            _fields = ("user", "idle", "iowait", "guest")

        times = iter([Times(user=0, idle=0, iowait=0, guest=0)] * 1)
        monkeypatch.setattr(psutil, "cpu_times", lambda: next(times))
        before = read_processors()
        times = iter([Times(user=3.0, idle=5.0, iowait=2.0, guest=3.0)])

        share = busy_share(before, counters.read_processors())

        assert share.value == pytest.approx(30)

    def test_a_number_that_comes_and_goes_keeps_its_highest(self) -> None:
        readings = iter(
            [
                unavailable("W", "lost"),
                Quantity(5.0, "W", "measured", "card"),
                unavailable("W", "lost"),
            ]
        )
        watched = SampledQuantity(lambda: next(readings))

        for _ in range(3):
            watched.sample()

        assert watched.peak() == Quantity(5.0, "W", "measured", "card, highest of 1 reading")


class TestCacheHits:
    def test_the_share_is_one_less_the_misses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # 1000 accesses; 50 misses seen in half of the time, so 100 in the whole.
        answers = {2: struct.pack("=QQQ", 1000, 8, 8), 3: struct.pack("=QQQ", 50, 8, 4)}
        opened: list[int] = []

        def open_counter(number: int, event: PerfEvent, thread: int) -> int:
            reader, writer = os.pipe()
            os.write(writer, answers[event.number])
            os.close(writer)
            opened.append(reader)
            return reader

        monkeypatch.setattr(perf_events, "_open", open_counter)
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setattr(perf_events, "_SYSCALL", {platform.machine(): 1})
        counters = CacheCounters()

        counters.start()
        share = counters.stop()

        assert share.value == pytest.approx(90)
        assert share.status == "measured"
        for descriptor in opened:
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(descriptor)

    @pytest.mark.parametrize(
        ("number", "reason"),
        [
            (errno.EACCES, "perf_event_paranoid is 3"),
            (errno.ENOENT, "has no cache counters, as in virtual machines"),
            (errno.ENOSYS, "perf_event: "),
        ],
    )
    def test_a_kernel_that_refuses_is_reported(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, reason: str
    ) -> None:
        def refuse(*arguments: object) -> int:
            raise OSError(number, os.strerror(number))

        file(tmp_path / "sys/kernel/perf_event_paranoid", "3\n")
        (tmp_path / "self/task/1").mkdir(parents=True)
        monkeypatch.setattr(perf_events, "_open", refuse)
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setattr(perf_events, "_SYSCALL", {platform.machine(): 1})
        counters = CacheCounters(tmp_path)

        counters.start()

        assert counters.stop().status == "unavailable"
        assert reason in counters._why

    def test_other_systems_are_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "platform", "win32")
        counters = CacheCounters()

        counters.start()

        assert "not supported on win32" in counters.stop().source

    def test_the_real_kernel_answers_or_refuses_with_a_reason(self) -> None:
        counters = CacheCounters()

        counters.start()
        sum(range(1000))
        share = counters.stop()

        assert share.source
        assert share.value is None or 0 <= share.value <= 100


INTEL = "vendor_id : GenuineIntel\ncpu family : 6\nmodel : {}\nflags : fpu adx\n"
AMD = "vendor_id : AuthenticAMD\ncpu family : {}\nmodel : {}\n"


@pytest.mark.promise("M25")
class TestFlopCounters:
    @pytest.mark.parametrize(
        ("cpuinfo", "events"),
        [
            (INTEL.format(0x55), [(1, 0x3C7), (2, 0x4C7), (4, 0x18C7), (8, 0x60C7), (16, 0x80C7)]),
            (AMD.format(0x17, 0x01), [(1, 0xFF03)]),
            (AMD.format(0x17, 0x31), [(1, 0x0F03)]),
            (AMD.format(0x19, 0x11), [(1, 0x1F03)]),
            (AMD.format(0x1A, 0x02), [(1, 0x0F03)]),
        ],
    )
    def test_each_processor_has_its_events(
        self, cpuinfo: str, events: list[tuple[int, int]], tmp_path: Path
    ) -> None:
        (tmp_path / "cpu").mkdir()

        assert flop_counters._events(cpuinfo, tmp_path) == events

    @pytest.mark.parametrize(
        "cpuinfo",
        [
            "",
            AMD.format(0x15, 0x02),
            INTEL.format(0xAF),
            INTEL.format(0x3C).replace("adx", ""),
            "CPU implementer : 0x41\n",
        ],
        ids=["nothing", "before Zen", "efficient cores", "before Broadwell", "Arm"],
    )
    def test_other_processors_are_not_guessed_at(self, cpuinfo: str, tmp_path: Path) -> None:
        (tmp_path / "cpu").mkdir()

        with pytest.raises(NoAnswerError, match="are not known"):
            flop_counters._events(cpuinfo, tmp_path)

    def test_two_kinds_of_cores_are_not_guessed_at(self, tmp_path: Path) -> None:
        (tmp_path / "cpu_core").mkdir()

        with pytest.raises(NoAnswerError, match="are not known"):
            flop_counters._events(INTEL.format(0x97), tmp_path)

    @pytest.mark.parametrize(
        ("share", "is_believed"), [(1.0, True), (1.02, True), (0.5, False), (0, False), (2, False)]
    )
    def test_counters_have_to_count_a_known_product(self, share: float, is_believed: bool) -> None:
        known = 2 * flop_counters._KNOWN_SIDE**3
        counters = [FakeFlops(share * known / 2), FakeFlops(share * known / 2)]

        if is_believed:
            flop_counters.check_counters(counters)
        else:
            with pytest.raises(NoAnswerError, match="FLOPs of a known product"):
                flop_counters.check_counters(counters)

        assert not any(counter.is_open for counter in counters)

    def test_an_event_counts_for_as_many_flops_as_it_has_results(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def open_counter(number: int, event: PerfEvent, thread: int) -> int:
            assert event == PerfEvent(4, 0x60C7)
            reader, writer = os.pipe()
            os.write(writer, struct.pack("=QQQ", 100, 1, 1))
            os.close(writer)
            return reader

        monkeypatch.setattr(perf_events, "_open", open_counter)
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setattr(perf_events, "_SYSCALL", {platform.machine(): 1})
        monkeypatch.setattr(os, "listdir", lambda _: ["1", "2"])
        counter = flop_counters.HardwareFlops(PerfEvent(4, 0x60C7), 8)

        counter.start()
        try:
            assert counter.flops() == 8 * 2 * 100, "of both threads"
        finally:
            counter.close()

    def test_this_machine_counts_or_says_why_not(self, tmp_path: Path) -> None:
        with suppress(NoAnswerError):
            assert flop_counters.flop_counters()
        with pytest.raises(NoAnswerError, match="only Linux"):
            flop_counters.flop_counters(tmp_path)
