"""Lines of requested, allocated, active and reserved memory in a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import snapviewer
from snapviewer.demo import DemoOptions, write_demo
from snapviewer.report.picture.amounts import color_of_line
from snapviewer.report.picture.drawing import draw
from snapviewer.report.picture.options import PictureOptions


def test_lines_of_reserved_memory_are_where_their_bytes_are(tmp_path: Path) -> None:
    path = tmp_path / "demo.pickle"
    write_demo(path, DemoOptions(events=5000, oom=True))
    snapshot = snapviewer.load(path)
    device = snapshot.devices[0]
    options = PictureOptions(lines=True)

    picture = draw(snapshot, device, options, file="demo")

    plain = draw(snapshot, device, PictureOptions(), file="demo")
    assert picture.byte_span[1] >= device.curves.peaks["reserved"], "all of the line is in view"
    pixels, plot = np.asarray(picture.image), picture.plot
    column = plot.width * 3 // 4
    image = picture.view.image(picture.byte_span, (plot.width, plot.height))
    reserved = int(device.curves.reserved[int(image.events[column])])
    row = round((picture.byte_span[1] - reserved) * plot.height / picture.byte_span[1])
    color = color_of_line("light", "reserved")
    assert tuple(pixels[plot.top + row - 1, plot.left + column]) == color
    assert not (np.asarray(plain.image) == color).all(axis=2).any(), "only if it is asked for"
