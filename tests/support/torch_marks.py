"""Marks of tests that use torch."""

from __future__ import annotations

import pytest


def torch_marks(*ignored: str) -> list[pytest.MarkDecorator]:
    """Mark tests that need torch.

    Args:
        ignored: Warnings of torch about its own features that are no failures, in the notation
            `message:category`, or `:category` for all of a category.
    """
    return [pytest.mark.torch, *(pytest.mark.filterwarnings(f"ignore:{each}") for each in ignored)]
