"""Browse a model in the terminal: a live module, or any checkpoint."""
