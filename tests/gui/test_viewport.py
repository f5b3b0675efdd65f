"""Panning and zooming: a view stays in its world, and what is under the pointer stays there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer.gui.viewport import Viewport, World

WORLDS = st.builds(World, st.floats(1, 1e12), st.integers(0, 2**63))
PLACES = st.floats(-1e13, 1e13)


@st.composite
def _views(draw: st.DrawFn) -> Viewport:
    left, right = sorted((draw(PLACES), draw(PLACES)))
    low, high = sorted((draw(PLACES), draw(PLACES)))
    return Viewport(left, right, low, high)


@given(WORLDS, _views())
def test_a_view_that_was_cut_lies_in_its_world_and_stays_as_it_is(
    world: World, view: Viewport
) -> None:
    cut = world.clamp(view)

    assert 0 <= cut.left < cut.right <= world.right * (1 + 1e-9)
    assert 0 <= cut.low < cut.high <= world.high * (1 + 1e-9)
    again = world.clamp(cut)
    assert again.x_span == pytest.approx(cut.x_span)
    assert (again.low, again.high) == pytest.approx((cut.low, cut.high))


@given(WORLDS, st.floats(0.3, 0.9), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_zooming_in_keeps_the_point_where_it_is(
    world: World, factor: float, x_share: float, y_share: float
) -> None:
    view = world.whole()
    x, y = view.left + x_share * view.width, view.low + y_share * view.height

    closer = view.zoomed(factor, factor, x=x, y=y)

    assert closer.width == pytest.approx(view.width * factor)
    assert (x - closer.left) / closer.width == pytest.approx(x_share, abs=1e-6)
    assert (y - closer.low) / closer.height == pytest.approx(y_share, abs=1e-6)


@given(WORLDS, _views())
def test_a_picture_can_be_drawn_of_every_view(world: World, view: Viewport) -> None:
    low, high = world.clamp(view).byte_span

    assert 0 <= low < high < 2**64


def test_the_whole_has_room_above_the_peak() -> None:
    whole = World(1000, 10**9).whole()

    assert whole.x_span == (0, 1000)
    assert whole.low == 0
    assert whole.high > 10**9


def test_far_up_a_view_still_has_a_height() -> None:
    world = World(1, 2**60)

    cut = world.clamp(Viewport(0, 1, 1.2e18, 1.2e18 + 100))

    assert cut.height > 0
