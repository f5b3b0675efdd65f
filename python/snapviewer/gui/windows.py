"""The small windows of the Help menu."""

from __future__ import annotations

import platform
import tkinter as tk
from collections.abc import Sequence
from tkinter import ttk

import snapviewer

from .commands import MENUS, Command
from .theme import CODE, TITLE, px

_MOUSE = (
    ("Pointer", "size, lifetime and line of what is there"),
    ("Left click", "select it and show its details"),
    ("Left drag", "move"),
    ("Wheel", "zoom at the pointer"),
    ("Ctrl+wheel", "zoom along the trace only"),
    ("Alt+wheel", "zoom bytes only"),
    ("Shift+wheel", "move sideways"),
    ("Right click", "tell memory and time, set the cursor"),
    ("Right drag", "zoom to a box"),
    ("Overview", "drag the part in view, or click"),
)

FILTER_HELP = (
    ("attention|mlp", "a frame of the call stack matches this regular expression"),
    (r'"forward \(model.py:7"', "in quotes, it may have spaces; frames are: name (file:line)"),
    ("!backward", "the opposite: no frame matches"),
    ("size>=1MiB", "requested bytes; also size<4KiB, size=1KiB..2KiB"),
    ("lifetime<100", "for how many events it lives; lifetime>2ms by the clock"),
    ("stream=7  pool=0", "the stream; the memory pool (0 is the default one)"),
    ("alive=1234", "alive after that event; alive=10..20 at some of these"),
    ("event>=1000", "made by that event or later; -1 is before the trace"),
    ("stack=17", "made by the stack with that number"),
    ("category=activation", "what the profiler says it is for"),
    ("mlp size>=1MiB", "several words: all must hold"),
)


def show_keys(root: tk.Misc, commands: Sequence[Command]) -> tk.Toplevel:
    """List every key and what the mouse does."""
    sections = [("Mouse", list(_MOUSE))]
    for menu in MENUS:
        mine = (command for command in commands if command.menu.split("/")[0] == menu)
        sections.append((menu, [(command.shown, command.label) for command in mine]))
    # Three columns, about as long as each other: so it fits on a small screen.
    columns: list[list[tuple[str, list[tuple[str, str]]]]] = [[], [], []]
    for section in sorted(sections, key=lambda section: -len(section[1])):
        shortest = min(columns, key=lambda column: sum(len(rows) + 2 for _, rows in column))
        shortest.append(section)
    return _window(root, "Keys and mouse", columns)


def show_filter_help(root: tk.Misc) -> tk.Toplevel:
    """Explain what can be typed into the filter."""
    return _window(root, "What a filter can say", [[("", list(FILTER_HELP))]])


def show_about(root: tk.Misc) -> tk.Toplevel:
    """Tell which version this is."""
    rows = [
        ("snapviewer", snapviewer.__version__),
        ("Python", platform.python_version()),
        ("Tk", str(root.tk.call("info", "patchlevel"))),
        ("licence", "MIT"),
    ]
    return _window(
        root, "About snapviewer", [[("A viewer of PyTorch CUDA memory snapshots", rows)]]
    )


def _window(
    root: tk.Misc, title: str, columns: Sequence[Sequence[tuple[str, list[tuple[str, str]]]]]
) -> tk.Toplevel:
    """Show tables of two columns each under their headings; Escape closes it."""
    before = root.focus_get()
    window = tk.Toplevel(root)
    window.title(title)
    window.transient(root.winfo_toplevel())
    body = ttk.Frame(window, padding=px(root, 20))
    body.pack(fill="both", expand=True)
    ttk.Label(body, text=title, font=TITLE).grid(row=0, column=0, sticky="w", pady=(0, px(root, 8)))
    for number, column in enumerate(columns):
        frame = ttk.Frame(body)
        frame.grid(row=1, column=number, sticky="nw", padx=(px(root, 32) if number else 0, 0))
        row = 0
        for heading, rows in column:
            if heading:
                label = ttk.Label(frame, text=heading, style="Bold.TLabel")
                label.grid(row=row, columnspan=2, sticky="w", pady=(px(root, 8), px(root, 2)))
                row += 1
            for left, right in rows:
                ttk.Label(frame, text=left, font=CODE).grid(row=row, column=0, sticky="w")
                ttk.Label(frame, text=right, style="Secondary.TLabel").grid(
                    row=row, column=1, sticky="w", padx=(px(root, 14), 0)
                )
                row += 1

    def leave() -> None:
        """Give the keyboard back to who had it."""
        (before or root).focus_set()
        window.destroy()

    close = ttk.Button(body, text="Close", command=leave)
    close.grid(row=2, column=0, columnspan=len(columns), sticky="e", pady=(px(root, 14), 0))
    window.bind("<Escape>", lambda _: leave())
    window.protocol("WM_DELETE_WINDOW", leave)
    window.update_idletasks()
    main = root.winfo_toplevel()
    x = main.winfo_rootx() + (main.winfo_width() - window.winfo_reqwidth()) // 2
    y = main.winfo_rooty() + (main.winfo_height() - window.winfo_reqheight()) // 3
    window.geometry(f"+{max(x, 0)}+{max(y, 0)}")
    window.resizable(False, False)
    close.focus_set()
    return window
