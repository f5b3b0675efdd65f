"""Markdown: it reads well as it is, and no text is taken for more than a text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer.report import blocks as b
from snapviewer.report.blocks import code, strong, text
from snapviewer.report.writers.lettering import columns
from snapviewer.report.writers.markdown import as_markdown
from snapviewer.report.writers.mermaid import MAX_POINTS
from support.documents import HOSTILE, hostile_report, long_report, memory_report

NUMBER = r"-?\d+(?:\.\d+)?"
STRING = r'"[^"`<>#;\[\]{}]+"'
# The grammar of Mermaid's charts as far as we use it.
CHART_LINES = [
    r"xychart-beta( horizontal)?",
    rf"title {STRING}",
    rf"x-axis ({STRING} )?(\[{STRING}(, {STRING})*\]|{NUMBER} --> {NUMBER})",
    rf"y-axis {STRING} {NUMBER} --> {NUMBER}",
    rf"(bar|line) \[{NUMBER}(, {NUMBER})*\]",
]


def markdown(*blocks: b.Block) -> str:
    """What blocks become, without the title of the document."""
    return (
        as_markdown(b.Document("title", "en", blocks, "")).removeprefix("# title\n\n").rstrip("\n")
    )


def fences(source: str) -> list[list[str]]:
    """The lines of each chart."""
    found = re.findall(r"^```mermaid\n(.*?)^```$", source, re.MULTILINE | re.DOTALL)
    return [[line.strip() for line in fence.splitlines()] for fence in found]


def without_setup(lines: list[str]) -> list[str]:
    """The lines of a chart after the first, which has its size and colours."""
    setup = json.loads(lines[0].removeprefix("%%{init: ").removesuffix("}%%"))
    assert set(setup) == {"xyChart", "themeVariables"}
    return lines[1:]


def assert_is_chart(lines: list[str]) -> None:
    for number, line in enumerate(without_setup(lines)):
        pattern = CHART_LINES[min(number, len(CHART_LINES) - 1)]
        assert re.fullmatch(pattern, line), line


def test_a_report_has_its_exact_headings_and_numbers() -> None:
    lines = as_markdown(memory_report()).splitlines()

    assert lines[0] == "# 显存分析报告"
    assert "## 显存使用分析" in lines
    assert "### 模型加载阶段显存消耗" in lines
    assert "| T5 编码器 |     10.58 |      64.6 % |" in lines
    assert "| **合计**  | **16.38** | **100.0 %** |" in lines
    assert lines[-1] == "由 snapviewer 生成 · 报告格式 1"


def test_columns_are_aligned_where_chinese_letters_are_twice_as_wide() -> None:
    table = b.Table(
        (b.Column("组件"), b.Column("GB", is_number=True)),
        ((text("T5 编码器"), text("10.58")), (text("VAE"), text("0.5"))),
    )

    lines = markdown(table).splitlines()

    assert lines[1] == "| --------- | ----: |"
    assert len({columns(line) for line in lines}) == 1


def test_a_row_with_missing_or_spare_cells_has_as_many_as_the_table() -> None:
    table = b.Table(
        (b.Column("a"), b.Column("b")), ((text("1"),), (text("1"), text("2"), text("3")))
    )

    assert [line.count("|") for line in markdown(table).splitlines()] == [3, 3, 3, 3]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("a | b", r"a \| b"),
        ("`code`", r"\`code\`"),
        ("<b>", r"\<b>"),
        ("*a*", r"\*a\*"),
        ("_a_ step_0", r"\_a\_ step_0"),
        ("[a](b)", r"\[a\](b)"),
        ("a\n\nb", "a b"),
        ("&lt; & &#64;", r"\&lt; & \&#64;"),
        ("~~no~~ $x$", r"\~\~no\~\~ \$x\$"),
        ("https://a.b www.c.d", r"https\://a.b www\.c.d"),
        ("# a", r"\# a"),
        ("- a", r"\- a"),
        ("1. a", r"1\. a"),
        ("1.5 GB", "1.5 GB"),
        ("> a", r"\> a"),
        ("a\x1b\ud800\u202eb", "a???b"),
        ("64.6 % (10.58 GB)", "64.6 % (10.58 GB)"),
    ],
)
def test_what_markdown_would_obey_is_escaped_and_nothing_else(words: str, expected: str) -> None:
    assert markdown(b.Paragraph(text(words))) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("step_0", "`step_0`"),
        ("a`b", "``a`b``"),
        ("`", "`` ` ``"),
        ("a|b", "`a|b`"),
        ("", ""),
    ],
)
def test_code_is_code_whatever_it_holds(words: str, expected: str) -> None:
    assert markdown(b.Paragraph(text("x ", code(words)))) == f"x {expected}".strip()


def test_a_pipe_in_the_code_of_a_cell_does_not_end_the_cell() -> None:
    table = b.Table((b.Column("a"),), ((text(code(r"x\|*y*")),),))

    assert "<code>x&#92;&#124;&#42;y&#42;</code>" in markdown(table)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((strong("显存：")), "**显存**：峰"),
        ((strong("显存")), "**显存**峰"),
        ((strong("（显存）")), "<strong>（显存）</strong>峰"),
        ((strong("a*b")), r"**a\*b**峰"),
    ],
)
def test_bold_words_are_bold_next_to_chinese_ones(parts: object, expected: str) -> None:
    assert markdown(b.Paragraph(text(parts, "峰"))) == expected  # type: ignore[arg-type]


def test_neighbours_of_one_style_become_one() -> None:
    assert (
        markdown(b.Paragraph(text(strong("a"), strong("b"), code("c"), code("d")))) == "**ab**`cd`"
    )


def test_tones_are_marked_and_lists_numbered() -> None:
    source = markdown(
        b.Paragraph(text("leak"), "warning"), b.Listing((text("a"), text("b")), is_ordered=True)
    )

    assert source == "> ⚠️ leak\n\n1. a\n2. b"


def test_bars_are_a_chart_of_mermaid() -> None:
    chart = b.BarChart(
        "各组件", "GB", (b.Bar("T5", 10.58, "10.58 GB"), b.Bar("DiT", 5.31, "5.31 GB"))
    )

    fence, setup, *lines = markdown(chart).splitlines()

    assert fence == "```mermaid"
    assert '"height": 158' in setup
    assert lines == [
        "xychart-beta horizontal",
        '    title "各组件"',
        '    x-axis ["T5", "DiT"]',
        '    y-axis "GB" 0 --> 12',
        "    bar [10.58, 5.31]",
        "```",
    ]


def test_several_lines_are_named_below_the_chart() -> None:
    points = tuple((float(x), 2.0 * x) for x in range(10))
    trend = b.Series("trend", ((0.0, 0.0), (9.0, 18.0)), is_trend=True)

    source = markdown(b.LineChart("steps", "step", "MiB", (b.Series("a_b", points), trend)))

    assert source.endswith("```\n\n1\\. a_b · 2. trend")
    assert source.count("line [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]") == 2


def test_lines_that_do_not_begin_and_end_together_get_a_chart_each() -> None:
    some = (b.Series("a", ((0.0, 1.0), (1.0, 2.0))), b.Series("b", ((1.0, 1.0), (5.0, 2.0))))

    assert [lines[2] for lines in fences(markdown(b.LineChart("t", "x", "y", some)))] == [
        'title "t: a"',
        'title "t: b"',
    ]


def test_many_points_are_thinned_out_and_the_peak_stays() -> None:
    points = tuple((float(x), 99.0 if x == 217 else 1.0) for x in range(400))

    (lines,) = fences(markdown(b.LineChart("t", "x", "y", (b.Series("a", points),))))
    values = lines[-1].removeprefix("line [").removesuffix("]").split(", ")

    assert len(values) <= MAX_POINTS
    assert values.count("99") == 1
    assert lines[3] == 'x-axis "x" 0 --> 399'


@given(st.lists(st.tuples(st.floats(), st.floats()), max_size=100))
def test_any_points_make_a_chart_that_mermaid_reads(points: list[tuple[float, float]]) -> None:
    chart = b.LineChart(
        "t", "x", "y", (b.Series("a", tuple(points)), b.Series("b", tuple(points[::2])))
    )

    for lines in fences(markdown(chart)):
        assert_is_chart(lines)


@given(st.lists(st.tuples(st.text(max_size=20), st.floats(), st.text(max_size=5)), max_size=40))
def test_any_bars_make_a_chart_that_mermaid_reads(bars: list[tuple[str, float, str]]) -> None:
    chart = b.BarChart(HOSTILE, HOSTILE, tuple(b.Bar(*bar) for bar in bars))

    for lines in fences(markdown(chart)):
        assert_is_chart(lines)
        (axis,) = (line for line in lines if line.startswith("x-axis"))
        names = re.findall(STRING, axis)
        assert len(set(names)) == len(bars), "Mermaid draws equal names as one bar"


@pytest.mark.parametrize("make", [memory_report, long_report, hostile_report])
def test_mermaid_reads_the_charts_of_reports(make: Callable[[], b.Document]) -> None:
    source = as_markdown(make())

    assert fences(source)
    for lines in fences(source):
        assert_is_chart(lines)


def test_hostile_texts_stay_texts() -> None:
    source = as_markdown(hostile_report())
    outside = re.sub(r"^```mermaid\n.*?^```$", "", source, flags=re.MULTILINE | re.DOTALL)
    # Without code and what is escaped, nothing that means something is left.
    bare = re.sub(r"\\.", "", re.sub(r"(?<!\\)(`+)(?!`).*?(?<!`)\1(?!`)", "", outside))

    source.encode()
    assert "\x1b" not in source
    assert not re.search(r"<(?!/?(strong|code)>)", bare)
    assert "](" not in bare
    assert len(source) < 50_000, "a name of megabytes is cut"
    headings = [line for line in outside.splitlines() if line.startswith("#")]
    assert len(headings) == 6


@given(st.text())
def test_any_text_stays_on_its_line(words: str) -> None:
    source = markdown(b.Heading(2, words), b.Paragraph(text(words, strong(words), code(words))))

    assert len(source.splitlines()) <= 3
    source.encode()
