"""What programs tell of themselves, made fit for a line of JSON."""

from __future__ import annotations

import math
import numbers
import reprlib
from typing import TypeAlias

from snapviewer.texts import MOST_SHOWN, clean

Value: TypeAlias = str | int | float | bool | None

# Long enough for what people write, short enough for a line to be written at once.
_MOST_OF_A_TEXT = 4000

# How PyTorch and the libraries below it say it where the type of the error does not.
_OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "cublas_status_alloc_failed",
)

_repr = reprlib.Repr()
_repr.maxother = _repr.maxstring = MOST_SHOWN


def json_value(value: object) -> Value:
    """Return what JSON can say of a value: itself, or its `repr`, cut short.

    >>> [json_value(value) for value in (1, 0.5, "a", True, None, float("nan"), [1, 2])]
    [1, 0.5, 'a', True, None, 'nan', '[1, 2]']
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if len(value) <= _MOST_OF_A_TEXT else f"{value[: _MOST_OF_A_TEXT - 1]}…"
    try:
        if isinstance(value, numbers.Integral):
            whole = int(value)
            return whole if abs(whole) < 2**63 else hex(whole)[:MOST_SHOWN]
        if isinstance(value, numbers.Real):
            number = float(value)
            return number if math.isfinite(number) else str(number)
        return clean(_repr.repr(value), MOST_SHOWN)
    except Exception:  # noqa: BLE001 - whatever the object's own code raises
        return clean(f"<{type(value).__name__}>", MOST_SHOWN)


def name_of(name: object, most: int = MOST_SHOWN) -> str:
    r"""Return a name on one line, without control characters, cut short, and never empty.

    >>> name_of("unet\n"), name_of(" ")
    ('unet', 'unnamed')
    """
    text = name if isinstance(name, str) else str(json_value(name))
    return clean(text, most) or "unnamed"


def message_of(error: BaseException) -> str:
    """Return what an error says, on one line."""
    try:
        return clean(str(error), MOST_SHOWN)
    except Exception:  # noqa: BLE001 - whatever the error's own code raises
        return ""


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error means that there was not enough memory, of a device or of the machine.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(ValueError("out of memory"))
    (True, False)
    """
    if isinstance(error, MemoryError):
        return True
    if any(kind.__name__ == "OutOfMemoryError" for kind in type(error).__mro__):
        return True
    # Its beginning: a message may hold any amount of text.
    message = message_of(error).lower()
    return isinstance(error, RuntimeError) and any(words in message for words in _OUT_OF_MEMORY)
