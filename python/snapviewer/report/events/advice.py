"""The chapter of recommendations, and the list of priorities."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from snapviewer.events.advice import AdviceKind, Saving, Term, projected_steps
from snapviewer.events.analysis import Analysis
from snapviewer.events.cards import need_of, smallest
from snapviewer.events.steps import ENOUGH_STEPS
from snapviewer.report import blocks
from snapviewer.report.blocks import strong, text

from .words import Words

_MAX_SHOWN = 10  # of each term, and of priorities
# The lowest shares of the peak for a high and a medium priority.
_HIGH, _MEDIUM = 0.2, 0.05


def advice(analysis: Analysis, say: Words) -> Iterator[blocks.Block]:
    """Yield the chapter: three terms, each with the largest savings first."""
    yield say.heading(2, "性能优化建议", "Recommendations")
    yield say.paragraph(
        "每条建议都来自本日志的数值，节省量是对峰值的上限估计，彼此不能相加"
        "（已移出显存的组件不会再因量化而节省）。",
        "Each follows from the numbers of this log. Savings are upper bounds, of the peak; they "
        "do not add up: a component that was moved out cannot be quantized as well.",
    )
    titles: tuple[tuple[Term, str], ...] = (
        ("short", say("1. 短期优化策略", "1. Short term")),
        ("medium", say("2. 中期优化策略", "2. Medium term")),
        ("long", say("3. 长期优化策略", "3. Long term")),
    )
    for term, title in titles:
        yield blocks.Heading(3, title)
        items = [item for item in analysis.advice if item.term == term]
        for item in items[:_MAX_SHOWN]:
            what = f"{advice_title(item, analysis, say)} ({_saved(item, analysis, say)})"
            yield blocks.Paragraph(text(strong(what)))
            yield blocks.Listing(tuple(text(point) for point in _points(item, analysis, say)))
        yield from say.more(len(items) - _MAX_SHOWN)
        if not items:
            yield say.paragraph(
                "本日志的数值没有给出这方面的建议：缺少组件、峰值或步骤的记录，"
                "或节省不足峰值的 1 %。",
                "No recommendations: components, peaks or steps were not recorded, or the savings "
                "are below 1 % of the peak.",
            )


def priorities(analysis: Analysis, say: Words) -> Iterator[blocks.Text]:
    """Yield the recommendations of all terms, the most important first."""

    def is_suspected(item: Saving) -> bool:
        return _is_suspected(item, analysis, say)

    # A leak comes first, as it has no end; what may be one comes last, whatever it would save.
    for item in sorted(analysis.advice, key=is_suspected)[:_MAX_SHOWN]:
        weight = sys.maxsize if item.kind == "fix-leak" else item.saved_bytes
        priority = _priority(analysis, 0 if is_suspected(item) else weight, say)
        title = f"{advice_title(item, analysis, say)} ({_saved(item, analysis, say)})"
        # What a leak adds later is not in the measured peak.
        result = "" if item.kind == "fix-leak" else _projected(analysis, item, say)
        yield say.labelled(priority, title, result)


def _priority(analysis: Analysis, saved_bytes: int, say: Words) -> str:
    whole = analysis.peak.size_bytes if analysis.peak else analysis.components_bytes or 0
    if saved_bytes >= _HIGH * whole:
        return say("高优先级", "High priority")
    if saved_bytes >= _MEDIUM * whole:
        return say("中优先级", "Medium priority")
    return say("低优先级", "Low priority")


def _projected(analysis: Analysis, item: Saving, say: Words) -> str:
    """Return what the peak would be, and the smallest GPU for it if that is another one."""
    need = analysis.need
    if analysis.peak is None or need is None:
        return ""
    peak_bytes = max(0, analysis.peak.size_bytes - item.saved_bytes)
    on_device = None if need.is_context_assumed else max(0, need.used_bytes - item.saved_bytes)
    card = smallest(need_of(peak_bytes, on_device))
    peak = say.size(peak_bytes)
    if card is None or card == smallest(need):
        return say(f"，峰值降至 {peak}", f": lowers the peak to {peak}")
    if item.kind == "shard":
        return say(
            f"，每张卡的峰值降至 {peak}，可用两张 {card.name}",
            f": lowers the peak of each GPU to {peak}, which fits on two {card.name}",
        )
    return say(
        f"，峰值降至 {peak}，可用 {card.name}",
        f": lowers the peak to {peak}, which fits on the {card.name}",
    )


def _saved(item: Saving, analysis: Analysis, say: Words) -> str:
    """Return how much a recommendation saves."""
    size = say.size(item.saved_bytes)
    steps = analysis.steps
    if item.kind == "fix-leak" and steps:
        if steps.growth.verdict == "leak-between-runs":
            return say(f"{steps.runs} 轮时 {size}", f"{size} after {steps.runs} runs")
        count = projected_steps(steps)
        return say(f"{count:,} 步时 {size}", f"{size} after {count:,} steps")
    return say(f"最多 {size}", f"up to {size}")


def _is_suspected(item: Saving, analysis: Analysis, say: Words) -> bool:
    """Return whether too few steps were recorded to call growth a leak."""
    if item.kind != "fix-leak" or analysis.steps is None or say.compat:
        return False
    return analysis.steps.growth.verdict == "leak-signature"


def advice_title(item: Saving, analysis: Analysis, say: Words) -> str:
    """Return a recommendation in a few words."""
    if _is_suspected(item, analysis, say):
        return say("确认是否有显存泄漏", "Check for a memory leak")
    name = say.component(item.subject)
    titles: dict[AdviceKind, tuple[str, str]] = {
        "release-encoder": (f"{name}：用完即移出显存", f"{name}: release it after encoding"),
        "load-late": (f"{name}：解码时再加载", f"{name}: load it just before decoding"),
        "find-unaccounted": ("查清未说明的显存", "Find out what is unaccounted for"),
        "fix-leak": ("修复显存泄漏", "Fix the memory leak"),
        "activations": ("激活显存管理", "Reduce the memory of activations"),
        "int8": (f"{name}：INT8 量化", f"{name}: INT8 quantization"),
        "block-swap": (f"{name}：逐块换入", f"{name}: swap blocks in one by one"),
        "kv-cache": (f"{name} KV 缓存：8 位存储".strip(), f"{name} KV cache: 8 bits".strip()),
        "four-bit": (
            f"{name}：4 位量化或更小的蒸馏版本",
            f"{name}: 4-bit quantization or a smaller distilled model",
        ),
        "shard": ("多卡切分模型", "Shard the model over several GPUs"),
    }
    return say(*titles[item.kind])


# How to do it, and what the saving rests on; `fix-leak` names the growth.
_POINTS: dict[AdviceKind, tuple[tuple[str, str], ...]] = {
    "release-encoder": (
        (
            "先加载并编码提示词，再移到 CPU 或删除，然后加载其余组件",
            "load it first, encode the prompt, move it to the CPU or delete it, then load the rest",
        ),
        (
            "依据：它只在第一步之前工作，节省量为其全部显存",
            "why: it is used only before the first step; the saving is all of its memory",
        ),
    ),
    "load-late": (
        (
            "步骤期间留在 CPU，解码前再移入显存",
            "keep it on the CPU during the steps, and move it to the GPU before decoding",
        ),
        (
            "依据：它只在最后一步之后工作，节省量为其全部显存",
            "why: it is used only after the last step; the saving is all of its memory",
        ),
    ),
    "find-unaccounted": (
        (
            "用 torch.cuda.memory._record_memory_history() 记录快照，"
            "再用 snapviewer open 查看是谁分配的",
            "record a snapshot with torch.cuda.memory._record_memory_history(), and find the "
            "allocating code with snapviewer open",
        ),
        (
            "检查加载时的临时副本：先在 CPU 上转换类型，或用 device_map / meta 设备加载",
            "look for temporary copies while loading: convert dtypes on the CPU first, or load on "
            "the meta device",
        ),
        (
            "依据：加载完成时的峰值减去已记录的各部分",
            "why: the peak of the loaded model minus the recorded parts",
        ),
    ),
    "fix-leak": (
        (
            "检查每步保留的张量：中间结果列表、未 detach 的损失、回调或缓存",
            "look for tensors that each step keeps: lists of intermediates, losses that are not "
            "detached, callbacks, caches",
        ),
        (
            "推理放在 torch.inference_mode() 中，避免保留计算图",
            "run inference in torch.inference_mode(), so that no graph is kept",
        ),
        ("依据：{growth}（稳健斜率）", "why: memory grows by {growth} (median slope)"),
    ),
    "activations": (
        (
            "VAE 分块解码（tiling/slicing），注意力使用 scaled_dot_product_attention 或分块计算",
            "decode in tiles or slices, compute attention with scaled_dot_product_attention or in "
            "chunks",
        ),
        (
            "减小分辨率、帧数或批大小；及时释放中间张量",
            "lower the resolution, the number of frames or the batch size; release intermediates "
            "early",
        ),
        ("依据：生成阶段把峰值抬高了这么多", "why: the generation raised the peak by this much"),
    ),
    "int8": (
        (
            "只量化权重（weight-only），例如 torchao 或 bitsandbytes",
            "quantize the weights only, for example with torchao or bitsandbytes",
        ),
        (
            "依据：16 位权重变为 8 位，节省一半；日志不含权重类型，若已是 8 位则无效",
            "why: 16-bit weights become 8-bit, which saves half; the log does not contain the "
            "dtype, and weights that are 8-bit already save nothing",
        ),
    ),
    "block-swap": (
        (
            "一半的块留在 CPU，计算前异步换入",
            "keep half of the blocks on the CPU, and copy each to the GPU before it computes",
        ),
        (
            "依据：只有一半权重同时在显存中；以传输时间换显存",
            "why: only half of the weights are in memory at a time; it costs transfer time",
        ),
    ),
    "kv-cache": (
        ("以 FP8 或 INT8 保存键和值", "store keys and values as FP8 or INT8"),
        ("依据：16 位变为 8 位，节省一半", "why: 16 bits become 8, which saves half"),
    ),
    "four-bit": (
        (
            "NF4/INT4 量化，或换用更小的文本编码器；需要评估生成质量",
            "NF4 or INT4, or a smaller text encoder; check the quality of the output",
        ),
        (
            "依据：16 位变为 4 位，节省四分之三",
            "why: 16 bits become 4, which saves three quarters",
        ),
    ),
    "shard": (
        (
            "FSDP、张量并行或按组件分布到两张卡",
            "FSDP, tensor parallelism, or components on two GPUs",
        ),
        (
            "依据：全部组件平分到两张卡，每张节省一半",
            "why: half of the components on each of two GPUs",
        ),
    ),
}


def _points(item: Saving, analysis: Analysis, say: Words) -> Iterator[str]:
    growth = ""
    if item.kind == "fix-leak" and (steps := analysis.steps):
        if steps.growth.verdict == "leak-between-runs":
            by = say.rate(steps.growth.per_run_bytes)
            growth = say(f"每轮增长 {by}", f"{by} per run")
        else:
            by = say.rate(steps.growth_bytes)
            growth = say(f"每步增长 {by}", f"{by} per step")
    if _is_suspected(item, analysis, say):
        yield say(
            f"步骤太少，不足以判断：请先记录 {ENOUGH_STEPS} 步以上",
            f"too few steps to be sure: first record {ENOUGH_STEPS} or more",
        )
    for zh, en in _POINTS[item.kind]:
        yield say(zh, en).replace("{growth}", growth)
