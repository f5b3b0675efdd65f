"""The first chapters: what the report is about, in a few lines, and where the numbers come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from snapviewer.events.analysis import Analysis
from snapviewer.events.names import is_component, normal
from snapviewer.report.blocks import Block, Heading, Listing, Paragraph, Text, code, text

from .conclusion import findings
from .words import Words

# Who the logs of this format come from, if they do not say.
_USUAL_MODEL = "Wan2.1-Enhanced"


def model_of(analysis: Analysis) -> str:
    """Return the name of the model that a log is about, or nothing if it is not known."""
    environment = analysis.environment
    names = environment.model_names
    if environment.is_recorded_here:
        return names[0] if names else ""
    # Several names, or that of a component, are of what was loaded, not of the whole.
    is_whole = len(names) == 1 and not is_component(normal(names[0]))
    return names[0] if is_whole else _USUAL_MODEL


def title_of(analysis: Analysis, say: Words) -> str:
    """Return the title of a report."""
    what = (
        say("显存消耗分析报告", "GPU memory report")
        if analysis.environment.source == "device"
        else say("内存消耗分析报告（进程）", "memory report (of the process)")
    )
    return f"{model_of(analysis)} {what}".strip()


def overview(analysis: Analysis, say: Words, baseline: Analysis | None = None) -> Iterator[Block]:
    """Yield the chapters 概述 and 测试环境."""
    yield Heading(2, say("概述", "Overview"))
    model = model_of(analysis)
    of_model = say(f"对 {model} 的", f" of {model}") if model else say("对", "")
    yield Paragraph(
        text(
            say("本报告基于 ", "This report is on "),
            code(analysis.path),
            say(
                f" 中的 {analysis.event_count:,} 个事件，{of_model}显存使用情况进行分析：",
                f", a log of {analysis.event_count:,} memory events{of_model}:",
            ),
        )
    )
    yield Listing(tuple(findings(analysis, say, baseline)))
    if analysis.environment.source == "process":
        yield Paragraph(
            text(
                say(
                    "注意：记录时没有 CUDA，所有数值都是进程的常驻集，不是 GPU 上的。",
                    "Note: there was no CUDA when this was recorded. All numbers are memory of the "
                    "process (its resident set), not of a GPU.",
                )
            ),
            "warning",
        )
    yield Heading(2, say("测试环境", "Test environment"))
    yield Listing(tuple(_environment(analysis, say)))


def _environment(analysis: Analysis, say: Words) -> Iterator[Text]:
    environment = analysis.environment
    steps = analysis.steps
    yield say.labelled(say("日志文件", "Log"), code(analysis.path))
    recorded = say(
        f"{analysis.event_count:,} 个事件（{analysis.peak_event_count:,} 个峰值，"
        f"{analysis.incremental_event_count:,} 个增量，不计零值）",
        f"{analysis.event_count:,} events ({analysis.peak_event_count:,} with a peak, "
        f"{analysis.incremental_event_count:,} with an increment, not counting zeros)",
    )
    if steps:
        recorded += say("，", ", ") + say.count(len(steps.levels), "个步骤", "step")
    yield say.labelled(say("测试配置", "Run"), recorded)
    first, last = environment.first_s, environment.last_s
    if first is None or last is None:
        yield say.labelled(say("测试时间", "Time"), say.missing)
    else:
        yield say.labelled(
            say("测试时间", "Time"),
            f"{say.moment(first)} – {say.moment(last)} ({say.seconds(last - first)})",
        )
    names = [say.component(item.name) for item in analysis.components if item.times]
    model = say.listed(
        [name for name in (model_of(analysis), *environment.model_names) if name][:1]
    )
    yield say.labelled(
        say("模型配置", "Model"),
        model or say.missing,
        say("；组件：", "; components: "),
        say.listed(names[:20]) or say.missing,
    )
    yield say.labelled(
        say("内存来源", "Memory"),
        say("GPU 显存", "of the GPU")
        if environment.source == "device"
        else say("进程内存（没有 CUDA）", "of the process (there was no CUDA)"),
    )
    yield from _facts(dict(environment.facts), say)


_FACTS: Mapping[str, tuple[str, str]] = {
    "device_name": ("设备", "Device"),
    "device_total_memory": ("设备显存", "Memory of the device"),
    "torch_version": ("PyTorch", "PyTorch"),
    "python_version": ("Python", "Python"),
    "recorder": ("记录器", "Recorder"),
    "peak_since": ("峰值起算于", "Peaks are since"),
}
_SAID_ELSEWHERE = ("memory_source", "steps_are", "memory_allocated")


def _facts(facts: dict[str, str], say: Words) -> Iterator[Text]:
    for key, value in facts.items():
        if key in _SAID_ELSEWHERE:
            continue
        shown = value
        if key == "device_total_memory":
            with suppress(ValueError, OverflowError):
                shown = say.size(float(value))
        yield say.labelled(say(*_FACTS.get(key, (key, key))), shown)
