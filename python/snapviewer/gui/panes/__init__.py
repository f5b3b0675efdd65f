"""The tabs of the side pane."""
