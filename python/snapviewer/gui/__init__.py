"""The window. Only this package knows Tk, and in it `state.py` and what that imports do not."""
