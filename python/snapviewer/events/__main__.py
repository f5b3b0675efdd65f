"""`python -m snapviewer.events` is `analyze_memory.py`; it needs only the standard library."""

import sys

from snapviewer.cli import analyze_memory_main

if __name__ == "__main__":
    sys.exit(analyze_memory_main(program="python -m snapviewer.events"))
