"""Statistics and differences of tensors are those that torch computes, for every type."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snapviewer import _core
from support.torch_marks import torch_marks

torch = pytest.importorskip("torch", reason="torch is not installed")

from support import checkpoint_cases  # noqa: E402 (it needs torch)

pytestmark = torch_marks(
    "TypedStorage is deprecated:UserWarning", "torch.quantize_per_tensor:UserWarning"
)

# Both sides compute in float64 from the same numbers; only the order of sums differs.
RELATIVE = 1e-9


def _values(name: str, count: int = 5000) -> Any:
    """Numbers of a type that use its range, with what is special about it among them."""
    made = torch.Generator().manual_seed(3)
    dtype = getattr(torch, name)
    if dtype.is_complex:
        return torch.randn(count, dtype=dtype, generator=made)
    if name == "bool":
        return torch.randint(0, 2, (count,), generator=made).to(dtype)
    if not dtype.is_floating_point:
        bits = torch.randint(0, 256, (count * dtype.itemsize,), generator=made).to(torch.uint8)
        return bits.view(dtype)
    if dtype.itemsize == 1:
        return torch.arange(count).to(torch.uint8).view(dtype)
    values = torch.randn(count, generator=made, dtype=torch.float64)
    values[:6] = torch.tensor([0.0, -0.0, math.nan, math.inf, -math.inf, 1.0])
    tiny = torch.finfo(dtype).smallest_normal
    values[6:9] = torch.tensor([tiny / 2, -tiny / 4, tiny], dtype=torch.float64)
    return values.to(dtype)


def _stats(tensor: Any, tmp_path: Path, bins: int = 64) -> _core.Stats:
    path = tmp_path / "x.pth"
    torch.save({"x": tensor}, path)
    return _core.read_checkpoint(path).stats(0, bins=bins)


def _doubles(tensor: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """All elements as float64; the magnitudes of complex ones."""
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    tensor = tensor.resolve_conj().resolve_neg()
    if tensor.is_complex():
        tensor = tensor.to(torch.complex128).abs()
    if tensor.dtype == torch.uint64:
        return np.asarray(tensor.numpy().astype(np.float64)).ravel()
    return np.asarray(tensor.to(torch.float64).numpy()).ravel()


def _assert_stats(stats: _core.Stats, tensor: Any) -> None:
    numbers = _doubles(tensor)
    finite = torch.from_numpy(numbers[np.isfinite(numbers)])

    assert stats.count == tensor.numel()
    assert stats.zeros == int((numbers == 0).sum())
    assert stats.nan == int(np.isnan(numbers).sum())
    assert stats.inf == int(np.isinf(numbers).sum())
    assert stats.min == finite.min().item()
    assert stats.max == finite.max().item()
    centred = finite - finite.mean()
    second = centred.square().mean()
    assert stats.std == pytest.approx(finite.std().item(), rel=RELATIVE)
    assert stats.mean == pytest.approx(
        finite.mean().item(), rel=RELATIVE, abs=RELATIVE * float(finite.abs().mean())
    )
    assert stats.l1 == pytest.approx(finite.abs().sum().item(), rel=RELATIVE)
    assert stats.l2 == pytest.approx(finite.norm().item(), rel=RELATIVE)
    skewness = (centred**3).mean() / second**1.5
    assert stats.skewness == pytest.approx(skewness.item(), rel=1e-7, abs=1e-9)
    kurtosis = (centred**4).mean() / second**2 - 3
    assert stats.kurtosis == pytest.approx(kurtosis.item(), rel=1e-7, abs=1e-9)
    _assert_histogram(stats, finite.numpy())


def _assert_histogram(stats: _core.Stats, finite: np.ndarray[Any, Any]) -> None:
    """Equal bins from the least to the largest, the last one closed; entropy in bits."""
    low, high, bins = finite.min(), finite.max(), len(stats.histogram)
    places = np.floor((finite - low) / (high - low) * bins).astype(int).clip(0, bins - 1)
    counts = np.bincount(places, minlength=bins)
    assert stats.edges == (low, high)
    assert list(stats.histogram) == counts.tolist()
    shares = counts[counts > 0] / counts.sum()
    assert stats.entropy == pytest.approx(float(-(shares * np.log2(shares)).sum()), rel=RELATIVE)


@pytest.mark.parametrize("dtype", checkpoint_cases.NUMERIC)
def test_statistics_are_those_of_torch(dtype: str, tmp_path: Path) -> None:
    tensor = _values(dtype)

    _assert_stats(_stats(tensor, tmp_path), tensor)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "complex64", "float8_e4m3fn"])
@pytest.mark.parametrize("view", ["turned", "steps", "expanded", "overlapping"])
def test_statistics_of_a_view_are_those_of_its_elements(
    dtype: str, view: str, tmp_path: Path
) -> None:
    base = _values(dtype, 4096)
    views = {
        "turned": base.view(64, 64).t(),
        "steps": base[7:4000:3],
        "expanded": base.view(64, 64)[3:9, 1:].expand(5, 6, 63),
        "overlapping": base.unfold(0, 16, 5),
    }

    _assert_stats(_stats(views[view], tmp_path), views[view])


@pytest.mark.parametrize("dtype", [*checkpoint_cases.FLOATS, *checkpoint_cases.EIGHTHS])
def test_denormals_are_those_of_the_stored_type(dtype: str, tmp_path: Path) -> None:
    tensor = _values(dtype)
    numbers = _doubles(tensor)
    normal = float(torch.finfo(getattr(torch, dtype)).smallest_normal)

    stats = _stats(tensor, tmp_path)

    assert stats.denormal == int(((np.abs(numbers) < normal) & (numbers != 0)).sum())


@pytest.mark.parametrize("key", ["tensor", "wide", "channel"])
def test_statistics_of_quantized_tensors_are_of_what_they_stand_for(
    key: str, tmp_path: Path
) -> None:
    tensor = checkpoint_cases.CASES["quantized"]()[key]

    stats = _stats(tensor, tmp_path)

    numbers = tensor.dequantize().double()
    assert (stats.count, stats.zeros) == (12, int((numbers == 0).sum()))
    assert stats.mean == pytest.approx(numbers.mean().item(), rel=1e-6)
    assert stats.max == pytest.approx(numbers.max().item(), rel=1e-6)


def test_a_negative_view_has_negative_statistics(tmp_path: Path) -> None:
    tensor = torch.tensor([1 + 2j, 3 + 4j]).conj().imag

    stats = _stats(tensor, tmp_path)

    assert (stats.min, stats.max) == (-4, -2)


@pytest.mark.parametrize("bins", [1, 7, 1000])
def test_a_histogram_has_as_many_bins_as_asked_for(bins: int, tmp_path: Path) -> None:
    tensor = torch.randn(3000, generator=torch.Generator().manual_seed(1))

    stats = _stats(tensor, tmp_path, bins)

    assert len(stats.histogram) == bins
    _assert_histogram(stats, tensor.double().numpy())


def test_where_there_is_no_number_there_is_no_statistic(tmp_path: Path) -> None:
    empty = _stats(torch.empty(0), tmp_path)
    nothing = _stats(torch.tensor([math.nan, math.inf]), tmp_path)
    one = _stats(torch.tensor([2.0]), tmp_path)

    assert (empty.count, empty.mean, empty.min, empty.std) == (0, None, None, None)
    assert (nothing.count, nothing.nan, nothing.inf, nothing.mean) == (2, 1, 1, None)
    assert (one.mean, one.std, one.min, one.max) == (2, None, 2, 2)


def test_what_has_no_elements_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    torch.save({"x": torch.empty(3, device="meta")}, path)

    with pytest.raises(_core.SnapshotError, match="meta"):
        _core.read_checkpoint(path).stats(0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "uint8"])
def test_a_difference_is_what_torch_computes(dtype: str, tmp_path: Path) -> None:
    first = torch.randint(1, 100, (40, 50), generator=torch.Generator().manual_seed(5))
    first = first.to(getattr(torch, dtype))
    second = first.clone()
    second[3:7] += 1
    for name, tensor in (("a", first), ("b", second)):
        torch.save({"x": tensor}, tmp_path / name)
    one, other = (_core.read_checkpoint(tmp_path / name) for name in "ab")

    same, found = one.difference(0, one, 0), one.difference(0, other, 0)

    delta = second.double() - first.double()
    assert (same.is_equal, same.changed, same.max_abs) == (True, 0, 0)
    assert (found.is_equal, found.changed, found.count) == (False, 200, 2000)
    assert found.max_abs == delta.abs().max().item()
    assert found.mean_abs == pytest.approx(delta.abs().mean().item(), rel=RELATIVE)
    expected = (delta.norm() / first.double().norm()).item()
    assert found.relative_l2 == pytest.approx(expected, rel=RELATIVE)
