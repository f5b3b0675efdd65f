"""Draws a picture: the results of `view`, `words` and `legend` in the places of `layout`."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image, PngImagePlugin

from snapviewer import Device, Snapshot, SnapshotError
from snapviewer.files.atomic_write import atomic_write
from snapviewer.report.snapshot.info import device_name
from snapviewer.report.ticks import byte_ticks
from snapviewer.snapshot.frames import line_of
from snapviewer.text.units import format_bytes

from . import words
from .artist import Artist, Scene
from .layout import Box, layout_of, legend_room
from .legend import Entry, legend_of, shown_in
from .options import PictureOptions, core_color
from .view import PictureView, view_of

_HEADROOM = 28  # above the peak, for its label
_MAX_BYTES = 2**64 - 1


class _Png(BytesIO):
    """Memory with a name: Pillow imports one format by the name, all of them by `format=`."""

    name = "picture.png"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, and the part of a timeline in it."""

    image: Image.Image
    title: str
    scale: int
    device: int
    plot: Box
    view: PictureView
    byte_span: tuple[int, int]


def to_json(picture: Picture) -> dict[str, Any]:
    """Return the document that `render --json` prints."""
    view, plot = picture.view, picture.plot
    return {
        "width": picture.image.width,
        "height": picture.image.height,
        "plot": [plot.left, plot.top, plot.width, plot.height],
        "device": picture.device,
        "events": [view.first, view.last],
        "time_us": None if view.clock is None else [view.low, view.high],
        "shown_bytes": list(picture.byte_span),
        "shown_allocations": view.timeline.shown,
        "peak_bytes": view.peak_bytes,
        "peak_event": view.peak_event,
    }


def write(picture: Picture, path: Path) -> None:
    """Write a picture as a PNG, atomically.

    Raises:
        OSError: The directory cannot be written to.
    """
    about = PngImagePlugin.PngInfo()
    # The name of a file need not be text.
    about.add_itxt("Title", picture.title.encode(errors="replace").decode())
    about.add_text("Software", "snapviewer")
    dpi = 96 * picture.scale
    png = _Png()
    # Of the default level 6, this takes two thirds of the time, and files are a fifth larger.
    picture.image.save(png, pnginfo=about, dpi=(dpi, dpi), compress_level=3)
    with atomic_write(path) as file:
        file.write(png.getbuffer())


def draw(snapshot: Snapshot, device: Device, options: PictureOptions, *, file: str) -> Picture:
    """Draw a picture.

    Args:
        snapshot: The file.
        device: One of its devices.
        options: The options of the picture.
        file: The name of the file in the title.

    Raises:
        SnapshotError: There is nothing to draw; the message says why.
        ValueError: A filter has a wrong syntax.
    """
    matching = device.timeline(order=options.order, where=options.where)
    dim = options.where if options.dim else None
    drawn = device.timeline(options.order, options.where_drawn) if dim else matching
    view = view_of(device, drawn, options)
    if options.byte_span and 0 < view.peak_bytes <= options.byte_span[0]:
        most = format_bytes(view.peak_bytes)
        raise SnapshotError(f"the range of bytes is empty: at most {most} are alive here")
    artist = Artist(options)
    title = options.title or f"{file}  ·  {device_name(device)}"
    fact_lines = artist.fact_lines(words.header_facts(device, view, matching, options))
    how = {"color": core_color(options.color), "theme": options.theme}

    room = legend_room(options.size, fact_lines=len(fact_lines))
    legend: tuple[Entry, ...] = ()
    if room is not None:
        whole = (0, max(view.peak_bytes, 1))
        image = view.image(options.byte_span or whole, options.size, **how)
        shown = shown_in(device, view.timeline, image, view.peak_event, **how)
        legend = legend_of(shown, lambda stack: line_of(snapshot, stack), max_entries=room.entries)
    layout = layout_of(
        options.size,
        fact_lines=len(fact_lines),
        room=room,
        entries=len(legend),
        entry_width=artist.legend_width(legend),
    )

    outer = layout.plot.scaled(options.scale)
    highest = device.curves.peaks["reserved"] if options.lines else 0
    highest = max(highest, view.peak_bytes)
    byte_span = options.byte_span or (0, _above(highest, outer.height, options.scale))
    y_ticks = byte_ticks(*byte_span, max_ticks=artist.max_byte_ticks(outer.height))
    plot = artist.beside_labels(outer, y_ticks)
    image = view.image(byte_span, (plot.width, plot.height), dim=dim, **how)
    # After the image, which refuses a range that is too long for ticks.
    x_ticks = view.ticks(plot.width, artist.label_width)

    scene = Scene(device, view, plot, byte_span)
    artist.paste(scene, image, x_ticks, y_ticks)
    artist.title(title, fact_lines)
    artist.byte_axis(scene, y_ticks)
    artist.other_axis(scene, x_ticks)
    artist.marks(scene)
    if options.lines:
        artist.line_names(scene)
    if room is not None and layout.legend is not None:
        artist.legend(legend, layout.legend.scaled(options.scale), room.columns)
    return Picture(artist.canvas.image, title, options.scale, device.index, plot, view, byte_span)


def _above(peak_bytes: int, height_px: int, scale: int) -> int:
    """Return the end of an axis of bytes, with room for the label of the peak."""
    above = max(peak_bytes, 1) * height_px // (height_px - _HEADROOM * scale) + 1
    return min(above, _MAX_BYTES)
