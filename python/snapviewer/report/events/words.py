"""Two languages side by side, and numbers as people read them.

Sizes are in the units that PyTorch's users know: 1 GB is 1024³ bytes. Every sentence of a report
stands at the place that says it, in both languages, so that neither can be forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal

from snapviewer.events.analysis import Analysis
from snapviewer.events.figures import FigureKey
from snapviewer.events.names import OTHER_COMPONENTS, OTHERS
from snapviewer.report.blocks import Column, Language, Span, Text, text
from snapviewer.text.units import format_duration

MIB, GIB = 2**20, 2**30

_COMPONENTS: Mapping[str, tuple[str, str]] = {
    "t5": ("T5 编码器", "T5 encoder"),
    "vae": ("VAE 模型", "VAE"),
    "dit": ("DiT 模型", "DiT"),
    "clip": ("CLIP 模型", "CLIP"),
    "unet": ("UNet 模型", "UNet"),
    "text_encoder": ("文本编码器", "Text encoder"),
    OTHER_COMPONENTS: ("其他组件", "Other components"),
    OTHERS: ("其他", "Other"),
}
_PHASES: Mapping[str, tuple[str, str]] = {
    "init": ("初始化", "Initialization"),
    "model_loaded": ("模型加载完成", "Model loaded"),
    "forward_pass": ("前向传播", "Forward pass"),
    "generation": ("生成过程", "Generation"),
    "before_generate": ("生成开始前", "Before generation"),
    "after_decode": ("解码之后", "After decoding"),
    "inference_end": ("推理结束", "End of inference"),
    "total_generation": ("完整生成", "Whole generation"),
}
_STAGES: Mapping[str, tuple[str, str]] = {
    "generate": ("生成", "Generation"),
    "inference_end": ("整个运行", "Whole run"),
    "t5_load": ("T5 加载", "Loading T5"),
    "t5_encode": ("T5 编码", "T5 encoding"),
    "dit_forward": ("DiT 前向", "DiT forward"),
    "vae_decode": ("VAE 解码", "VAE decoding"),
}


@dataclass(frozen=True, slots=True)
class Words:
    """Says things in one of the two languages; tables are in GB, or in MB where all is small."""

    language: Language
    unit: Literal["GB", "MB"] = "GB"
    is_process: bool = False
    """Whether it is the memory of processes that is talked of."""

    def __call__(self, zh: str, en: str) -> str:
        """Return what the reader understands."""
        if self.language == "en":
            return en
        return zh.replace("显存", "内存") if self.is_process else zh

    def component(self, name: str) -> str:
        return self(*_COMPONENTS.get(name, (name, name)))

    def phase(self, name: str) -> str:
        return self(*_PHASES.get(name, (name, name)))

    def stage(self, name: str) -> str:
        return self(*(_STAGES.get(name) or _PHASES.get(name) or (name, name)))

    @property
    def missing(self) -> str:
        return self("未记录", "not recorded")

    def scaled(self, size_bytes: float) -> float:
        """Return a size in the unit of tables and charts."""
        return size_bytes / (GIB if self.unit == "GB" else MIB)

    def number(self, size_bytes: float | None) -> str:
        """Say a size in the unit of tables, which stands in the title of its column."""
        if size_bytes is None:
            return self.missing
        return f"{self.scaled(size_bytes):,.2f}".replace("-", "−")

    def size(self, size_bytes: float | None) -> str:
        """Say a size in the unit that fits it.

        >>> [Words("en").size(n) for n in (7248507392, 51903488, 512, None)]
        ['6.75 GB', '49.5 MB', '512 B', 'not recorded']
        """
        if size_bytes is None:
            return self.missing
        if size_bytes < 0:
            return f"−{self.size(-size_bytes)}"
        if abs(size_bytes) >= GIB / 10:
            return f"{size_bytes / GIB:,.2f} GB"
        if abs(size_bytes) >= MIB / 10:
            return f"{size_bytes / MIB:.1f} MB"
        if abs(size_bytes) >= 1024:
            return f"{size_bytes / 1024:.1f} KB"
        return f"{size_bytes:.0f} B"

    def rate(self, bytes_a_step: float | None) -> str:
        """Say a growth a step, in binary units.

        >>> Words("en").rate(16773120)
        '16.0 MiB'
        """
        if bytes_a_step is None:
            return self.missing
        if bytes_a_step < 0:
            return f"−{self.rate(-bytes_a_step)}"
        for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", 1024)):
            if abs(bytes_a_step) >= size * 0.9:
                return f"{bytes_a_step / size:,.1f} {unit}"
        return f"{bytes_a_step:.0f} B"

    def change(self, size_bytes: float) -> str:
        """Say a difference, with its sign."""
        sign = "+" if size_bytes > 0 else "−" if size_bytes < 0 else "±"
        return f"{sign}{self.size(abs(size_bytes))}"

    def share(self, share: float | None) -> str:
        return self.missing if share is None else f"{100 * share:.1f} %"

    def seconds(self, duration_s: float | None) -> str:
        return self.missing if duration_s is None else format_duration(duration_s * 1e6)

    def moment(self, time_s: float) -> str:
        try:
            time = datetime.fromtimestamp(time_s, timezone.utc)
        except (ValueError, OverflowError, OSError):
            return f"{time_s:g} s"
        return f"{time:%Y-%m-%d %H:%M:%S} UTC"

    def count(self, number: int, zh: str, en: str, several: str = "") -> str:
        """Say how many of something there are.

        >>> Words("zh").count(3, "步", "step"), Words("en").count(3, "步", "step")
        ('3 步', '3 steps')
        """
        plural = en if number == 1 else several or f"{en}s"
        return f"{number:,} {zh if self.language == 'zh' else plural}"

    def listed(self, names: Sequence[str]) -> str:
        return self("、", ", ").join(names)

    def labelled(self, label: str, *rest: str | Span) -> Text:
        """Return a point of a list that begins with its label."""
        return text(Span(f"{label}{self('：', ': ')}", "strong"), *rest)

    def figure(self, key: FigureKey) -> str:
        """Name a figure of a comparison."""
        names = {
            "peak": self("实测峰值", "Measured peak"),
            "components": self("模型组件合计", "All components"),
            "component": self.component(key.subject),
            "phase": self("阶段峰值：", "Peak: ") + self.phase(key.subject),
            "unaccounted": self("未说明的显存", "Unaccounted for"),
            "generation": self("生成阶段新增", "Added by generation"),
            "highest-step": self("步骤最高水平", "Highest step level"),
            "growth": self("每步增长", "Growth a step"),
            "stage": self("耗时：", "Time: ") + self.stage(key.subject),
        }
        return names[key.kind]

    def value(self, key: FigureKey, number: float | None) -> str:
        """Say the number of a figure."""
        say = {"bytes": self.size, "bytes a step": self.rate, "seconds": self.seconds}
        return say[key.unit](number)


def words_for(analyses: Sequence[Analysis], language: Language) -> Words:
    """Return words whose tables are in MB if everything is less than a GB."""
    peaks = [analysis.peak.size_bytes for analysis in analyses if analysis.peak]
    totals = [analysis.components_bytes or 0 for analysis in analyses]
    is_small = 0 < max([*peaks, *totals], default=0) < GIB
    is_process = all(analysis.environment.source == "process" for analysis in analyses)
    return Words(language, "MB" if is_small else "GB", is_process)


def columns(*titles: str) -> tuple[Column, ...]:
    """Return the columns of a table; a title that begins with `#` is of numbers."""
    return tuple(Column(title.removeprefix("#"), title.startswith("#")) for title in titles)


def row(*cells: str | Span | Text) -> tuple[Text, ...]:
    """Return a row of a table."""
    return tuple(cell if isinstance(cell, tuple) else text(cell) for cell in cells)
