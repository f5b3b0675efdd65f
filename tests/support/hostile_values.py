"""Values whose own code always raises; made when needed, because pytest runs it, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _fail(*_: object) -> Any:
    raise ZeroDivisionError


class _Faceless:
    __class__ = property(_fail)
    __repr__ = _fail


class _Text(str):
    __slots__ = ()
    __len__ = __getitem__ = __str__ = __repr__ = __eq__ = __format__ = _fail
    __hash__ = str.__hash__


class _KindOfKind(type):
    __name__ = property(_fail)


class _Nameless(metaclass=_KindOfKind):
    __repr__ = _fail


class _NamelessError(Exception, metaclass=_KindOfKind):
    __class__ = property(_fail)


# Each with its JSON value.
HOSTILE: dict[str, tuple[Callable[[], Any], str]] = {
    "class": (_Faceless, "<_Faceless>"),
    "text": (lambda: _Text("a text"), "a text"),
    "long text": (lambda: _Text("x" * 10**6), "x" * 3999 + "…"),
    "name of the class": (_Nameless, "<_Nameless>"),
}


def hostile_error() -> Exception:
    return _NamelessError("what happened")


def hostile_exit() -> SystemExit:
    return SystemExit(_Text("0"))
