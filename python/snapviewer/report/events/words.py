"""Sentences in Chinese and English side by side, and numbers as text.

Both languages of a sentence stand where it is used, so that neither can be forgotten. Sizes are in
binary units. `compat` is the style that `analyze_memory.py` promises: 1 GB is 1024³ bytes, and a
model without a name is "Wan2.1-Enhanced".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from snapviewer import __version__
from snapviewer.events.analysis import Analysis
from snapviewer.events.figures import FigureKey
from snapviewer.events.names import OTHER_COMPONENTS, OTHERS, is_component, normal
from snapviewer.report import blocks
from snapviewer.report.blocks import Span, Text, text
from snapviewer.text.units import format_bytes, format_duration

# Of reports, and of what `--json` prints. It increases when something changes place or meaning.
REPORT_FORMAT = 1

MIB, GIB = 2**20, 2**30
MAX_LISTED = 20

_COMPAT_MODEL = "Wan2.1-Enhanced"

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
    """Sentences and numbers in one language and style."""

    language: blocks.Language
    compat: bool = False
    """Whether sizes are in GB and a model has a default name."""
    is_small: bool = False
    """Whether tables are in MiB rather than GiB."""
    is_process: bool = False
    """Whether the memory is that of processes."""

    def __call__(self, zh: str, en: str) -> str:
        """Return the sentence in the chosen language."""
        if self.language == "en":
            return en
        return zh.replace("显存", "内存") if self.is_process else zh

    def text(self, zh: str, en: str) -> Text:
        return text(self(zh, en))

    def heading(self, level: int, zh: str, en: str) -> blocks.Heading:
        return blocks.Heading(level, self(zh, en))

    def paragraph(self, zh: str, en: str, tone: blocks.Tone = "plain") -> blocks.Paragraph:
        return blocks.Paragraph(self.text(zh, en), tone)

    def around(self, span: Span, zh: str, en: str) -> Text:
        """Return a sentence with a span in the place of `{}`."""
        before, _, after = self(zh, en).partition("{}")
        return text(before, span, after)

    def unrecorded(self, field: str, zh: str, en: str) -> blocks.Paragraph:
        """Return a sentence about a missing field, whose name is in the place of `{}`."""
        return blocks.Paragraph(self.around(blocks.code(field), zh, en))

    def labelled(self, label: str, *rest: str | Span) -> Text:
        """Return an item of a list that begins with its label."""
        return text(Span(f"{label}{self('：', ': ')}", "strong"), *rest)

    def more(self, count: int) -> Iterator[blocks.Block]:
        """Yield how many items are left out, if any."""
        if count > 0:
            yield self.paragraph(f"……另有 {count:,} 项。", f"… and {count:,} more.")

    def listed(self, names: Sequence[str]) -> str:
        return self("、", ", ").join(names)

    def count(self, number: int, zh: str, en: str, plural: str = "") -> str:
        """Return a number of things.

        >>> Words("zh").count(3, "步", "step"), Words("en").count(3, "步", "step")
        ('3 步', '3 steps')
        """
        noun = en if number == 1 else plural or f"{en}s"
        return f"{number:,} {zh if self.language == 'zh' else noun}"

    # Names

    def component(self, name: str) -> str:
        return self(*_COMPONENTS.get(name, (name, name)))

    def phase(self, name: str) -> str:
        return self(*_PHASES.get(name, (name, name)))

    def stage(self, name: str) -> str:
        return self(*(_STAGES.get(name) or _PHASES.get(name) or (name, name)))

    def figure(self, key: FigureKey) -> str:
        names = {
            "peak": self("实测峰值", "Measured peak"),
            "components": self("模型组件合计", "All components"),
            "component": self.component(key.subject),
            "phase": self("阶段峰值：", "Peak: ") + self.phase(key.subject),
            "unaccounted": self("未说明的显存", "Unaccounted for"),
            "generation": self("生成阶段新增", "Added by generation"),
            "highest-step": self("步骤最高水平", "Highest step"),
            "growth": self("每步增长", "Growth per step"),
            "stage": self("耗时：", "Time: ") + self.stage(key.subject),
        }
        return names[key.kind]

    def model(self, analysis: Analysis) -> str:
        """Return the name of the model that a log is about; empty if it is not known."""
        environment = analysis.environment
        names = environment.model_names
        if environment.is_recorded_here:
            return names[0] if names else ""
        # Several names, or the name of a component, are of what was loaded, not of the whole.
        is_whole = len(names) == 1 and not is_component(normal(names[0]))
        return names[0] if is_whole else _COMPAT_MODEL if self.compat else ""

    def title(self, analysis: Analysis) -> str:
        """Return the title of the report on a log."""
        what = (
            self("显存消耗分析报告", "GPU memory report")
            if analysis.environment.source == "device"
            else self("内存消耗分析报告（进程）", "Process memory report")
        )
        return f"{self.model(analysis)} {what}".strip()

    @property
    def colophon(self) -> str:
        """The last line of a report."""
        return self(
            f"由 snapviewer {__version__} 生成，报告格式 {REPORT_FORMAT}。",
            f"Written by snapviewer {__version__}, report format {REPORT_FORMAT}.",
        )

    # Numbers

    @property
    def missing(self) -> str:
        return self("未记录", "not recorded")

    @property
    def unit(self) -> str:
        """The unit of tables and charts."""
        return f"{'M' if self.is_small else 'G'}{'B' if self.compat else 'iB'}"

    def scaled(self, size_bytes: float) -> float:
        """Return a size in the unit of tables and charts."""
        return size_bytes / (MIB if self.is_small else GIB)

    def number(self, size_bytes: float | None) -> str:
        """Return a size in the unit of tables, which is in the title of the column."""
        if size_bytes is None:
            return self.missing
        return f"{self.scaled(size_bytes):,.2f}".replace("-", "−")

    def size(self, size_bytes: float | None) -> str:
        """Return a size in the unit that suits it.

        >>> [Words("en").size(n) for n in (7248507392, -51903488, 512, None)]
        ['6.75 GiB', '−49.5 MiB', '512 B', 'not recorded']
        >>> [Words("zh", compat=True).size(n) for n in (7248507392, 51903488, 512)]
        ['6.75 GB', '49.5 MB', '512 B']
        """
        if size_bytes is None:
            return self.missing
        if size_bytes < 0:
            return f"−{self.size(-size_bytes)}"
        if not self.compat:
            return format_bytes(round(size_bytes))
        if size_bytes >= GIB / 10:
            return f"{size_bytes / GIB:,.2f} GB"
        if size_bytes >= MIB / 10:
            return f"{size_bytes / MIB:.1f} MB"
        return f"{size_bytes / 1024:.1f} KB" if size_bytes >= 1024 else f"{size_bytes:.0f} B"

    def rate(self, bytes_per_step: float | None) -> str:
        """Return a growth per step, in binary units in either style.

        >>> Words("zh").rate(16773120), Words("zh", compat=True).rate(16773120)
        ('16.0 MiB', '16.0 MiB')
        """
        if bytes_per_step is None or not self.compat:
            return self.size(bytes_per_step)
        if bytes_per_step < 0:
            return f"−{self.rate(-bytes_per_step)}"
        for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", 1024)):
            if bytes_per_step >= size * 0.9:
                return f"{bytes_per_step / size:,.1f} {unit}"
        return f"{bytes_per_step:.0f} B"

    def change(self, size_bytes: float) -> str:
        """Return a difference with its sign."""
        sign = "+" if size_bytes > 0 else "−" if size_bytes < 0 else "±"
        return f"{sign}{self.size(abs(size_bytes))}"

    def share(self, share: float | None) -> str:
        return self.missing if share is None else f"{100 * share:.1f} %"

    def share_of(self, part: int | None, whole: int | None) -> str:
        if part is None:
            return self.missing
        return self.share(part / whole) if whole and 0 <= part <= whole else "–"

    def seconds(self, duration_s: float | None) -> str:
        return self.missing if duration_s is None else format_duration(duration_s * 1e6)

    def time(self, time_s: float) -> str:
        try:
            time = datetime.fromtimestamp(time_s, timezone.utc)
        except (ValueError, OverflowError, OSError):
            return f"{time_s:g} s"
        return f"{time:%Y-%m-%d %H:%M:%S} UTC"

    def value(self, key: FigureKey, number: float | None) -> str:
        """Return the value of a figure."""
        formats = {"bytes": self.size, "bytes a step": self.rate, "seconds": self.seconds}
        return formats[key.unit](number)


def words_for(
    analyses: Sequence[Analysis], language: blocks.Language, *, compat: bool = False
) -> Words:
    """Return words whose tables are in MiB if everything is smaller than a GiB."""
    peaks = [analysis.peak.size_bytes for analysis in analyses if analysis.peak]
    totals = [analysis.components_bytes or 0 for analysis in analyses]
    is_small = 0 < max([*peaks, *totals], default=0) < GIB
    is_process = all(analysis.environment.source == "process" for analysis in analyses)
    return Words(language, compat, is_small, is_process)


def columns(*titles: str) -> tuple[blocks.Column, ...]:
    """Return the columns of a table; a title that begins with `#` is that of numbers."""
    return tuple(blocks.Column(title.removeprefix("#"), title.startswith("#")) for title in titles)


def row(*cells: str | Span | Text) -> tuple[Text, ...]:
    """Return a row of a table."""
    return tuple(text(cell) if isinstance(cell, str | Span) else cell for cell in cells)
