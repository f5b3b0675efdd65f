"""The explorer as a program in the terminal: the only package that imports Textual and rich."""
