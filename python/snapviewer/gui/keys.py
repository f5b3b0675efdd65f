"""Smooth panning while a key is held.

A keyboard repeats a held key about 25 times a second, as pairs of release and press. The view moves
once when a key goes down, and then by the clock until it stays up.
"""

from __future__ import annotations

import tkinter as tk
from time import monotonic

from .state import State

_FIRST_SHARE = 0.03  # of the plot's size, at once
_SHARE_PER_SECOND = 0.9
_FRAME_MS = 15
_STAYS_UP_MS = 40

Direction = tuple[int, int]
"""To the right and up, each -1, 0 or 1."""


class HeldKeys:
    """Moves the view while keys are down."""

    def __init__(self, root: tk.Misc, state: State) -> None:
        self._root, self._state = root, state
        self._down: dict[str, Direction] = {}
        self._up: dict[str, str] = {}
        self._moved_at = 0.0
        self._is_moving = False

    def press(self, key: str, direction: Direction) -> None:
        if key in self._up:
            self._root.after_cancel(self._up.pop(key))
        if key in self._down:
            return
        self._down[key] = direction
        width, height = self._state.plot_px
        x, y = direction
        self._state.pan_px(round(x * width * _FIRST_SHARE), round(y * height * _FIRST_SHARE))
        self._moved_at = monotonic()
        if not self._is_moving:
            self._is_moving = True
            self._root.after(_FRAME_MS, self._move)

    def release(self, key: str) -> None:
        if key in self._down and key not in self._up:
            self._up[key] = self._root.after(_STAYS_UP_MS, self._forget, key)

    def release_all(self) -> None:
        """Stop, as when the window loses the keyboard."""
        self._down.clear()

    def _forget(self, key: str) -> None:
        self._up.pop(key, None)
        self._down.pop(key, None)

    def _move(self) -> None:
        now = monotonic()
        seconds, self._moved_at = now - self._moved_at, now
        if not self._down:
            self._is_moving = False
            return
        # A key that is up, perhaps only to be repeated, does not move.
        directions = [way for key, way in self._down.items() if key not in self._up]
        x, y = (
            (min(max(sum(axis), -1), 1) for axis in zip(*directions, strict=True))
            if directions
            else (0, 0)
        )
        if x or y:
            width, height = self._state.plot_px
            share = min(seconds, 0.1) * _SHARE_PER_SECOND
            self._state.pan_px(round(x * width * share), round(y * height * share))
        spent_ms = round(1000 * (monotonic() - now))
        self._root.after(max(_FRAME_MS - spent_ms, 1), self._move)
