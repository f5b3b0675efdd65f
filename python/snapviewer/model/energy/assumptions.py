"""The numbers that the energy model assumes, with their basis.

They are assumptions, not measurements, of the magnitude that data sheets and the literature give.
Energy per operation differs by a factor of ten between machines of one year, so each number is a
range: a good current machine, a usual one, an old or small one. The numbers are for the whole
chip, including fetching and moving operands; the arithmetic alone takes far less (at 45 nm, 0.9 pJ
for a float32 addition and 3.7 pJ for a multiplication; Horowitz, ISSCC 2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

DeviceKind: TypeAlias = Literal["cpu", "gpu"]
NumberClass: TypeAlias = Literal["float64", "float32", "half", "int8"]


@dataclass(frozen=True, slots=True)
class Range:
    """A number of which only the magnitude is known.

    >>> Range(1.0, 2.0, 4.0) * 3
    Range(low=3.0, usual=6.0, high=12.0)
    """

    low: float
    usual: float
    high: float

    def __mul__(self, factor: float) -> Range:
        return Range(self.low * factor, self.usual * factor, self.high * factor)

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.usual + other.usual, self.high + other.high)


@dataclass(frozen=True, slots=True)
class Assumption:
    """A number of the model, its unit and its basis."""

    range: Range
    unit: str
    basis: str


OPERATION: dict[tuple[DeviceKind, NumberClass], Assumption] = {
    ("cpu", "float64"): Assumption(
        Range(20, 60, 200), "pJ/FLOP", "twice float32: vectors hold half as many numbers"
    ),
    ("cpu", "float32"): Assumption(
        Range(10, 30, 100),
        "pJ/FLOP",
        "class of data sheets: TDP less idle power, divided by the peak rate with AVX2 or AVX-512",
    ),
    ("cpu", "half"): Assumption(
        Range(5, 30, 100),
        "pJ/FLOP",
        "as float32, into which most processors convert; less with AMX or bf16 instructions",
    ),
    ("cpu", "int8"): Assumption(
        Range(2.5, 8, 30), "pJ/operation", "a fourth of float32: vectors hold four times as many"
    ),
    ("gpu", "float64"): Assumption(
        Range(10, 25, 200), "pJ/FLOP", "data-centre cards at half their float32 rate; others worse"
    ),
    ("gpu", "float32"): Assumption(
        Range(4, 12, 30),
        "pJ/FLOP",
        "class of data sheets, 2017 to 2023: board power less idle, divided by the peak rate",
    ),
    ("gpu", "half"): Assumption(
        Range(0.4, 1.0, 6.0),
        "pJ/FLOP",
        "class of data sheets: matrix units (tensor cores) at their peak rate",
    ),
    ("gpu", "int8"): Assumption(
        Range(0.2, 0.5, 3.0), "pJ/operation", "matrix units at twice their half-precision rate"
    ),
}

MEMORY: dict[DeviceKind, Assumption] = {
    "cpu": Assumption(
        Range(60, 150, 325),
        "pJ/byte",
        "class of DDR memory: 1.3 to 2.6 nJ for 8 bytes (Horowitz, ISSCC 2014), newer less",
    ),
    "gpu": Assumption(Range(25, 45, 80), "pJ/byte", "class of HBM2 to GDDR6: 3 to 10 pJ a bit"),
}

STATIC: dict[DeviceKind, Assumption] = {
    "cpu": Assumption(
        Range(0.3, 1.0, 2.5),
        "W for each logical processor",
        "class of laptops to servers: idle power of a package divided by its logical processors",
    ),
    "gpu": Assumption(Range(10, 35, 90), "W", "class of cards with a program loaded, idle"),
}

THERMAL = Assumption(
    Range(0.002, 0.01, 0.02),
    "of the static power for each °C above the reference",
    "leakage grows with temperature, by some 20 to 30 % for each 25 °C in present processes",
)
REFERENCE_C = 50.0
ASSUMED_C = 65.0
"""The temperature of a busy chip without a sensor."""

LEFT_OUT = "without power supply, fans, disks and cooling of the room"


def number_class(dtype: str) -> NumberClass:
    """Return the row of the table that a dtype belongs to.

    >>> number_class("torch.bfloat16"), number_class("int8"), number_class("")
    ('half', 'int8', 'float32')
    """
    name = dtype.removeprefix("torch.")
    if name in ("float64", "double", "complex128"):
        return "float64"
    if name in ("float16", "half", "bfloat16"):
        return "half"
    if name in ("int8", "uint8", "qint8", "quint8") or name.startswith("float8"):
        return "int8"
    return "float32"
