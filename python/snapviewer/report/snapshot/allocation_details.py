"""The details of an allocation as text: for the window, the clipboard and bug reports.

All text from the file is sanitized here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from snapviewer.snapshot.allocation_details import AllocationDetails, FrameDetails, Length, When
from snapviewer.snapshot.frames import frame_text
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize
from snapviewer.text.units import count_of, format_bytes, format_duration, format_unix_us

_FOLD_FROM = 2
_MAX_TEXT = 2000  # characters of what may be long, such as a function of C++
_MAX_ANNOTATIONS = 20
_MAX_FORWARD = 500
_MAX_IN_A_ROW, _KEPT_FIRST, _KEPT_LAST = 40, 30, 5


class Value(NamedTuple):
    """A value: the text that is shown, and the one that is copied."""

    text: str
    plain: str


class Row(NamedTuple):
    """A labelled line of values."""

    label: str
    values: tuple[Value, ...]
    joiner: str = " · "

    @property
    def text(self) -> str:
        return self.joiner.join(value.text for value in self.values)


class Run(NamedTuple):
    """Neighbouring frames of a stack: shown one by one, or folded into a few words."""

    frames: tuple[FrameDetails, ...]
    words: str = ""

    @property
    def is_folded(self) -> bool:
        return bool(self.words)


def full_text(frame: FrameDetails) -> str:
    """Return the full text of a frame: `attention (/home/a/model.py:77)`."""
    name = sanitize(frame.frame.name, _MAX_TEXT)
    filename = sanitize(frame.frame.filename, _MAX_TEXT)
    if not filename or filename == "??":
        return name or "??"
    place = f"{filename}:{frame.frame.line}" if frame.frame.line else filename
    return f"{name} ({place})"


def short_text(frame: FrameDetails) -> str:
    """Return the short text of a frame."""
    return sanitize(frame_text(frame.frame), MAX_NAME_CHARS) or "??"


def size_values(details: AllocationDetails) -> tuple[Value, ...]:
    """Return the size, rounded and to the byte."""
    plain = str(details.size_bytes)
    texts = dict.fromkeys((format_bytes(details.size_bytes), f"{details.size_bytes:,} B"))
    return tuple(Value(text, plain) for text in texts)


def rows_of(details: AllocationDetails) -> tuple[Row, ...]:
    """Return everything but the name, the size and the stacks."""
    return tuple(_rows(details))


def _rows(details: AllocationDetails) -> Iterator[Row]:
    if details.rounded_bytes is not None and details.rounded_bytes != details.size_bytes:
        more = details.rounded_bytes - details.size_bytes
        text = f"{details.rounded_bytes:,} B ({'+' if more > 0 else '−'}{format_bytes(abs(more))})"
        yield Row("rounded to", (Value(text, str(details.rounded_bytes)),))
    yield from _life(details)
    address = f"0x{details.address:x}"
    yield Row("address", (Value(address, address),))
    yield _row("stream", str(details.stream))
    yield _row("pool", details.pool)
    yield _row("device", "pinned host memory" if details.device < 0 else str(details.device))
    for label, said in (
        ("category", details.category),
        ("compiling", details.compile_context),
        ("metadata", details.user_metadata),
        ("operator", details.operator),
        ("kernel", details.kernel),
    ):
        if said is not None:
            yield _row(label, sanitize(said, _MAX_TEXT))
    if details.annotations:
        yield Row("during", tuple(Value(name, name) for name in _around(details)), " › ")
    if details.flags:
        yield Row("note", tuple(Value(flag, flag) for flag in details.flags))


def _around(details: AllocationDetails) -> list[str]:
    """Return the annotations around it, outermost first; of very many, those at both ends."""
    names = details.annotations
    if len(names) <= _MAX_ANNOTATIONS:
        return [sanitize(name, MAX_NAME_CHARS) for name in names]
    outer, inner = names[: _MAX_ANNOTATIONS // 4], names[-_MAX_ANNOTATIONS * 3 // 4 :]
    left_out = f"… {len(names) - len(outer) - len(inner):,} more"
    return [
        *(sanitize(name, MAX_NAME_CHARS) for name in outer),
        left_out,
        *(sanitize(name, MAX_NAME_CHARS) for name in inner),
    ]


def forward_lines(details: AllocationDetails) -> list[str]:
    """Return the lines of the forward pass; of very many, the first."""
    lines = [sanitize(line, MAX_NAME_CHARS) for line in details.forward_frames[:_MAX_FORWARD]]
    more = len(details.forward_frames) - len(lines)
    return [*lines, f"… {more:,} more"] if more else lines


def _life(details: AllocationDetails) -> Iterator[Row]:
    if details.lifetime is None:
        return
    ends = (_event(details.allocated, "start"), _event(details.freed, "end"))
    yield Row("alive", ends, " – ")
    least = "" if details.is_lifetime_whole else "at least "
    yield Row("lifetime", _length(details.lifetime, least))
    for label, when in (("allocated", details.allocated), ("freed", details.freed)):
        if when is not None and when.time_us is not None:
            yield Row(label, (_time(when.time_us),))
    if details.free_requested is not None and details.pending is not None:
        requested = [_event(details.free_requested, "")]
        if details.free_requested.time_us is not None:
            requested.append(_time(details.free_requested.time_us))
        yield Row("free requested", tuple(requested))
        yield Row("pending", _length(details.pending, "" if details.freed else "at least "))


def _row(label: str, text: str) -> Row:
    return Row(label, (Value(text, text),))


def _event(when: When | None, otherwise: str) -> Value:
    text = otherwise if when is None else str(when.event)
    return Value(otherwise if when is None else f"{when.event:,}", text)


def _time(unix_us: int) -> Value:
    return Value(format_unix_us(unix_us), format_unix_us(unix_us))


def _length(length: Length, words: str) -> tuple[Value, ...]:
    """Return a duration in events and time; the words stand before the first value."""
    values = [Value(f"{words}{count_of(length.events, 'event')}", str(length.events))]
    if length.time_us is not None:
        text = format_duration(length.time_us)
        values.append(Value(text, text))
    return tuple(values)


def same_stack_text(details: AllocationDetails) -> str:
    """Return the totals of all allocations with the same stack."""
    same = details.same_stack
    which = "with this stack" if details.frames else "without a stack"
    has_peak = details.lifetime is not None  # otherwise there is no trace
    return (
        f"{count_of(same.allocations, 'allocation')} {which}, {format_bytes(same.size_bytes)}"
        f" together · {_percent(same.peak_share)} of the {'peak' if has_peak else 'memory'}"
    )


def _percent(share: float) -> str:
    """Format a share.

    >>> [_percent(share) for share in (0, 0.0004, 0.0314, 0.31, 1)]
    ['0 %', '<0.1 %', '3.1 %', '31 %', '100 %']
    """
    if 0 < share < 0.001:
        return "<0.1 %"
    return f"{share * 100:.{1 if 0 < share < 0.0995 else 0}f} %"


def runs_of(frames: Sequence[FrameDetails]) -> tuple[Run, ...]:
    """Split a stack: frames of the user and of packages are shown, those of PyTorch folded.

    Of very many frames in a row, those in the middle are folded, too.
    """
    runs: list[Run] = []
    start = 0
    while start < len(frames):
        end, is_shown = start, _is_shown(frames[start])
        while end < len(frames) and _is_shown(frames[end]) == is_shown:
            end += 1
        runs += _runs(tuple(frames[start:end]), is_shown=is_shown)
        start = end
    return tuple(runs)


def _is_shown(frame: FrameDetails) -> bool:
    return frame.is_main or frame.is_own or frame.is_library


def _runs(frames: tuple[FrameDetails, ...], *, is_shown: bool) -> list[Run]:
    if not is_shown:
        return [Run(frames, _fold_words(frames) if len(frames) >= _FOLD_FROM else "")]
    if len(frames) <= _MAX_IN_A_ROW:
        return [Run(frames)]
    middle = frames[_KEPT_FIRST:-_KEPT_LAST]
    return [
        Run(frames[:_KEPT_FIRST]),
        Run(middle, f"… {len(middle):,} more frames"),
        Run(frames[-_KEPT_LAST:]),
    ]


def _fold_words(frames: Sequence[FrameDetails]) -> str:
    kinds = {frame.kind for frame in frames}
    of = "torch" if kinds == {"torch"} else "torch and Python" if "torch" in kinds else "Python"
    return f"… {len(frames):,} frames of {of}"


def as_text(details: AllocationDetails) -> str:
    """Return all details as text."""
    rows = [(row.label, row.text) for row in rows_of(details)]
    same = details.same_stack
    rows.insert(0, ("size", _both(details.size_bytes)))
    which = f"{details.stack}: " if details.frames else ""
    rows.append(("stack", f"{which}{same_stack_text(details)}"))
    at_peak = "" if details.lifetime is None else f", {_both(same.peak_bytes)} at the peak"
    rows.append(("its bytes", f"{_both(same.size_bytes)} in total{at_peak}"))
    width = max(len(label) for label, _ in rows)
    lines = [details.name, *(f"  {label:<{width}}  {text}" for label, text in rows)]
    lines += _section("allocated by", [full_text(frame) for frame in details.frames])
    lines += _section("in the forward pass", forward_lines(details))
    lines += _section("freed by", [full_text(frame) for frame in details.free_frames or ()])
    return "\n".join(lines) + "\n"


def _both(size_bytes: int) -> str:
    text = format_bytes(size_bytes)
    return text if text.endswith(" B") else f"{text} ({size_bytes:,} B)"


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {line}" for line in lines)] if lines else []
