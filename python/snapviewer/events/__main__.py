"""`python -m snapviewer.events LOG …`: the same as `snapviewer events`, without the rest of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from snapviewer.cli.memory_events import EventsError, add_options, printable, run
from snapviewer.text.streams import close_output, ready_streams


def main(
    arguments: Sequence[str] | None = None, *, program: str = "python -m snapviewer.events"
) -> int:
    """Report on logs, and return the exit code."""
    ready_streams()
    parser = argparse.ArgumentParser(prog=program)
    add_options(parser)
    options = parser.parse_args(arguments)
    try:
        run(options)
        sys.stdout.flush()
    except EventsError as failure:
        return _fail(str(failure))
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            close_output()
            return 0
        return _fail(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "))
    except MemoryError:
        return _fail("内存不足 (there is not enough memory for this)")
    except KeyboardInterrupt:
        return 130
    return 0


def _fail(sentence: str) -> int:
    sys.stderr.write(f"错误: {printable(sentence)}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
