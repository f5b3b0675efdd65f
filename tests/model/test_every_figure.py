"""Every promised figure of a model, in every form, against one that NumPy or arithmetic gives.

The runs are made up, so that all their figures are known. A test is named after the promise, the
figure and the form; so is its message.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from snapviewer.model import ModelAnalysis
from snapviewer.report.model import console
from snapviewer.report.model.formats import rendered
from snapviewer.report.model.json import to_json
from snapviewer.report.model.text import as_text
from support.golden_inputs import numbers
from support.html_tables import HtmlTables
from support.profiled_models import profiled_model

NAME = "conv2.weight"
SHAPE = (8, 8, 3, 3)
NODE = "Convolution_4"
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Forms:
    """The forms of one report."""

    file: bytes
    console: list[str]
    text: list[str]
    json: dict[str, Any]
    html: HtmlTables

    def block(self, first: str) -> dict[str, str]:
        """The fields of a block of the text, by their labels; two of a line are separate."""
        start = next(at for at, line in enumerate(self.text) if line.startswith(first))
        found: dict[str, str] = {}
        for line in self.text[start + 1 :]:
            if not line.startswith("  "):
                break
            for label, value in re.findall(r"(\S[^:]*?): (.*?)(?=  \w+: |$)", line.strip()):
                found.setdefault(label, value)
        return found

    def after(self, form: str, label: str) -> list[str]:
        """What follows a label at the beginning of lines."""
        lines = [line.strip() for line in (self.console if form == "console" else self.text)]
        marked = f"{label}: "
        return [line.removeprefix(marked) for line in lines if line.startswith(marked)]


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Forms:
    folder = tmp_path_factory.mktemp("figures")
    analysis: ModelAnalysis = profiled_model(folder)
    return Forms(
        (Path(folder) / "network.pt").read_bytes(),
        list(console.lines_of(analysis)),
        as_text(analysis).splitlines(),
        to_json(analysis),
        HtmlTables(rendered(analysis, ".html").decode()),
    )


@pytest.fixture(scope="module")
def values() -> Values:
    stored = numbers(*SHAPE, seed=2, zeros=72).data
    assert stored is not None
    return np.array(struct.unpack("<576f", stored)).reshape(SHAPE)


# What NumPy says of a parameter


def moment(values: Values, power: int) -> float:
    centred = values - values.mean()
    return float((centred**power).mean() / (centred**2).mean() ** (power / 2))


def entropy(values: Values) -> float:
    counts = np.histogram(values, 64)[0]
    shares = counts[counts > 0] / values.size
    return float(-(shares * np.log2(shares)).sum())


def decibels(values: Values, largest: int) -> float:
    """The signal by the noise of a round trip to integers: the better of two ways to scale."""
    rows = values.reshape(len(values), -1)
    kept = []
    for most in (np.abs(rows).max(), np.abs(rows).max(axis=1, keepdims=True)):
        scale = np.where(most == 0, 1, most) / largest
        lost = rows - np.round(rows / scale) * scale
        kept.append(10 * np.log10((rows**2).sum() / (lost**2).sum()))
    return float(max(kept))


def prunable(values: Values) -> float:
    squares = np.sort(values.ravel() ** 2)
    tenths = [n / 10 for n in range(1, 10)]
    lost = [squares[: int(share * squares.size)].sum() / squares.sum() for share in tenths]
    return max(share for share, part in zip(tenths, lost, strict=True) if part <= 0.01)


def sensitivity(values: Values) -> float:
    return min(1.0, max(0.0, (50 - decibels(values, 127)) / 40))


def compressed_bits(values: Values) -> float:
    """The fewest bits for an element: as stored, pruned, in 8 bits, in 4 bits."""
    ways = [32.0, 32 * (1 - prunable(values)) + 1]
    if decibels(values, 127) >= 30:
        ways.append(min(8.0, entropy(values) + 2))
    if decibels(values, 7) >= 20:
        ways.append(4.0)
    return min(ways)


@dataclass(frozen=True)
class Figure:
    """A figure of a parameter: the promise, its labels in text, JSON and HTML, and its value."""

    promise: str
    label: str
    key: str
    column: str
    expected: Callable[[Values], float]
    is_share: bool = False


FIGURES = [
    Figure("M18", "Mean", "mean", "Mean", lambda v: float(v.mean())),
    Figure("M18", "Std", "std", "Std", lambda v: float(v.std(ddof=1))),
    Figure("M18", "Min", "min", "Min", lambda v: float(v.min())),
    Figure("M18", "Max", "max", "Max", lambda v: float(v.max())),
    Figure("M18", "Sparsity", "sparsity", "Sparsity", lambda v: float((v == 0).mean()), True),
    Figure("M19", "Entropy", "entropy", "Entropy", entropy),
    Figure("M19", "Skewness", "skewness", "Skewness", lambda v: moment(v, 3)),
    Figure("M19", "Kurtosis", "kurtosis", "Kurtosis", lambda v: moment(v, 4) - 3),
    Figure("M20", "L1 Norm", "l1", "L1 norm", lambda v: float(np.abs(v).sum())),
    Figure("M20", "L2 Norm", "l2", "L2 norm", lambda v: float(np.sqrt((v**2).sum()))),
    Figure(
        "M20",
        "Frobenius Norm",
        "frobenius",
        "Frobenius norm",
        lambda v: float(np.linalg.norm(v.reshape(8, -1), "fro")),
    ),
    Figure(
        "M20",
        "Spectral Norm",
        "spectral_norm",
        "Spectral norm",
        lambda v: float(np.linalg.norm(v.reshape(8, -1), 2)),
    ),
    Figure("M21", "Pruning Potential", "pruning_potential", "Prunable", prunable, True),
    Figure(
        "M21",
        "Quantization Sensitivity",
        "quantization_sensitivity",
        "Quantization sensitivity",
        sensitivity,
        True,
    ),
    Figure(
        "M21",
        "Compressibility Score",
        "compressibility",
        "Compressibility",
        lambda v: 1 - compressed_bits(v) / 32,
    ),
    Figure(
        "M21",
        "Compression Ratio",
        "compression_ratio",
        "Compression ratio",
        lambda v: 32 / compressed_bits(v),
    ),
]


def number(text: str | None, message: str) -> float:
    """The number that a text begins with; small energies in nJ."""
    found = re.match(r"(-?[\d.,]+(?:e[+-]\d+)?)(?: ([mµn])J)?", text or "")
    assert found, f"{message}: {text!r} is no number"
    nanojoules = {"m": 1e6, "µ": 1e3}.get(found[2] or "", 1)
    return float(found[1].replace(",", "")) * nanojoules


@pytest.mark.promise("M18", "M19", "M20", "M21", "M23")
@pytest.mark.parametrize("form", ["text", "json", "html"])
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: f"{figure.promise} {figure.label}")
def test_a_statistic_of_a_parameter_is_that_of_numpy(
    figure: Figure, form: str, forms: Forms, values: Values
) -> None:
    broken = f"{figure.promise}: {figure.label} in the {form}"
    expected = figure.expected(values)

    if form == "json":
        (tensor,) = [one for one in forms.json["parameters"]["tensors"] if one["name"] == NAME]
        found = tensor.get(figure.key, {}).get("value")
        assert found == pytest.approx(expected, rel=1e-5), broken
        return
    if form == "text":
        shown = forms.block(f"Parameter: {NAME}").get(figure.label)
    else:
        shown = forms.html.cell(NAME, figure.column)
    assert shown is not None, f"{broken} is missing"
    scale = 100 if figure.is_share else 1
    assert ("%" in shown) == figure.is_share, broken
    assert number(shown, broken) == pytest.approx(scale * expected, rel=1e-3), broken


@pytest.mark.promise("M19")
def test_histograms_are_those_of_numpy(forms: Forms, values: Values) -> None:
    counts = np.histogram(values, 64)[0]
    bars = [-(-8 * int(count) // int(counts.max())) for count in counts]

    (tensor,) = [one for one in forms.json["parameters"]["tensors"] if one["name"] == NAME]
    assert tensor.get("histogram") == counts.tolist(), "M19: Histogram in the json"
    text = forms.block(f"Parameter: {NAME}").get("Histogram", "")
    assert text == f"[{''.join(' ▁▂▃▄▅▆▇█'[bar] for bar in bars)}]", "M19: Histogram in the text"
    html = forms.html.cell(NAME, "Histogram")
    assert html == f"[{''.join('·▁▂▃▄▅▆▇█'[bar] for bar in bars)}]", "M19: Histogram in the html"


@pytest.mark.promise("M22")
def test_alignment_and_locality_follow_from_the_place_in_the_file(forms: Forms) -> None:
    stored = numbers(*SHAPE, seed=2, zeros=72).data
    assert stored is not None
    start = forms.file.index(stored)
    aligned = max(power for power in (2**n for n in range(13)) if start % power == 0)
    lines = {(start + byte) // 64 for byte in range(len(stored))}
    expected = {"Memory Alignment": aligned, "Cache Locality": 64 * len(lines) / len(stored)}

    (tensor,) = [one for one in forms.json["parameters"]["tensors"] if one["name"] == NAME]
    for label, value in expected.items():
        key, column = label.split()[1].lower(), label.replace(" A", " a").replace(" L", " l")
        shown = {
            "text": forms.block(f"Parameter: {NAME}").get(label),
            "html": forms.html.cell(NAME, column),
            "json": str(tensor.get(key, {}).get("value")),
        }
        for form, printed in shown.items():
            broken = f"M22: {label} in the {form}"
            factor = 1024 if "KiB" in (printed or "") else 1
            assert factor * number(printed, broken) == pytest.approx(value, rel=1e-3), broken


@pytest.mark.promise("M11", "M23")
def test_shape_elements_and_memory_of_a_parameter_are_in_every_form(forms: Forms) -> None:
    line = f"Analyzed parameter: {NAME} Shape: [8, 8, 3, 3] Sparsity: 12.50%"
    assert line in forms.console, "M11: the line of a parameter on the console"
    block = forms.block(f"Parameter: {NAME}")
    assert block["Shape"] == "[8, 8, 3, 3]", "M23: Shape in the text"
    assert block["Elements"] == "576", "M23: Elements in the text"
    assert block["Memory"] == f"{576 * 4 / 2**20:.2f} MB (float32)", "M23: Memory in the text"
    cells = [forms.html.cell(NAME, title) for title in ("Shape", "Elements", "Memory")]
    assert cells == ["8×8×3×3 float32", "576", "2.25 KiB"], "M23: sizes in the html"
    (tensor,) = [one for one in forms.json["parameters"]["tensors"] if one["name"] == NAME]
    assert (tensor["shape"], tensor["elements"], tensor["bytes"]) == ([8, 8, 3, 3], 576, 2304)
    advised = [line for line in forms.text if "Quantize to 4 bits (int4)" in line]
    assert advised, "M23: Optimization Recommendations in the text"
    assert any("Quantize to 4 bits (int4)" in row for row in rows(forms.html)), "M23: in the html"


def rows(page: HtmlTables) -> list[list[str]]:
    return [row for table in page.tables for row in table]


# A node: 8 × 16 × 16 outputs of 72 multiply-adds, in 900 of 1,552 µs

FLOPS = 2 * 8 * 256 * 72
MOVED = 4 * (8 * 256 + 576 + 8 + 8 * 256)
SECONDS = 900e-6
SHARE = 100 * 900 / 1552


@dataclass(frozen=True)
class NodeFigure:
    """A figure of a node, as texts of the report and the page, and as a number of the JSON."""

    promise: str
    label: str
    text: str
    key: str
    value: float
    column: str
    cell: str


NODE_FIGURES = [
    NodeFigure("M25", "Theoretical FLOPs", f"{FLOPS}", "flops", FLOPS, "FLOPs", f"{FLOPS:,}"),
    NodeFigure(
        "M26", "Memory Accesses", f"{MOVED}", "memory_accesses", MOVED, "Memory", "18.3 KiB"
    ),
    NodeFigure(
        "M27",
        "Arithmetic Intensity",
        f"{FLOPS / MOVED:.1f} FLOPs/byte",
        "intensity",
        FLOPS / MOVED,
        "FLOPs/byte",
        f"{FLOPS / MOVED:.1f}",
    ),
    NodeFigure("M24", "Execution Time", "900.00 us (58.0 %)", "time", SECONDS, "Time", "900 µs"),
    NodeFigure(
        "M24", "Execution Time", "900.00 us (58.0 %)", "time_share", SHARE, "Share", "58.0 %"
    ),
    NodeFigure(
        "M25",
        "Measured FLOPs",
        f"{FLOPS / 1e3:.2f} kFLOP (computed: a formula on the run's shapes) at "
        f"{FLOPS / SECONDS / 1e6:.2f} MFLOP/s",
        "measured_flops",
        FLOPS,
        "Measured FLOPs",
        "formula only",
    ),
    NodeFigure(
        "M25",
        "Measured FLOPs",
        f"{FLOPS / 1e3:.2f} kFLOP (computed: a formula on the run's shapes) at "
        f"{FLOPS / SECONDS / 1e6:.2f} MFLOP/s",
        "rate",
        FLOPS / SECONDS,
        "Rate",
        f"{FLOPS / SECONDS / 1e6:.2f} MFLOP/s",
    ),
    NodeFigure(
        "M26",
        "Memory Bandwidth",
        f"{MOVED / SECONDS / 2**20:.1f} MiB/s",
        "bandwidth",
        MOVED / SECONDS,
        "Bandwidth",
        f"{MOVED / SECONDS / 2**20:.1f} MiB/s",
    ),
]


@pytest.mark.promise("M24", "M25", "M26", "M27", "M29")
@pytest.mark.parametrize("form", ["text", "json", "html"])
@pytest.mark.parametrize(
    "figure", NODE_FIGURES, ids=lambda figure: f"{figure.promise} {figure.label}, {figure.column}"
)
def test_a_figure_of_a_node_is_that_of_its_sizes_and_its_time(
    figure: NodeFigure, form: str, forms: Forms
) -> None:
    broken = f"{figure.promise}: {figure.label} in the {form}"

    if form == "json":
        (node,) = [one for one in forms.json["nodes"] if one["name"] == NODE]
        assert node.get(figure.key, {}).get("value") == pytest.approx(figure.value), broken
    elif form == "text":
        found = forms.block(f"Node: {NODE} ").get(figure.label)
        assert found == figure.text, broken
    else:
        assert forms.html.cell(NODE, figure.column) == figure.cell, broken


@pytest.mark.promise("M28", "M29", "M30")
def test_the_other_fields_of_a_node_are_in_every_form(forms: Forms) -> None:
    block = forms.block(f"Node: {NODE} ")
    (node,) = [one for one in forms.json["nodes"] if one["name"] == NODE]

    assert block["Type"] == node["type"] == "Convolution", "M29: Type"
    energy, power = node["energy"]["value"], node["power"]["value"]
    for label, form, printed, value in (
        ("Energy per Operation", "text", block.get("Energy per Operation"), energy),
        ("Energy per Operation", "html", forms.html.cell(NODE, "Energy"), energy),
        ("Power", "text", block.get("Power"), power),
        ("Power", "html", forms.html.cell(NODE, "Power"), power),
        (
            "Parallel Efficiency",
            "text",
            block.get("Parallel Efficiency"),
            node["parallel_efficiency"]["value"],
        ),
        (
            "Parallel Efficiency",
            "html",
            forms.html.cell(NODE, "Parallel efficiency"),
            node["parallel_efficiency"]["value"],
        ),
    ):
        promise = {"Power": "M30", "Parallel Efficiency": "M28"}.get(label, "M29")
        broken = f"{promise}: {label} in the {form}"
        assert number(printed, broken) == pytest.approx(value, rel=1e-2), broken
    for label, key in (
        ("Pruning Potential", "pruning_potential"),
        ("Quantization Sensitivity", "quantization_sensitivity"),
    ):
        for form, printed in (
            ("text", block.get(label)),
            ("html", forms.html.cell(NODE, label.capitalize())),
        ):
            broken = f"M29: {label} in the {form}"
            assert number(printed, broken) == pytest.approx(node[key]["value"], rel=2e-2), broken
    assert "Optimization Recommendations:" in " ".join(forms.text), "M29"


@pytest.mark.promise("M12")
def test_the_line_of_a_node_on_the_console(forms: Forms) -> None:
    assert (
        f"Analyzed: {NODE} (aten::_convolution) FLOPs: {FLOPS} Params: 584 "
        f"Memory: {MOVED / 2**20:.2f} MB"
    ) in forms.console, "M12: the line of a node on the console"


# Runs and the machine, as made up

# Bytes in and out: two convolutions, a normalisation, two activations, a pooling, a linear layer.
TRAFFIC = 4 * (3040 + 4680 + 4128 + 2 * 4096 + 2056 + 58)
# Their FLOPs: those of 2,048 elements each, but for the linear layer.
RAN = 2 * 2048 * 27 + FLOPS + 4 * 2048 + 2 * 2048 + 2048 + 2 * 5 * 8
PLACES = "4 at reused addresses, 20 B not freed at the end"


@dataclass(frozen=True)
class RunFigure:
    """A figure of the runs: its line on the console, its place in the JSON and on the page."""

    promise: str
    label: str
    line: str
    path: str
    value: float
    row: tuple[str, str] = ("", "")
    cell: str = ""


USE = "during runs:"
RUN_FIGURES = [
    RunFigure(
        "M02",
        "Run time",
        "2.05 ms (median of 3 runs, median absolute deviation 50.00 µs, fastest 2.00 ms)",
        "inference.plain.median",
        2.05e-3,
        ("Run time (median)", "Value"),
        "2.05 ms",
    ),
    RunFigure(
        "M37",
        "Peak memory",
        "96.0 KiB besides the parameters",
        "inference.memory.peak",
        98_304,
        ("Peak memory besides the parameters", "Value"),
        "96.0 KiB",
    ),
    RunFigure(
        "M37",
        "Allocations",
        f"12, 195 KiB in total, largest 64.0 KiB; {PLACES}",
        "inference.memory.allocations",
        12,
        ("Allocations", "Value"),
        "12",
    ),
    RunFigure(
        "M25",
        "Measured FLOPs",
        f"{RAN / 1e3:.2f} kFLOP",
        "inference.measured_flops",
        RAN,
        ("Measured FLOPs", "Value"),
        f"{RAN / 1e3:.2f} kFLOP",
    ),
    RunFigure(
        "M37",
        "Memory bandwidth",
        f"{TRAFFIC / 2.05e-3 / 2**20:.1f} MiB/s",
        "inference.bandwidth",
        TRAFFIC / 2.05e-3,
        ("Memory bandwidth", "Value"),
        f"{TRAFFIC / 2.05e-3 / 2**20:.1f} MiB/s",
    ),
    RunFigure(
        "M28",
        "With 1 thread",
        "3.10 ms, fastest 3.00 ms, parallel efficiency 100 % (of the fastest)",
        "inference.thread_runs.0.time.median",
        3.1e-3,
        ("1", "Time"),
        "3.10 ms",
    ),
    RunFigure(
        "M28",
        "With 2 threads",
        "2.10 ms, fastest 2.00 ms, parallel efficiency 75 % (of the fastest)",
        "inference.thread_runs.1.efficiency",
        75,
        ("2", "Parallel efficiency"),
        "75 %",
    ),
    *(
        RunFigure(
            promise,
            label,
            shown,
            f"system.during_runs.{key}",
            value,
            (f"{USE} {label}", "Value"),
            shown,
        )
        for promise, label, shown, key, value in (
            ("M35", "cpu utilisation", "55 %", "cpu_utilisation", 55),
            ("M35", "cpu efficiency", "55 %", "cpu_efficiency", 55),
            ("M37", "memory peak", "286 MiB", "memory_peak", 3e8),
            ("M38", "disk read (this process)", "0 B", "disk_read", 0),
            ("M38", "disk written (this process)", "4.00 KiB", "disk_written", 4096),
            ("M38", "network received (whole machine)", "100 B", "network_received", 100),
            ("M38", "network sent (whole machine)", "200 B", "network_sent", 200),
        )
    ),
    *(
        RunFigure(promise, label, shown, f"system.{path}", value, (place, "Value"), shown)
        for promise, label, shown, path, value, place in (
            ("M35", "logical cpus", "2 CPUs", "cpu.logical_cpus", 2, "cpu: logical cpus"),
            ("M35", "frequency", "2,400 MHz", "cpu.frequency", 2400, "cpu: frequency"),
            ("M36", "memory used", "1.00 GiB", "gpus.0.memory_used", 2**30, "gpus 0: memory used"),
            ("M36", "temperature", "50 °C", "gpus.0.temperature", 50, "gpus 0: temperature"),
            ("M36", "power", "60 W", "gpus.0.power", 60, "gpus 0: power"),
        )
    ),
    *(
        RunFigure(promise, label, line, f"energy.{key}", value, (row, "Value"), cell)
        for promise, label, line, key, value, row, cell in (
            ("M17", "Energy Consumption", "6.250e-02 J", "energy", 0.0625, "Energy", "62.5 mJ"),
            ("M17", "Power Consumption", "31.250 W", "power", 31.25, "Power", "31.25 W"),
            (
                "M31",
                "Energy Efficiency",
                "6.400e+06 FLOPs/J",
                "efficiency",
                6.4e6,
                "Efficiency",
                "6.40 MFLOP/J",
            ),
            (
                "M33",
                "Carbon Footprint Estimate",
                "0.000006 g CO2",
                "carbon",
                0.0625 / 3.6e6 * 360,
                "Carbon",
                "6.25 µg CO2",
            ),
        )
    ),
]


@pytest.mark.promise("M02", "M17", "M25", "M28", "M31", "M33", "M35", "M36", "M37", "M38")
@pytest.mark.parametrize("form", ["console", "text", "json", "html"])
@pytest.mark.parametrize(
    "figure", RUN_FIGURES, ids=lambda figure: f"{figure.promise} {figure.label}"
)
def test_a_figure_of_the_runs_is_the_one_made_up(
    figure: RunFigure, form: str, forms: Forms
) -> None:
    broken = f"{figure.promise}: {figure.label} in the {form}"

    if form == "json":
        found: Any = forms.json
        for key in figure.path.split("."):
            found = found[int(key)] if isinstance(found, list) else found.get(key, {})
        assert found.get("value") == pytest.approx(figure.value), broken
    elif form == "html":
        assert forms.html.cell(*figure.row) == figure.cell, broken
    else:
        assert figure.line in forms.after(form, figure.label), broken


@pytest.mark.promise("M32", "M35")
def test_what_is_unavailable_says_why_in_every_form(forms: Forms) -> None:
    for promise, label, key in (
        ("M35", "cache hits", "cache_hits"),
        ("M32", "temperature peak", "temperature_peak"),
    ):
        why = forms.json["system"]["during_runs"][key]["source"]
        for form in ("console", "text"):
            found = forms.after(form, label)
            assert f"unavailable ({why})" in found, f"{promise}: {label} in the {form}"
        assert forms.html.cell(f"{USE} {label}", "Source") == why, f"{promise}: {label} in the html"
    for form in ("console", "text"):
        found = forms.after(form, "Thermal Throttling")
        assert found == ["0 times"], f"M32: Thermal Throttling in the {form}"
