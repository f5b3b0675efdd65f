"""The promises of the memory-events report, E01 to E29, one after the other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from snapviewer.events import (
    REPORT_FORMAT,
    PdfUnavailable,
    add_custom_analysis,
    analyze_log_file,
    format_b_to_mb,
    generate_html_report,
    generate_pdf_report,
    generate_report,
    register_section,
    to_json,
    unregister_section,
)
from support.events_sample import SAMPLE, Entry, analysis_of, markdown_of, without, write_log
from support.program import Ran, run

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "scripts" / "analyze_memory.py"
SELF_TEST = ROOT / "tests" / "scripts" / "test_memory_analysis.py"
BARE = ("-I", "-S", "-B")  # no packages, whatever is installed

HEADINGS = """\
# Wan2.1-Enhanced 显存消耗分析报告
## 概述
## 测试环境
## 显存使用分析
### 1. 模型加载阶段显存消耗
### 2. 关键阶段显存峰值
### 3. 生成步骤显存变化
### 4. 显存使用模式分析
#### 4.1 模型组件分析
#### 4.2 推理阶段分析
#### 4.3 峰值对账
## 性能优化建议
### 1. 短期优化策略
### 2. 中期优化策略
### 3. 长期优化策略
## 基准对比
### 显存效率指标
### 性能评级
## 结论与建议
### 主要发现
### 优先级建议
### 部署建议
## 附录：数据说明""".splitlines()


@pytest.fixture(scope="module")
def report() -> str:
    return markdown_of(SAMPLE, compat=True)


def section(report: str, heading: str) -> str:
    """The text under a heading, with the headings below it."""
    level = heading.partition(" ")[0]
    body = report.partition(f"\n{heading}\n")[2]
    assert body, heading
    return re.split(rf"\n#{{1,{len(level)}}} ", body)[0]


def table(text: str) -> dict[str, list[str]]:
    """The rows of the first table, by their first cells."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip().strip("*") for cell in row] for row in rows]
    return {first: rest for first, *rest in cells[2:]}


def script(*arguments: str | Path, directory: Path) -> Ran:
    return run(*arguments, program=(*BARE, str(SCRIPT)), directory=directory)


# The command line


@pytest.mark.promise("E01")
def test_the_script_and_the_package_write_the_same_report(tmp_path: Path) -> None:
    log = write_log(tmp_path / "memory_events.json")

    by_script = script("--log", log.name, "--output", "a.md", directory=tmp_path)
    by_module = run("--log", log.name, "-o", "b.md", program=_MODULE, directory=tmp_path)

    assert [by_script.code, by_module.code] == [0, 0], by_script.err
    written = [(tmp_path / f"{name}.md").read_text(encoding="utf-8") for name in "ab"]
    assert written[0] == written[1] == markdown_of(SAMPLE, compat=True)


_MODULE = ("-m", "snapviewer.events")


@pytest.mark.promise("E02")
def test_a_log_is_required(tmp_path: Path) -> None:
    ran = script("--output", "report.md", directory=tmp_path)

    assert ran.code == 2
    assert "--log" in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("E03", "E04")
def test_the_three_examples_run_and_the_third_has_the_default_name(tmp_path: Path) -> None:
    for name in ("baseline", "optimized"):
        write_log(tmp_path / "profiler_logs" / name / "memory_events.json")
    examples = (
        "--log profiler_logs/baseline/memory_events.json --output baseline_analysis.md",
        "--log profiler_logs/optimized/memory_events.json --output optimized_analysis.md",
        "--log profiler_logs/baseline/memory_events.json",
    )

    codes = [script(*example.split(), directory=tmp_path).code for example in examples]

    assert codes == [0, 0, 0]
    assert {path.name for path in tmp_path.glob("*.md")} == {
        "baseline_analysis.md",
        "optimized_analysis.md",
        "memory_analysis_report.md",
    }


@pytest.mark.promise("E05")
@pytest.mark.parametrize("content", [None, "not json", "", "[]", "[1, 2", '"text"'])
def test_a_file_that_cannot_be_read_is_an_error_and_makes_no_report(
    tmp_path: Path, content: str | None
) -> None:
    log = tmp_path / "memory_events.json"
    if content is not None:
        log.write_text(content)

    ran = script("--log", log, directory=tmp_path)

    assert ran.code == 1
    assert f"无法读取或解析文件 {log}" in ran.err
    assert "Traceback" not in ran.err
    assert list(tmp_path.glob("*.md")) == []


# The input


@pytest.mark.promise("E06")
def test_a_json_array_of_events_in_bytes_is_read(tmp_path: Path) -> None:
    data = analyze_log_file(write_log(tmp_path / "log.json"))

    assert data["peak_memory"]["model_loaded"] == 24824987648 / 2**20
    assert data["incremental_memory"]["t5_loaded"] == 11362869248 / 2**20


@pytest.mark.promise("E07")
def test_every_type_of_event_is_understood_and_an_unknown_one_is_listed() -> None:
    steps: list[Entry] = [
        {"event": f"step_{n}", "incremental_memory": 2**20 * n} for n in (0, 9, 123456)
    ]
    unknown = {"event": "something_else", "incremental_memory": 5 * 2**20}

    analysis = analysis_of([*without("step_0", "step_1", "step_2"), *steps, unknown])

    phases = {phase.name: phase.peak_bytes for phase in analysis.phases}
    assert phases["init"] == 0
    assert phases["model_loaded"] == phases["forward_pass"] == 24824987648
    assert phases["inference_end"] == 25893642240
    assert [item.name for item in analysis.components] == ["t5", "vae", "dit"]
    assert analysis.steps is not None
    assert [step.number for step in analysis.steps.steps] == [0, 9, 123456]
    assert [other.name for other in analysis.others] == ["something_else"]
    report = markdown_of([*SAMPLE, unknown], compat=True)
    assert table(section(report, "### 未知事件")) == {"`something_else`": ["1", "未记录", "5.0 MB"]}


@pytest.mark.promise("E08")
def test_the_sample_has_11_events_3_peaks_and_6_increments(tmp_path: Path) -> None:
    data = analyze_log_file(write_log(tmp_path / "log.json"))

    assert len(data["raw_events"]) == 11
    assert list(data["peak_memory"]) == ["model_loaded", "forward_pass", "inference_end"]
    assert len(data["incremental_memory"]) == 6


# The functions


@pytest.mark.promise("E09")
@pytest.mark.parametrize(
    ("size_bytes", "mb"), [(1048576, 1.0), (1073741824, 1024.0), (0, 0.0), (524288, 0.5)]
)
def test_bytes_are_mb_of_1024_squared(size_bytes: int, mb: float) -> None:
    assert format_b_to_mb(size_bytes) == mb


@pytest.mark.promise("E10")
def test_analyze_log_file_returns_the_three_and_nothing_of_a_bad_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = write_log(tmp_path / "log.json")
    bad = tmp_path / "bad.json"
    bad.write_text("{")

    assert analyze_log_file(log).keys() == {"peak_memory", "incremental_memory", "raw_events"}
    assert analyze_log_file(log)["raw_events"] == list(SAMPLE)
    assert analyze_log_file(tmp_path / "missing.json") == {}
    assert analyze_log_file(bad) == {}
    assert caplog.text.count("无法读取或解析文件") == 2, "and the log says why"


@pytest.mark.promise("E11")
def test_generate_report_returns_markdown(tmp_path: Path, report: str) -> None:
    log = write_log(tmp_path / "memory_events.json")

    made = generate_report(analyze_log_file(log), "memory_events.json")

    assert made == report
    assert "10.58" in generate_report(
        {"peak_memory": {}, "incremental_memory": {"t5_loaded": 11362869248 / 2**20}}, "by hand"
    )


@pytest.fixture
def custom() -> Iterator[None]:
    def own(data: dict[str, object]) -> str:
        return f"### 自定义分析\n\n共 {len(data['raw_events'])} 个事件\n- 一点"  # type: ignore[arg-type]

    register_section(own)
    yield
    unregister_section(own)


@pytest.mark.promise("E12")
@pytest.mark.usefixtures("custom")
def test_sections_of_ones_own_are_in_every_report(tmp_path: Path, report: str) -> None:
    data = analyze_log_file(write_log(tmp_path / "log.json"))

    added = add_custom_analysis(report, data)

    assert added.startswith(report.rstrip())
    assert section(added, "### 自定义分析").split() == ["共", "11", "个事件", "-", "一点"]
    assert "### 自定义分析" in generate_report(data, "log.json")
    assert "自定义分析</h3>" in generate_html_report(data, "log.json")


@pytest.mark.promise("E12")
def test_without_such_sections_a_report_stays_as_it_is(report: str) -> None:
    assert add_custom_analysis(report, {}) == report


@pytest.mark.promise("E13")
def test_generate_html_report_returns_a_page(tmp_path: Path) -> None:
    page = generate_html_report(analyze_log_file(write_log(tmp_path / "log.json")), "log.json")

    assert page.lower().startswith("<!doctype html>")
    assert page.count("<svg") >= 3
    assert "16.0 MiB" in page


@pytest.mark.promise("E14")
def test_generate_pdf_report_returns_a_pdf(tmp_path: Path) -> None:
    data = analyze_log_file(write_log(tmp_path / "log.json"))

    try:
        made = generate_pdf_report(data, "log.json", language="en")
    except PdfUnavailable as error:
        pytest.skip(str(error))

    assert made.startswith(b"%PDF-")


@pytest.mark.promise("E15")
def test_debug_shows_what_was_read(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.json")

    ran = script("--log", log, "--debug", directory=tmp_path)

    assert ran.code == 0
    assert "解析到的事件数量: 11" in ran.out
    assert "峰值显存事件: ['model_loaded', 'forward_pass', 'inference_end']" in ran.out
    assert "增量显存事件: ['t5_loaded', 'vae_loaded', 'dit_loaded', 'step_0'" in ran.out


# The report


@pytest.mark.promise("E16", "E17", "E18", "E19", "E20", "E21", "E22", "E23")
def test_the_headings_are_the_promised_ones_in_their_order(report: str) -> None:
    assert [line for line in report.splitlines() if line.startswith("#")] == HEADINGS


@pytest.mark.promise("E20", "E21")
def test_required_words_are_there(report: str) -> None:
    for words in ("T5 编码器", "VAE 模型", "DiT 模型", "INT8 量化", "激活显存管理"):
        assert words in report


@pytest.mark.promise("E16")
def test_the_environment_has_the_configuration_the_log_and_the_model(report: str) -> None:
    environment = section(report, "## 测试环境")

    assert "**测试配置**：11 个事件（3 个峰值，6 个增量，不计零值），3 个步骤" in environment
    assert "**日志文件**：`memory_events.json`" in environment
    assert "**模型配置**：Wan2.1-Enhanced" in environment


@pytest.mark.promise("E17", "E25")
def test_the_table_of_components_has_sizes_shares_and_the_total(report: str) -> None:
    assert table(section(report, "### 1. 模型加载阶段显存消耗")) == {
        "T5 编码器": ["10.58", "64.6 %"],
        "VAE 模型": ["0.47", "2.9 %"],
        "DiT 模型": ["5.31", "32.5 %"],
        "总计": ["16.37", "100.0 %"],
    }


@pytest.mark.promise("E18", "E25")
def test_the_table_of_phases_has_the_four_peaks(report: str) -> None:
    rows = table(section(report, "### 2. 关键阶段显存峰值"))

    assert {name: cells[0] for name, cells in rows.items()} == {
        "初始化": "0.00",
        "模型加载完成": "23.12",
        "前向传播": "23.12",
        "生成过程": "24.12",
        "推理结束": "24.12",
    }


@pytest.mark.promise("E19", "E25")
def test_the_steps_have_average_range_total_and_number(report: str) -> None:
    steps = section(report, "### 3. 生成步骤显存变化")

    for line in (
        "**步数**：3 步",
        "**平均**：49.5 MB",
        "**范围**：33.5 MB – 65.5 MB",
        "**总和**：0.145 GB",
        "**每步增长**：16.0 MiB",
        "显存泄漏的特征",
    ):
        assert line in steps


@pytest.mark.promise("E20")
def test_each_component_is_looked_at_and_the_peak_is_reconciled(report: str) -> None:
    patterns = section(report, "### 4. 显存使用模式分析")

    for words in ("**T5 编码器 (10.58 GB)**", "**VAE 模型 (0.47 GB)**", "**DiT 模型 (5.31 GB)**"):
        assert words in patterns
    assert "6.75 GB (29.2 %)** 没有任何事件说明" in patterns


@pytest.mark.promise("E21")
@pytest.mark.parametrize("term", HEADINGS[12:15])
def test_every_term_has_strategies(report: str, term: str) -> None:
    assert "依据：" in section(report, term)


@pytest.mark.promise("E22", "E25")
def test_the_figures_of_efficiency_and_the_rating_are_there(report: str) -> None:
    figures = table(section(report, "### 显存效率指标"))

    assert figures["显存利用率"][0] == "99.1 %"
    assert figures["峰值稳定性"][0] == "75.6 %"
    assert "总评：**C 一般**" in section(report, "### 性能评级")


@pytest.mark.promise("E23")
def test_the_conclusion_has_findings_ordered_priorities_and_cards(report: str) -> None:
    findings = section(report, "### 主要发现")
    priorities = section(report, "### 优先级建议")

    assert "24.12 GB" in findings
    assert "16.0 MiB" in findings
    assert "6.75 GB" in findings
    labels = re.findall(r"\*\*(.)优先级\*\*", priorities)
    assert labels == sorted(labels, key="高中低".index)
    assert set(labels) == set("高中低")
    leak, *saved = re.findall(r"\((最多|50 步时) ([\d.]+) GB\)", priorities)
    assert leak == ("50 步时", "0.78"), "first, because it has no end"
    assert len(saved) == 9
    assert saved == sorted(saved, key=lambda pair: -float(pair[1]))
    assert "**推荐 GPU**：RTX 5090 (32GB) 或 A100 (40GB)" in section(report, "### 部署建议")


@pytest.mark.promise("E24")
def test_the_report_has_charts_of_components_phases_and_steps(report: str) -> None:
    assert report.count("```mermaid") == 4
    assert "    bar [10.5825, 0.474563, 5.31231]" in report
    assert "    line [33.4951, 49.499, 65.4873]" in report


@pytest.mark.promise("E26")
def test_a_missing_event_is_shown_as_missing() -> None:
    report = markdown_of(without("t5_loaded"), compat=True)

    assert table(section(report, "### 1. 模型加载阶段显存消耗"))["T5 编码器"] == ["未记录"] * 2


@pytest.mark.promise("E27")
def test_the_self_test_prints_what_is_promised(tmp_path: Path) -> None:
    ran = run(program=(*BARE, str(SELF_TEST)), directory=tmp_path)

    assert ran.code == 0, ran.out
    assert ran.out.startswith("""\
=== 显存分析脚本功能测试 ===

测试字节转换功能...
  ✓ 1048576 bytes -> 1.00 MB
  ✓ 1073741824 bytes -> 1024.00 MB
字节转换测试通过!

测试日志分析功能...
  ✓ 解析了 11 个事件
  ✓ 峰值显存事件: 3 个
  ✓ 增量显存事件: 6 个
日志分析测试通过!

测试报告生成功能...
""")
    assert "\n测试错误处理功能...\n" in ran.out
    assert ran.out.endswith("\n\n🎉 所有测试通过!\n")


@pytest.mark.promise("E27")
def test_the_self_test_fails_if_something_is_wrong(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_memory_analysis as own; "
        "own.format_b_to_mb = lambda size: size / 1e6; sys.exit(own.main())"
    )

    ran = run(SELF_TEST.parent, program=(*BARE, "-c", code), directory=tmp_path)

    assert ran.code == 1
    assert "✗ AssertionError: 1.048576 != 1.0" in ran.out
    assert "❌ 失败的测试: 字节转换\n" in ran.out
    assert "🎉" not in ran.out


@pytest.mark.promise("E28")
def test_the_script_needs_the_standard_library_only_and_no_directory(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.json")
    command = [sys.executable, *BARE, "-W", "error", str(SCRIPT), "--log", str(log), "-o", "-"]

    done = subprocess.run(command, cwd="/", capture_output=True, check=False, timeout=60)

    assert done.returncode == 0, done.stderr
    assert done.stdout.decode() == markdown_of(SAMPLE, compat=True).replace(
        "memory_events.json", str(log)
    )


@pytest.mark.promise("E28")
def test_we_state_the_python_that_we_need_and_an_older_one_is_refused(tmp_path: Path) -> None:
    code = "import runpy, sys; sys.version_info = (3, 9); runpy.run_path(sys.argv[1])"

    ran = run(SCRIPT, program=(*BARE, "-c", code), directory=tmp_path)

    assert 'requires-python = ">=3.10"' in (ROOT / "pyproject.toml").read_text()
    assert ran.code == 1
    assert ran.err == "需要 Python 3.10 或更新的版本 (Python 3.10 or newer is needed)\n"


@pytest.mark.promise("E29")
def test_reports_say_the_version_of_their_format(report: str) -> None:
    assert f"报告格式 {REPORT_FORMAT}。" in report
    assert json.loads(json.dumps(to_json(analysis_of(SAMPLE))))["report_format"] == REPORT_FORMAT
