"""Pickles that Python itself could not write."""

from __future__ import annotations

from support.pth_writer import zip_of


def deep_lists(levels: int) -> bytes:
    """A torch zip file of a list in a list in a list."""
    pickled = b"\x80\x02" + b"]" * levels + b"a" * (levels - 1) + b"."
    return zip_of([("archive/data.pkl", pickled), ("archive/version", b"3\n")])
