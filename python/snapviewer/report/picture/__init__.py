"""A device's timeline as a picture with a title, facts, axes and a legend.

`options` has the options, `drawing` draws and writes it. The timeline itself is drawn by the core
(`Timeline.image`); everything else is around it or over its background.
"""
