"""Draws a device's timeline as a picture for a report: title, facts, axes, legend.

`options` says what to show, `drawing` draws and writes it. The timeline itself is the engine's
(`Timeline.image`), pixel by pixel; everything else is around it or over its background.
"""
