"""Documents to render: a report as it is meant to be, and one whose every text is hostile."""

from __future__ import annotations

import math

from snapviewer.report import blocks as b
from snapviewer.report.blocks import code, strong, text

HOSTILE = (
    "<script>alert(1)</script> | `code` **bold** _it_ [a](javascript:b) <img src=x onerror=y> "
    "&lt; \x1b[31m \u202eright to left \ud800 عربي 🎉 \"quoted\" 'single' ]]> --> %%{init}%% "
    "```\n# no\n"
)
LONG_WORD = "model.diffusion_transformer.blocks.attention.query_key_value.weight" * 6


def memory_report() -> b.Document:
    """A report in Chinese, as long as usual."""
    components = (("T5 编码器", 10.58, 64.6), ("DiT 模型", 5.31, 32.4), ("VAE 模型", 0.49, 3.0))
    rows = tuple(
        (text(name), text(f"{gb:.2f}"), text(f"{share:.1f} %")) for name, gb, share in components
    )
    steps = tuple((float(n), 33.5 + 16.0 * n) for n in range(10))
    blocks: tuple[b.Block, ...] = (
        b.Paragraph(
            text(
                "日志 ",
                code("profiler_logs/baseline/memory_events.json"),
                " 的显存分析，共 ",
                strong("11"),
                " 个事件。",
            )
        ),
        b.Heading(2, "概述"),
        b.Heading(3, "测试环境"),
        b.Listing(
            (
                text("模型：Wan2.1-Enhanced"),
                text("日志路径：", code("/data/log/memory_events.json")),
            )
        ),
        b.Paragraph(
            text(strong("显存每步增长 16.0 MiB："), "像是泄漏。10 步之后多占用 160 MiB。"), "bad"
        ),
        b.Paragraph(text("有 6.75 GB 没有归属。"), "warning"),
        b.Paragraph(text("峰值稳定，波动小于 1 %。"), "good"),
        b.Heading(2, "显存使用分析"),
        b.Heading(3, "模型加载阶段显存消耗"),
        b.Table(
            (
                b.Column("组件"),
                b.Column("显存 (GB)", is_number=True),
                b.Column("占比", is_number=True),
            ),
            (*rows, (text("合计"), text("16.38"), text("100.0 %"))),
            has_total=True,
        ),
        b.BarChart(
            "各组件的显存占用",
            "GB",
            tuple(b.Bar(name, gb, f"{gb:.2f} GB") for name, gb, _ in components),
        ),
        b.Heading(3, "关键阶段显存峰值"),
        b.BarChart(
            "关键阶段的显存峰值",
            "GB",
            (
                b.Bar("初始化", 0.0, "0 GB"),
                b.Bar("模型加载完成", 23.12, "23.12 GB"),
                b.Bar("前向传播", 24.6, "24.60 GB", "warning"),
                b.Bar("推理结束", 25.9, "25.90 GB", "bad"),
            ),
        ),
        b.Heading(3, "生成步骤显存变化"),
        b.LineChart(
            "每一步的增量显存",
            "步",
            "MiB",
            (
                b.Series("增量显存", steps),
                b.Series("趋势：每步 +16.0 MiB", ((0.0, 33.5), (9.0, 177.5)), is_trend=True),
            ),
        ),
        b.Heading(2, "性能优化建议"),
        b.Heading(3, "短期优化策略"),
        b.Listing(
            (
                text(
                    strong("T5 编码器卸载到 CPU："),
                    "编码完提示词之后不再需要它，可节省 ",
                    strong("10.58 GB"),
                    "。",
                ),
                text(
                    "用 ",
                    code("torch.inference_mode()"),
                    " 代替 ",
                    code("torch.no_grad()"),
                    "，省下版本计数与视图跟踪。",
                ),
                text("检查每一步是否保留了中间结果：显存逐步增长通常来自保存在列表里的张量。"),
            ),
            is_ordered=True,
        ),
        b.Heading(3, "中期优化策略"),
        b.Listing((text("以 FP8 加载 DiT 模型，可节省 2.66 GB。"), text("VAE 分块解码。"))),
        b.Heading(2, "基准对比"),
        b.Table(
            (b.Column("指标"), b.Column("数值", is_number=True), b.Column("说明")),
            (
                (
                    text("显存利用率"),
                    text("65.9 %"),
                    text("权重占峰值的比例；其余是激活、缓存和没有归属的部分。"),
                ),
                (
                    text("峰值稳定性"),
                    text("99.2 %"),
                    text("各步峰值的四分位距与中位数之比，从 1 中减去。"),
                ),
            ),
        ),
        b.Heading(2, "结论与建议"),
        b.Paragraph(text("建议使用 ", strong("32 GB"), " 以上的显卡。")),
    )
    return b.Document("显存分析报告", "zh", blocks, "由 snapviewer 生成 · 报告格式 1")


def long_report() -> b.Document:
    """A report in English with long tables, long words and full charts."""
    names = [f"unknown_event_with_a_rather_long_name_{n}" for n in range(40)]
    rows = tuple(
        (
            text(code(name)),
            text(f"{n * 1234567:,}"),
            text(f"{n / 4:.1f} %"),
            text("Not a known event; kept and listed as it was found in the log."),
        )
        for n, name in enumerate(names)
    )
    waves = tuple(
        b.Series(
            f"run {k}", tuple((float(x), 1e7 * math.sin(x / 30 + k) - k * 1e5) for x in range(400))
        )
        for k in range(12)
    )
    blocks: tuple[b.Block, ...] = (
        b.Heading(2, "A table of many rows"),
        b.Table(
            (
                b.Column("Event"),
                b.Column("Bytes", is_number=True),
                b.Column("Share", is_number=True),
                b.Column("What it is"),
            ),
            rows,
        ),
        b.Heading(2, "Forty bars"),
        b.BarChart(
            "Events by size, a title that is long enough to need more than one line on a page "
            "that is as narrow as this one is",
            "bytes",
            tuple(
                b.Bar(name, 1.3e7 * (40 - n), f"{13 * (40 - n)} MB") for n, name in enumerate(names)
            ),
        ),
        b.Heading(2, "Twelve lines of 400 points"),
        b.LineChart("Twelve runs", "step", "bytes since the start", waves),
        b.Heading(3, "A long word"),
        b.Paragraph(text("Before ", code(LONG_WORD), " and after, ", LONG_WORD)),
        b.Table(
            (b.Column("Name"), b.Column("Bytes", is_number=True)),
            ((text(code(LONG_WORD)), text("1")), (text(LONG_WORD), text("2"))),
        ),
        b.Heading(2, "Small and odd charts"),
        b.BarChart("No bars", "GB", ()),
        b.BarChart("Nothing but zero", "GB", (b.Bar("a", 0, "0"), b.Bar("b", 0, "0"))),
        b.BarChart(
            "Tiny",
            "GB",
            (
                b.Bar("a", 1e-3, "0.001 GB"),
                b.Bar(
                    "b",
                    2.5e-3,
                    "a note that is longer than there is room for, so that it must be cut " * 2,
                ),
            ),
        ),
        b.LineChart("One point", "step", "GB", (b.Series("one", ((3.0, 2.5),)),)),
        b.LineChart(
            "All equal", "step", "GB", (b.Series("one", tuple((float(x), 2.5) for x in range(5))),)
        ),
        b.LineChart(
            "Through zero",
            "step",
            "MiB",
            (b.Series("one", tuple((x / 10, (x - 8.0) ** 3 / 1e5) for x in range(30))),),
        ),
        b.LineChart(
            "Far from zero",
            "step",
            "GB",
            (b.Series("one", tuple((float(x), 23.1 + 0.0157 * x) for x in range(30))),),
        ),
    )
    return b.Document(
        "Memory report: the long one", "en", blocks, "Made by snapviewer · report format 1"
    )


def hostile_report() -> b.Document:
    """A report whose every text wants to be more than a text."""
    styled = text(
        HOSTILE, strong(HOSTILE), code(HOSTILE), code("|"), strong("|"), strong("（x）"), "y"
    )
    blocks: tuple[b.Block, ...] = (
        *(b.Heading(level, HOSTILE) for level in (2, 2, 3, 4, 2)),
        *(b.Paragraph(styled, tone) for tone in ("plain", "good", "warning", "bad")),
        b.Paragraph(text("x" * 3_000_000)),
        b.Listing((styled, text("1. a"), text("# b"), text(""), text("- c"))),
        b.Table(
            (b.Column(HOSTILE), b.Column(HOSTILE, is_number=True)), ((styled, styled), (styled,))
        ),
        b.BarChart(
            HOSTILE,
            HOSTILE,
            tuple(b.Bar(HOSTILE, value, HOSTILE) for value in (1.0, 2.0, math.nan, -1.0, 1e300)),
        ),
        b.LineChart(
            HOSTILE,
            HOSTILE,
            HOSTILE,
            tuple(
                b.Series(HOSTILE, ((0.0, y), (1.0, math.inf), (2.0, -y)))
                for y in (1.0, math.nan, 1e300)
            ),
        ),
    )
    return b.Document(HOSTILE, "en", blocks, HOSTILE)
