"""`events`: a report on logs of memory events."""

from __future__ import annotations

import argparse

from . import memory_events as command
from .errors import CommandError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.add_options(parser)
    parser.set_defaults(run=_events)


def _events(options: argparse.Namespace) -> None:
    try:
        command.run(options)
    except command.EventsError as failure:
        raise CommandError(str(failure)) from None
