"""The dock below the timeline."""
