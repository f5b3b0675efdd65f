"""Drawings as inline SVG. Colours are classes, so that a page decides what they are."""

from __future__ import annotations

from html import escape

from snapviewer.report.writers.lettering import one_line
from snapviewer.report.writers.shapes import Dot, Drawing, Label, Line, Polyline, Rect, Shape


def as_svg(drawing: Drawing, *, title: str, kind: str) -> str:
    """Render a drawing as an `<svg>` element that stands within a page.

    Args:
        drawing: What to draw. An ink of it is a class: `fill-…` or `stroke-…`.
        title: What a reader who cannot see the drawing is told.
        kind: A class of the element.
    """
    box = f"0 0 {_number(drawing.width_px)} {_number(drawing.height_px)}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img" class="{kind}">'
    shapes = "".join(f"{_shape(shape)}\n" for shape in drawing.shapes)
    return f"{head}\n<title>{escape(one_line(title))}</title>\n{shapes}</svg>"


def _shape(shape: Shape) -> str:
    match shape:
        case Rect(x, y, width, height, ink):
            return (
                f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" '
                f'height="{_number(height)}" class="fill-{ink}"/>'
            )
        case Line(x1, y1, x2, y2, ink):
            return (
                f'<line x1="{_number(x1)}" y1="{_number(y1)}" x2="{_number(x2)}" '
                f'y2="{_number(y2)}" class="stroke-{ink}"/>'
            )
        case Polyline(points, ink, is_dashed):
            path = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
            dashes = ' stroke-dasharray="6 4"' if is_dashed else ""
            return f'<polyline points="{path}"{dashes} class="stroke-{ink}"/>'
        case Dot(x, y, radius, ink):
            return (
                f'<circle cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}" '
                f'class="fill-{ink}"/>'
            )
        case Label(x, y, text, size, anchor, ink):
            return (
                f'<text x="{_number(x)}" y="{_number(y)}" font-size="{_number(size)}" '
                f'text-anchor="{anchor}" class="fill-{ink}">{escape(one_line(text))}</text>'
            )


def _number(value: float) -> str:
    """Write a number with at most two decimals: a hundredth of a pixel is enough."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
