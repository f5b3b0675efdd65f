"""Statistics on demand are those of torch, of live tensors and of files, and are drawn."""

from __future__ import annotations

import math
import re
from pathlib import Path
from threading import Event
from typing import Any

import pytest

pytest.importorskip("rich", reason="Textual is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402 (after the line that skips)

from snapviewer import CancelledError, read_checkpoint  # noqa: E402
from snapviewer.explorer.app.panels import statistics  # noqa: E402
from snapviewer.explorer.checkpoint import tree_of_checkpoint  # noqa: E402
from snapviewer.explorer.explored_model import ExploredModel, module_finder  # noqa: E402
from snapviewer.explorer.live import tree_of_module  # noqa: E402
from snapviewer.explorer.measuring import Measurement, measure  # noqa: E402
from snapviewer.model.parameters import bytes_of  # noqa: E402
from support.panel_text import WIDTHS, lines_of, text_of  # noqa: E402 (it needs rich)

pytestmark = pytest.mark.torch

RELATIVE = 1e-9


def live(module: Any) -> ExploredModel:
    return ExploredModel(tree_of_module(module), module_finder(module))


def holding(tensor: Any) -> ExploredModel:
    module = nn.Module()
    module.register_buffer("x", tensor)
    return live(module)


def single(tensor: Any) -> Measurement:
    explored = holding(tensor)
    return measure(explored, explored.tree.root.tensors[0])


def saved(state: Any, path: Path) -> ExploredModel:
    torch.save(state, path)
    kept = read_checkpoint(path)
    return ExploredModel(tree_of_checkpoint(kept), checkpoint=kept)


@pytest.fixture(scope="module")
def net() -> nn.Module:
    torch.manual_seed(1)
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 8), nn.Linear(8, 8))
    module[3].weight = module[2].weight
    return module


def agrees(measurement: Measurement, values: Any) -> None:
    """Compare with what torch finds in all elements together."""
    values = values.double()
    finite = values[values.isfinite()]
    summary = measurement.summary
    assert summary.count == values.numel()
    assert summary.mean == pytest.approx(finite.mean().item(), rel=RELATIVE, abs=1e-15)
    assert summary.std == pytest.approx(finite.std().item(), rel=RELATIVE)
    assert (summary.min, summary.max) == (finite.min().item(), finite.max().item())
    assert summary.zeros == int((values == 0).sum())
    assert summary.nan == int(values.isnan().sum())
    assert summary.inf == int(values.isinf().sum())


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "int64", "uint8"])
def test_a_live_tensor_is_measured_as_torch_does(dtype: str) -> None:
    made = torch.Generator().manual_seed(2)
    values = (50 * torch.rand(40, 7, generator=made)).to(getattr(torch, dtype))

    agrees(single(values), values)


def test_what_is_not_finite_is_counted_and_left_out() -> None:
    values = torch.tensor([1.0, 2.0, 4.0, math.nan, math.inf, -math.inf, 0.0, -0.0])

    measurement = single(values)

    agrees(measurement, values)
    assert (measurement.summary.nan, measurement.summary.inf) == (1, 2)


def test_all_tensors_of_a_module_are_measured_together_and_tied_ones_once(net: Any) -> None:
    explored = live(net)
    learned = torch.cat([each.detach().flatten() for each in net.parameters()])

    measurement = measure(explored, explored.tree.root)

    agrees(measurement, learned)
    paths = [each.entry.path for each in measurement.tensors]
    assert len(paths) == len(set(paths)) == 10
    assert "3.weight" not in paths


def test_buffers_are_summed_up_where_there_is_nothing_else() -> None:
    explored = holding(torch.arange(4.0))

    measurement = measure(explored, explored.tree.root)

    agrees(measurement, torch.arange(4.0))
    assert not measurement.is_of_parameters


def test_a_file_is_measured_as_the_live_model_is(net: Any, tmp_path: Path) -> None:
    explored = saved(net.state_dict(), tmp_path / "m.pth")

    of_file = measure(explored, explored.tree.root)

    assert of_file.summary == measure(live(net), live(net).tree.root).summary


def test_tensors_that_lie_otherwise_are_not_copied_and_measured_the_same() -> None:
    values = torch.randn(4, 3, 5, 6).to(memory_format=torch.channels_last)

    data = bytes_of(values, is_any_order=True)

    assert data.ctypes.data == values.data_ptr()
    agrees(single(values), values)


def test_a_single_tensor_is_also_tried_in_fewer_bits(tmp_path: Path) -> None:
    values = torch.randn(16, 32)
    scale = values.abs().max() / 127
    lost = values - (values / scale).round() * scale
    expected = 10 * math.log10((values**2).sum() / (lost**2).sum())

    of_live = single(values).tensors[0].quality
    explored = saved({"x": values}, tmp_path / "m.pth")
    of_file = measure(explored, explored.tree.root.tensors[0]).tensors[0].quality

    for quality in (of_live, of_file):
        assert quality is not None
        assert quality.round_trips[0].sqnr_db == pytest.approx(expected, abs=1e-3)


class Expanded(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("x", torch.zeros(1).expand(10**12))


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (nn.Linear(2, 2, device="meta"), "it has no elements (device meta)"),
        (nn.LazyLinear(2), "it is lazy and gets its elements in the first run"),
        (Expanded(), "its elements are repeated (an expanded view)"),
    ],
    ids=["meta", "lazy", "expanded"],
)
@pytest.mark.filterwarnings("ignore:Lazy modules:UserWarning")
def test_what_has_no_elements_says_why(module: Any, reason: str) -> None:
    explored = live(module)

    measurement = measure(explored, explored.tree.root)
    text = text_of(statistics.content(measurement, 100))

    assert {each.reason for each in measurement.tensors} == {reason}
    assert reason in text


class FakeTensor(torch.Tensor):  # type: ignore[misc, name-defined]
    """Called as torch calls those without elements; making a real one takes seconds of imports."""


def test_fake_and_sparse_tensors_say_why() -> None:
    of_fake = single(torch.zeros(3).as_subclass(FakeTensor))
    of_sparse = single(torch.eye(3).to_sparse())

    assert of_fake.tensors[0].reason == "it is a fake tensor without elements"
    assert "layout sparse_coo" in of_sparse.tensors[0].reason


def test_what_a_file_does_not_contain_says_why(tmp_path: Path) -> None:
    explored = saved({"a": torch.zeros(3), "b": torch.zeros(3, device="meta")}, tmp_path / "m.pth")

    measurement = measure(explored, explored.tree.root)
    text = text_of(statistics.content(measurement, 100))

    known, unknown = measurement.tensors
    assert known.stats is not None
    assert unknown.stats is None
    assert unknown.reason
    assert f"b     {unknown.reason}" in text


def test_measuring_reports_its_progress_in_bytes(net: Any) -> None:
    explored = live(net)
    reports: list[tuple[int, int]] = []

    measure(explored, explored.tree.root, progress=lambda *done: reports.append(done))

    total = sum(each.numel() * each.element_size() for each in (*net.parameters(), *net.buffers()))
    assert reports[-1] == (total, total)
    assert reports == sorted(reports)


def test_measuring_can_be_cancelled(net: Any) -> None:
    explored, cancel = live(net), Event()
    cancel.set()

    with pytest.raises(CancelledError):
        measure(explored, explored.tree.root, cancel=cancel)


def test_the_histogram_has_the_shape_of_the_numbers() -> None:
    values = torch.cat([torch.full((800,), -1.0), torch.full((400,), 0.0), torch.full((100,), 1.0)])

    lines = lines_of(statistics.histogram(single(values).tensors[0].stats, 40), 40)  # type: ignore[arg-type]

    assert [line[:1] for line in lines] == ["█", "█", "█", "█", "█", "█", "−"]
    assert [line[16:17] for line in lines[:6]] == ["", "", "", "█", "█", "█"]
    assert lines[5][31] == "▆"
    assert lines[6] == "−1              0              1"


@pytest.mark.parametrize("width", WIDTHS)
def test_what_was_measured_is_drawn_at_every_width(net: Any, width: int) -> None:
    explored = live(net)
    weight = explored.index.nodes["0"].tensors[0]

    whole = lines_of(statistics.content(measure(explored, explored.tree.root), width), width)
    one = "\n".join(lines_of(statistics.content(measure(explored, weight), width), width))

    assert "elements     320 in 7 tensors" in whole
    assert re.search(r"Distribution\n.*█", one, re.DOTALL)
    assert re.search(r"int8 +\d\d\.\d dB +\d\d\.\d dB", one)
    assert re.search(r"set to 0 +below +energy lost\n +10 % ", one)


def test_tensors_that_are_not_finite_are_named_first() -> None:
    module = nn.Linear(2, 2)
    with torch.no_grad():
        module.bias[0] = math.nan
    explored = live(module)

    text = text_of(statistics.content(measure(explored, explored.tree.root), 100))

    assert re.search(r"NaN or Inf\nname\nbias +1 NaN, 0 Inf\n", text)
    assert re.search(r"NaN +1  16\.7 %", text)


def test_of_very_many_tensors_the_first_are_drawn() -> None:
    module = nn.ParameterList([torch.ones(1) for _ in range(1_000)])
    explored = live(module)

    text = text_of(statistics.content(measure(explored, explored.tree.root), 60), 60)

    assert "elements     1,000 in 1,000 tensors" in text
    assert "… 980 more" in text
