"""The chapter of advice, and each piece of it in words."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.events.advice import AdviceKind, Saving, Term, projected_steps
from snapviewer.events.analysis import Analysis
from snapviewer.report.blocks import Block, Heading, Listing, Paragraph, strong, text

from .words import Words

_MOST_SHOWN = 10  # of each term


def strategies(analysis: Analysis, say: Words) -> Iterator[Block]:
    """Yield the chapter: three terms, in each what saves most first."""
    yield Heading(2, say("性能优化建议", "Optimization advice"))
    yield Paragraph(
        text(
            say(
                "每条建议都来自本日志的数值，节省量是对峰值的上限估计，彼此不能相加"
                "（已移出显存的组件不会再因量化而节省）。",
                "Each piece follows from the numbers of this log. Savings are of the peak, and "
                "upper bounds; they do not add up: what was moved out cannot be quantized as well.",
            )
        )
    )
    titles: tuple[tuple[Term, str], ...] = (
        ("short", say("1. 短期优化策略", "1. Short term")),
        ("medium", say("2. 中期优化策略", "2. Medium term")),
        ("long", say("3. 长期优化策略", "3. Long term")),
    )
    for term, title in titles:
        yield Heading(3, title)
        items = [item for item in analysis.advice if item.term == term]
        for item in items[:_MOST_SHOWN]:
            yield Paragraph(
                text(strong(f"{advice_title(item, say)} ({saving(item, analysis, say)})"))
            )
            yield Listing(tuple(text(point) for point in _points(item, analysis, say)))
        rest = len(items) - _MOST_SHOWN
        if rest > 0:
            yield Paragraph(text(say(f"……另有 {rest:,} 条。", f"… and {rest:,} more.")))
        if not items:
            yield Paragraph(
                text(
                    say(
                        "本日志的数值没有给出这方面的建议：缺少组件、峰值或步骤的记录，"
                        "或节省不足峰值的 1 %。",
                        "Nothing follows from the numbers of this log: components, peaks or steps "
                        "were not recorded, or less than 1 % of the peak would be saved.",
                    )
                )
            )


def saving(item: Saving, analysis: Analysis, say: Words) -> str:
    """Say how much a piece of advice saves."""
    size = say.size(item.saved_bytes)
    steps = analysis.steps
    if item.kind == "fix-leak" and steps and steps.growth.verdict == "leak-between-runs":
        return say(f"{steps.runs} 轮时 {size}", f"{size} after {steps.runs} runs")
    if item.kind == "fix-leak" and analysis.steps:
        count = projected_steps(analysis.steps)
        return say(f"{count:,} 步时 {size}", f"{size} at {count:,} steps")
    return say(f"最多 {size}", f"up to {size}")


def advice_title(item: Saving, say: Words) -> str:
    """Say what to do, in a few words."""
    name = say.component(item.subject)
    titles: dict[AdviceKind, tuple[str, str]] = {
        "release-encoder": (f"{name}：用完即移出显存", f"{name}: release it once it has encoded"),
        "load-late": (
            f"{name}：解码时再加载",
            f"{name}: load it when there is something to decode",
        ),
        "find-unaccounted": ("查清未说明的显存", "Find what is unaccounted for"),
        "fix-leak": ("修复显存泄漏", "Fix the memory leak"),
        "activations": ("激活显存管理", "Manage the memory of activations"),
        "int8": (f"{name}：INT8 量化", f"{name}: INT8 quantization"),
        "block-swap": (f"{name}：逐块换入", f"{name}: swap its blocks in one by one"),
        "kv-cache": (f"{name} KV 缓存：8 位存储".strip(), f"{name} KV cache: store 8 bits".strip()),
        "four-bit": (
            f"{name}：4 位量化或更小的蒸馏版本",
            f"{name}: 4 bits, or a smaller distilled one",
        ),
        "shard": ("多卡切分模型", "Shard the model over several cards"),
    }
    return say(*titles[item.kind])


def _points(item: Saving, analysis: Analysis, say: Words) -> tuple[str, ...]:
    """Say how to do it, and what the number rests on."""
    steps = analysis.steps
    growth = steps.growth if steps else None
    if growth and growth.verdict == "leak-between-runs":
        by = say.rate(growth.per_run_bytes)
        grows = say(f"每轮增长 {by}", f"{by} a run")
    else:
        by = say.rate(steps.growth_bytes if steps else None)
        grows = say(f"每步增长 {by}", f"{by} a step")
    kinds: dict[AdviceKind, tuple[tuple[str, str], ...]] = {
        "release-encoder": (
            (
                "先加载并编码提示词，再移到 CPU 或删除，然后加载其余组件",
                "load it first, encode the prompt, move it to the CPU or delete it, then load the "
                "rest",
            ),
            (
                "依据：它只在第一步之前工作，节省量为其全部显存",
                "why: it works before the first step only; the saving is all of its memory",
            ),
        ),
        "load-late": (
            (
                "步骤期间留在 CPU，解码前再移入显存",
                "keep it on the CPU during the steps, and move it over before decoding",
            ),
            (
                "依据：它只在最后一步之后工作，节省量为其全部显存",
                "why: it works after the last step only; the saving is all of its memory",
            ),
        ),
        "find-unaccounted": (
            (
                "用 torch.cuda.memory._record_memory_history() 记录快照，"
                "再用 snapviewer open 查看是谁分配的",
                "record a snapshot with torch.cuda.memory._record_memory_history(), and see with "
                "snapviewer open who allocated it",
            ),
            (
                "检查加载时的临时副本：先在 CPU 上转换类型，或用 device_map / meta 设备加载",
                "look for copies while loading: convert types on the CPU first, or load on the "
                "meta device",
            ),
            (
                "依据：加载完成时的峰值减去已记录的各部分",
                "why: the peak of the loaded model less the parts that were recorded",
            ),
        ),
        "fix-leak": (
            (
                "检查每步保留的张量：中间结果列表、未 detach 的损失、回调或缓存",
                "look for tensors that each step keeps: lists of intermediates, losses that were "
                "not detached, callbacks, caches",
            ),
            (
                "推理放在 torch.inference_mode() 中，避免保留计算图",
                "run inference in torch.inference_mode(), so that no graph is kept",
            ),
            (
                f"依据：{grows}（稳健斜率）",
                f"why: memory grows {grows} (a robust slope)",
            ),
        ),
        "activations": (
            (
                "VAE 分块解码（tiling/slicing），"
                "注意力使用 scaled_dot_product_attention 或分块计算",
                "decode in tiles or slices, compute attention with scaled_dot_product_attention or "
                "in chunks",
            ),
            (
                "减小分辨率、帧数或批大小；及时释放中间张量",
                "lower the resolution, the number of frames or the batch; release intermediates "
                "early",
            ),
            (
                "依据：生成阶段把峰值抬高了这么多",
                "why: generating raised the peak by that much",
            ),
        ),
        "int8": (
            (
                "只量化权重（weight-only），例如 torchao 或 bitsandbytes",
                "quantize the weights only, with torchao or bitsandbytes for example",
            ),
            (
                "依据：16 位权重变为 8 位，节省一半；日志不含权重类型，若已是 8 位则无效",
                "why: 16 bits become 8, half is saved; the log does not say the type of the "
                "weights, and 8-bit ones save nothing",
            ),
        ),
        "block-swap": (
            (
                "一半的块留在 CPU，计算前异步换入",
                "keep half of the blocks on the CPU and copy each over before it computes",
            ),
            (
                "依据：只有一半权重同时在显存中；以传输时间换显存",
                "why: half of the weights are on the card at a time; it costs time for copies",
            ),
        ),
        "kv-cache": (
            ("以 FP8 或 INT8 保存键和值", "store keys and values as FP8 or INT8"),
            ("依据：16 位变为 8 位，节省一半", "why: 16 bits become 8, half is saved"),
        ),
        "four-bit": (
            (
                "NF4/INT4 量化，或换用更小的文本编码器；需要评估生成质量",
                "NF4 or INT4, or a smaller text encoder; the quality has to be checked",
            ),
            (
                "依据：16 位变为 4 位，节省四分之三",
                "why: 16 bits become 4, three quarters are saved",
            ),
        ),
        "shard": (
            (
                "FSDP、张量并行或按组件分布到两张卡",
                "FSDP, tensor parallelism, or components on two cards",
            ),
            (
                "依据：全部组件平分到两张卡，每张节省一半",
                "why: all components over two cards, half on each",
            ),
        ),
    }
    return tuple(say(zh, en) for zh, en in kinds[item.kind])
