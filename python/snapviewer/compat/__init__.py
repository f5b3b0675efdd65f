"""The names that the documents promise, under which scripts know our functions. No logic."""
