"""`python -m snapviewer` is the program `snapviewer`."""

import sys

from snapviewer.cli import main

sys.exit(main())
