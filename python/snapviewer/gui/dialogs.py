"""Small windows: keys and mouse, filter syntax, about, and whether the picture is complete."""

from __future__ import annotations

import platform
import tkinter as tk
from collections import Counter
from collections.abc import Callable, Sequence
from tkinter import ttk

import snapviewer

from .commands import MENUS, Command
from .labels import Completeness
from .theme import CODE, TITLE, px

MOUSE = (
    ("Pointer", "size, lifetime and line of code"),
    ("Left click", "select; on the background: move the cursor"),
    ("Left drag", "pan"),
    ("Right click", "move the cursor, show memory and time"),
    ("Right drag", "zoom to a box"),
    ("Wheel", "zoom at the pointer"),
    ("Ctrl+wheel", "zoom the x axis only"),
    ("Alt+wheel", "zoom bytes only"),
    ("Shift+wheel", "pan sideways"),
    ("Overview", "drag the part in view, or click"),
    ("Annotations", "click: zoom to the span"),
)

FILTER_SYNTAX = (
    ("attention|mlp", "a frame of the call stack matches this regular expression"),
    (r'"forward \(model.py:7"', "quotes allow spaces; a frame is: name (file:line)"),
    ("!backward", "negation: no frame matches"),
    ("size>=1MiB", "requested bytes; also size<4KiB, size=1KiB..2KiB"),
    ("lifetime<100", "lifetime in events; lifetime>2ms in time"),
    ("stream=7  pool=0", "CUDA stream; memory pool (0 is the default pool)"),
    ("alive=1234", "alive after this event; alive=10..20: after any of these"),
    ("event>=1000", "allocated by this event or later; -1 is before the trace"),
    ("stack=17", "the call stack with this number; stack=none: not recorded"),
    ("category=activation", "the profiler's category"),
    ("mlp size>=1MiB", "several terms: all must match"),
)

_Section = tuple[str, Sequence[tuple[str, str]]]


_LARGE_PART = 8


def show_keys(root: tk.Misc, commands: Sequence[Command]) -> tk.Toplevel:
    """List all keys and mouse actions."""
    sections: list[_Section] = [("Mouse", MOUSE)]
    for menu in MENUS:
        mine = [command for command in commands if command.menu.split("/")[0] == menu]
        # Parts of a long menu with many commands, such as View/Panes, are lists of their own.
        parts = Counter(command.menu for command in mine)
        large = [part for part, count in parts.items() if part != menu and count >= _LARGE_PART]
        rest = [command for command in mine if command.menu not in large]
        sections.append((menu, [(command.shown, command.label) for command in rest]))
        for part in large:
            of_part = [(one.shown, one.label) for one in mine if one.menu == part]
            sections.append((part.replace("/", ": "), of_part))
    # Three columns of about the same length, which fit on a small screen.
    columns: list[list[_Section]] = [[], [], []]
    for section in sorted(sections, key=lambda section: -len(section[1])):
        shortest = min(columns, key=lambda column: sum(len(rows) + 2 for _, rows in column))
        shortest.append(section)
    return _show_tables(root, "Keys and mouse", columns)


def show_filter_syntax(root: tk.Misc) -> tk.Toplevel:
    """Explain what can be typed into the filter."""
    return _show_tables(root, "Filter syntax", [[("", FILTER_SYNTAX)]])


def show_about(root: tk.Misc) -> tk.Toplevel:
    """Show versions and the licence."""
    rows = (
        ("snapviewer", snapviewer.__version__),
        ("Python", platform.python_version()),
        ("Tk", str(root.tk.call("info", "patchlevel"))),
        ("licence", "MIT"),
    )
    return _show_tables(root, "About snapviewer", [[("PyTorch memory snapshot viewer", rows)]])


def show_completeness(root: tk.Misc, completeness: Completeness) -> tk.Toplevel:
    """Explain the badge of the status bar."""

    def fill(body: ttk.Frame) -> None:
        style = {"good": "Good.TLabel", "notes": "Good.TLabel", "bad": "Error.TLabel"}
        badge = ttk.Label(body, text=completeness.badge, style=style[completeness.grade])
        badge.pack(anchor="w", pady=(0, px(root, 4)))
        for sentence in completeness.sentences:
            label = ttk.Label(body, text=sentence, justify="left", wraplength=px(root, 560))
            label.pack(anchor="w", pady=(px(root, 4), 0))

    return _show(root, "Is this picture complete?", fill)


def _show_tables(root: tk.Misc, title: str, columns: Sequence[Sequence[_Section]]) -> tk.Toplevel:
    """Show tables of two columns each, under their headings."""

    def fill(body: ttk.Frame) -> None:
        for number, column in enumerate(columns):
            frame = ttk.Frame(body)
            frame.grid(row=0, column=number, sticky="nw", padx=(px(root, 32) if number else 0, 0))
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

    return _show(root, title, fill)


def _show(root: tk.Misc, title: str, fill: Callable[[ttk.Frame], None]) -> tk.Toplevel:
    """Open a window with a title and a Close button; Escape closes it."""
    before = root.focus_get()
    window = tk.Toplevel(root)
    window.title(title)
    window.transient(root.winfo_toplevel())
    outer = ttk.Frame(window, padding=px(root, 18))
    outer.pack(fill="both", expand=True)
    ttk.Label(outer, text=title, font=TITLE).pack(anchor="w", pady=(0, px(root, 8)))
    body = ttk.Frame(outer)
    body.pack(fill="both", expand=True)
    fill(body)

    def leave() -> None:
        """Close, and return the keyboard to the widget that had it."""
        (before or root).focus_set()
        window.destroy()

    close = ttk.Button(outer, text="Close", command=leave)
    close.pack(anchor="e", pady=(px(root, 14), 0))
    window.bind("<Escape>", lambda _: leave())
    window.protocol("WM_DELETE_WINDOW", leave)
    window.update_idletasks()
    main = root.winfo_toplevel()
    x = main.winfo_rootx() + (main.winfo_width() - window.winfo_reqwidth()) // 2
    y = main.winfo_rooty() + (main.winfo_height() - window.winfo_reqheight()) // 3
    x = min(x, main.winfo_screenwidth() - window.winfo_reqwidth())
    y = min(y, main.winfo_screenheight() - window.winfo_reqheight())
    window.geometry(f"+{max(x, 0)}+{max(y, 0)}")
    window.resizable(False, False)
    close.focus_set()
    return window
