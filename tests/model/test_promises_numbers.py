"""The promises M18 to M34 and M39 to M43: parameters, nodes, energy and recommendations."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer.model import ModelAnalysis, analyze_file
from snapviewer.model.compression import compression_of
from snapviewer.model.energy import Attempt
from snapviewer.model.nodes import node_details
from snapviewer.model.placement import LINE_BYTES, Placement
from snapviewer.model.quantity import Quantity
from snapviewer.model.recommend import (
    Known,
    advice_for_node,
    advice_for_parameter,
    recommend,
)
from snapviewer.model.recommend.fusion import fold_normalization
from snapviewer.report.model.formats import rendered
from snapviewer.report.model.json import to_json
from snapviewer.report.model.text import as_text
from support.pth_writer import T, write_pth
from support.torch_marks import torch_marks

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402 (after the line that skips)

pytestmark = torch_marks(":DeprecationWarning")


@pytest.fixture(scope="module")
def document(analysis: ModelAnalysis) -> dict[str, Any]:
    return to_json(analysis)


@pytest.fixture(scope="module")
def weights(network: Path) -> dict[str, Any]:
    module = torch.jit.load(str(network))
    return dict(module.state_dict())


def tensor(document: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [item for item in document["parameters"]["tensors"] if item["name"] == name]
    return dict(found)


def fields(report: str, first: str) -> dict[str, str]:
    """The fields of a block of the report, by their names."""
    body = report.partition(f"\n{first}\n")[2]
    assert body, first
    lines = []
    for line in body.splitlines():
        if not line.startswith("  "):
            break
        lines.append(line)
    pairs = [line.strip().partition(": ") for line in lines if not line.startswith("    ")]
    return {name.rstrip(":"): value for name, _, value in pairs}


# Parameters


@pytest.mark.promise("M18", "M19", "M20")
def test_statistics_are_torchs(document: dict[str, Any], weights: dict[str, Any]) -> None:
    for name in ("0.weight", "3.weight", "7.weight"):
        values = weights[name].double()
        centred = values - values.mean()
        spread = values.std(correction=0)
        counts = torch.histc(values, 64, float(values.min()), float(values.max()))
        shares = counts[counts > 0] / values.numel()
        expected = {
            "mean": values.mean(),
            "std": values.std(),
            "min": values.min(),
            "max": values.max(),
            "sparsity": (values == 0).double().mean(),
            "skewness": (centred**3).mean() / spread**3,
            "kurtosis": (centred**4).mean() / spread**4 - 3,
            "l1": values.abs().sum(),
            "l2": values.norm(),
            "frobenius": values.norm("fro"),
            "spectral_norm": torch.linalg.matrix_norm(values.flatten(1), 2),
            "entropy": -(shares * shares.log2()).sum(),
        }

        found = tensor(document, name)

        assert {key: found[key]["value"] for key in expected} == pytest.approx(
            {key: float(value) for key, value in expected.items()}, rel=1e-5, abs=1e-7
        )
        assert all(found[key]["status"] == "computed" for key in expected)
        assert sum(found["histogram"]) == values.numel()
        assert found["spectral_norm_bound"]["value"] >= found["spectral_norm"]["value"] * (1 - 1e-9)


@pytest.mark.promise("M20")
def test_the_stable_rank_is_that_of_the_singular_values(
    document: dict[str, Any], weights: dict[str, Any]
) -> None:
    squares = torch.linalg.svdvals(weights["7.weight"].double()) ** 2

    rank = tensor(document, "7.weight")["stable_rank"]["value"]

    assert rank == pytest.approx(float(squares.sum() / squares.max()), rel=1e-6)


@pytest.mark.promise("M21")
def test_pruning_and_bits_follow_from_what_is_lost(
    document: dict[str, Any], weights: dict[str, Any]
) -> None:
    found = tensor(document, "3.weight")
    values = weights["3.weight"].double().flatten()

    share = found["pruning_potential"]["value"]
    kept = values.abs().sort().values
    lost = (kept[: int(share * len(kept))] ** 2).sum() / (kept**2).sum()
    assert 0 < share < 1
    assert lost <= 0.01
    decibels = found["int8_sqnr"]["value"]
    assert found["quantization_sensitivity"]["value"] == pytest.approx((50 - decibels) / 40)


@pytest.mark.promise("M21")
def test_the_compressibility_score_is_its_formula(analysis: ModelAnalysis) -> None:
    for item in analysis.parameters.tensors:
        found = compression_of(item)
        if item.quality is None or item.stats is None or item.stats.entropy is None:
            continue
        assert found is not None
        ways = [32.0]
        best = {trip.format: trip for trip in item.quality.round_trips}
        decibels = {
            name: max(trip.sqnr_db or -math.inf, trip.channel_sqnr_db or -math.inf)
            for name, trip in best.items()
        }
        if decibels["int8"] >= 30:
            ways.append(min(8, item.stats.entropy + 2))
        if decibels["int4"] >= 20:
            ways.append(4)
        prunable = max([p.share for p in item.quality.pruning if p.lost <= 0.01], default=0)
        share = max(prunable, item.sparsity or 0)
        if share:
            ways.append(32 * (1 - share) + 1)

        assert found.bits == pytest.approx(min(ways))
        assert found.score == pytest.approx(1 - min(ways) / 32)
        assert found.ratio == pytest.approx(32 / min(ways))


@pytest.mark.promise("M21", "M40")
def test_a_tensor_of_zeros_has_no_pruning_potential(tmp_path: Path) -> None:
    class Shifted(nn.Module):  # type: ignore[misc] # its base is torch's
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(1, 64, 1, 1))

        def forward(self, x: Any) -> Any:
            return x + self.bias.view(1, 64)

    path = tmp_path / "shifted.pt"
    torch.jit.trace(Shifted(), torch.ones(1, 64)).save(str(path))

    found = analyze_file(path)

    (item,) = to_json(found)["parameters"]["tensors"]
    assert item["pruning_potential"]["value"] is None
    assert item["pruning_potential"]["source"] == "all of its elements are zero"
    assert not any(advice["topic"] == "pruning" for advice in item["recommendations"])
    assert not any(advice.topic == "pruning" for advice in found.recommendations)
    assert all(node.pruning.value is None for node in found.nodes)
    text = fields(as_text(found), "Parameter: bias")
    assert text["Pruning Potential"] == "unavailable (all of its elements are zero)"


@pytest.mark.promise("M22")
def test_alignment_is_that_of_the_place_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state.pth"
    write_pth(path, {"one": T("float32", (5, 3)), "two": T("float32", (40,))})
    content = path.read_bytes()

    for item in analyze_file(path).parameters.tensors:
        assert item.placement is not None
        address = item.placement.address
        aligned = item.placement.alignment
        assert aligned.value is not None
        assert address % aligned.value == 0
        assert aligned.value == 4096 or address % (2 * aligned.value) != 0
        assert address + item.size_bytes <= len(content)
        assert item.placement.is_contiguous


@pytest.mark.promise("M22")
@given(
    st.integers(0, 16),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.permutations(range(3)),
    st.integers(1, 40),
)
def test_locality_is_what_a_slow_walk_touches(
    start: int, sizes: list[int], order: list[int], gap: int
) -> None:
    # Strides of a block that lies in any order of dimensions, with gaps between its elements.
    shape = tuple(sizes)
    stride = [0] * len(shape)
    step = gap
    for at in (at for at in order if at < len(shape)):
        stride[at] = step
        step *= shape[at]
    place = Placement(4 * start, "a file", shape, tuple(stride), 4)

    locality = place.locality.value

    # The walk goes along the last dimensions as long as they continue each other.
    run, apart_by = 1, 0
    for size, apart in list(zip(shape, stride, strict=True))[::-1]:
        if size == 1:
            continue
        if not apart_by:
            run, apart_by = size, apart
        elif apart == apart_by * run:
            run *= size
        else:
            break
    touched = {(4 * start + 4 * apart_by * at) // LINE_BYTES for at in range(run)}
    assert locality == pytest.approx(len(touched) * LINE_BYTES / (4 * run))


@pytest.mark.promise("M22")
def test_a_transposed_tensor_is_advised_to_be_saved_contiguous() -> None:
    class Turned(nn.Module):  # type: ignore[misc] # its base is torch's
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.rand(64, 32).t())

        def forward(self, x: Any) -> Any:
            return x @ self.weight

    from snapviewer.model import TensorSpec, analyze

    found = analyze(Turned(), (TensorSpec((1, 32), "float32"),))

    (item,) = found.parameters.tensors
    assert item.placement is not None
    assert item.placement.locality.value == LINE_BYTES / 4
    assert "Save it contiguous" in [advice.title for advice in advice_for_parameter(item)]


@pytest.mark.promise("M23")
def test_a_parameters_block_has_all_fields(analysis: ModelAnalysis) -> None:
    found = fields(as_text(analysis), "Parameter: 3.weight")

    assert found["Shape"] == "[8, 8, 3, 3]"
    assert found["Elements"] == "576"
    assert found["Memory"] == "0.00 MB (float32)"
    assert found["Sparsity"] == "12.50%"
    for name in ("L1 Norm", "L2 Norm"):
        assert float(found[name]) > 0
    assert float(found["Entropy"]) > 0
    assert 0 < float(found["Compressibility Score"]) < 1
    assert "Optimization Recommendations" in found
    advice = [item.title for item in advice_for_parameter(analysis.parameters.tensors[7])]
    assert analysis.parameters.tensors[7].name == "3.weight"
    assert "Good candidate for structured pruning: 1 of 8 channels" in advice
    assert any(title.startswith("Quantize to 4 bits") for title in advice)


# Nodes


@pytest.mark.promise("M24", "M25")
def test_every_node_that_ran_has_its_time_and_rate(document: dict[str, Any]) -> None:
    nodes = document["nodes"]

    assert [node["name"] for node in nodes][:3] == [
        "Convolution_1",
        "Normalization_2",
        "Activation_3",
    ]
    for node in nodes:
        time, flops = node["time"], node["measured_flops"]
        assert time["status"] == "measured", node["name"]
        # A clock of nanoseconds resolves microseconds.
        assert 0 < time["value"] < 10
        if flops["status"] == "computed":
            assert flops["value"] == node["flops"]["value"]
        if node["flops"]["value"]:
            assert node["rate"]["value"] == pytest.approx(node["flops"]["value"] / time["value"])
    assert sum(node["time_share"]["value"] for node in nodes) == pytest.approx(100)


@pytest.mark.promise("M26", "M27")
def test_traffic_bandwidth_and_intensity_fit_together(document: dict[str, Any]) -> None:
    first = document["nodes"][0]

    assert first["memory_accesses"]["value"] == 4 * (3 * 256 + 216 + 8 + 8 * 256)
    assert first["memory_accesses"]["value"] == first["read"]["value"] + first["written"]["value"]
    assert first["bandwidth"]["value"] == pytest.approx(
        first["memory_accesses"]["value"] / first["time"]["value"]
    )
    assert first["intensity"]["value"] == pytest.approx(
        first["flops"]["value"] / first["memory_accesses"]["value"]
    )
    # The ridge of the made-up machine is at 5 FLOPs for each byte.
    bounds = {node["name"]: node["bound"] for node in document["nodes"]}
    assert bounds["Convolution_1"] == "compute-bound"
    assert bounds["Activation_3"] == "memory-bound"


@pytest.mark.promise("M28")
def test_threads_are_compared(document: dict[str, Any]) -> None:
    runs = document["inference"]["thread_runs"]

    assert runs[0]["threads"] == 1
    assert runs[0]["efficiency"]["value"] == pytest.approx(100)
    for run in runs:
        expected = 100 * run["speed_up"]["value"] / run["threads"]
        assert run["efficiency"]["value"] == pytest.approx(expected)
    use = document["system"]["during_runs"]
    assert use["program_cpus"]["status"] == "measured"


@pytest.mark.promise("M29")
def test_a_nodes_block_has_all_fields(analysis: ModelAnalysis) -> None:
    found = fields(as_text(analysis), "Node: Convolution_4 (aten::_convolution)")

    assert found["Type"] == "Convolution"
    assert found["Theoretical FLOPs"] == str(8 * 256 * 2 * 72)
    assert found["Memory Accesses"] == str(4 * (8 * 256 + 576 + 8 + 8 * 256))
    assert found["Arithmetic Intensity"].endswith(" FLOPs/byte")
    energy, unit = found["Energy per Operation"].split()
    assert float(energy) > 0
    assert unit == "nJ"
    assert 0 < float(found["Pruning Potential"].rstrip("%")) < 100
    assert 0 <= float(found["Quantization Sensitivity"].rstrip("%")) < 100
    assert "Optimization Recommendations" in found
    without = fields(as_text(analysis), "Node: Activation_5 (aten::relu)")
    assert without["Pruning Potential"] == "unavailable (it has no parameters)"


# Energy


@pytest.mark.promise("M30")
def test_each_operation_has_energy_and_power_that_say_how_they_are_known(
    document: dict[str, Any],
) -> None:
    profile, seconds = document["inference"], document["energy"]["seconds"]["value"]
    share = profile["in_nodes"]["median"]["value"] / profile["profiled"]["median"]["value"]
    for node in document["nodes"]:
        energy, power = node["energy"], node["power"]
        assert energy["unit"] == "nJ"
        assert energy["status"] == "estimated"
        assert "picojoules" in energy["source"]
        # The time of the node in the runs that the energy is of.
        time_s = node["time_share"]["value"] / 100 * share * seconds
        assert power["value"] == pytest.approx(energy["value"] / 1e9 / time_s)
        assert "mean time of the runs for energy" in power["source"]


@pytest.mark.promise("M30")
def test_a_measured_energy_is_shared_out_by_time(analysis: ModelAnalysis) -> None:
    assert analysis.profile is not None
    assert analysis.profile.energy is not None
    assert analysis.graph is not None
    measured = replace(
        analysis.profile.energy,
        energy=Quantity(2.0, "J", "measured", "RAPL of package-0"),
        attempts=(Attempt("RAPL", True, "RAPL of package-0"),),
        model=None,
        terms=(),
    )

    nodes = node_details(
        analysis.graph, analysis.parameters, replace(analysis.profile, energy=measured)
    )

    share = analysis.profile.node_share or 0
    assert 0 < share <= 1
    assert sum(node.energy.value or 0 for node in nodes) == pytest.approx(share * 2e9)
    assert all("RAPL" in node.energy.source for node in nodes)
    assert {node.energy.status for node in nodes} == {"estimated"}


@pytest.mark.promise("M30")
def test_a_file_that_was_not_run_has_the_energy_of_its_work(network: Path) -> None:
    found = analyze_file(network, has_quality=False)

    first = found.nodes[0]
    moved = first.moved_bytes
    # A convolution: 30 pJ for a FLOP, 1.3 times its bytes in memory, a cache for 12 FLOPs each.
    fetched = 4 * first.counted.flops / 12
    picojoules = 30 * first.counted.flops + 150 * 1.3 * moved + 2.5 * fetched
    assert first.energy.value == pytest.approx(picojoules / 1000)
    assert "not timed" in first.energy.source
    assert first.power.status == "unavailable"


@pytest.mark.promise("M31", "M33")
def test_efficiency_and_carbon_follow_from_the_energy(document: dict[str, Any]) -> None:
    energy = document["energy"]

    flops = document["compute"]["flops"]["value"]
    assert energy["efficiency"]["value"] == pytest.approx(flops / energy["energy"]["value"])
    assert energy["carbon"]["value"] == pytest.approx(energy["energy"]["value"] / 3.6e6 * 481)
    assert "2023" in energy["carbon"]["source"]


@pytest.mark.promise("M32")
def test_temperature_and_slowing_down_are_reported_or_say_why_not(
    document: dict[str, Any], analysis: ModelAnalysis
) -> None:
    use = document["system"]["during_runs"]

    for name in ("temperature_peak", "slowed_for_heat"):
        assert use[name]["status"] in ("measured", "unavailable")
        assert use[name]["source"]
    assert "Thermal Throttling: " in as_text(analysis)


@pytest.mark.promise("M34")
def test_the_model_of_energy_has_its_four_terms_with_their_assumptions(network: Path) -> None:
    terms = to_json(analyze_file(network, has_stats=False))["energy"]["terms"]

    assert list(terms) == ["operation", "memory", "static", "thermal"]
    for term in terms.values():
        assert term["low"] <= term["value"] <= term["high"]
        assert term["status"] == "estimated"
        assert len(term["source"]) > 40


@pytest.mark.promise("M34")
def test_a_run_has_the_terms_too_and_they_are_its_energy(document: dict[str, Any]) -> None:
    energy = document["energy"]
    if energy["energy"]["status"] == "measured":
        pytest.skip("this machine measures the energy")

    assert list(energy["terms"]) == ["operation", "memory", "static", "thermal"]
    total = sum(term["value"] for term in energy["terms"].values())
    assert total == pytest.approx(energy["energy"]["value"])


# Recommendations


@pytest.mark.promise("M39")
def test_every_node_has_advice_that_follows_from_its_own_numbers(
    analysis: ModelAnalysis,
) -> None:
    advice = {
        node.name: {item.topic: item for item in advice_for_node(node)} for node in analysis.nodes
    }

    assert "Fold into the convolution before it" in advice["Normalization_2"]["fusion"].title
    assert "8 bits" in advice["Convolution_4"]["quantization"].title
    assert "1 of its output channels" in {
        item.title.removeprefix("Remove ").removesuffix(" (structured)")
        for item in advice_for_node(analysis.nodes[3])
    }
    assert advice["Activation_5"]["layout"].title.startswith("Memory-bound operation")
    assert "below the ridge" in advice["Activation_5"]["layout"].evidence
    assert "fusion" in advice["Activation_5"]
    assert "quantization" not in advice["Activation_5"]


@pytest.mark.promise("M40", "M41", "M42", "M43")
def test_pruning_bits_fusion_and_layout_are_recommended_with_their_evidence(
    analysis: ModelAnalysis, known: Known
) -> None:
    titles = {item.title: item for item in analysis.recommendations}

    assert any("(unstructured)" in title for title in titles)
    channels = next(item for title, item in titles.items() if "(structured)" in title)
    # One of 72 elements, and one of 27.
    assert channels.title == "Remove 2 output channels of 2 tensors (structured)"
    assert channels.gain.value == 4 * (72 + 27)
    assert channels.subjects == ("3.weight", "0.weight")
    bits = next(item for item in titles.values() if item.topic == "quantization")
    assert "dB" in bits.evidence
    # Asked by itself: on a busy machine its share of the time may be too small for a line.
    (fold,) = fold_normalization(known)
    assert fold.title.startswith("Fold 1 batch normalisation")
    shares = [item.share for item in analysis.recommendations]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.promise("M40")
@pytest.mark.parametrize("size", [0.0, 1e-3], ids=["zero", "near zero"])
@pytest.mark.parametrize("dead", [1, 31, 32, 33, 40, 63])
def test_dead_channels_are_recommended_for_removal_however_many(
    dead: int, size: float, tmp_path: Path
) -> None:
    torch.manual_seed(3)
    weight = torch.randn(64, 48)
    weight[:dead] *= size / 4
    torch.save({"weight": weight}, tmp_path / "model.pt")

    analysis = analyze_file(tmp_path / "model.pt", has_quality=True)

    (parameter,) = analysis.parameters.tensors
    advice = [item.title for item in advice_for_parameter(parameter)]
    assert f"Good candidate for structured pruning: {dead} of 64 channels" in advice
    (whole,) = [item for item in analysis.recommendations if "(structured)" in item.title]
    assert whole.gain.value == dead * 48 * 4


@pytest.fixture
def known(analysis: ModelAnalysis) -> Known:
    return Known(analysis.parameters, analysis.graph, analysis.nodes, analysis.profile)


def timing(milliseconds: float, spread: float = 0.1) -> Any:
    """Made-up runs."""
    return SimpleNamespace(
        median=Quantity(milliseconds / 1e3, "s", "measured", "made up"),
        deviation=Quantity(spread / 1e3, "s", "measured", "made up"),
        runs=5,
    )


@pytest.mark.promise("M43")
@pytest.mark.parametrize(
    ("last_ms", "spread_ms", "is_advised"),
    [(6.0, 0.1, True), (9.9, 0.1, False), (12.0, 0.1, False), (6.0, 3.0, False)],
    ids=["faster", "hardly", "slower", "within the spread"],
)
def test_channels_last_is_advised_if_it_was_measured_to_be_faster(
    known: Known, last_ms: float, spread_ms: float, is_advised: bool
) -> None:
    layouts = SimpleNamespace(
        contiguous=timing(10.0, spread_ms), channels_last=timing(last_ms, spread_ms)
    )
    assert known.profile is not None

    found = recommend(replace(known, profile=replace(known.profile, layouts=layouts)))  # type: ignore[arg-type]

    layout = [item for item in found if item.topic == "layout"]
    assert bool(layout) == is_advised
    if is_advised:
        assert layout[0].gain.value == pytest.approx((10.0 - last_ms) / 1e3)
        assert layout[0].gain.status == "measured"


@pytest.mark.promise("M43")
def test_without_a_run_the_layout_is_advised_to_be_measured(network: Path) -> None:
    found = analyze_file(network, has_stats=False)

    (layout,) = [item for item in found.recommendations if item.topic == "layout"]
    assert layout.gain.status == "unavailable"
    assert "--inference" in layout.gain.source


def test_the_gain_of_fusing_is_time_where_time_was_measured(known: Known) -> None:
    (fused,) = fold_normalization(known)

    assert fused.gain.unit == "s"
    assert fused.gain.value == pytest.approx(known.nodes[1].time.value)
    assert fused.share_of == "the time of a run"


def test_a_matrix_of_low_rank_is_to_be_factored(tmp_path: Path) -> None:
    path = tmp_path / "low.safetensors"
    one, two = np.arange(1, 65, dtype="float32"), np.linspace(1, 2, 64, dtype="float32")
    from safetensors.numpy import save_file

    save_file({"low": np.outer(one, two), "full": np.eye(64, dtype="float32")}, path)

    (found,) = [item for item in analyze_file(path).recommendations if item.topic.startswith("fac")]

    assert found.subjects == ("low",)
    assert found.gain.value is not None
    assert found.gain.value >= 4 * (64 * 64 - 2 * 128)


class Uneven(nn.Module):  # type: ignore[misc] # its base is torch's
    """Layers whose sizes, strides and types keep them from full vectors, and some that do not."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 20, 3)
        self.even = nn.Conv2d(20, 32, 3)
        self.head = nn.Linear(32, 10)
        self.wide = nn.Linear(10, 16).double()

    def forward(self, x: Any) -> Any:
        y = self.head(self.even(self.conv(x)).mean((2, 3)))
        y = self.wide(torch.softmax(y, 1).double())
        return torch.relu(y.t())


@pytest.mark.promise("M54")
def test_what_keeps_operations_from_full_vectors_is_named_with_the_reason() -> None:
    from snapviewer.model import TensorSpec, analyze

    found = analyze(Uneven(), (TensorSpec((2, 3, 8, 8), "float32"),))

    advice = {
        node.name.partition("_")[0] + node.node.module: [
            (item.title, item.evidence)
            for item in advice_for_node(node)
            if item.topic == "vectorization"
        ]
        for node in found.nodes
    }
    titles = {name: [title for title, _ in shown] for name, shown in advice.items()}
    assert titles["Convolutionconv"] == ["Pad 20 output channels to 32 for full vectors"]
    assert (
        "float32: they fill vectors of 64 bytes (16 lanes) to 62 %" in advice["Convolutionconv"][0]
    )
    assert not titles["Convolutioneven"]
    assert titles["Linearhead"] == ["Pad 10 output features to 16 for full vectors"]
    # Eight float64 fill such a vector, and sixteen two.
    assert titles["Linearwide"] == ["Compute in float32 where the accuracy allows it"]
    assert titles["Activation"][0] == (
        "Make the result of the aten::t before it contiguous, or fuse the two"
    )
    (whole,) = [item for item in found.recommendations if item.topic == "vectorization"]
    partial = [node for node in found.nodes if any("Pad" in title for title in _titles(node))]
    assert whole.title == f"Pad the sizes of {len(partial)} operations to full vectors"
    assert whole.gain.status == "estimated"
    # Of the convolution, 20 of 32 lanes are used.
    first = next(node for node in partial if node.node.module == "conv")
    assert whole.gain.value is not None
    assert whole.gain.value >= first.counted.flops * 12 / 20
    for form in (as_text(found), rendered(found, ".html").decode()):
        assert "Pad the sizes of" in form
        assert "vector" in form
    assert "Pad 20 output channels to 32 for full vectors" in as_text(found)


def _titles(node: Any) -> list[str]:
    return [item.title for item in advice_for_node(node) if item.topic == "vectorization"]


@pytest.mark.promise("M54")
def test_a_weight_with_gaps_is_advised_to_be_saved_contiguous(tmp_path: Path) -> None:
    layer = nn.Linear(16, 16)
    layer.weight = nn.Parameter(torch.rand(16, 16).t())
    torch.jit.trace(layer, torch.ones(1, 16)).save(str(tmp_path / "turned.pt"))

    (node,) = analyze_file(tmp_path / "turned.pt").nodes

    (shown,) = [item for item in advice_for_node(node) if item.topic == "vectorization"]
    assert shown.title == "Save weight contiguous"
    assert "its strides are [1, 16]" in shown.evidence
