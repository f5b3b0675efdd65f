"""The machine's limits are measured, and show what bounds a piece of work."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer.model import roofline
from snapviewer.model.kernels import Backend, Kernels, Run, Stream, kernels_of
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.roofline import Roof, bound_of, measure_roof
from snapviewer.report.model.json import roof_json
from support.patience import PATIENT
from support.program import output_of


def a_roof(peak: float | None = 100e9, bandwidth: float | None = 10e9) -> Roof:
    def quantity(value: float | None, unit: str) -> Quantity:
        if value is None:
            return unavailable(unit, "not measured")
        return Quantity(value, unit, "measured", "test")

    steady = Quantity(1.0, "%", "measured", "test")
    return Roof(
        "cpu",
        "float32",
        2,
        quantity(peak, "FLOP/s"),
        steady,
        quantity(bandwidth, "B/s"),
        steady,
        quantity(bandwidth, "B/s"),
        quantity(bandwidth, "B/s"),
    )


@pytest.fixture(autouse=True)
def nothing_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured here is short, and not kept."""
    monkeypatch.setattr(roofline, "_measured", {})
    monkeypatch.setattr(roofline, "_MATMUL_S", 0.01)
    monkeypatch.setattr(roofline, "_STREAM_S", 0.01)
    monkeypatch.setattr(roofline, "last_cache_bytes", lambda: None)


class TestBounds:
    def test_the_ridge_is_the_rate_divided_by_the_bandwidth(self) -> None:
        roof = a_roof(100e9, 10e9)

        assert roof.ridge == Quantity(10.0, "FLOP/B", "computed", "peak rate / bandwidth")
        assert bound_of(9.9, roof) == "memory-bound"
        assert bound_of(10.0, roof) == "compute-bound"

    def test_without_a_rate_nothing_is_claimed(self) -> None:
        for roof in (a_roof(peak=None), a_roof(bandwidth=None)):
            assert bound_of(5.0, roof) == "unknown"
            assert roof.ridge.source == "not measured"
            assert roof.attainable(5.0).status == "unavailable"

    @pytest.mark.parametrize("intensity", [None, float("nan")])
    def test_an_unknown_intensity_has_an_unknown_bound(self, intensity: float | None) -> None:
        assert bound_of(intensity, a_roof()) == "unknown"

    @PATIENT
    @given(st.floats(1e6, 1e15), st.floats(1e6, 1e13), st.floats(0, 1e6))
    def test_what_is_attainable_is_below_both_limits(
        self, peak: float, bandwidth: float, intensity: float
    ) -> None:
        roof = a_roof(peak, bandwidth)

        rate = roof.attainable(intensity).value

        assert rate is not None
        assert rate <= peak
        assert rate <= intensity * bandwidth
        assert rate == peak or rate == intensity * bandwidth
        if bound_of(intensity, roof) == "compute-bound":
            assert rate == pytest.approx(peak)

    def test_the_document_has_the_ridge(self) -> None:
        document = roof_json(a_roof())

        assert document["ridge"]["value"] == 10.0
        assert document["peak"]["status"] == "measured"
        json.dumps(document)


class FixedKernels:
    """A machine that does what it does in a time that a test says."""

    name = "fixed"

    def __init__(self, seconds: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
        durations: Iterator[float] = iter(seconds)
        self.sides: list[int] = []
        monkeypatch.setattr(roofline, "_seconds_of", lambda work: next(durations))

    def threads(self, count: int | None) -> AbstractContextManager[int]:
        return nullcontext(count or 1)

    def matmul(self, side: int) -> Run:
        self.sides.append(side)
        return lambda: None

    def streams(self, size_bytes: int) -> tuple[Stream, ...]:
        return (
            Stream("copy", lambda: None, 2 * size_bytes),
            Stream("triad", lambda: None, 3 * size_bytes),
        )


class TestMeasuring:
    @pytest.mark.parametrize("backend", ["numpy", pytest.param("torch", marks=pytest.mark.torch)])
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_all_is_measured_with_its_source(self, backend: Backend, dtype: str) -> None:
        if backend == "torch":
            pytest.importorskip("torch")

        roof = measure_roof(backend=backend, dtype=dtype)

        for quantity in (roof.peak, roof.bandwidth, roof.copy_bandwidth, roof.triad_bandwidth):
            assert quantity.status == "measured"
            assert quantity.value is not None
            assert quantity.value > 1e6
            assert backend in quantity.source
        assert roof.peak_spread.value is not None
        assert 0 <= roof.peak_spread.value < 100
        assert roof.bandwidth.value == max(
            roof.copy_bandwidth.value or 0, roof.triad_bandwidth.value or 0
        )

    def test_it_is_measured_once(self) -> None:
        first = measure_roof(backend="numpy")

        assert measure_roof(backend="numpy") is first
        assert measure_roof(backend="numpy", dtype="float64") is not first

    def test_the_best_of_the_repeats_is_the_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # Two to find the size; then the repeats of the product, of the copy and of the triad.
        seconds = [1.0, 1.0, *[0.004, 0.002, 0.005], *[0.004, 0.004, 0.004], *[1.0]]
        kernels = FixedKernels(seconds, monkeypatch)

        roof = roofline._measure(kernels, "cpu", "float32", None)

        assert kernels.sides == [256]
        assert roof.peak.value == pytest.approx(2 * 256**3 / 0.002)
        assert roof.peak_spread.value == pytest.approx(50)
        assert "unsteady" in roof.peak.source
        assert "best of 3" in roof.peak.source
        assert "unsteady" not in roof.bandwidth.source
        assert roof.bandwidth == roof.copy_bandwidth

    def test_a_fast_machine_gets_larger_matrices(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seconds = [1e-6] * 4 + [1.0] * 10
        kernels = FixedKernels(seconds, monkeypatch)

        roofline._measure(kernels, "cpu", "float32", None)

        assert kernels.sides == [256, 512, 1024]

    @pytest.mark.torch
    def test_threads_are_as_before(self) -> None:
        torch = pytest.importorskip("torch")
        before = torch.get_num_threads()

        roof = measure_roof(backend="torch", threads=1)

        assert roof.threads == 1
        assert torch.get_num_threads() == before

    def test_numpys_threads_cannot_be_chosen_and_it_says_so(self) -> None:
        roof = measure_roof(backend="numpy", threads=999)

        assert roof.peak.status == "unavailable"
        assert "cannot set the number of its threads" in roof.peak.source
        assert roof.bandwidth.status == "measured"

    def test_arrays_are_larger_than_the_cache_and_smaller_than_memory(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(roofline, "last_cache_bytes", lambda: 40 << 20)
        assert roofline._array_bytes() == 80 << 20

        monkeypatch.setattr(roofline, "last_cache_bytes", lambda: 1 << 40)
        assert roofline._array_bytes() <= 512 << 20

        monkeypatch.setitem(sys.modules, "psutil", None)
        assert roofline._array_bytes() <= 1 << 27, "as if a gigabyte were free"

    def test_without_torch_it_is_numpys_work(self) -> None:
        code = """
            import sys
            for name in ("torch", "psutil", "pynvml"): sys.modules[name] = None
            from snapviewer.model.kernels import kernels_of
            from snapviewer.model import roofline
            print(kernels_of("auto").name)
        """

        assert output_of(code) == "numpy\n"


class TestKernels:
    @pytest.mark.parametrize("backend", ["numpy", pytest.param("torch", marks=pytest.mark.torch)])
    def test_bytes_are_those_of_the_arrays(self, backend: Backend) -> None:
        if backend == "torch":
            pytest.importorskip("torch")
        kernels: Kernels = kernels_of(backend)

        with kernels.threads(None):
            copy, triad = kernels.streams(4096)
            copy.run()
            triad.run()

        assert copy.moved_bytes == 2 * 4096
        assert triad.moved_bytes == (5 if backend == "numpy" else 3) * 4096

    @PATIENT
    @given(st.integers(1, 9), st.integers(1, 5000))
    def test_threads_share_all_of_the_array(self, threads: int, size: int) -> None:
        from snapviewer.model.kernels import NumpyKernels

        kernels = NumpyKernels("float32")
        seen = np.zeros(size, int)

        def part(piece: slice) -> None:
            seen[piece] += 1

        with kernels.threads(threads):
            kernels._shared(part, size)()

        assert (seen == 1).all()

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            ({"backend": "numpy", "dtype": "bfloat16"}, "float32 and float64"),
            ({"backend": "numpy", "device": "cuda"}, "on the processor"),
            ({"backend": "jax"}, "'torch' or 'numpy'"),
            ({"backend": "numpy", "threads": 0}, "at least one thread"),
        ],
    )
    def test_what_is_not_there_is_refused_with_a_sentence(
        self, arguments: dict[str, object], complaint: str
    ) -> None:
        with pytest.raises(ValueError, match=complaint):
            measure_roof(**arguments)  # type: ignore[arg-type]

    @pytest.mark.torch
    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            ({"dtype": "int8"}, "no floating-point dtype 'int8'"),
            ({"dtype": "load"}, "no floating-point dtype 'load'"),
            ({"device": "nowhere"}, "no device 'nowhere'"),
        ],
    )
    def test_torch_refuses_with_a_sentence(self, arguments: dict[str, str], complaint: str) -> None:
        pytest.importorskip("torch")

        with pytest.raises(ValueError, match=complaint):
            kernels_of("torch", **arguments)

    def test_a_torch_that_is_not_there_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "torch", None)

        with pytest.raises(ValueError, match="PyTorch is not installed"):
            kernels_of("torch")
