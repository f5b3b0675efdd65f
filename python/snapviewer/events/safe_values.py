"""What programs say of themselves, as values of a line of JSON.

Nothing here raises, whatever a value's own code does. Types are read with `type(value)`, because
`isinstance` also asks the value.
"""

from __future__ import annotations

import json
import math
import numbers
import reprlib
from collections.abc import Mapping
from typing import TypeAlias

from snapviewer.text.sanitize import MAX_NAME_CHARS, error_message, sanitize, type_name

Value: TypeAlias = str | int | float | bool | None

_MAX_TEXT_CHARS = 4000
# With what is measured, a line stays below 64 KiB, far below the reader's limit.
_MAX_FIELDS_CHARS = 60_000

# How PyTorch and the libraries below it say it where the type of the error does not.
_OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "cublas_status_alloc_failed",
)

_repr = reprlib.Repr()
_repr.maxother = _repr.maxstring = MAX_NAME_CHARS


def json_value(value: object) -> Value:
    """Return a value as JSON can have it: as it is, or its `repr`, cut short.

    >>> [json_value(value) for value in (1, 0.5, "a", True, None, float("nan"), [1, 2])]
    [1, 0.5, 'a', True, None, 'nan', '[1, 2]']
    """
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    try:
        if issubclass(kind, str):
            text = str.__str__(value)  # not what a subclass makes of it
            return text if len(text) <= _MAX_TEXT_CHARS else f"{text[: _MAX_TEXT_CHARS - 1]}…"
        if issubclass(kind, numbers.Integral):
            whole = int(value)  # type: ignore[call-overload]
            return whole if abs(whole) < 2**63 else hex(whole)[:MAX_NAME_CHARS]
        if issubclass(kind, numbers.Real):
            number = float(value)  # type: ignore[arg-type]
            return number if math.isfinite(number) else str(number)
        return sanitize(_repr.repr(value), MAX_NAME_CHARS)
    except Exception:  # noqa: BLE001 - whatever the object's own code raises
        return f"<{type_name(value)}>"


def fitting(fields: Mapping[str, Value]) -> dict[str, Value]:
    """Return the fields that fit on a line; `dropped_fields` is how many do not.

    >>> fitting({"a": 1, "b": "x"})
    {'a': 1, 'b': 'x'}
    """
    if len(json.dumps(fields)) <= _MAX_FIELDS_CHARS:
        return dict(fields)
    kept: dict[str, Value] = {}
    room = _MAX_FIELDS_CHARS
    for name, value in fields.items():
        size = len(json.dumps({name: value}))
        if size <= room:
            kept[name] = value
            room -= size
    return kept | {"dropped_fields": len(fields) - len(kept)}


def event_name(name: object, max_chars: int = MAX_NAME_CHARS) -> str:
    r"""Return a name on one line, without control characters, cut short, and never empty.

    >>> event_name("unet\n"), event_name(" ")
    ('unet', 'unnamed')
    """
    return sanitize(str(json_value(name)), max_chars) or "unnamed"


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that a device or the machine ran out of memory.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(ValueError("out of memory"))
    (True, False)
    """
    kind = type(error)
    if issubclass(kind, MemoryError) or "OutOfMemoryError" in _type_names(kind):
        return True
    message = error_message(error).lower()
    return issubclass(kind, RuntimeError) and any(words in message for words in _OUT_OF_MEMORY)


def _type_names(kind: type) -> list[str]:
    return [type.__dict__["__name__"].__get__(base) for base in type.mro(kind)]


def is_good_end(error: BaseException) -> bool:
    """Return whether a run ended well: a generator was closed, or the program exits with 0.

    >>> is_good_end(GeneratorExit()), is_good_end(SystemExit(0)), is_good_end(SystemExit("why"))
    (True, True, False)
    """
    if not issubclass(type(error), SystemExit):
        return issubclass(type(error), GeneratorExit)
    try:
        return error.code is None or bool(error.code == 0)  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - whatever the exit code's own code raises
        return False
