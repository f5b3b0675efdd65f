"""Text for people: units, sanitized names, tables, progress, standard streams."""
