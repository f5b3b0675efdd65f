"""Questions to a live module, whose own code may raise anything and say any amount.

Nothing here raises, and no answer is longer than a panel has room for.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from snapviewer.text.sanitize import error_message, sanitize, type_name

Answer = TypeVar("Answer")

MOST_OF_A_VALUE = 200  # characters

_repr = reprlib.Repr()
_repr.maxother = _repr.maxstring = _repr.maxlong = MOST_OF_A_VALUE


@dataclass(frozen=True, slots=True)
class Refused:
    """A question that was answered with an error."""

    reason: str

    def __str__(self) -> str:
        return f"({self.reason})"


def asked(question: Callable[..., Answer], *about: Any) -> Answer | Refused:
    """Ask something that may raise.

    >>> asked(len, "ab"), str(asked(lambda: 1 / 0))
    (2, '(raised ZeroDivisionError: division by zero)')
    """
    try:
        return question(*about)
    # A module's own code may raise anything, and leaving is not for a property to decide.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return Refused(told(error))


def told(error: BaseException) -> str:
    """Return the kind and the message of an error, whose own code may raise, too."""
    message = error_message(error)
    return f"raised {type_name(error)}: {message}" if message else f"raised {type_name(error)}"


def said(question: Callable[[], Any], most: int = MOST_OF_A_VALUE) -> str:
    r"""Ask for a text: on one line, short, empty if there is none.

    >>> said(lambda: "in_features=3\n"), said(lambda: None), said(lambda: 3)
    ('in_features=3', '', '(not a text: 3)')
    """
    answer = asked(question)
    if answer is None:
        return ""
    if isinstance(answer, Refused):
        return str(answer)
    if not issubclass(type(answer), str):
        return f"(not a text: {value_text(answer)})"
    # Without what a subclass makes of it.
    return sanitize(str.__str__(answer), most)


def value_text(value: Any, most: int = MOST_OF_A_VALUE) -> str:
    """Say any value on a short line: its `repr`, or what its `repr` raised.

    >>> value_text([1, "a"]), value_text("x" * 1000, 10)
    ("[1, 'a']", "'xxxxxxxx…")
    """
    answer = asked(lambda: str.__str__(_repr.repr(value)))
    return str(answer) if isinstance(answer, Refused) else sanitize(answer, most)
