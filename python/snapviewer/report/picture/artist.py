"""Draws the parts of a picture: texts, axes, marks and legend, at its scale."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image

from snapviewer import Device
from snapviewer import Image as TimelineImage
from snapviewer.report.picture import marks
from snapviewer.report.theme import THEMES, Color
from snapviewer.report.ticks import Ticks

from . import words
from .canvas import Align, Canvas, shorten_to_width, text_width, wrap_facts
from .layout import (
    GAP,
    LABEL_SIZE,
    LINE,
    MARGIN,
    SWATCH,
    TEXT_SIZE,
    TICK,
    TITLE_SIZE,
    Box,
    max_fact_lines,
)
from .legend import Entry
from .options import PictureOptions
from .view import PictureView

_BYTE_TICK_DISTANCE = 36
_ENTRY = SWATCH + 8 + 12  # beside the texts of a line of the legend
_MAX_OOM_LINES = 12  # more would hide what they point to


@dataclass(frozen=True, slots=True)
class Scene:
    """The plot, and the events and bytes of its pixels."""

    device: Device
    view: PictureView
    plot: Box
    byte_span: tuple[int, int]

    def row(self, byte: int) -> int:
        """Return the first row, from the plot's top, that is wholly below a byte."""
        low, high = self.byte_span
        return self.plot.height - (byte - low) * self.plot.height // (high - low)

    def column(self, value: float) -> int:
        """Return the column, from the plot's left, of a place on the other axis."""
        low, high = self.view.low, self.view.high
        return int((value - low) * self.plot.width / (high - low))

    def peak_row(self) -> int | None:
        """Return the row just above the highest point, or None if that is not in the plot."""
        low, high = self.byte_span
        if not low < self.view.peak_bytes < high:
            return None
        height = self.plot.height
        # As in the core: a row shows the byte in its middle.
        filled = bisect_left(
            range(height),
            self.view.peak_bytes,
            key=lambda row: low + (2 * row + 1) * (high - low) // (2 * height),
        )
        return height - filled - 1

    def ooms(self) -> list[int]:
        """Return the columns in which memory ran out."""
        events = sorted(set(self.device.oom_at))
        here = events[bisect_left(events, self.view.first) : bisect_left(events, self.view.last)]
        last = self.plot.width - 1
        columns = {min(int(self.view.share_of(event) * self.plot.width), last) for event in here}
        return sorted(columns)


class Artist:
    """Draws the parts of a picture at its scale."""

    def __init__(self, options: PictureOptions) -> None:
        self.options = options
        self.scale = options.scale
        self.theme = THEMES[options.theme]
        width, height = options.size_px
        self.canvas = Canvas(Image.new("RGB", (width, height), self.theme.background))

    # Sizes

    def label_width(self, label: str) -> int:
        return text_width(label, LABEL_SIZE * self.scale)

    def fact_lines(self, facts: list[str]) -> list[str]:
        width, height = self.options.size
        room = (width - 2 * MARGIN) * self.scale
        return wrap_facts(facts, TEXT_SIZE * self.scale, room)[: max_fact_lines(height)]

    def max_byte_ticks(self, height_px: int) -> int:
        return max(2, height_px // (_BYTE_TICK_DISTANCE * self.scale))

    def beside_labels(self, outer: Box, ticks: Ticks) -> Box:
        """Return the plot in a box, beside the labels of bytes."""
        labels = [tick.label for tick in ticks.marks] + [ticks.unit]
        margin = max(self.label_width(label) for label in labels) + (TICK + 6) * self.scale
        return Box(outer.left + margin, outer.top, outer.width - margin, outer.height)

    # The parts

    def title(self, title: str, fact_lines: list[str]) -> None:
        scale, theme = self.scale, self.theme
        left, base = MARGIN * scale, (MARGIN + TITLE_SIZE - 4) * scale
        title = shorten_to_width(title, TITLE_SIZE * scale, self.canvas.image.width - 2 * left)
        self.canvas.text((left, base), title, size_px=TITLE_SIZE * scale, color=theme.text)
        for number, line in enumerate(fact_lines, 1):
            place = (left, base + (number * LINE + 2) * scale)
            self.canvas.text(place, line, size_px=TEXT_SIZE * scale, color=theme.secondary)

    def paste(self, scene: Scene, image: TimelineImage, x_ticks: Ticks, y_ticks: Ticks) -> None:
        """Paste the pixels of the plot, with grid and lines."""
        scale, theme, plot = self.scale, self.theme, scene.plot
        size = (plot.width, plot.height)
        rows = [scene.row(int(tick.value)) - scale for tick in y_ticks.marks]
        columns = [scene.column(tick.value) for tick in x_ticks.marks if scene.view.last]
        painted = marks.grid(size, rows, columns, scale, theme)
        if len(ooms := scene.ooms()) <= _MAX_OOM_LINES:
            painted += marks.oom_lines(size, ooms, scale, theme)
        if (row := scene.peak_row()) is not None:
            painted += marks.peak_line(size, row - scale + 1, scale, theme)
        if self.options.lines:
            from .amounts import amount_lines  # with NumPy

            painted += amount_lines(
                scene.device.curves,
                image.events,
                scene.byte_span,
                plot.height,
                theme=self.options.theme,
                unit=2 * scale,
            )
        pixels = Image.frombuffer("RGBA", size, image.marked_bytes(painted), "raw", "RGBA", 0, 1)
        self.canvas.image.paste(pixels, (plot.left, plot.top))

    def byte_axis(self, scene: Scene, ticks: Ticks) -> None:
        scale, theme, plot = self.scale, self.theme, scene.plot
        self.canvas.box(plot.left - scale, plot.top, scale, plot.height + scale, theme.grid)
        right = plot.left - (TICK + 4) * scale
        for tick in ticks.marks:
            y = plot.top + scene.row(int(tick.value))
            self.canvas.box(plot.left - TICK * scale, y - scale, TICK * scale, scale, theme.grid)
            self._label((right, y + 4 * scale), tick.label, align="right")
        self._label((right, plot.top - 10 * scale), ticks.unit, align="right")

    def other_axis(self, scene: Scene, ticks: Ticks) -> None:
        scale, theme, plot = self.scale, self.theme, scene.plot
        self.canvas.box(plot.left - scale, plot.bottom, plot.width + scale, scale, theme.grid)
        base = plot.bottom + (TICK + LABEL_SIZE + 2) * scale
        for tick in ticks.marks if scene.view.last else ():
            x = plot.left + scene.column(tick.value)
            self.canvas.box(x, plot.bottom, scale, TICK * scale, theme.grid)
            half = self.label_width(tick.label) // 2
            x = min(x, self.canvas.image.width - 4 * scale - half)
            self._label((x, base), tick.label, align="middle")
        text = words.axis_text(scene.view, ticks.unit)
        text = shorten_to_width(text, LABEL_SIZE * scale, self.canvas.image.width - plot.left)
        self._label((plot.left, base + LINE * scale), text)
        self._breaks(scene)

    def _breaks(self, scene: Scene) -> None:
        """Mark the axis with two strokes where an idle time is shortened."""
        scale, plot = self.scale, scene.plot
        last = -plot.width
        for share in scene.view.breaks():
            x = plot.left + int(share * plot.width)
            if x - last < 8 * scale:
                continue
            last = x
            self.canvas.box(x - 3 * scale, plot.bottom, 6 * scale, scale, self.theme.background)
            for left in (x - 4 * scale, x):
                start, end = (
                    (left, plot.bottom + 4 * scale),
                    (left + 4 * scale, plot.bottom - 3 * scale),
                )
                self.canvas.line(start, end, scale, self.theme.secondary)

    def marks(self, scene: Scene) -> None:
        """Label the peak, and point to where memory ran out."""
        scale, theme, plot = self.scale, self.theme, scene.plot
        for column in scene.ooms():
            x, y = plot.left + column, plot.top - scale
            points = [(x - 4 * scale, y - 7 * scale), (x + 4 * scale, y - 7 * scale), (x, y)]
            self.canvas.polygon(points, theme.oom)
        if (sentence := words.nothing_text(scene.view, scene.device)) is not None:
            x = plot.left + (plot.width - self.label_width(sentence)) // 2
            self._note((x, plot.top + plot.height // 2), sentence, theme.secondary)
        row = scene.peak_row()
        text = words.peak_text(scene.view, scene.device)
        width = self.label_width(text)
        if row is None or row < (LABEL_SIZE + 8) * scale or width + 12 * scale > plot.width:
            return
        share = scene.view.share_of(scene.view.peak_event) if scene.view.peak_event >= 0 else 0
        x = plot.left + int(share * plot.width) - width // 2
        x = min(max(x, plot.left + 6 * scale), plot.right - width - 6 * scale)
        self._note((x, plot.top + row - 6 * scale), text, theme.peak)

    def line_names(self, scene: Scene) -> None:
        """Name the lines of memory in the upper left corner of the plot."""
        from .amounts import NAMES, color_of_line

        scale = self.scale
        x, base = scene.plot.left + 10 * scale, scene.plot.top + 16 * scale
        for name in NAMES:
            color = color_of_line(self.options.theme, name)
            self._note((x + 18 * scale, base), name, self.theme.text)
            self.canvas.box(x, base - 5 * scale, 14 * scale, 2 * scale, color)
            x += 18 * scale + self.label_width(name) + 16 * scale

    def _note(self, place: tuple[int, int], text: str, color: Color) -> None:
        """Draw a text in the plot, over the lines there."""
        scale, (x, base) = self.scale, place
        width = self.label_width(text) + 6 * scale
        self.canvas.box(x - 3 * scale, base - 11 * scale, width, 15 * scale, self.theme.background)
        self.canvas.text(place, text, size_px=LABEL_SIZE * scale, color=color)

    def legend_width(self, legend: Sequence[Entry]) -> int:
        """Return the width of a legend in points."""
        widths = (
            self.label_width(entry.text)
            if entry.is_heading
            else self.label_width(entry.text) + self.label_width(entry.amount) + _ENTRY * self.scale
            for entry in legend
        )
        return -(-max(widths, default=0) // self.scale)

    def legend(self, legend: Sequence[Entry], box: Box, columns: int) -> None:
        gap = GAP * self.scale
        column_width = (box.width + gap) // columns
        rows = -(-len(legend) // columns)
        for number, entry in enumerate(legend):
            column, row = divmod(number, rows)
            left = box.left + column * column_width
            base = box.top + (row * LINE + 5) * self.scale
            if entry.is_heading:
                self._label((left, base), entry.text)
            else:
                self._entry(entry, left, base, left + column_width - gap)

    def _entry(self, entry: Entry, left: int, base: int, right: int) -> None:
        scale, theme = self.scale, self.theme
        width = SWATCH * scale
        height = LINE * scale if entry.is_step else width
        top = base - 4 * scale - height // 2
        count = len(entry.colors)
        for number, color in enumerate(entry.colors):
            start, end = (left + place * width // count for place in (number, number + 1))
            self.canvas.box(start, top, end - start, height, color)
        text_left = left + width + 8 * scale
        room = right - text_left - (self.label_width(entry.amount) + 10 * scale)
        text = shorten_to_width(entry.text, LABEL_SIZE * scale, room)
        self.canvas.text((text_left, base), text, size_px=LABEL_SIZE * scale, color=theme.text)
        self._label((right, base), entry.amount, align="right")

    def _label(self, place: tuple[int, int], text: str, *, align: Align = "left") -> None:
        size_px = LABEL_SIZE * self.scale
        self.canvas.text(place, text, size_px=size_px, color=self.theme.secondary, align=align)
