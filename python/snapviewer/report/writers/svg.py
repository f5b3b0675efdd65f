"""Drawings as SVG. Colours are classes, so that a page decides what they are."""

from __future__ import annotations

from html import escape

from snapviewer.report.writers.lettering import MAX_SPAN_CHARS
from snapviewer.report.writers.shapes import Dot, Drawing, Label, Line, Polyline, Rect, Shape
from snapviewer.text.sanitize import sanitize


def as_svg(drawing: Drawing, *, title: str, kind: str = "chart", style: str = "") -> str:
    """Render a drawing as an `<svg>` element.

    Args:
        drawing: What to draw. An ink of it is a class: `fill-…` or `stroke-…`.
        title: The text for readers who cannot see the drawing.
        kind: The class of the element.
        style: A style sheet, if no page around it has one.
    """
    box = f"0 0 {_number(drawing.width_px)} {_number(drawing.height_px)}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img" class="{kind}">'
    shapes = "".join(f"{_shape(shape)}\n" for shape in drawing.shapes)
    sheet = f"<style>{style}</style>\n" if style else ""
    return f"{head}\n<title>{_text(title)}</title>\n{sheet}{shapes}</svg>"


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
                f'text-anchor="{anchor}" class="fill-{ink}">{_text(text)}</text>'
            )


def _number(value: float) -> str:
    """Write a number with at most two decimals: a hundredth of a pixel is enough."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _text(text: str) -> str:
    return escape(sanitize(text, MAX_SPAN_CHARS, strip=False))
