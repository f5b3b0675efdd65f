"""Fonts, colours and styles: Tk's `clam` theme, flat, in our colours.

Greys are for the interface, colours for data. `clam` draws with the colours and sizes it is given,
so it is sharp on a screen of twice the density; themes made of images are not.
"""

from __future__ import annotations

import tkinter as tk
from dataclasses import dataclass
from tkinter import font as tkfont
from tkinter import ttk
from typing import Any

from snapviewer.report.theme import THEMES, Color

TEXT, SMALL, BOLD, TITLE, CODE, CODE_BOLD = (
    "TkDefaultFont",
    "SnapSmall",
    "SnapBold",
    "SnapTitle",
    "TkFixedFont",
    "SnapCodeBold",
)


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of the interface, in hexadecimal."""

    background: str  # plot, lists and text
    panel: str  # toolbars and panes
    raised: str  # buttons and tips
    text: str
    secondary: str
    border: str
    accent: str
    on_accent: str
    marked: str  # selected rows
    peak: str
    oom: str
    good: str


def hex_of(color: Color) -> str:
    """Return a colour in hexadecimal, as Tk takes it."""
    return "#{:02x}{:02x}{:02x}".format(*color)


def palette_of(theme: str) -> Palette:
    """Return the colours of the light or the dark theme."""
    colors = THEMES[theme]
    is_dark = theme == "dark"
    return Palette(
        background=hex_of(colors.background),
        panel="#1c1f25" if is_dark else "#f6f8fa",
        raised="#2b2f36" if is_dark else "#ffffff",
        text=hex_of(colors.text),
        secondary=hex_of(colors.secondary),
        border=hex_of(colors.grid),
        accent=hex_of(colors.accent),
        on_accent="#ffffff",
        marked="#1f3a5f" if is_dark else "#d6e8fc",
        peak=hex_of(colors.peak),
        oom=hex_of(colors.oom),
        good="#3fb950" if is_dark else "#1a7f37",
    )


def px(widget: tk.Misc, size: float) -> int:
    """Scale a length in pixels from 96 dpi to the density of the screen."""
    return max(1, round(size * float(widget.tk.call("tk", "scaling")) * 72 / 96))


def make_fonts(root: tk.Misc) -> None:
    """Create the named fonts that Tk does not have, once."""
    if SMALL in tkfont.names(root):
        return
    text = tkfont.nametofont(TEXT, root).actual()
    code = tkfont.nametofont(CODE, root).actual()
    size = int(text["size"])
    for name, family, points, weight in (
        (SMALL, text["family"], max(size - 1, 7), "normal"),
        (BOLD, text["family"], size, "bold"),
        (TITLE, text["family"], size + 4, "bold"),
        (CODE_BOLD, code["family"], code["size"], "bold"),
    ):
        # A tkinter.font.Font deletes its font when Python drops the object.
        root.tk.call("font", "create", name, "-family", family, "-size", points, "-weight", weight)


def apply_theme(root: tk.Tk, theme: str) -> Palette:
    """Style all widgets, existing ones and new ones."""
    make_fonts(root)
    colors = palette_of(theme)
    style = ttk.Style(root)
    style.theme_use("clam")
    root.configure(background=colors.panel)
    _style_all(style, colors, root)
    _style_tables(style, colors, root)
    _style_tk(root, colors)
    return colors


def _style_all(style: ttk.Style, colors: Palette, root: tk.Misc) -> None:
    style.configure(
        ".",
        background=colors.panel,
        foreground=colors.text,
        fieldbackground=colors.background,
        bordercolor=colors.border,
        lightcolor=colors.panel,
        darkcolor=colors.panel,
        troughcolor=colors.panel,
        selectbackground=colors.accent,
        selectforeground=colors.on_accent,
        insertcolor=colors.text,
        arrowcolor=colors.secondary,
        focuscolor=colors.accent,
        relief="flat",
        borderwidth=0,
        font=TEXT,
    )
    style.map(".", foreground=[("disabled", colors.secondary)])
    style.configure("Secondary.TLabel", foreground=colors.secondary)
    style.configure("Small.TLabel", foreground=colors.secondary, font=SMALL)
    style.configure("Bold.TLabel", font=BOLD)
    style.configure("Title.TLabel", font=TITLE)
    style.configure("Error.TLabel", foreground=colors.oom)
    style.configure("Good.TLabel", foreground=colors.good)
    style.configure("Warn.TLabel", foreground=colors.peak)
    style.configure("Plot.TFrame", background=colors.background)
    on_plot = {"background": colors.background}
    style.configure("Plot.TLabel", foreground=colors.secondary, **on_plot)
    style.configure("PlotSmall.TLabel", foreground=colors.secondary, font=SMALL, **on_plot)
    style.configure("PlotTitle.TLabel", font=TITLE, **on_plot)
    style.configure("PlotLink.TLabel", foreground=colors.accent, **on_plot)
    style.configure("Border.TFrame", background=colors.border)
    pad = (px(root, 8), px(root, 3))
    style.configure("TButton", padding=pad, background=colors.raised, borderwidth=1)
    style.configure("TButton", lightcolor=colors.raised, darkcolor=colors.raised)
    style.map("TButton", background=[("pressed", colors.border), ("active", colors.border)])
    style.configure("Flat.TButton", padding=pad, background=colors.panel, borderwidth=0)
    style.map("Flat.TButton", background=[("active", colors.border)])
    style.configure("Tight.Flat.TButton", padding=(px(root, 6), 0))
    style.configure("Link.TButton", padding=0, foreground=colors.accent, background=colors.panel)
    style.map("Link.TButton", background=[("active", colors.panel)])
    entry: dict[str, Any] = {
        "padding": (px(root, 6), px(root, 3)),
        "borderwidth": 1,
        "lightcolor": colors.background,
    }
    style.configure("TEntry", **entry)
    style.map("TEntry", bordercolor=[("focus", colors.accent)])
    style.configure("Wrong.TEntry", **entry, bordercolor=colors.oom)
    style.map("Wrong.TEntry", bordercolor=[("focus", colors.oom)])
    style.configure("TCombobox", **entry, arrowsize=px(root, 12), background=colors.panel)
    style.map(
        "TCombobox",
        fieldbackground=[("readonly", colors.panel)],
        foreground=[("readonly", colors.text)],
        selectbackground=[("readonly", colors.panel)],
        selectforeground=[("readonly", colors.text)],
        background=[("pressed", colors.border), ("active", colors.border)],
        bordercolor=[("focus", colors.accent)],
    )
    style.configure("TCheckbutton", indicatorsize=px(root, 12), padding=(px(root, 4), px(root, 2)))
    style.configure(
        "TCheckbutton",
        indicatorbackground=colors.background,
        indicatorforeground=colors.accent,
        upperbordercolor=colors.secondary,
        lowerbordercolor=colors.secondary,
    )
    style.map(
        "TCheckbutton",
        background=[("active", colors.panel)],
        indicatorbackground=[("pressed", colors.border)],
    )
    style.configure("TRadiobutton", indicatorsize=px(root, 12), padding=(px(root, 4), px(root, 2)))
    style.map("TRadiobutton", background=[("active", colors.panel)])
    style.configure("TSeparator", background=colors.border)
    style.configure("TPanedwindow", background=colors.border)
    style.configure("Sash", sashthickness=px(root, 5), gripcount=0, background=colors.panel)
    style.configure(
        "TProgressbar", background=colors.accent, troughcolor=colors.border, thickness=px(root, 6)
    )
    tab = (px(root, 10), px(root, 4))
    style.configure("TNotebook", background=colors.panel, tabmargins=(0, 0, 0, 0))
    style.configure(
        "TNotebook.Tab",
        padding=tab,
        background=colors.panel,
        foreground=colors.secondary,
        bordercolor=colors.panel,
        lightcolor=colors.panel,
    )
    style.map(
        "TNotebook.Tab",
        foreground=[("selected", colors.text)],
        background=[("selected", colors.background)],
        lightcolor=[("selected", colors.background)],
        bordercolor=[("selected", colors.border)],
        expand=[("selected", (0, 0, 0, 0))],
        padding=[("selected", tab)],
    )
    _style_scrollbars(style, colors, root)


def _style_scrollbars(style: ttk.Style, colors: Palette, root: tk.Misc) -> None:
    """Make scroll bars without arrows."""
    for where, sticky in (("Vertical", "ns"), ("Horizontal", "ew")):
        name = f"{where}.TScrollbar"
        thumb: Any = (f"{where}.Scrollbar.thumb", {"expand": "1", "sticky": "nswe"})
        trough: Any = (f"{where}.Scrollbar.trough", {"sticky": sticky, "children": [thumb]})
        style.layout(name, [trough])
        style.configure(
            name,
            background=colors.border,
            troughcolor=colors.panel,
            bordercolor=colors.panel,
            lightcolor=colors.border,
            darkcolor=colors.border,
            gripcount=0,
            arrowsize=px(root, 10),
        )
        style.map(name, background=[("active", colors.secondary)])


def _style_tables(style: ttk.Style, colors: Palette, root: tk.Misc) -> None:
    height = tkfont.nametofont(TEXT, root).metrics("linespace") + px(root, 5)
    style.configure(
        "Treeview",
        background=colors.background,
        fieldbackground=colors.background,
        foreground=colors.text,
        rowheight=height,
        bordercolor=colors.border,
    )
    style.map(
        "Treeview", background=[("selected", colors.marked)], foreground=[("selected", colors.text)]
    )
    style.configure(
        "Treeview.Heading",
        background=colors.panel,
        foreground=colors.secondary,
        padding=(px(root, 4), px(root, 3)),
        font=SMALL,
    )
    style.map("Treeview.Heading", background=[("active", colors.border)])


def _style_tk(root: tk.Tk, colors: Palette) -> None:
    """Colour the widgets that ttk does not style: menus, texts, the lists of comboboxes."""
    for pattern, value in {
        "*Menu.background": colors.panel,
        "*Menu.foreground": colors.text,
        "*Menu.activeBackground": colors.accent,
        "*Menu.activeForeground": colors.on_accent,
        "*Menu.disabledForeground": colors.secondary,
        "*Menu.selectColor": colors.text,
        "*Menu.relief": "flat",
        "*Menu.borderWidth": "0",
        "*Menu.activeBorderWidth": "0",
        "*Menu.tearOff": "0",
        "*Text.background": colors.background,
        "*Text.foreground": colors.text,
        "*Text.insertBackground": colors.text,
        "*Text.selectBackground": colors.accent,
        "*Text.selectForeground": colors.on_accent,
        "*Text.relief": "flat",
        "*Text.borderWidth": "0",
        "*Text.highlightThickness": "0",
        "*Toplevel.background": colors.panel,
        "*TCombobox*Listbox.background": colors.background,
        "*TCombobox*Listbox.foreground": colors.text,
        "*TCombobox*Listbox.selectBackground": colors.accent,
        "*TCombobox*Listbox.selectForeground": colors.on_accent,
    }.items():
        root.option_add(pattern, value, "interactive")
    _recolor(root, colors)


def _recolor(widget: tk.Misc, colors: Palette) -> None:
    """Colour existing widgets: the option database only affects new ones."""
    kind = widget.winfo_class()
    if kind == "Menu":
        widget.configure(  # type: ignore[call-arg]
            background=colors.panel,
            foreground=colors.text,
            activebackground=colors.accent,
            activeforeground=colors.on_accent,
            disabledforeground=colors.secondary,
            selectcolor=colors.text,
        )
    elif kind == "Text":
        widget.configure(  # type: ignore[call-arg]
            background=colors.background,
            foreground=colors.text,
            insertbackground=colors.text,
            selectbackground=colors.accent,
        )
    elif kind == "Toplevel":
        widget.configure(background=colors.panel)  # type: ignore[call-arg]
    elif kind == "Listbox":
        widget.configure(  # type: ignore[call-arg]
            background=colors.background,
            foreground=colors.text,
            selectbackground=colors.accent,
            selectforeground=colors.on_accent,
        )
    for child in widget.winfo_children():
        _recolor(child, colors)
