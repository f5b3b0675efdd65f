"""What a model may change for the whole process, put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def settings_kept() -> Iterator[None]:
    """Put back the default dtype, the number of threads and whether gradients are on."""
    import torch

    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    has_gradients = torch.is_grad_enabled()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(has_gradients)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
