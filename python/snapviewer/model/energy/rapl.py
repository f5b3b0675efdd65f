"""The energy counters of the processor (RAPL), which Linux exposes as files.

The energy is the sum of the packages, and of the memory if it has a counter of its own. The zones
`core` and `uncore` are parts of a package, `psys` overlaps it, and `intel-rapl-mmio` repeats a
package, so they are left out. AMD processors use the same names.

A counter wraps at `max_energy_range_uj`, at 200 W after some twenty minutes, so it is also read
during a run.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from snapviewer.model.energy.sensors import Domain, NoReadingError, Reading
from snapviewer.model.sampling import Sampler
from snapviewer.text.units import count_of

POWERCAP = Path("/sys/class/powercap")

_PACKAGE = re.compile(r"intel-rapl:\d+")
_PART = re.compile(r"intel-rapl:\d+:\d+")

# The smallest range in use is about 65 kJ: at 2 kW a counter wraps after 32 s.
_POLL_S = 10.0


@dataclass(slots=True)
class WrappingCounter:
    """A counter that wraps to 0 at the end of its range.

    >>> counter = WrappingCounter(range_uj=100)
    >>> for reading_uj in (90, 95, 5, 30):
    ...     counter.add(reading_uj)
    >>> counter.total_uj
    40
    """

    range_uj: int | None
    total_uj: int = 0
    dropped: int = 0
    """How often it decreased with no known range."""
    _last_uj: int | None = None

    def add(self, reading_uj: int) -> None:
        """Add a reading."""
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
    """The energy of all processor packages and, if available, of the memory.

    Args:
        powercap: The directory of the zones.
        poll_s: The seconds between readings during a run.
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

    def stop(self) -> Reading:
        if self._sampler is not None:
            self._sampler.__exit__(None, None, None)
        self._sampler = None
        if not any(zone.counter.total_uj for zone in self._zones):
            raise NoReadingError("the counters did not change: the run is too short")
        dropped = sum(zone.counter.dropped for zone in self._zones)
        return Reading(
            tuple(Domain(zone.name, zone.counter.total_uj / 1e6) for zone in self._zones),
            f"RAPL of {', '.join(zone.name for zone in self._zones)} (all programs together)"
            + (f", without {', '.join(self._left_out)}" if self._left_out else "")
            + (
                f", lower bound: {count_of(dropped, 'reading')} decreased and left out"
                if dropped
                else ""
            ),
        )

    def _sample(self) -> None:
        for zone in self._zones:
            with suppress(OSError, ValueError):  # the next reading has the energy of both
                zone.read()

    def _open(self) -> tuple[list[_Zone], list[str]]:
        """Find the zones and read each once; every package must be readable."""
        try:
            paths = sorted(self._powercap.iterdir())
        except OSError as error:
            usual = " (usual in virtual machines)" if isinstance(error, FileNotFoundError) else ""
            raise NoReadingError(f"no {self._powercap}{usual}") from None
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
                    raise NoReadingError(_why(zone.file, error)) from None
                left_out.append(f"{zone.name} ({_why(zone.file, error)})")
            else:
                zones.append(zone)
        if not any(zone.name.startswith("package") for zone in zones):
            raise NoReadingError(f"no processor package in {self._powercap}")
        return zones, left_out


def _package_of(part: Path) -> str:
    return f"{part.name.rpartition(':')[0]}/name"


def _text(file: Path) -> str:
    try:
        # Names of zones are short.
        return file.read_text(encoding="ascii", errors="replace")[:64].strip()
    except OSError:
        return ""


def _range_uj(file: Path) -> int | None:
    text = _text(file)
    return int(text) if text.isdecimal() and int(text) > 0 else None


def _why(file: Path, error: OSError | ValueError) -> str:
    if isinstance(error, PermissionError):
        return f"no permission to read {file}: most systems allow it to root only"
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__}: {file}"
    return f"no number in {file}"
