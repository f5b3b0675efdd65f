"""Lines of the console that few models have: limits of long texts, doubts, and what is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from snapviewer.model import ModelAnalysis
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.report.model import console
from support.profiled_models import profiled_model

LONG = "x" * 1000


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> ModelAnalysis:
    return profiled_model(tmp_path_factory.mktemp("models"))


def lines_of(analysis: ModelAnalysis) -> list[str]:
    return list(console.lines_of(analysis))


def x_of(lines: list[str], before: str) -> int:
    """How many x follow these words, in the one line that has them."""
    (line,) = [line for line in lines if line.startswith(before) and "xxx" in line]
    return line.count("x", len(before))


def test_long_texts_of_strangers_are_cut_to_their_limits(analysis: ModelAnalysis) -> None:
    profile, graph, system = analysis.profile, analysis.graph, analysis.system
    assert profile is not None
    assert profile.patterns is not None
    assert graph is not None
    assert system is not None
    attempt = replace(analysis.energy.attempts[0], name="way", message=LONG, is_used=False)
    patterns = replace(profile.patterns, untried=(("batch", LONG),))
    changed = replace(
        analysis,
        profile=replace(profile, patterns=patterns),
        energy=replace(analysis.energy, attempts=(attempt,)),
        recommendations=(replace(analysis.recommendations[0], evidence=LONG),),
        graph=replace(graph, doubts=(LONG, "second")),
        system=replace(
            system, gpu_note=LONG, temperatures=((LONG, unavailable("°C", "no sensor")),)
        ),
    )

    lines = lines_of(changed)

    # The last of them is the ellipsis.
    assert x_of(lines, "    way: ") == 300 - 1
    assert x_of(lines, "    not compared: batch: ") == 300 - 1
    assert x_of(lines, "    estimate: ") == 200 - 1
    assert x_of(lines, "gpu note: ") == 160 - 1
    (label,) = [
        line for line in lines if line.endswith(": unavailable (no sensor)") and "xx" in line
    ]
    assert label.count("x") == 60 - 1
    start = next(at for at, line in enumerate(lines) if line.startswith("1. "))
    assert lines[start + 1].count("x") == 400 - 1


@pytest.mark.promise("M16")
def test_a_graph_with_doubts_gives_an_estimate(analysis: ModelAnalysis) -> None:
    assert analysis.graph is not None
    doubtful = replace(analysis, graph=replace(analysis.graph, doubts=("a loop ran once", "more")))

    assert "    estimate: a loop ran once" in lines_of(doubtful)
    assert not any(line.startswith("    estimate: ") for line in lines_of(analysis))


@pytest.mark.promise("M14", "M16")
def test_a_model_without_any_operation_has_empty_lists(analysis: ModelAnalysis) -> None:
    assert analysis.totals is not None
    empty = replace(
        analysis,
        architecture=replace(analysis.architecture, layers={}),
        totals=replace(
            analysis.totals,
            work=replace(analysis.totals.work, flops=0, macs=0),
            by_kind={},
        ),
    )

    lines = lines_of(empty)

    layers = lines.index("Layer Distribution:")
    assert lines[layers + 1 : layers + 3] == [
        "",
        f"Architecture Classification: {analysis.architecture.label}",
    ]
    assert lines[lines.index("FLOP Distribution by Operation Type:") + 1] == ""


@pytest.mark.promise("M16")
def test_work_that_is_not_known_is_unavailable(analysis: ModelAnalysis) -> None:
    assert analysis.totals is not None
    assert analysis.graph is not None
    nothing = replace(analysis.totals, work=replace(analysis.totals.work, flops=0, macs=0))
    doubtful = replace(analysis.graph, doubts=("its inputs are unknown",))

    no_graph = lines_of(replace(analysis, graph=None))
    no_work = lines_of(replace(analysis, totals=nothing, graph=doubtful))

    assert "Total Theoretical FLOPs: unavailable (the file has no graph)" in no_graph
    assert "Total Theoretical FLOPs: unavailable (its inputs are unknown)" in no_work
    assert not any(line.startswith("Total MACs") for line in no_work)


def test_a_batch_is_recommended_only_among_several(analysis: ModelAnalysis) -> None:
    profile = analysis.profile
    assert profile is not None
    assert profile.batches is not None
    runs = profile.batches.runs
    for count, marked in ((1, 0), (2, 1)):
        batches = replace(profile.batches, runs=runs[:count], advised=runs[0].size)
        lines = lines_of(replace(analysis, profile=replace(profile, batches=batches)))
        assert sum(line.endswith("  <- recommended") for line in lines) == marked


@pytest.mark.promise("M24")
def test_the_slowest_operations_are_ten_lines_of_80_columns(analysis: ModelAnalysis) -> None:
    profile = analysis.profile
    assert profile is not None
    node = profile.nodes[0]
    many = tuple(
        replace(
            node,
            module=f"first.{'deep.' * 10}last",
            bound="compute-bound",
            of_roof=unavailable("%", "no roof"),
        )
        for _ in range(30)
    )

    lines = lines_of(replace(analysis, profile=replace(profile, nodes=many)))

    begin = next(at for at, line in enumerate(lines) if line.startswith("Slowest operations"))
    end = lines.index("", begin)
    shown = lines[begin + 1 : end]
    assert len(shown) == 10
    assert all(line.endswith(" compute-bound") and len(line) <= 80 for line in shown)
    (name,) = {line[38:58] for line in shown}
    assert name.startswith("first.")
    assert name.endswith("last"), "20 characters, shortened in the middle"


@pytest.mark.promise("M53")
def test_a_small_saving_is_less_and_an_unknown_energy_is_not_a_number(
    analysis: ModelAnalysis,
) -> None:
    profile = analysis.profile
    assert profile is not None
    assert profile.patterns is not None
    first = profile.patterns.tried[0]
    tried = tuple(
        replace(
            first,
            energy=unavailable("J", "no counter"),
            saving=Quantity(saving, "%", "computed", "made up"),
        )
        for saving in (0.5, -0.5)
    )
    patterns = replace(profile.patterns, tried=tried)

    lines = lines_of(replace(analysis, profile=replace(profile, patterns=patterns)))

    shown = [line for line in lines if line.startswith("    ") and "(no counter)" in line]
    assert [", 0.5 % less, " in line for line in shown] == [True, False]
    assert [", 0.5 % more, " in line for line in shown] == [False, True]


@pytest.mark.promise("M17", "M33")
@pytest.mark.parametrize(
    ("grams", "shown"), [(0.0, "0.000000"), (4.9e-7, "4.900e-07"), (6e-7, "0.000001")]
)
def test_a_tiny_footprint_is_not_shown_as_zero(
    grams: float, shown: str, analysis: ModelAnalysis
) -> None:
    carbon = replace(analysis.energy.carbon, value=grams)

    lines = lines_of(replace(analysis, energy=replace(analysis.energy, carbon=carbon)))

    assert f"Carbon Footprint Estimate: {shown} g CO2" in lines
