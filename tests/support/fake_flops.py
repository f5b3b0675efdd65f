"""A counter of FLOPs that counts whatever the program does."""

from __future__ import annotations


class FakeFlops:
    """A counter that counts so many FLOPs from one reading to the next."""

    def __init__(self, step: float) -> None:
        self.step = step
        self.count = 0.0
        self.is_open = False

    def start(self) -> None:
        self.is_open = True

    def flops(self) -> float:
        assert self.is_open
        self.count += self.step
        return self.count

    def close(self) -> None:
        self.is_open = False
