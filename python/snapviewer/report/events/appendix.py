"""What else is in the log, and how the report was made."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.events.analysis import Analysis
from snapviewer.events.log import Oddity
from snapviewer.report.blocks import Block, Heading, Listing, Paragraph, Table, code, text

from .words import Words, columns, row

_MOST_SHOWN = 20


def appendix(analysis: Analysis, say: Words) -> Iterator[Block]:
    """Yield the appendix: unknown events, what is odd, units."""
    yield Heading(2, say("附录：数据说明", "Appendix: the data"))
    yield Paragraph(
        text(
            say(
                "单位：1 GB = 1 GiB = 1024³ 字节，1 MB = 1 MiB = 1024² 字节。"
                "没有记录的数值显示为“未记录”，从不当作 0。",
                "Units: 1 GB = 1 GiB = 1024³ bytes, 1 MB = 1 MiB = 1024² bytes. What was not "
                "recorded is called that, and never taken as 0.",
            )
        )
    )
    if analysis.others:
        yield Heading(3, say("未知事件", "Unknown events"))
        yield Table(
            columns(
                say("事件", "Event"),
                f"#{say('次数', 'Times')}",
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
                for other in analysis.others[:_MOST_SHOWN]
            ),
        )
        yield from _more(analysis.other_count, say)
    if analysis.odd_count:
        yield Heading(3, say("不合格式的内容", "What the format does not have"))
        yield Listing(tuple(text(_odd(item, say)) for item in analysis.oddities[:_MOST_SHOWN]))
        yield from _more(analysis.odd_count, say)


def _more(count: int, say: Words) -> Iterator[Block]:
    rest = count - _MOST_SHOWN
    if rest > 0:
        yield Paragraph(text(say(f"……另有 {rest:,} 项。", f"… and {rest:,} more.")))


def _odd(item: Oddity, say: Words) -> str:
    where = say(f"第 {item.place:,} 项", f"entry {item.place:,}")
    if item.kind == "torn-line":
        return where + say(
            f"：一行没有写完（{item.shown}），已跳过",
            f": a line that was not written to its end ({item.shown}), left out",
        )
    if item.kind == "not-an-event":
        return where + say(
            f"：不是事件（{item.shown}），已跳过", f": not an event ({item.shown}), left out"
        )
    return where + say(
        f"：{item.field} 的值无效（{item.shown}），视为未记录",
        f": {item.field} has no valid value ({item.shown}), taken as not recorded",
    )
