"""Energy sensors: what they have in common, and several of them read over one period."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class NoReadingError(Exception):
    """A sensor does not work on this machine; the message says why."""


class Domain(NamedTuple):
    """A part of the machine and the energy that it used."""

    name: str
    joules: float


@dataclass(frozen=True, slots=True)
class Reading:
    """The energy that a sensor measured."""

    domains: tuple[Domain, ...]
    source: str
    peak_w: float | None = None

    @property
    def joules(self) -> float:
        """The energy of all domains."""
        return sum(domain.joules for domain in self.domains)


class Sensor(Protocol):
    """A way to measure energy."""

    @property
    def name(self) -> str:
        """The name in reports."""

    def start(self) -> None:
        """Begin to measure.

        Raises:
            NoReadingError: It cannot.
        """

    def stop(self) -> Reading:
        """Stop measuring; called once after each `start` that did not raise.

        Raises:
            NoReadingError: There is no reliable reading.
        """


@dataclass(frozen=True, slots=True)
class Period:
    """A measured period: the reading of each sensor, the best first, or why it has none."""

    seconds: float
    cpu_seconds: float
    answers: dict[str, Reading | str]

    def best(self, names: Iterable[str]) -> tuple[str, Reading] | None:
        """Return the first of the named sensors that has a reading."""
        for name, answer in self.answers.items():
            if name in names and isinstance(answer, Reading):
                return name, answer
        return None


class Measurement:
    """Sensors that measure from now until `end`.

    Args:
        sensors: The sensors to start.
        refusals: Sensors that cannot work here, and why.
    """

    def __init__(self, sensors: Sequence[Sensor], refusals: dict[str, str]) -> None:
        self._answers: dict[str, Reading | str] = {**refusals}
        self._started: list[Sensor] = []
        for sensor in sensors:
            self._answers[sensor.name] = ""  # fixes the order of the answers
            try:
                sensor.start()
            except NoReadingError as error:
                self._answers[sensor.name] = str(error)
            else:
                self._started.append(sensor)
        self._cpu_s = time.process_time()
        self._start_s = time.perf_counter()

    def end(self) -> Period:
        """Stop the sensors and return their readings."""
        seconds = time.perf_counter() - self._start_s
        cpu_seconds = time.process_time() - self._cpu_s
        for sensor in self._started:
            try:
                self._answers[sensor.name] = sensor.stop()
            except NoReadingError as error:
                self._answers[sensor.name] = str(error)
        return Period(seconds, cpu_seconds, self._answers)
