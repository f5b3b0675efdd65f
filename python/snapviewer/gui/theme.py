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
    ttk.Style(root).theme_use("clam")
    root.configure(background=colors.panel)
    styles = _Styles(root, colors)
    _style_all(styles, root)
    _style_scrollbars(styles, root)
    _style_tables(styles, root)
    _style_tk(root, colors)
    return colors


class _Styles:
    """Styles in the colours of a palette, which are given by their names, as `option=colour`."""

    def __init__(self, root: tk.Misc, colors: Palette) -> None:
        self._style = ttk.Style(root)
        self._colors = colors

    def set(self, name: str, shades: str = "", **options: Any) -> None:
        self._style.configure(name, **_options_of(self._colors, shades), **options)

    def in_state(self, name: str, shades: str) -> None:
        """Set colours in states, as `option=state:colour` or `option=state:colour,state:colour`."""
        states: dict[str, Any] = {}
        for option, _, choices in (shade.partition("=") for shade in shades.split()):
            pairs = (choice.split(":") for choice in choices.split(","))
            states[option] = [(state, getattr(self._colors, color)) for state, color in pairs]
        self._style.map(name, **states)


def _options_of(colors: Palette, shades: str) -> dict[str, str]:
    """Return options from pairs `option=colour`."""
    pairs = (shade.split("=") for shade in shades.split())
    return {option: getattr(colors, color) for option, color in pairs}


def _style_all(styles: _Styles, root: tk.Misc) -> None:
    styles.set(
        ".",
        "background=panel foreground=text fieldbackground=background bordercolor=border "
        "lightcolor=panel darkcolor=panel troughcolor=panel selectbackground=accent "
        "selectforeground=on_accent insertcolor=text arrowcolor=secondary focuscolor=accent",
        relief="flat",
        borderwidth=0,
        font=TEXT,
    )
    styles.in_state(".", "foreground=disabled:secondary")
    styles.set("Secondary.TLabel", "foreground=secondary")
    styles.set("Small.TLabel", "foreground=secondary", font=SMALL)
    styles.set("Bold.TLabel", font=BOLD)
    styles.set("Title.TLabel", font=TITLE)
    styles.set("Error.TLabel", "foreground=oom")
    styles.set("Good.TLabel", "foreground=good")
    styles.set("Warn.TLabel", "foreground=peak")
    styles.set("Plot.TFrame", "background=background")
    styles.set("Plot.TLabel", "foreground=secondary background=background")
    styles.set("PlotSmall.TLabel", "foreground=secondary background=background", font=SMALL)
    styles.set("PlotTitle.TLabel", "background=background", font=TITLE)
    styles.set("PlotLink.TLabel", "foreground=accent background=background")
    styles.set("Border.TFrame", "background=border")
    pad = (px(root, 8), px(root, 3))
    raised = "background=raised lightcolor=raised darkcolor=raised"
    styles.set("TButton", raised, padding=pad, borderwidth=1)
    styles.in_state("TButton", "background=pressed:border,active:border")
    styles.set("Flat.TButton", "background=panel", padding=pad, borderwidth=0)
    styles.in_state("Flat.TButton", "background=active:border")
    styles.set("Tight.Flat.TButton", padding=(px(root, 6), 0))
    styles.set("Tab.TButton", "foreground=secondary background=panel", padding=0, borderwidth=0)
    styles.set("On.Tab.TButton", "foreground=text", font=BOLD)
    styles.in_state("Tab.TButton", "background=active:border")
    styles.set("Link.TButton", "foreground=accent background=panel", padding=0)
    styles.in_state("Link.TButton", "background=active:panel")
    entry = {"padding": (px(root, 6), px(root, 3)), "borderwidth": 1}
    styles.set("TEntry", "lightcolor=background", **entry)
    styles.in_state("TEntry", "bordercolor=focus:accent")
    styles.set("Wrong.TEntry", "lightcolor=background bordercolor=oom", **entry)
    styles.in_state("Wrong.TEntry", "bordercolor=focus:oom")
    arrow = px(root, 12)
    styles.set("TCombobox", "lightcolor=background background=panel", arrowsize=arrow, **entry)
    styles.in_state(
        "TCombobox",
        "fieldbackground=readonly:panel foreground=readonly:text selectbackground=readonly:panel "
        "selectforeground=readonly:text background=pressed:border,active:border "
        "bordercolor=focus:accent",
    )
    choice: dict[str, Any] = {"indicatorsize": px(root, 12), "padding": (px(root, 4), px(root, 2))}
    styles.set(
        "TCheckbutton",
        "indicatorbackground=background indicatorforeground=accent upperbordercolor=secondary "
        "lowerbordercolor=secondary",
        **choice,
    )
    styles.in_state("TCheckbutton", "background=active:panel indicatorbackground=pressed:border")
    styles.set("TRadiobutton", **choice)
    styles.in_state("TRadiobutton", "background=active:panel")
    styles.set("TSeparator", "background=border")
    styles.set("TPanedwindow", "background=border")
    styles.set("Sash", "background=panel", sashthickness=px(root, 5), gripcount=0)
    styles.set("TProgressbar", "background=accent troughcolor=border", thickness=px(root, 6))
    styles.set("TNotebook", "background=panel", tabmargins=(0, 0, 0, 0))
    tab = (px(root, 10), px(root, 4))
    styles.set(
        "TNotebook.Tab",
        "background=panel foreground=secondary bordercolor=panel lightcolor=panel",
        padding=tab,
    )
    styles.in_state(
        "TNotebook.Tab",
        "foreground=selected:text background=selected:background "
        "lightcolor=selected:background bordercolor=selected:border",
    )
    # A selected tab is not larger than the others.
    flat: Any = {"expand": [("selected", (0, 0, 0, 0))], "padding": [("selected", tab)]}
    ttk.Style(root).map("TNotebook.Tab", **flat)


def _style_scrollbars(styles: _Styles, root: tk.Misc) -> None:
    """Make scroll bars without arrows."""
    for where, sticky in (("Vertical", "ns"), ("Horizontal", "ew")):
        name = f"{where}.TScrollbar"
        thumb: Any = (f"{where}.Scrollbar.thumb", {"expand": "1", "sticky": "nswe"})
        trough: Any = (f"{where}.Scrollbar.trough", {"sticky": sticky, "children": [thumb]})
        ttk.Style(root).layout(name, [trough])
        shades = "background=border troughcolor=panel bordercolor=panel "
        shades += "lightcolor=border darkcolor=border"
        styles.set(name, shades, gripcount=0, arrowsize=px(root, 10))
        styles.in_state(name, "background=active:secondary")


def _style_tables(styles: _Styles, root: tk.Misc) -> None:
    height = tkfont.nametofont(TEXT, root).metrics("linespace") + px(root, 5)
    shades = "background=background fieldbackground=background foreground=text bordercolor=border"
    styles.set("Treeview", shades, rowheight=height)
    styles.in_state("Treeview", "background=selected:marked foreground=selected:text")
    shades, padding = "background=panel foreground=secondary", (px(root, 4), px(root, 3))
    styles.set("Treeview.Heading", shades, padding=padding, font=SMALL)
    styles.in_state("Treeview.Heading", "background=active:border")


# The widgets that ttk does not style: their colours, and their other options.
_SHADES = {
    "Menu": "background=panel foreground=text activeBackground=accent activeForeground=on_accent "
    "disabledForeground=secondary selectColor=text",
    "Text": "background=background foreground=text insertBackground=text selectBackground=accent "
    "selectForeground=on_accent",
    "Toplevel": "background=panel",
    "Listbox": "background=background foreground=text selectBackground=accent "
    "selectForeground=on_accent",
}
_FLAT = {
    "Menu": {"relief": "flat", "borderWidth": "0", "activeBorderWidth": "0", "tearOff": "0"},
    "Text": {"relief": "flat", "borderWidth": "0", "highlightThickness": "0"},
}


def _style_tk(root: tk.Tk, colors: Palette) -> None:
    """Colour menus, texts and the lists of comboboxes, new ones and existing ones."""
    for kind, shades in _SHADES.items():
        where = "*TCombobox*Listbox" if kind == "Listbox" else f"*{kind}"
        for option, value in (_options_of(colors, shades) | _FLAT.get(kind, {})).items():
            root.option_add(f"{where}.{option}", value, "interactive")
    _recolor(root, colors)


def _recolor(widget: tk.Misc, colors: Palette) -> None:
    """Colour existing widgets: the option database only affects new ones."""
    for option, value in _options_of(colors, _SHADES.get(widget.winfo_class(), "")).items():
        widget[option.lower()] = value
    for child in widget.winfo_children():
        _recolor(child, colors)
