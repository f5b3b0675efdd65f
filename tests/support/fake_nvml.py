"""A stand-in for NVIDIA's management library: a card that reports what a test wants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any


class FakeNvmlError(Exception):
    """What the library raises."""


class FakeNvml:
    """Answers by name: a value, a list of values one after another, or an error to raise.

    What is not among the answers is not supported. The last value of a list stays.
    """

    NVMLError = FakeNvmlError
    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM = 1

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {"Count": 1, "HandleByIndex": "card", **answers}
        self.init_error: Exception | None = None
        self.opened = 0
        self.asked: list[tuple[Any, ...]] = []

    def nvmlInit(self) -> None:  # noqa: N802
        if self.init_error is not None:
            raise self.init_error
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.opened -= 1

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)
        return lambda *arguments: self._answer(name.removeprefix("nvmlDeviceGet"), arguments)

    def _answer(self, name: str, arguments: tuple[Any, ...]) -> Any:
        self.asked.append((name, *arguments))
        if name not in self.answers:
            raise FakeNvmlError("Not Supported")
        answer = self.answers[name]
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def record(**fields: Any) -> Any:
    """Make one of the library's structures."""
    return SimpleNamespace(**fields)


def full_card(**changes: Any) -> Mapping[str, Any]:
    """Answers of a data-centre card that supports everything."""
    return {
        "Name": "NVIDIA Test 100",
        "TotalEnergyConsumption": [1_000_000, 1_012_500],
        "PowerUsage": 250_000,
        "PowerManagementLimit": 300_000,
        "MemoryInfo": record(total=80 << 30, used=2 << 30, free=78 << 30),
        "UtilizationRates": record(gpu=97, memory=41),
        "Temperature": 71,
        "ClockInfo": 1410,
        "CurrentClocksEventReasons": 0,
        **changes,
    }
