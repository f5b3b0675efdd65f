"""The menu bar and the key bindings, made from the commands."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable, Sequence
from functools import partial

from snapviewer.text.sanitize import sanitize

from .commands import MENUS, Command
from .keys import HeldKeys
from .labels import device_label
from .state import State
from .values import LookPart

_TEXT_CLASSES = {"TEntry", "Entry", "Text", "TCombobox", "TSpinbox"}
_LIST_CLASSES = {"Treeview", "Listbox"}
_LIST_KEYS = {"Up", "Down", "Left", "Right", "Prior", "Next"}
_CONTROL, _ALT = 0x4, 0x8


def make_menus(root: tk.Tk, state: State, commands: Sequence[Command]) -> tk.Menu:
    """Make the menu bar."""
    bar = tk.Menu(root, tearoff=False)
    menus: dict[str, tk.Menu] = {}
    for name in MENUS:
        menus[name] = tk.Menu(bar, tearoff=False)
        bar.add_cascade(label=name, menu=menus[name], underline=0)
    for command in commands:
        if command.menu not in menus:
            parent, name = command.menu.split("/")
            menus[command.menu] = tk.Menu(menus[parent], tearoff=False)
            menus[parent].add_cascade(label=name, menu=menus[command.menu])
        menus[command.menu].add_command(
            label=command.label, accelerator=command.shown, command=command.run
        )
    _add_recent(menus["File"], state)
    show = menus["View/Show"]
    show.add_separator()
    parts: dict[LookPart, str] = {"axis": "x axis", "color": "Colour by"}
    parts |= {"order": "Stacking order", "theme": "Theme"}
    for part, label in parts.items():
        _add_choice(
            show,
            label,
            partial(state.choices, part),
            lambda part=part: getattr(state.look, part),  # type: ignore[misc]
            partial(state.choose, part),
        )
    _add_devices(menus["Go"], state)
    return bar


def _add_recent(menu: tk.Menu, state: State) -> None:
    recent = tk.Menu(menu, tearoff=False)

    def fill() -> None:
        recent.delete(0, "end")
        files = state.settings.recent_files()
        for path in files:
            recent.add_command(label=sanitize(str(path)), command=partial(state.open, path))
        if not files:
            recent.add_command(label="No recent files", state="disabled")

    recent.configure(postcommand=fill)
    menu.insert_cascade(2, label="Recent files", menu=recent)


def _add_choice(
    menu: tk.Menu,
    label: str,
    values: Callable[[], Sequence[str]],
    now: Callable[[], str],
    choose: Callable[[str], None],
) -> None:
    """Add a submenu of radio buttons; it is filled when it opens."""
    choice = tk.Menu(menu, tearoff=False)
    chosen = tk.StringVar(menu)

    def fill() -> None:
        choice.delete(0, "end")
        chosen.set(now())
        for value in values():
            choice.add_radiobutton(
                label=value,
                value=value,
                variable=chosen,
                command=lambda value=value: choose(value),  # type: ignore[misc]
            )

    choice.configure(postcommand=fill)
    menu.add_cascade(label=label, menu=choice)


def _add_devices(menu: tk.Menu, state: State) -> None:
    def names() -> list[str]:
        traces = state.document.traces if state.document else ()
        return [device_label(trace.device) for trace in traces]

    _add_choice(
        menu,
        "Device",
        names,
        lambda: names()[state.which] if state.trace else "",
        lambda name: state.choose_device(names().index(name)),
    )


def bind_keys(root: tk.Tk, commands: Sequence[Command], held: HeldKeys) -> None:
    """Bind the keys of all commands, whichever widget has the keyboard, except while typing."""
    taken = {key for command in commands for key in command.keys}
    for command in commands:
        for key in command.keys:
            for one in (key, *_capital_of(key, taken)):
                root.bind(one, _handler(command, one, held))
                if command.hold is not None:
                    name = one.strip("<>")
                    root.bind(f"<KeyRelease-{name}>", lambda event: held.release(event.keysym))
    root.bind("<FocusOut>", lambda event: held.release_all() if event.widget is root else None)


def _capital_of(key: str, taken: set[str]) -> tuple[str, ...]:
    """Return the same letter with caps lock on, if no other command uses it."""
    letter = key.strip("<>")
    is_free = len(letter) == 1 and letter.islower() and f"<{letter.upper()}>" not in taken
    return (f"<{letter.upper()}>",) if is_free else ()


def _handler(
    command: Command, key: str, held: HeldKeys
) -> Callable[[tk.Event[tk.Misc]], str | None]:
    def handle(event: tk.Event[tk.Misc]) -> str | None:
        flags = int(event.state)
        # Tk treats a key with further modifiers as the plain one.
        if (flags & _CONTROL and "Control" not in key) or (flags & _ALT and "Alt" not in key):
            return None
        # A widget that Tk made itself, such as the list of a combobox, is only a name here.
        widget: object = event.widget
        kind = widget.winfo_class() if isinstance(widget, tk.Misc) else ""
        if kind in _TEXT_CLASSES and not (command.in_text and _is_special(key)):
            return None
        if kind in _LIST_CLASSES and event.keysym in _LIST_KEYS:
            return None
        if command.hold is not None:
            held.press(event.keysym, command.hold)
        else:
            command.run()
        return "break"

    return handle


def _is_special(key: str) -> bool:
    """Return whether a key is more than a character that one would type.

    >>> _is_special("<Control-f>"), _is_special("<F9>"), _is_special("<slash>")
    (True, True, False)
    """
    name = key.strip("<>")
    return "-" in name or name == "Escape" or (name[0] == "F" and name[1:].isdigit())
