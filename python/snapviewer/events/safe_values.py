"""What programs tell of themselves, made fit for a line of JSON.

Nothing here raises, whatever the code of a value does. So kinds are asked of `type(value)`, as
`isinstance` asks the value, too.
"""

from __future__ import annotations

import json
import math
import numbers
import reprlib
from collections.abc import Mapping
from typing import TypeAlias

from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

Value: TypeAlias = str | int | float | bool | None

# Long enough for what people write, short enough for a line to be written at once.
_MOST_OF_A_TEXT = 4000
# Characters of JSON, of all that an event is told: the longest text fits, and with what is measured
# a line stays below 64 KiB, far from what the reader takes for no event.
_MOST_OF_FIELDS = 60_000

# How PyTorch and the libraries below it say it where the type of the error does not.
_OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "cublas_status_alloc_failed",
)

_name_of_type = type.__dict__["__name__"].__get__
_repr = reprlib.Repr()
_repr.maxother = _repr.maxstring = MAX_NAME_CHARS


def json_value(value: object) -> Value:
    """Return what JSON can say of a value: itself, or its `repr`, cut short.

    >>> [json_value(value) for value in (1, 0.5, "a", True, None, float("nan"), [1, 2])]
    [1, 0.5, 'a', True, None, 'nan', '[1, 2]']
    """
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    try:
        if issubclass(kind, str):
            text = str.__str__(value)  # without what a subclass makes of it
            return text if len(text) <= _MOST_OF_A_TEXT else f"{text[: _MOST_OF_A_TEXT - 1]}…"
        if issubclass(kind, numbers.Integral):
            whole = int(value)  # type: ignore[call-overload]
            return whole if abs(whole) < 2**63 else hex(whole)[:MAX_NAME_CHARS]
        if issubclass(kind, numbers.Real):
            number = float(value)  # type: ignore[arg-type]
            return number if math.isfinite(number) else str(number)
        return sanitize(_repr.repr(value), MAX_NAME_CHARS)
    except Exception:  # noqa: BLE001 - whatever the object's own code raises
        return f"<{kind_of(value)}>"


def fitting(fields: Mapping[str, Value]) -> dict[str, Value]:
    """Return the fields that a line has room for; without the longest, if those are too much.

    `dropped_fields` says how many are left out.

    >>> fitting({"a": 1, "b": "x"})
    {'a': 1, 'b': 'x'}
    """
    if len(json.dumps(fields)) <= _MOST_OF_FIELDS:
        return dict(fields)
    sizes = {name: len(json.dumps({name: value})) for name, value in fields.items()}
    kept, excess = dict(fields), sum(sizes.values()) - _MOST_OF_FIELDS
    for name in sorted(sizes, key=lambda name: sizes[name], reverse=True):
        if excess <= 0:
            break
        del kept[name]
        excess -= sizes[name]
    return kept | {"dropped_fields": len(fields) - len(kept)}


def name_of(name: object, most: int = MAX_NAME_CHARS) -> str:
    r"""Return a name on one line, without control characters, cut short, and never empty.

    >>> name_of("unet\n"), name_of(" ")
    ('unet', 'unnamed')
    """
    return sanitize(str(json_value(name)), most) or "unnamed"


def kind_of(value: object) -> str:
    """Return the name of a value's type.

    >>> kind_of(ValueError())
    'ValueError'
    """
    # Not `type(value).__name__`: that may be code of the type's own type.
    return sanitize(_name_of_type(type(value)), MAX_NAME_CHARS)


def message_of(error: BaseException) -> str:
    """Return what an error says, on one line."""
    try:
        return sanitize(str(error), MAX_NAME_CHARS)
    except Exception:  # noqa: BLE001 - whatever the error's own code raises
        return ""


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error means that there was not enough memory, of a device or of the machine.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(ValueError("out of memory"))
    (True, False)
    """
    kind = type(error)
    if issubclass(kind, MemoryError):
        return True
    if any(_name_of_type(base) == "OutOfMemoryError" for base in type.mro(kind)):
        return True
    # Its beginning: a message may hold any amount of text.
    message = message_of(error).lower()
    return issubclass(kind, RuntimeError) and any(words in message for words in _OUT_OF_MEMORY)


def is_good_end(error: BaseException) -> bool:
    """Tell whether what is left so ended well: a generator was closed, or the program exits with 0.

    >>> is_good_end(GeneratorExit()), is_good_end(SystemExit(0)), is_good_end(SystemExit("why"))
    (True, True, False)
    """
    if issubclass(type(error), GeneratorExit):
        return True
    if not issubclass(type(error), SystemExit):
        return False
    try:
        return error.code is None or bool(error.code == 0)  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - whatever the code's own code raises
        return False
