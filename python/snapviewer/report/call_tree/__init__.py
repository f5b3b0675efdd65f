"""The call tree as text, JSON, a page, and in the formats of other viewers."""
