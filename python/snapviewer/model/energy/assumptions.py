"""The numbers that the energy model assumes, with their range and basis.

They are assumptions, not measurements, of the magnitude that data sheets and the literature give.
Energy per operation differs by a factor of ten between machines of one year, so each number is a
range: a good current machine, a usual one, an old or small one.

The energy per FLOP is that of a dense matrix product on the whole chip, control and registers
included; the arithmetic alone takes far less (at 45 nm, 0.9 pJ for a float32 addition and 3.7 pJ
for a multiplication; Horowitz, ISSCC 2014). `CLASSES` has what sets other operations apart from a
matrix product: arithmetic, traffic and reuse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

DeviceKind: TypeAlias = Literal["cpu", "gpu"]
NumberClass: TypeAlias = Literal["float64", "float32", "half", "int8"]
ClassName: TypeAlias = Literal["convolution", "attention", "linear", "elementwise"]


@dataclass(frozen=True, slots=True)
class Range:
    """A number of which only the magnitude is known.

    >>> Range(1.0, 2.0, 4.0) * 3
    Range(low=3.0, usual=6.0, high=12.0)
    >>> Range(1.0, 2.0, 4.0) * Range(1.0, 1.5, 2.0)
    Range(low=1.0, usual=3.0, high=8.0)
    """

    low: float
    usual: float
    high: float

    def __mul__(self, factor: float | Range) -> Range:
        if isinstance(factor, Range):
            return Range(self.low * factor.low, self.usual * factor.usual, self.high * factor.high)
        return Range(self.low * factor, self.usual * factor, self.high * factor)

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.usual + other.usual, self.high + other.high)


@dataclass(frozen=True, slots=True)
class Assumption:
    """A number of the model, its unit and its basis."""

    name: str
    range: Range
    unit: str
    basis: str

    def __str__(self) -> str:
        numbers = self.range
        return f"{numbers.usual:g} {self.unit} ({numbers.low:g} to {numbers.high:g}): {self.basis}"


@dataclass(frozen=True, slots=True)
class OperationClass:
    """Operations that use the machine alike.

    `arithmetic` is the energy of a FLOP against one of a dense product, and `traffic` how often
    the bytes of inputs and outputs pass between memory and chip. `reuse` is the number of FLOPs for
    each operand that a cache delivers; every operand is delivered at least once. An operation
    without matrix units computes narrow types as float32.
    """

    name: ClassName
    arithmetic: Assumption
    traffic: Assumption
    reuse: Assumption
    has_matrix_units: bool = True

    @property
    def assumptions(self) -> tuple[Assumption, Assumption, Assumption]:
        """All of its numbers."""
        return self.arithmetic, self.traffic, self.reuse


_SHEETS = "data sheets: TDP less idle power, divided by the peak rate"


def _per_operation(
    device: DeviceKind, number: NumberClass, numbers: Range, basis: str
) -> tuple[tuple[DeviceKind, NumberClass], Assumption]:
    unit = "pJ/operation" if number == "int8" else "pJ/FLOP"
    return (device, number), Assumption(f"{number} on a {device.upper()}", numbers, unit, basis)


OPERATION: dict[tuple[DeviceKind, NumberClass], Assumption] = dict(
    (
        _per_operation(
            "cpu", "float64", Range(20, 60, 200), "twice float32: vectors hold half as many"
        ),
        _per_operation("cpu", "float32", Range(10, 30, 100), f"{_SHEETS} with AVX2 or AVX-512"),
        _per_operation(
            "cpu", "half", Range(5, 30, 100), "as float32; less with AMX or bf16 instructions"
        ),
        _per_operation("cpu", "int8", Range(2.5, 8, 30), "a fourth of float32"),
        _per_operation(
            "gpu", "float64", Range(10, 25, 200), "half the rate of float32, often far less"
        ),
        _per_operation("gpu", "float32", Range(4, 12, 30), f"{_SHEETS}, 2017 to 2023"),
        _per_operation(
            "gpu", "half", Range(0.4, 1.0, 6.0), "data sheets: matrix units at their peak rate"
        ),
        _per_operation("gpu", "int8", Range(0.2, 0.5, 3.0), "matrix units at twice their rate"),
    )
)


def _class(
    name: ClassName,
    arithmetic: tuple[Range, str],
    traffic: tuple[Range, str],
    reuse: tuple[Range, str],
    *,
    has_matrix_units: bool = True,
) -> OperationClass:
    return OperationClass(
        name,
        Assumption(f"{name} arithmetic", arithmetic[0], "× a dense product", arithmetic[1]),
        Assumption(f"{name} traffic", traffic[0], "× bytes in and out", traffic[1]),
        Assumption(f"{name} reuse", reuse[0], "FLOPs per fetched operand", reuse[1]),
        has_matrix_units=has_matrix_units,
    )


CLASSES: dict[ClassName, OperationClass] = {
    "convolution": _class(
        "convolution",
        (
            Range(0.45, 1, 1.3),
            "as a dense product; Winograd needs 2.25 times fewer multiplications for 3×3 "
            "(Lavin and Gray, CVPR 2016)",
        ),
        (
            Range(1, 1.3, 3),
            "overlapping tiles read inputs again; im2col also writes and reads the windows",
        ),
        (
            Range(6, 12, 20),
            "register blocks of direct convolutions, 7×64 to 28×16 outputs "
            "(Georganas et al., SC 2018)",
        ),
    ),
    "attention": _class(
        "attention",
        (
            Range(1, 1.2, 2),
            "two products and a softmax, whose exponentials can take half as long as the products "
            "(Shah et al., FlashAttention-3, 2024)",
        ),
        (
            Range(1, 1.5, 4),
            "keys and values are read again for each block of queries "
            "(Dao et al., FlashAttention, NeurIPS 2022)",
        ),
        (
            Range(3, 7, 15),
            "as a matrix product, and several passes over the scores for the softmax",
        ),
    ),
    "linear": _class(
        "linear",
        (Range(1, 1, 1), "the reference itself"),
        (
            Range(1, 1, 1.5),
            "packed blocks are read once (Goto and van de Geijn, ACM TOMS 2008)",
        ),
        (
            Range(4, 9, 20),
            "register blocks of matrix products, 4×8 to 14×32 outputs "
            "(Van Zee and van de Geijn, ACM TOMS 2015)",
        ),
    ),
    "elementwise": _class(
        "elementwise",
        (
            Range(1, 2, 4),
            "an instruction for each FLOP instead of a multiply-add for two, and more for "
            "exponentials and divisions",
        ),
        (
            Range(0.3, 1, 1),
            "each byte once; less if the operation before left its output in a cache",
        ),
        (Range(0.25, 1, 2), "each operand is used once or twice"),
        has_matrix_units=False,
    ),
}
"""In the order of reports. Everything but products counts as elementwise."""

_CLASS_OF_KIND: dict[str, ClassName] = {
    "Convolution": "convolution",
    "Attention": "attention",
    **dict.fromkeys(("Linear", "MatMul", "Recurrent", "LinearAlgebra"), "linear"),
}

MEMORY: dict[DeviceKind, Assumption] = {
    "cpu": Assumption(
        "memory of a CPU",
        Range(60, 150, 325),
        "pJ/byte",
        "DDR memory: 1.3 to 2.6 nJ for 8 bytes (Horowitz, ISSCC 2014), newer less",
    ),
    "gpu": Assumption(
        "memory of a GPU", Range(25, 45, 80), "pJ/byte", "HBM2 to GDDR6: 3 to 10 pJ per bit"
    ),
}

CACHE = Assumption(
    "caches",
    Range(0.5, 2.5, 12.5),
    "pJ/byte",
    "20 pJ for 8 bytes from 32 KiB and 100 pJ from 1 MiB at 45 nm (Horowitz, ISSCC 2014), "
    "newer less",
)

STATIC: dict[DeviceKind, Assumption] = {
    "cpu": Assumption(
        "idle power of a CPU",
        Range(0.3, 1.0, 2.5),
        "W per logical processor",
        "laptops to servers: idle power of a package divided by its logical processors",
    ),
    "gpu": Assumption(
        "idle power of a GPU", Range(10, 35, 90), "W", "idle cards with a program loaded"
    ),
}

THERMAL = Assumption(
    "leakage",
    Range(0.002, 0.01, 0.02),
    "of the static power per °C above the reference",
    "leakage grows with temperature, by 20 to 30 % per 25 °C in current processes",
)
REFERENCE_C = 50.0
ASSUMED_C = 65.0
"""The temperature of a busy chip without a sensor."""

LEFT_OUT = "without power supply, fans, disks and cooling of the room"

_ELEMENT_BYTES: dict[NumberClass, int] = {"float64": 8, "float32": 4, "half": 2, "int8": 1}


def class_of_kind(kind: str) -> ClassName:
    """Return the class of a kind of operations.

    >>> class_of_kind("MatMul"), class_of_kind("Pooling")
    ('linear', 'elementwise')
    """
    return _CLASS_OF_KIND.get(kind, "elementwise")


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


def operation_of(device: DeviceKind, dtype: str, name: ClassName) -> Assumption:
    """Return the energy of a FLOP of a dense product in the type that a class computes in."""
    number = number_class(dtype)
    if not CLASSES[name].has_matrix_units and number in ("half", "int8"):
        number = "float32"
    return OPERATION[device, number]


def fetched_bytes(flops: int, moved_bytes: int, dtype: str, name: ClassName) -> Range:
    """Return the bytes that caches deliver: by the reuse of the class, and each operand once."""
    size, reuse = _ELEMENT_BYTES[number_class(dtype)], CLASSES[name].reuse.range
    # More reuse takes fewer bytes.
    return Range(
        *(
            max(float(moved_bytes), size * flops / each)
            for each in (reuse.high, reuse.usual, reuse.low)
        )
    )
