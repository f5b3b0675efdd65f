"""The report on one log: its chapters in order, with the overview and the appendix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from snapviewer.events.analysis import Analysis
from snapviewer.events.log import Oddity
from snapviewer.report import blocks
from snapviewer.report.blocks import code, text

from .advice import advice
from .benchmark import benchmark
from .comparison import against_baseline
from .conclusion import conclusion, findings
from .usage import usage
from .words import MAX_LISTED, Words, columns, row, words_for


def report_on(
    analysis: Analysis,
    *,
    language: blocks.Language = "zh",
    baseline: Analysis | None = None,
    compat: bool = False,
) -> blocks.Document:
    """Return the report on one log.

    Args:
        analysis: Of the log.
        language: `zh` or `en`.
        baseline: What it is compared with, if anything.
        compat: Whether it is the report that `analyze_memory.py` promises: with sizes in GB, and
            about Wan2.1-Enhanced if the log names no model.
    """
    say = words_for([analysis], language, compat=compat)
    chapters: list[blocks.Block] = [
        *_overview(analysis, say, baseline),
        *usage(analysis, say),
        *advice(analysis, say),
        *benchmark(analysis, say),
        *(against_baseline(baseline, analysis, say) if baseline else ()),
        *conclusion(analysis, say, baseline),
        *_appendix(analysis, say),
    ]
    return blocks.Document(say.title(analysis), language, tuple(chapters), say.colophon)


def _overview(analysis: Analysis, say: Words, baseline: Analysis | None) -> Iterator[blocks.Block]:
    yield say.heading(2, "概述", "Overview")
    model = say.model(analysis)
    of_model = say(f"对 {model} 的", f" of {model}") if model else say("对", "")
    count = f"{analysis.event_count:,}"
    yield blocks.Paragraph(
        say.around(
            code(analysis.path),
            f"本报告基于 {{}} 中的 {count} 个事件，{of_model}显存使用情况进行分析：",
            f"This report is about {{}}, a log of {count} memory events{of_model}:",
        )
    )
    yield blocks.Listing(tuple(findings(analysis, say, baseline)))
    if analysis.environment.source == "process":
        yield say.paragraph(
            "注意：记录时没有 CUDA，所有数值都是进程的常驻集，不是 GPU 上的。",
            "Note: there was no CUDA when this was recorded. All numbers are the resident memory "
            "of the process, not GPU memory.",
            "warning",
        )
    yield say.heading(2, "测试环境", "Test environment")
    yield blocks.Listing(tuple(_environment(analysis, say)))


def _environment(analysis: Analysis, say: Words) -> Iterator[blocks.Text]:
    environment = analysis.environment
    yield say.labelled(say("日志文件", "Log"), code(analysis.path))
    events = say(
        f"{analysis.event_count:,} 个事件（{analysis.peak_event_count:,} 个峰值，"
        f"{analysis.incremental_event_count:,} 个增量，不计零值）",
        f"{analysis.event_count:,} events ({analysis.peak_event_count:,} with a peak and "
        f"{analysis.incremental_event_count:,} with an increment other than 0)",
    )
    if analysis.steps:
        events += say("，", ", ") + say.count(len(analysis.steps.levels), "个步骤", "step")
    yield say.labelled(say("测试配置", "Run"), events)
    first, last = environment.first_s, environment.last_s
    time = say.missing
    if first is not None and last is not None:
        time = f"{say.time(first)} – {say.time(last)} ({say.seconds(last - first)})"
    yield say.labelled(say("测试时间", "Time"), time)
    models = [name for name in (say.model(analysis), *environment.model_names) if name]
    components = [say.component(item.name) for item in analysis.components if item.times]
    yield say.labelled(
        say("模型配置", "Model"),
        models[0] if models else say.missing,
        say("；组件：", "; components: "),
        say.listed(components[:20]) or say.missing,
    )
    yield say.labelled(
        say("内存来源", "Memory"),
        say("GPU 显存", "GPU memory")
        if environment.source == "device"
        else say("进程内存（没有 CUDA）", "process memory (no CUDA)"),
    )
    for key, value in environment.facts:
        if key not in _SHOWN_ELSEWHERE:
            shown = value
            if key == "device_total_memory":
                with suppress(ValueError, OverflowError):
                    shown = say.size(float(value))
            yield say.labelled(say(*_FACTS.get(key, (key, key))), shown)


_FACTS: Mapping[str, tuple[str, str]] = {
    "device_name": ("设备", "Device"),
    "device_total_memory": ("设备显存", "Device memory"),
    "torch_version": ("PyTorch", "PyTorch"),
    "python_version": ("Python", "Python"),
    "recorder": ("记录器", "Recorder"),
    "peak_since": ("峰值起算于", "Peaks since"),
}
_SHOWN_ELSEWHERE = ("memory_source", "steps_are", "memory_allocated")


def _appendix(analysis: Analysis, say: Words) -> Iterator[blocks.Block]:
    yield say.heading(2, "附录：数据说明", "Appendix: the data")
    units = (
        say(
            "1 GB = 1 GiB = 1024³ 字节，1 MB = 1 MiB = 1024² 字节",
            "1 GB = 1 GiB = 1024³ bytes, 1 MB = 1 MiB = 1024² bytes",
        )
        if say.compat
        else say(
            "1 GiB = 1024³ 字节，1 MiB = 1024² 字节", "1 GiB = 1024³ bytes, 1 MiB = 1024² bytes"
        )
    )
    yield say.paragraph(
        f"单位：{units}。没有记录的数值显示为“未记录”，从不当作 0。",
        f'Units: {units}. Values that were not recorded are shown as "not recorded", never as 0.',
    )
    if analysis.others:
        yield say.heading(3, "未知事件", "Unknown events")
        yield blocks.Table(
            columns(
                say("事件", "Event"),
                f"#{say('次数', 'Count')}",
                f"#{say('最高峰值', 'Highest peak')}",
                f"#{say('最大增量', 'Largest increment')}",
            ),
            tuple(
                row(
                    code(other.name),
                    f"{other.times:,}",
                    say.size(other.peak_bytes),
                    say.size(other.incremental_bytes),
                )
                for other in analysis.others[:MAX_LISTED]
            ),
        )
        yield from say.more(analysis.other_count - MAX_LISTED)
    if analysis.odd_count:
        yield say.heading(3, "不合格式的内容", "Invalid entries")
        yield blocks.Listing(
            tuple(text(_oddity(item, say)) for item in analysis.oddities[:MAX_LISTED])
        )
        yield from say.more(analysis.odd_count - MAX_LISTED)


def _oddity(item: Oddity, say: Words) -> str:
    where = say(f"第 {item.place:,} 项：", f"entry {item.place:,}: ")
    if item.kind == "torn-line":
        return where + say(
            f"一行没有写完（{item.shown}），已跳过", f"an incomplete line ({item.shown}), skipped"
        )
    if item.kind == "not-an-event":
        return where + say(
            f"不是事件（{item.shown}），已跳过", f"not an event ({item.shown}), skipped"
        )
    return where + say(
        f"{item.field} 的值无效（{item.shown}），视为未记录",
        f"{item.field} is invalid ({item.shown}), taken as not recorded",
    )
