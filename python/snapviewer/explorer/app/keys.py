"""Every key once: what it does, in words, and where it is shown.

The program's bindings, its footer and its help are made of this table.
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding


@dataclass(frozen=True, slots=True)
class Key:
    """A key (or several for the same), its action, and what that does.

    `footer` is the word for the bottom line; what has none is in the help only.
    """

    keys: str
    shown: str
    action: str
    words: str
    footer: str = ""

    def binding(self, owner: str = "") -> Binding:
        return Binding(
            self.keys,
            f"{owner}{self.action}",
            self.footer or self.words,
            show=bool(self.footer),
            key_display=self.shown if self.footer else None,
        )


MOVING = (
    Key("up,k", "↑ k", "move(-1)", "up"),
    Key("down,j", "↓ j", "move(1)", "down"),
    Key("left,h", "← h", "go_out", "fold, or go to the module that this is in"),
    Key("right,l", "→ l", "go_in", "unfold, or go to the first child"),
    Key("enter", "Enter", "fold('toggled')", "fold or unfold", "fold"),
    Key("pageup", "PgUp", "page(-1)", "a page up"),
    Key("pagedown", "PgDn", "page(1)", "a page down"),
    Key("home,g", "Home g", "first", "the first row"),
    Key("end,G", "End G", "last", "the last row"),
    Key("space", "Space", "pin", "keep this in the panel while moving on; again to let go"),
)
FOLDING = (
    Key("z", "z", "fold('subtree_toggled')", "fold or unfold the subtree"),
    Key("Z", "Z", "fold_all", "the whole tree"),
    Key("s", "s", "fold('siblings_toggled')", "all siblings"),
    Key("S", "S", "fold('siblings_toggled', True)", "siblings with all below them"),
    Key("o", "o", "fold('class_toggled')", "all modules of this class"),
    Key("O", "O", "fold('class_toggled', True)", "modules of this class with all below them"),
    Key("w", "w", "tensors", "tensors as rows, or not"),
)
SEARCHING = (
    Key("slash", "/", "search", "search: Enter keeps the filter, Esc clears it", "search"),
    Key("n", "n", "next_match(1)", "next match"),
    Key("N", "N", "next_match(-1)", "match before"),
    Key("r", "r", "order", "sort by order, name, parameters, memory, time", "sort"),
    Key("R", "R", "reverse", "the other way round"),
    Key("x", "x", "hide_small", "hide what is below 0.1 %, 1 %, 5 % of the whole"),
    Key("D", "D", "next_difference", "next difference, when two models are compared"),
    Key("V", "V", "compare_values", "compare the values of two files, too"),
)
LABELS = (
    Key("p", "p", "label('params')", "parameter counts"),
    Key("b", "b", "label('memory')", "memory"),
    Key("f", "f", "label('time')", "forward time, and shapes of inputs and outputs"),
    Key("t", "t", "label('shapes')", "shapes of tensors"),
    Key("d", "d", "label('kind')", "dtype and device"),
    Key("percent_sign", "%", "bars", "shares of the whole"),
    Key("A", "A", "align", "align the labels of siblings"),
    Key("L", "L", "labels", "choose and reorder labels", "labels"),
)
TABS = (
    Key("tab", "Tab", "panel(1)", "next panel", "panel"),
    Key("shift+tab", "Shift+Tab", "panel(-1)", "panel before"),
)
PANELS = (
    *(Key(str(number), str(number), f"panel_number({number})", "") for number in range(1, 7)),
    Key("c", "c", "show_panel('Source Code')", "source code"),
    Key("a", "a", "show_panel('Attributes')", "attributes"),
    Key("i", "i", "statistics", "statistics of the values, with a histogram"),
    Key("J", "J", "scroll_panel(1)", "scroll the panel down"),
    Key("K", "K", "scroll_panel(-1)", "scroll the panel up"),
    Key("less_than_sign", "<", "widen(-1)", "more room for the tree"),
    Key("greater_than_sign", ">", "widen(1)", "more room for the panel"),
    Key("v", "v", "switch_panel", "show or hide the panel"),
)
OTHER = (
    Key("e", "e", "export", "export as text, JSON, HTML or SVG", "export"),
    Key("y", "y", "copy_path", "copy the path"),
    Key("T", "T", "theme", "dark or light"),
    Key("question_mark", "?", "help", "all keys", "help"),
    Key("escape", "Esc", "escape", "close, clear, cancel"),
    Key("q,ctrl+c", "q", "quit", "quit", "quit"),
)
GROUPS: dict[str, tuple[Key, ...]] = {
    "Move": MOVING,
    "Fold": FOLDING,
    "Find": SEARCHING,
    "Labels": LABELS,
    "Panel": (*TABS, Key("", "1 … 6", "", "one of the panels"), *PANELS[6:]),
    "Program": OTHER,
}
# Those that Textual takes for itself unless the tree, which has the focus, does.
FOCUSED = (*MOVING, *TABS)
MOUSE = (
    ("click", "select; on an arrow: fold or unfold"),
    ("click ×2", "fold or unfold"),
    ("wheel", "scroll"),
    ("drag", "the border beside the panel: its size"),
)
