"""What is known of an allocation, in words: for the clipboard, a bug report, and the window.

Everything from a file is on one line here and free of control characters, whatever the file says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from snapviewer.snapshot.allocation_details import AllocationDetails, FrameDetails, Length, When
from snapviewer.snapshot.frames import frame_text
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize
from snapviewer.text.units import count_of, format_bytes, format_duration, format_unix_us

_FOLD_FROM = 2
_MOST_SAID = 2000  # characters of what may be long, such as a function of C++
_MOST_AROUND = 20
_MOST_FORWARD = 500
_MOST_IN_A_ROW, _KEPT_FIRST, _KEPT_LAST = 40, 30, 5


@dataclass(frozen=True, slots=True)
class Value:
    """Something told: how it reads, and what is copied of it."""

    text: str
    plain: str


@dataclass(frozen=True, slots=True)
class Row:
    """A line of facts: what they are about, and what stands between them."""

    label: str
    values: tuple[Value, ...]
    joiner: str = " · "

    @property
    def text(self) -> str:
        return self.joiner.join(value.text for value in self.values)


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbours in a stack: shown one by one, or folded into a few words."""

    frames: tuple[FrameDetails, ...]
    words: str = ""

    @property
    def is_folded(self) -> bool:
        return bool(self.words)


def full_text(frame: FrameDetails) -> str:
    """Say where a frame is, in full: `attention (/home/a/model.py:77)`."""
    name = sanitize(frame.frame.name, _MOST_SAID)
    filename = sanitize(frame.frame.filename, _MOST_SAID)
    if not filename or filename == "??":
        return name or "??"
    place = f"{filename}:{frame.frame.line}" if frame.frame.line else filename
    return f"{name} ({place})"


def short_text(frame: FrameDetails) -> str:
    """Say where a frame is, in a few words."""
    return sanitize(frame_text(frame.frame), MAX_NAME_CHARS) or "??"


def size_values(facts: AllocationDetails) -> tuple[Value, ...]:
    """Say how large it is: for reading, and to the byte."""
    plain = str(facts.size_bytes)
    texts = dict.fromkeys((format_bytes(facts.size_bytes), f"{facts.size_bytes:,} B"))
    return tuple(Value(text, plain) for text in texts)


def rows_of(facts: AllocationDetails) -> tuple[Row, ...]:
    """Tell everything but the name, the size and the stacks."""
    return tuple(_rows(facts))


def _rows(facts: AllocationDetails) -> Iterator[Row]:
    if facts.rounded_bytes is not None and facts.rounded_bytes != facts.size_bytes:
        more = facts.rounded_bytes - facts.size_bytes
        text = f"{facts.rounded_bytes:,} B ({'+' if more > 0 else '−'}{format_bytes(abs(more))})"
        yield Row("rounded to", (Value(text, str(facts.rounded_bytes)),))
    yield from _life(facts)
    address = f"0x{facts.address:x}"
    yield Row("address", (Value(address, address),))
    yield _row("stream", str(facts.stream))
    yield _row("pool", facts.pool)
    yield _row("device", "pinned host memory" if facts.device < 0 else str(facts.device))
    for label, said in (
        ("category", facts.category),
        ("compiling", facts.compile_context),
        ("metadata", facts.user_metadata),
    ):
        if said is not None:
            yield _row(label, sanitize(said, _MOST_SAID))
    if facts.annotations:
        yield Row("during", tuple(Value(name, name) for name in _around(facts)), " › ")
    if facts.flags:
        yield Row("note", tuple(Value(flag, flag) for flag in facts.flags))


def _around(facts: AllocationDetails) -> list[str]:
    """Name the annotations around it, outermost first; of very many, those at both ends."""
    names = facts.annotations
    if len(names) <= _MOST_AROUND:
        return [sanitize(name, MAX_NAME_CHARS) for name in names]
    outer, inner = names[: _MOST_AROUND // 4], names[-_MOST_AROUND * 3 // 4 :]
    left_out = f"… {len(names) - len(outer) - len(inner):,} more"
    return [
        *(sanitize(name, MAX_NAME_CHARS) for name in outer),
        left_out,
        *(sanitize(name, MAX_NAME_CHARS) for name in inner),
    ]


def forward_lines(facts: AllocationDetails) -> list[str]:
    """Return the lines of the forward pass; of very many, the first."""
    lines = [sanitize(line, MAX_NAME_CHARS) for line in facts.forward_frames[:_MOST_FORWARD]]
    more = len(facts.forward_frames) - len(lines)
    return [*lines, f"… {more:,} more"] if more else lines


def _life(facts: AllocationDetails) -> Iterator[Row]:
    if facts.lifetime is None:
        return
    ends = (_event(facts.allocated, "start"), _event(facts.freed, "end"))
    yield Row("alive", ends, " – ")
    least = "" if facts.is_lifetime_whole else "at least "
    yield Row("for", _length(facts.lifetime, least))
    for label, when in (("allocated", facts.allocated), ("freed", facts.freed)):
        if when is not None and when.time_us is not None:
            yield Row(label, (_time(when.time_us),))
    if facts.free_requested is not None and facts.pending is not None:
        asked = [_event(facts.free_requested, "")]
        if facts.free_requested.time_us is not None:
            asked.append(_time(facts.free_requested.time_us))
        yield Row("free asked", tuple(asked))
        yield Row("pending", _length(facts.pending, "" if facts.freed else "at least "))


def _row(label: str, text: str) -> Row:
    return Row(label, (Value(text, text),))


def _event(when: When | None, otherwise: str) -> Value:
    text = otherwise if when is None else str(when.event)
    return Value(otherwise if when is None else f"{when.event:,}", text)


def _time(unix_us: int) -> Value:
    return Value(format_unix_us(unix_us), format_unix_us(unix_us))


def _length(length: Length, words: str) -> tuple[Value, ...]:
    """Say how long something was; the words stand before the first value."""
    values = [Value(f"{words}{count_of(length.events, 'event')}", str(length.events))]
    if length.time_us is not None:
        text = format_duration(length.time_us)
        values.append(Value(text, text))
    return tuple(values)


def same_stack_text(facts: AllocationDetails) -> str:
    """Say what its stack made in all."""
    same = facts.same_stack
    which = "with this stack" if facts.frames else "without a stack"
    return (
        f"{count_of(same.allocations, 'allocation')} {which}, {format_bytes(same.size_bytes)}"
        f" together · {_percent(same.peak_share)} of the peak"
    )


def _percent(share: float) -> str:
    """Say a share.

    >>> [_percent(share) for share in (0, 0.0004, 0.0314, 0.31, 1)]
    ['0 %', '<0.1 %', '3.1 %', '31 %', '100 %']
    """
    if 0 < share < 0.001:
        return "<0.1 %"
    return f"{share * 100:.{1 if 0 < share < 0.0995 else 0}f} %"


def runs_of(frames: Sequence[FrameDetails]) -> tuple[Run, ...]:
    """Divide a stack: the user's and other packages' frames are shown, PyTorch's are folded.

    Of very many that would be shown, those in the middle are folded, too.
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
    if len(frames) <= _MOST_IN_A_ROW:
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


def as_text(facts: AllocationDetails) -> str:
    """Return everything as text, for a bug report."""
    rows = [(row.label, row.text) for row in rows_of(facts)]
    same = facts.same_stack
    rows.insert(0, ("size", _both(facts.size_bytes)))
    which = f"{facts.stack}: " if facts.frames else ""
    rows.append(("stack", f"{which}{same_stack_text(facts)}"))
    rows.append(
        ("its bytes", f"{_both(same.size_bytes)} in all, {_both(same.peak_bytes)} at the peak")
    )
    width = max(len(label) for label, _ in rows)
    lines = [facts.name, *(f"  {label:<{width}}  {text}" for label, text in rows)]
    lines += _section("allocated by", [full_text(frame) for frame in facts.frames])
    lines += _section("in the forward pass", forward_lines(facts))
    lines += _section("freed by", [full_text(frame) for frame in facts.free_frames or ()])
    return "\n".join(lines) + "\n"


def _both(size_bytes: int) -> str:
    text = format_bytes(size_bytes)
    return text if text.endswith(" B") else f"{text} ({size_bytes:,} B)"


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {line}" for line in lines)] if lines else []
