"""Calls into a live model's own code, which may raise anything and return any amount of text.

Nothing here raises, and no text is longer than a panel has room for.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from snapviewer.text.sanitize import error_message, sanitize, type_name

Answer = TypeVar("Answer")

MAX_VALUE_CHARS = 200

_repr = reprlib.Repr()
_repr.maxother = _repr.maxstring = _repr.maxlong = MAX_VALUE_CHARS


@dataclass(frozen=True, slots=True)
class CallFailure:
    """A call that raised; `reason` names the error."""

    reason: str

    def __str__(self) -> str:
        return f"({self.reason})"


def safe_call(function: Callable[..., Answer], *args: Any) -> Answer | CallFailure:
    """Call a function that may raise.

    >>> safe_call(len, "ab"), str(safe_call(lambda: 1 / 0))
    (2, '(raised ZeroDivisionError: division by zero)')
    """
    try:
        return function(*args)
    # A module's own code may raise anything, and a property must not end the program.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return CallFailure(f"raised {describe_error(error)}")


def describe_error(error: BaseException) -> str:
    """Return an error's class and message; its own code may raise, too."""
    message = error_message(error)
    return f"{type_name(error)}: {message}" if message else type_name(error)


def safe_text(function: Callable[[], Any], max_chars: int = MAX_VALUE_CHARS) -> str:
    r"""Return the text that a function returns, on one short line; empty if it returns None.

    >>> safe_text(lambda: "in_features=3\n"), safe_text(lambda: None), safe_text(lambda: 3)
    ('in_features=3', '', '(not a text: 3)')
    """
    answer = safe_call(function)
    if answer is None:
        return ""
    if isinstance(answer, CallFailure):
        return str(answer)
    if not issubclass(type(answer), str):
        return f"(not a text: {safe_repr(answer)})"
    # `str.__str__` bypasses what a subclass overrides.
    return sanitize(str.__str__(answer), max_chars)


def safe_repr(value: Any, max_chars: int = MAX_VALUE_CHARS) -> str:
    """Return the `repr` of any value on one short line, or the error that it raised.

    >>> safe_repr([1, "a"]), safe_repr("x" * 1000, 10)
    ("[1, 'a']", "'xxxxxxxx…")
    """
    answer = safe_call(lambda: str.__str__(_repr.repr(value)))
    return str(answer) if isinstance(answer, CallFailure) else sanitize(answer, max_chars)
