"""Every key once: its action, its description, and whether the footer shows it.

The program's bindings, its footer and its help are made from these tables. A line is `keys | as
shown | action | description | word in the footer`; without the last, a key is in the help only.
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding


@dataclass(frozen=True, slots=True)
class Key:
    """A key (or several with the same action); `footer` is empty if only the help shows it."""

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


def _keys(table: str) -> tuple[Key, ...]:
    return tuple(
        Key(*(cell.strip() for cell in line.split("|"))) for line in table.strip().splitlines()
    )


MOVING = _keys("""
up,k     | ↑ k    | move(-1)        | up
down,j   | ↓ j    | move(1)         | down
left,h   | ← h    | go_out          | fold, or go to the parent
right,l  | → l    | go_in           | unfold, or go to the first child
enter    | Enter  | fold('toggled') | fold or unfold | fold
pageup   | PgUp   | page(-1)        | page up
pagedown | PgDn   | page(1)         | page down
home,g   | Home g | first           | first row
end,G    | End G  | last            | last row
space    | Space  | pin             | pin this in the panel while moving on; again to unpin
""")
FOLDING = _keys("""
z | z | fold('subtree_toggled')        | fold or unfold the subtree
Z | Z | fold_all                       | fold or unfold the whole tree
s | s | fold('siblings_toggled')       | fold or unfold all siblings
S | S | fold('siblings_toggled', True) | siblings with everything below them
o | o | fold('class_toggled')          | all modules of this class
O | O | fold('class_toggled', True)    | modules of this class with everything below them
w | w | tensors                        | show or hide tensor rows
""")
SEARCHING = _keys("""
slash | / | search          | search: Enter keeps the filter, Esc clears it | search
n     | n | next_match(1)   | next match
N     | N | next_match(-1)  | previous match
r     | r | order           | sort by model order, name, parameters, memory, time | sort
R     | R | reverse         | reverse the order
x     | x | hide_small      | hide modules below 0.1 %, 1 %, 5 % of the model
D     | D | next_difference | next difference, when two models are compared
V     | V | compare_values  | compare the values of two files, too
""")
LABELS = _keys("""
p            | p | label('params') | parameter counts
b            | b | label('memory') | memory
f            | f | label('time')   | forward time, input and output shapes
t            | t | label('shapes') | tensor shapes
d            | d | label('kind')   | dtype and device
percent_sign | % | bars            | shares of the model
A            | A | align           | align the labels of siblings
L            | L | labels          | choose and reorder labels | labels
""")
TABS = _keys("""
tab       | Tab       | panel(1)  | next panel | panel
shift+tab | Shift+Tab | panel(-1) | previous panel
""")
PANEL_NUMBERS = tuple(Key(str(n), str(n), f"panel_number({n})", "") for n in range(1, 7))
PANELS = _keys("""
c                 | c | show_panel('Source Code') | source code
a                 | a | show_panel('Attributes')  | attributes
i                 | i | statistics                | statistics of the values, with a histogram
J                 | J | scroll_panel(1)           | scroll the panel down
K                 | K | scroll_panel(-1)          | scroll the panel up
less_than_sign    | < | widen(-1)                 | make the panel smaller
greater_than_sign | > | widen(1)                  | make the panel larger
v                 | v | switch_panel              | show or hide the panel
""")
OTHER = _keys("""
e             | e   | export    | export as text, JSON, HTML or SVG | export
y             | y   | copy_path | copy the path
T             | T   | theme     | dark or light
question_mark | ?   | help      | all keys | help
escape        | Esc | escape    | close, clear, cancel
q,ctrl+c      | q   | quit      | quit | quit
""")
GROUPS: dict[str, tuple[Key, ...]] = {
    "Move": MOVING,
    "Fold": FOLDING,
    "Find": SEARCHING,
    "Labels": LABELS,
    "Panel": (*TABS, Key("", "1 … 6", "", "one of the panels"), *PANELS),
    "Program": OTHER,
}
# The tree has the focus and must bind these itself: Textual's own bindings would win otherwise.
FOCUSED = (*MOVING, *TABS)
GLOBAL = (*FOLDING, *SEARCHING, *LABELS, *PANEL_NUMBERS, *PANELS, *OTHER)
MOUSE = (
    ("click", "select; on an arrow: fold or unfold"),
    ("click ×2", "fold or unfold"),
    ("wheel", "scroll"),
    ("drag", "the border of the panel: resize it"),
)
