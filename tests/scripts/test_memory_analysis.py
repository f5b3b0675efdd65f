"""`python tests/scripts/test_memory_analysis.py` checks that the analysis of memory events works.

It needs only Python, prints what it checks, and exits with 1 if something fails. pytest collects
it, too.
"""

import io
import json
import logging
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from analyze_memory import (
    add_custom_analysis,
    analyze_log_file,
    format_b_to_mb,
    generate_html_report,
    generate_report,
)

from support.events_sample import SAMPLE, without

SECTIONS = ("概述", "测试环境", "显存使用分析", "性能优化建议", "基准对比", "结论与建议")
FIGURES = ("10.58", "64.6 %", "16.37", "24.12 GB", "16.0 MiB", "6.75 GB")


def test_bytes_are_converted() -> None:
    """字节转换."""
    for size_bytes, expected in ((1048576, 1.0), (1073741824, 1024.0)):
        _equal(format_b_to_mb(size_bytes), expected)
        print(f"  ✓ {size_bytes} bytes -> {format_b_to_mb(size_bytes):.2f} MB")


def test_a_log_is_analyzed() -> None:
    """日志分析."""
    data = _analyzed(json.dumps(SAMPLE))

    _equal(len(data["raw_events"]), 11)
    _equal(list(data["peak_memory"]), ["model_loaded", "forward_pass", "inference_end"])
    _equal(len(data["incremental_memory"]), 6)
    print(f"  ✓ 解析了 {len(data['raw_events'])} 个事件")
    print(f"  ✓ 峰值显存事件: {len(data['peak_memory'])} 个")
    print(f"  ✓ 增量显存事件: {len(data['incremental_memory'])} 个")


def test_a_report_is_made() -> None:
    """报告生成."""
    data = _analyzed(json.dumps(SAMPLE))

    report = generate_report(data, "memory_events.json")
    for section in SECTIONS:
        _contains(report, f"\n## {section}\n")
    print(f"  ✓ {len(SECTIONS)} 个章节齐全")
    for figure in FIGURES:
        _contains(report, figure)
    print(f"  ✓ {len(FIGURES)} 个数值正确")
    _contains(generate_html_report(data, "memory_events.json"), "<svg")
    print("  ✓ HTML 报告包含图表")
    _equal(add_custom_analysis(report, data), report)
    print("  ✓ 没有登记的章节时报告不变")


def test_errors_are_handled() -> None:
    """错误处理."""
    logging.disable(logging.ERROR)
    try:
        _equal(analyze_log_file("no/such/memory_events.json"), {})
        print("  ✓ 文件不存在时结果为空")
        for broken in ("", "not json", '{"event": 3', "[1, 2"):
            _equal(_analyzed(broken), {})
        print("  ✓ 无效的 JSON 结果为空")
    finally:
        logging.disable(logging.NOTSET)
    partly = _analyzed(json.dumps(without("t5_loaded")))
    _contains(generate_report(partly, "memory_events.json"), "未记录")
    print("  ✓ 缺少的事件显示为未记录")


def _analyzed(content: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "memory_events.json")
        path.write_text(content, encoding="utf-8")
        return analyze_log_file(path)


def _equal(found: object, expected: object) -> None:
    # Not `assert`: that would check nothing under `python -O`.
    if found != expected:
        raise AssertionError(f"{found!r} != {expected!r}")


def _contains(text: str, part: str) -> None:
    if part not in text:
        raise AssertionError(f"{part!r} 不在其中")


def main() -> int:
    """Run all checks, and return the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    print("=== 显存分析脚本功能测试 ===\n")
    failed = []
    for check in (
        test_bytes_are_converted,
        test_a_log_is_analyzed,
        test_a_report_is_made,
        test_errors_are_handled,
    ):
        name = (check.__doc__ or "").rstrip(".")
        print(f"测试{name}功能...")
        try:
            check()
        except Exception as error:
            failed.append(name)
            place = traceback.extract_tb(error.__traceback__)[-1]
            print(f"  ✗ {type(error).__name__}: {error} ({place.name}:{place.lineno})")
            print(f"{name}测试失败!\n")
        else:
            print(f"{name}测试通过!\n")
    if failed:
        print(f"❌ 失败的测试: {'、'.join(failed)}")
        return 1
    print("🎉 所有测试通过!")
    return 0


if __name__ == "__main__":
    sys.exit(main())
