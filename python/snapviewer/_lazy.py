"""Names that a package imports from their homes when they are first used."""

# Nothing else: `import snapviewer` runs this first.
from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules

TYPE_CHECKING = False  # type checkers take it for true; `typing` takes ten milliseconds to import


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return the `__all__`, `__getattr__` and `__dir__` of a package.

    A type checker needs the names, too: the package imports them `as` themselves under
    `if TYPE_CHECKING`, and calls this in the `else`, because a module with a `__getattr__` would
    seem to have any name.

    Args:
        package: Its `__name__`.
        homes: The names, separated by spaces, that each module of snapviewer provides.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}
    exported = sorted(home_of)

    def get(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"snapviewer.{home_of[name]}"), name)
        setattr(modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(modules[package]), *exported} - {"TYPE_CHECKING", "lazy_names"})

    return exported, get, names
