"""Reports on memory events: the log that a run of a model wrote of its memory."""
