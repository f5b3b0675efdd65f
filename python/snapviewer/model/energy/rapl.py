"""The third rung: the processor's own energy counters, which Linux shows as files.

Packages are summed, and the memory where it has a counter of its own. The zones `core` and
`uncore` are parts of a package, `psys` overlaps it, and `intel-rapl-mmio` shows the same package a
second time, so they are left out. AMD's processors appear under the same names.

A counter begins again at 0 after `max_energy_range_uj`, with 200 W after some twenty minutes, so
it is also read now and then during a run.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from snapviewer.model.energy.rungs import Domain, Measured, NoMeasureError
from snapviewer.model.sampling import Sampler

POWERCAP = Path("/sys/class/powercap")

_PACKAGE = re.compile(r"intel-rapl:\d+")
_PART = re.compile(r"intel-rapl:\d+:\d+")

# The smallest range in use is about 65 kJ: at 2 kW a counter is back where it was after 32 s.
_POLL_S = 10.0


@dataclass(slots=True)
class WrappingCounter:
    """A counter that begins again at 0 after its range.

    >>> counter = WrappingCounter(range_uj=100)
    >>> for reading_uj in (90, 95, 5, 30):
    ...     counter.add(reading_uj)
    >>> counter.total_uj
    40
    """

    range_uj: int | None
    total_uj: int = 0
    dropped: int = 0
    """How many times it went back and its range was not known."""
    _last_uj: int | None = None

    def add(self, reading_uj: int) -> None:
        """Take a reading."""
        if self._last_uj is not None:
            used_uj = reading_uj - self._last_uj
            if used_uj < 0 and self.range_uj is not None and self.range_uj >= self._last_uj:
                used_uj += self.range_uj
            if used_uj < 0:
                self.dropped += 1
            else:
                self.total_uj += used_uj
        self._last_uj = reading_uj


@dataclass(frozen=True, slots=True)
class _Zone:
    name: str
    counter: WrappingCounter
    file: Path

    def read(self) -> None:
        self.counter.add(int(self.file.read_text(encoding="ascii", errors="replace")))


class Rapl:
    """The energy of all processor packages and, where it is told, of the memory.

    Args:
        powercap: Where the zones are.
        poll_s: How often the counters are read during a run.
    """

    name = "RAPL"

    def __init__(self, powercap: Path = POWERCAP, *, poll_s: float = _POLL_S) -> None:
        self._powercap = powercap
        self._poll_s = poll_s
        self._zones: list[_Zone] = []
        self._left_out: list[str] = []
        self._sampler: Sampler | None = None

    def start(self) -> None:
        self._zones, self._left_out = self._open()
        self._sampler = Sampler(self._sample, interval_s=self._poll_s)
        self._sampler.__enter__()

    def stop(self) -> Measured:
        if self._sampler is not None:
            self._sampler.__exit__(None, None, None)
        self._sampler = None
        if not any(zone.counter.total_uj for zone in self._zones):
            raise NoMeasureError("the counters did not move: the run is shorter than their step")
        dropped = sum(zone.counter.dropped for zone in self._zones)
        return Measured(
            tuple(Domain(zone.name, zone.counter.total_uj / 1e6) for zone in self._zones),
            f"RAPL of {', '.join(zone.name for zone in self._zones)} (all programs together)"
            + (f", without {', '.join(self._left_out)}" if self._left_out else "")
            + (f", at least: {dropped} readings went back and were left out" if dropped else ""),
        )

    def _sample(self) -> None:
        for zone in self._zones:
            with suppress(OSError, ValueError):  # the next reading has the energy of both
                zone.read()

    def _open(self) -> tuple[list[_Zone], list[str]]:
        """Find the zones and read each once; a package that cannot be read ends it."""
        try:
            paths = sorted(self._powercap.iterdir())
        except OSError as error:
            usual = " (usual in virtual machines)" if isinstance(error, FileNotFoundError) else ""
            raise NoMeasureError(f"no {self._powercap}{usual}") from None
        zones: list[_Zone] = []
        left_out: list[str] = []
        for path in paths:
            name = _text(path / "name")
            is_package = bool(_PACKAGE.fullmatch(path.name)) and name.startswith("package")
            if not is_package and not (_PART.fullmatch(path.name) and name == "dram"):
                continue
            zone = _Zone(
                name if is_package else f"{name} of {_text(path.parent / _package_of(path))}",
                WrappingCounter(_range_uj(path / "max_energy_range_uj")),
                path / "energy_uj",
            )
            try:
                zone.read()
            except (OSError, ValueError) as error:
                if is_package:
                    raise NoMeasureError(_why(zone.file, error)) from None
                left_out.append(f"{zone.name} ({_why(zone.file, error)})")
            else:
                zones.append(zone)
        if not any(zone.name.startswith("package") for zone in zones):
            raise NoMeasureError(f"{self._powercap} shows no processor package")
        return zones, left_out


def _package_of(part: Path) -> str:
    return f"{part.name.rpartition(':')[0]}/name"


def _text(file: Path) -> str:
    try:
        # Zones' names are a few letters; what is longer is not one.
        return file.read_text(encoding="ascii", errors="replace")[:64].strip()
    except OSError:
        return ""


def _range_uj(file: Path) -> int | None:
    text = _text(file)
    return int(text) if text.isdecimal() and int(text) > 0 else None


def _why(file: Path, error: OSError | ValueError) -> str:
    if isinstance(error, PermissionError):
        return f"not permitted to read {file}: most systems allow it to root only"
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__}: {file}"
    return f"no number in {file}"
