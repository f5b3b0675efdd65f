"""The timeline in the window: its pixels, axes, minimap and annotation lanes."""
