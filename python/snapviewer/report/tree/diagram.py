"""The architecture of a model as an SVG diagram: nested boxes, and arrows for the data flow.

Colours follow the reader's choice of light or dark.
"""

from __future__ import annotations

import re
from html import escape

from snapviewer.explorer.formats import format_param_count
from snapviewer.explorer.labels import type_text
from snapviewer.explorer.timing import ForwardStats
from snapviewer.explorer.tree import Tree
from snapviewer.report.tree.boxes import Box, Limits, boxes_of
from snapviewer.report.writers.colors import Ink
from snapviewer.report.writers.lettering import fitted, width_px
from snapviewer.report.writers.style_sheet import ink_classes, ink_variables
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import count_of, format_bytes, format_share

_WIDTH = 860.0
_MARGIN = 28.0
_ROW = 26.0  # height of a module without parts, and of the head of one with parts
_PAD = 12.0
_GAP, _ARROW_GAP = 5.0, 14.0
_LANE = 12.0
_MAX_LANES = 5
_CARD = 4.0  # offset of the cards of a row of identical modules
_FONT = 13.0
_SMALL = 11.5
_BAR = 84.0

_STYLE = """
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
.name { font-weight: 600; }
.arrow { fill: none; stroke: var(--axis); stroke-width: 1.4; marker-end: url(#tip); }
.skip { stroke: var(--plain); stroke-opacity: 0.75; }
.frame { stroke: var(--grid); stroke-width: 1; }
.unrun { stroke-dasharray: 4 3; opacity: 0.6; }
.tip { fill: var(--axis); }
"""


# The first pattern that matches counts.
_KINDS: tuple[tuple[str, str, Ink], ...] = (
    ("embedding", r"Embed", "series5"),
    ("attention", r"Attention|Attn", "series3"),
    ("normalization", r"Norm", "series4"),
    ("dropout", r"Dropout|DropPath|Identity|StochasticDepth", "series7"),
    ("recurrent", r"LSTM|GRU|RNN", "series6"),
    ("linear", r"Linear|Conv1D$|MLP|FeedForward", "series0"),
    ("convolution", r"Conv", "series2"),
    ("pooling", r"Pool|Upsample|Flatten|PixelShuffle|Pad\dd", "series9"),
    (
        "activation",
        r"LU$|ELU|Sigmoid|Tanh|Softmax|Softplus|Hardswish|Mish|Activation|Swish|Softsign",
        "series1",
    ),
)
_OTHER = ("other", "axis")


def kind_of(type_name: str) -> tuple[str, Ink]:
    """Return the kind of a layer and its ink.

    >>> kind_of("Conv2d"), kind_of("BasicBlock")
    (('convolution', 'series2'), ('other', 'axis'))
    """
    for kind, pattern, ink in _KINDS:
        if re.search(pattern, type_name):
            return kind, ink
    return _OTHER


def as_svg(tree: Tree, stats: ForwardStats | None = None, *, limits: Limits | None = None) -> str:
    """Draw a model as SVG.

    Modules are in the order in which they ran, if a run was recorded, and in definition order
    otherwise. Consecutive identical modules are drawn once, with their number. The picture has at
    most as many boxes as `limits` allows; the number of those left out is shown.
    """
    root = boxes_of(tree, stats, limits or Limits())
    canvas = _Canvas(max(1, tree.root.sums.parameters))
    y = canvas.head(tree)
    y = canvas.legend(y, sorted(_kinds_in(root)))
    top = y
    height = canvas.box(root, _MARGIN, top, _WIDTH - 2 * _MARGIN)
    total = top + height + _MARGIN
    title = _escaped(type_text(tree.root) or tree.name)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {total:g}" '
        f'width="{_WIDTH:g}" height="{total:g}" role="img">\n<title>{title}</title>\n'
        f"<style>{ink_variables()}{ink_classes()}{_STYLE}</style>\n"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
        'markerHeight="6" orient="auto-start-reverse"><path d="M0 0 8 4 0 8Z" class="tip"/>'
        "</marker></defs>\n"
        f'<rect width="{_WIDTH:g}" height="{total:g}" class="fill-paper"/>\n'
        + "\n".join(canvas.shapes)
        + "\n</svg>\n"
    )


def _kinds_in(root: Box) -> set[tuple[str, str]]:
    kinds, waiting = set(), [root]
    while waiting:
        box = waiting.pop()
        waiting += box.children
        if not box.children:
            kinds.add(kind_of(box.node.type_name))
    return kinds


class _Canvas:
    """The shapes drawn so far; children are drawn over their parents."""

    def __init__(self, whole: int) -> None:
        self.shapes: list[str] = []
        self._whole = whole

    def head(self, tree: Tree) -> float:
        """Draw the title and the sums; return where they end."""
        sums = tree.root.sums
        name = fitted(type_text(tree.root) or tree.name, _WIDTH - 2 * _MARGIN, 24)
        self._text(_MARGIN, _MARGIN + 18, name, 24, "name fill-text")
        facts = [
            f"{sums.parameters:,} parameters",
            format_bytes(sums.parameter_bytes),
            f"{sums.modules:,} modules",
        ]
        self._text(_MARGIN, _MARGIN + 42, "  ·  ".join(facts), 14, "fill-secondary")
        return _MARGIN + 62

    def legend(self, y: float, kinds: list[tuple[str, str]]) -> float:
        """Draw the legend; return where it ends."""
        x = _MARGIN
        for kind, ink in kinds:
            width = 18 + width_px(kind, _SMALL) + 16
            if x + width > _WIDTH - _MARGIN:
                x, y = _MARGIN, y + 20
            self._rect(x, y, 10, 10, f"fill-{ink}", radius=3)
            self._text(x + 16, y + 9.5, kind, _SMALL, "fill-secondary")
            x += width
        return y + 28

    def box(self, box: Box, x: float, y: float, width: float) -> float:
        """Draw a box with its content; return its height."""
        cards = _CARD * min(2, len(box.members) - 1)
        width -= cards
        height = _height(box) - cards
        style = "frame" if box.has_run else "frame unrun"
        for card in range(int(cards / _CARD), 0, -1):
            shift = card * _CARD
            self._rect(x + shift, y + shift, width, height, f"fill-code {style}", radius=7)
        fill = "fill-panel" if box.level % 2 == 0 or not box.children else "fill-paper"
        self._rect(x, y, width, height, f"{fill} {style}", radius=7)
        _, ink = kind_of(box.node.type_name)
        self._rect(x, y + 5, 4, (_ROW if box.children else height) - 10, f"fill-{ink}", radius=2)
        self._line(box, x, y, width)
        lanes = _lanes(box)
        inner = width - 2 * _PAD - _LANE * _lane_count(lanes)
        places = []
        below = y + _ROW + 4
        for child in box.children:
            below += _gap(box, child.place)
            size = self.box(child, x + _PAD, below, inner)
            places.append((below, size))
            below += size
        if box.children and box.hidden:
            text = f"… {box.hidden:,} more"
            self._text(x + _PAD + 6, below + 18, text, _SMALL, "fill-secondary")
        self._arrows(box, places, x + _PAD, inner, lanes)
        return height + cards

    def _line(self, box: Box, x: float, y: float, width: float) -> None:
        """Draw the title of a box and its parameters."""
        node = box.node
        baseline = y + _ROW / 2 + 4.5
        parameters = sum(member.sums.parameters for member in box.members)
        right = x + width - 12
        if parameters:
            bar = right - _BAR
            self._rect(bar, y + _ROW / 2 - 2.5, _BAR, 5, "fill-grid", radius=2.5)
            filled = max(2.0, _BAR * min(1.0, parameters / self._whole))
            self._rect(bar, y + _ROW / 2 - 2.5, filled, 5, "fill-plain", radius=2.5)
            count = format_param_count(parameters)
            self._text(bar - 10, baseline, count, _SMALL, "fill-secondary", "end")
        self._words(box, x + 14, baseline, right - _BAR - 66 - x - 14)
        tip = f"{node.path or node.type_name}: {parameters:,} parameters"
        tip = f"{tip} ({format_share(parameters, self._whole)})"
        self.shapes[-1] = f"<g><title>{_escaped(tip)}</title>{self.shapes[-1]}</g>"

    def _words(self, box: Box, x: float, y: float, room: float) -> None:
        """Draw the name, the number and the class of a box."""
        node, count = box.node, len(box.members)
        words = []
        if box.level:
            name = node.name if count == 1 else f"{node.name}…{box.members[-1].name}"
            words.append((name, "name fill-text"))
        if count > 1:
            words.append((f"×{count}", "name fill-plain"))
        what = type_text(node)
        if box.hidden and not box.children:
            what = f"{what}  ({count_of(node.sums.modules - 1, 'module')})"
        words.append((what, "fill-secondary" if box.level else "name fill-text"))
        spans: list[str] = []
        for word, style in words:
            # Bold letters are wider than the estimate.
            fits = fitted(word, room / 1.1, _FONT)
            room -= 1.1 * width_px(fits, _FONT) + 9
            if fits:
                shift = ' dx="9"' if spans else ""
                spans.append(f'<tspan{shift} class="{style}">{_escaped(fits)}</tspan>')
        self.shapes.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{_FONT:g}">{"".join(spans)}</text>'
        )

    def _arrows(
        self,
        box: Box,
        places: list[tuple[float, float]],
        x: float,
        width: float,
        lanes: dict[tuple[int, int], int],
    ) -> None:
        """Draw arrows: straight to the next box, around the others to a later one."""
        for source, target in box.arrows:
            (top, size), (end, end_size) = places[source], places[target]
            if target == source + 1:
                middle = x + 30
                self.shapes.append(f'<path class="arrow" d="M{middle:g} {top + size:g}V{end:g}"/>')
            elif (source, target) in lanes:
                side = x + width
                far = side + 6 + _LANE * lanes[source, target]
                start, stop = top + size - min(10, size / 3), end + min(12, end_size / 2)
                self.shapes.append(
                    f'<path class="arrow skip" d="M{side:g} {start:g}H{far - 5:g}'
                    f"Q{far:g} {start:g} {far:g} {start + 5:g}V{stop - 5:g}"
                    f'Q{far:g} {stop:g} {far - 5:g} {stop:g}H{side + 1:g}"/>'
                )

    def _rect(
        self, x: float, y: float, width: float, height: float, style: str, *, radius: float = 0
    ) -> None:
        self.shapes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'rx="{radius:g}" class="{style}"/>'
        )

    def _text(
        self, x: float, y: float, text: str, size: float, style: str, anchor: str = "start"
    ) -> None:
        self.shapes.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" '
            f'class="{style}">{_escaped(text)}</text>'
        )


def _height(box: Box) -> float:
    """Return the height of a box with its content and the cards behind it."""
    cards = _CARD * min(2, len(box.members) - 1)
    if not box.children:
        return _ROW + cards
    inside = sum(_height(child) + _gap(box, child.place) for child in box.children)
    return _ROW + 4 + inside + (24 if box.hidden else 0) + _PAD + cards


def _gap(box: Box, place: int) -> float:
    """Return the gap above a child: larger if an arrow crosses it."""
    if place == 0:
        return 0.0
    return _ARROW_GAP if (place - 1, place) in box.arrows else _GAP


def _lanes(box: Box) -> dict[tuple[int, int], int]:
    """Return the lane of each arrow that leads around others, the shortest nearest.

    Arrows without a free lane are not drawn.
    """
    ends: list[list[tuple[int, int]]] = []
    lanes: dict[tuple[int, int], int] = {}
    skips = [arrow for arrow in box.arrows if arrow[1] > arrow[0] + 1]
    for source, target in sorted(skips, key=lambda arrow: (arrow[1] - arrow[0], arrow)):
        for lane in range(_MAX_LANES):
            if lane == len(ends):
                ends.append([])
            if all(target <= first or last <= source for first, last in ends[lane]):
                ends[lane].append((source, target))
                lanes[source, target] = lane
                break
    return lanes


def _lane_count(lanes: dict[tuple[int, int], int]) -> int:
    return max(lanes.values()) + 1 if lanes else 0


def _escaped(text: str) -> str:
    return escape(sanitize(text, 300, strip=False))
