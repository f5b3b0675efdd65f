"""Reports on memory events: the log that a run of a model wrote of its memory."""

from snapviewer.events.recorder import EventRecorder

__all__ = ["EventRecorder"]
