"""What a tensor would lose in fewer bits or with fewer values is what NumPy and torch compute."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer import CancelledError, SnapshotError, _core
from support.pth_writer import T, write_pth

Doubles: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

LARGEST = {"int8": 127, "int4": 7}


def _quality(array: np.ndarray[Any, Any], **options: Any) -> _core.Quality:
    return _core.tensor_quality(array.tobytes(), str(array.dtype), array.shape, **options)


def _random(*shape: int, seed: int = 1) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Numbers as of weights: the channels are not equally large."""
    made = np.random.default_rng(seed)
    sizes = made.lognormal(size=(shape[0],) + (1,) * (len(shape) - 1))
    return (made.standard_normal(shape) * sizes).astype(np.float32)


def _decibels(x: Doubles, back: Doubles) -> float:
    noise = float(((x - back) ** 2).sum() / (x**2).sum())
    return -10 * math.log10(noise) if noise > 1e-24 else math.inf


@pytest.mark.parametrize("shape", [(64, 100), (33, 7, 3, 3), (300, 1), (1, 50), (2, 3)])
def test_integers_lose_what_rounding_to_their_steps_loses(shape: tuple[int, ...]) -> None:
    array = _random(*shape)
    x = array.astype(np.float64)
    slices = tuple(range(1, x.ndim))

    trips = {trip.format: trip for trip in _quality(array).round_trips}

    for name, largest in LARGEST.items():
        whole = np.abs(x).max() / largest
        sliced = np.abs(x).max(axis=slices, keepdims=True) / largest
        assert trips[name].sqnr_db == pytest.approx(_decibels(x, np.rint(x / whole) * whole))
        found = trips[name].channel_sqnr_db
        assert found == pytest.approx(_decibels(x, np.rint(x / sliced) * sliced))


@pytest.mark.parametrize("shape", [(5000,), (11, 13), (40_000, 3)])
def test_pruning_loses_what_the_smallest_magnitudes_weigh(shape: tuple[int, ...]) -> None:
    array = _random(*shape)
    sizes = np.sort(np.abs(array.astype(np.float64)), axis=None)
    squares = np.cumsum(sizes**2)

    points = _quality(array, spectrum=False).pruning

    assert [point.share for point in points] == [n / 10 for n in range(1, 10)]
    for tenths, point in enumerate(points, 1):
        count = array.size * tenths // 10
        assert point.threshold == sizes[count - 1]
        assert point.lost == pytest.approx(squares[count - 1] / squares[-1])


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 2**32))
def test_the_spectral_norm_is_that_of_numpy(rows: int, columns: int, seed: int) -> None:
    array = _random(rows, columns, seed=seed)
    values = np.linalg.svd(array.astype(np.float64), compute_uv=False)

    spectrum = _quality(array).spectrum

    assert spectrum is not None
    assert spectrum.shape == (rows, columns)
    assert spectrum.norm == pytest.approx(values[0], rel=1e-9)
    assert spectrum.norm <= spectrum.upper_bound
    assert spectrum.stable_rank == pytest.approx((values**2).sum() / values[0] ** 2)
    assert spectrum.captured is not None
    kept = (values[: spectrum.iterations] ** 2).sum() / (values**2).sum()
    assert 0 < spectrum.captured <= kept * (1 + 1e-9)


def test_a_matrix_of_low_rank_is_captured_by_a_few_directions() -> None:
    made = np.random.default_rng(2)
    array = made.standard_normal((300, 3)) @ made.standard_normal((3, 200))

    spectrum = _quality(array.astype(np.float32)).spectrum

    assert spectrum is not None
    assert spectrum.captured == pytest.approx(1.0)
    assert spectrum.iterations <= 6


def test_a_kernel_of_four_dimensions_is_a_matrix_of_its_first_by_the_rest() -> None:
    array = _random(32, 16, 3, 3)
    values = np.linalg.svd(array.reshape(32, -1).astype(np.float64), compute_uv=False)

    spectrum = _quality(array).spectrum

    assert spectrum is not None
    assert spectrum.shape == (32, 144)
    assert spectrum.norm == pytest.approx(values[0])


def test_a_large_matrix_has_an_estimate_that_says_so() -> None:
    made = np.random.default_rng(5)
    left, right = made.standard_normal((2100, 4)), made.standard_normal((4, 2060))
    noise = made.standard_normal((2100, 2060))
    array = (left @ right + noise).astype(np.float32)
    # The largest of rank 4 and noise: by power iteration until nothing changes.
    vector = np.ones(2060)
    for _ in range(60):
        vector = array.T @ (array @ vector)
        vector /= np.linalg.norm(vector)
    norm = float(np.linalg.norm(array @ vector))

    spectrum = _quality(array).spectrum

    assert spectrum is not None
    assert spectrum.norm == pytest.approx(norm, rel=1e-4)
    assert spectrum.norm <= norm * (1 + 1e-6) <= spectrum.upper_bound
    assert 1 < spectrum.iterations <= 32
    assert spectrum.change <= 1e-6 or spectrum.iterations == 32


def test_channels_that_are_nearly_nothing_are_counted() -> None:
    array = np.ones((10, 8), np.float32)
    array[[2, 5]] = 0.05
    array[7] = 0.0

    channels = _quality(array).channels

    assert channels is not None
    assert (channels.count, channels.small) == (10, 3)
    assert channels.median_norm == pytest.approx(math.sqrt(8))


def test_what_is_not_finite_is_left_out_and_counted() -> None:
    array = _random(20, 30)
    clean = array.copy()
    array[3, 4], array[5, 6], array[7, 8] = math.nan, math.inf, -math.inf
    clean[[3, 5, 7], [4, 6, 8]] = 0.0

    found, expected = _quality(array), _quality(clean)

    assert (found.nan, found.inf, found.count) == (1, 2, 600)
    for trip, other in zip(found.round_trips, expected.round_trips, strict=True):
        assert trip.sqnr_db == pytest.approx(other.sqnr_db)
        assert trip.channel_sqnr_db == pytest.approx(other.channel_sqnr_db)
    assert found.spectrum is not None
    assert expected.spectrum is not None
    assert found.spectrum.norm == pytest.approx(expected.spectrum.norm)
    assert (
        found.pruning[8].threshold == np.sort(np.abs(array[np.isfinite(array)]))[597 * 9 // 10 - 1]
    )


def test_what_fits_a_format_loses_nothing() -> None:
    integers = np.arange(-127, 128, dtype=np.int8)

    trips = {trip.format: trip.sqnr_db for trip in _quality(integers).round_trips}

    assert trips["int8"] == math.inf
    assert trips["int4"] is not None
    assert trips["int4"] < 30


def test_zeros_have_nothing_to_lose() -> None:
    quality = _quality(np.zeros((3, 4), np.float32))

    assert {trip.sqnr_db for trip in quality.round_trips} == {None}
    assert {(point.threshold, point.lost) for point in quality.pruning} == {(0.0, 0.0)}
    assert quality.spectrum is not None
    assert (quality.spectrum.norm, quality.spectrum.stable_rank) == (0.0, None)
    assert quality.spectrum.captured is None


def test_nothing_has_no_quality_and_a_vector_no_channels() -> None:
    empty, vector = _quality(np.zeros((0, 4), np.float32)), _quality(_random(9))

    assert (empty.count, empty.max_abs, empty.pruning) == (0, None, ())
    assert empty.channels_unavailable == empty.spectrum_unavailable == "it has no elements"
    assert vector.channels is None
    assert vector.channels_unavailable == "it has fewer than two dimensions"
    assert vector.spectrum_unavailable == "it has one dimension"
    assert {trip.channel_sqnr_db for trip in vector.round_trips} == {None}


def test_the_spectrum_is_left_out_on_request() -> None:
    assert _quality(_random(4, 4), spectrum=False).spectrum_unavailable == "it was not requested"


def test_a_tensor_in_memory_is_measured_as_in_a_file(tmp_path: Path) -> None:
    array = _random(50, 40)
    path = tmp_path / "x.pth"
    write_pth(path, {"x": T("float32", array.shape, array.tobytes())})
    checkpoint = _core.read_checkpoint(path)

    quality, stats = checkpoint.quality(0), checkpoint.stats(0)

    beside = _core.tensor_quality(array.view(np.uint8).reshape(-1), "float32", (50, 40))
    assert [trip.sqnr_db for trip in beside.round_trips] == [
        trip.sqnr_db for trip in quality.round_trips
    ]
    measured = _core.tensor_stats(array.tobytes(), "float32", (50, 40), bins=64)
    assert (measured.mean, measured.histogram) == (stats.mean, stats.histogram)


def test_a_packed_storage_has_the_same_quality(tmp_path: Path) -> None:
    array = _random(200, 150)
    value = {"x": T("float32", array.shape, array.tobytes())}
    write_pth(tmp_path / "plain.pth", value)
    write_pth(tmp_path / "packed.pth", value, deflate=True)

    plain = _core.read_checkpoint(tmp_path / "plain.pth").quality(0)
    packed = _core.read_checkpoint(tmp_path / "packed.pth").quality(0)

    assert plain.spectrum is not None
    assert packed.spectrum is not None
    assert packed.spectrum.norm == plain.spectrum.norm
    assert [point.lost for point in packed.pruning] == [point.lost for point in plain.pruning]


def test_bytes_that_do_not_fit_the_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="takes 16 bytes; there are 12"):
        _core.tensor_quality(bytes(12), "float32", (2, 2))
    with pytest.raises(ValueError, match="more than 2⁶⁴"):
        _core.tensor_stats(b"", "float64", (2**40, 2**40))
    with pytest.raises(ValueError, match='no type "floaty"'):
        _core.tensor_stats(b"", "floaty", (1,))


def test_a_tensor_that_is_not_there_cannot_be_measured(tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    write_pth(path, {"x": T("float32", (2,), bytes(8))})

    with pytest.raises(IndexError):
        _core.read_checkpoint(path).quality(1)


def test_work_reports_its_progress_and_stops_when_asked() -> None:
    array = _random(300, 300)
    reports: list[tuple[int, int]] = []
    cancel = threading.Event()
    cancel.set()

    _quality(array, progress=lambda done, total: reports.append((done, total)))

    assert reports == sorted(reports)
    assert reports[-1][0] == reports[-1][1]
    with pytest.raises(CancelledError):
        _quality(array, cancel=cancel)
    assert issubclass(CancelledError, SnapshotError)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_small_floats_lose_what_torch_loses(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    array = _random(64, 100)
    x = torch.from_numpy(array).double()
    largest = torch.finfo(getattr(torch, name)).max

    trips = {trip.format: trip for trip in _quality(array).round_trips}

    def lost(scale: Any) -> float:
        back = (x * scale).to(getattr(torch, name)).double() / scale
        return _decibels(x.numpy(), back.numpy())

    assert trips[name].sqnr_db == pytest.approx(lost(largest / x.abs().max()), rel=1e-5)
    found = trips[name].channel_sqnr_db
    assert found == pytest.approx(lost(largest / x.abs().amax(1, keepdim=True)), rel=1e-5)


@pytest.mark.torch
def test_every_way_to_lie_in_a_file_has_the_same_quality(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.from_numpy(_random(24, 8, 3, 5))
    plain, last = x, x.to(memory_format=torch.channels_last)
    turned = x.reshape(24, -1).t().contiguous().t()
    path = tmp_path / "x.pth"
    torch.save([plain, last, turned, x.bfloat16(), x.double()], path)
    checkpoint = _core.read_checkpoint(path)

    plainly, *others = [checkpoint.quality(index) for index in range(5)]

    for number, other in enumerate(others):
        # Types have values of their own.
        near = 1e-9 if number != 2 else 1e-2
        for trip, beside in zip(plainly.round_trips, other.round_trips, strict=True):
            assert beside.sqnr_db == pytest.approx(trip.sqnr_db, rel=near)
            assert beside.channel_sqnr_db == pytest.approx(trip.channel_sqnr_db, rel=near)
        for point, along in zip(plainly.pruning, other.pruning, strict=True):
            assert along.lost == pytest.approx(point.lost, rel=max(near, 1e-6))
        assert plainly.spectrum is not None
        assert other.spectrum is not None
        assert other.spectrum.norm == pytest.approx(plainly.spectrum.norm, rel=near)
        assert other.spectrum.stable_rank == pytest.approx(plainly.spectrum.stable_rank, rel=near)
