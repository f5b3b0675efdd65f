"""What Python adds to the core's answers on a snapshot: frames, spans, live allocations."""
