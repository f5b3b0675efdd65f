"""A tree, as it is seen, to keep: as text, as JSON, as a page of HTML."""
