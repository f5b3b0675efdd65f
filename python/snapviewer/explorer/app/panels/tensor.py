"""What Module Details tells of a single tensor: how it lies in memory, or in the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from snapviewer.explorer.formats import format_memory, format_shape
from snapviewer.explorer.guarded import Refused, asked
from snapviewer.explorer.subject import Subject, is_missing
from snapviewer.explorer.tree import TensorEntry
from snapviewer.text.units import count_of

from .parts import QUIET, WARNING, facts, percent, section, sentence, shown, stacked, title

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer._core import Tensor

_MOST_PLACES = 4
_Rows = list[tuple[str, "str | Text | None"]]


def content(subject: Subject, entry: TensorEntry, width: int) -> RenderableType:
    """Tell all that is known of a tensor without reading its elements."""
    live, kept = subject.tensor_of(entry), subject.file_tensor_of(entry)
    model = subject.tree.root.sums
    whole = model.buffers if entry.is_buffer else model.parameters
    of = "buffers" if entry.is_buffer else "parameters"
    elements = Text(f"{entry.elements:,}").append(
        f"  {percent(entry.elements, whole)} of all {of}" if whole else "", style=QUIET
    )
    learned = "trainable parameter" if entry.is_trainable else "frozen parameter"
    return stacked(
        title(entry.path, width=width),
        sentence(f"The live tensor cannot be asked {live}.", style=WARNING)
        if type(live) is Refused
        else None,
        section(
            "Tensor",
            facts(
                [
                    ("kind", "buffer" if entry.is_buffer else learned),
                    ("shape", format_shape(entry.shape) or "scalar"),
                    ("elements", elements),
                    ("dtype", shown(entry.dtype)),
                    ("device", shown(entry.device)),
                    ("memory", format_memory(entry.size_bytes)),
                    ("tied", tie_text(subject, entry)),
                ]
            ),
        ),
        section("In memory", None if is_missing(live) else facts(_in_memory(entry, live))),
        section("In the file", facts(_in_file(subject, *kept)) if kept else None),
    )


def tie_text(subject: Subject, entry: TensorEntry) -> Text | None:
    """Say where else the same elements are; None if nowhere."""
    if entry.tied_to is not None:
        return Text(f"tied to {shown(entry.tied_to)}", style=WARNING)
    places = subject.places.ties.get(entry.path, ())
    if not places:
        return None
    text = ", ".join(shown(place) for place in places[:_MOST_PLACES])
    left = len(places) - _MOST_PLACES
    return Text(f"used also at {text}{f' and {left:,} more' if left > 0 else ''}", style=WARNING)


def _in_memory(entry: TensorEntry, live: Any) -> _Rows:
    layout = asked(lambda: str(live.layout).removeprefix("torch."))
    if layout != "strided":
        return [("layout", shown(str(layout)))]
    strides = asked(lambda: tuple(live.stride()))
    address = asked(lambda: int(live.data_ptr()))
    stored = asked(lambda: int(live.untyped_storage().nbytes()))
    offset = asked(lambda: int(live.storage_offset()))
    gradient = asked(lambda: live.grad)
    rows: _Rows = [
        ("stride", _or_refusal(strides, lambda steps: format_shape(steps) or "scalar")),
        ("layout", _or_refusal(asked(lambda: _order_of(live)), str)),
        ("address", _or_refusal(address, lambda at: hex(at) if at else "none: no elements here")),
        ("storage", _or_refusal(stored, lambda size: _storage_text(size, entry.size_bytes))),
        ("offset", _or_refusal(offset, lambda at: f"{count_of(at, 'element')}" if at else "")),
    ]
    if not isinstance(gradient, Refused) and not entry.is_buffer:
        rows.append(("gradient", "none" if gradient is None else "computed"))
    return rows


def _or_refusal(answer: Any, say: Any) -> str:
    return str(answer) if isinstance(answer, Refused) else say(answer)


def _order_of(live: Any) -> str:
    import torch

    if live.is_contiguous():
        return "contiguous"
    if live.dim() == 4 and live.is_contiguous(memory_format=torch.channels_last):
        return "channels last"
    return "not contiguous"


def _storage_text(stored_bytes: int, needed_bytes: int) -> str:
    if stored_bytes == needed_bytes:
        return f"{format_memory(stored_bytes)}, its own"
    if stored_bytes < needed_bytes:
        return f"{format_memory(stored_bytes)}: elements are repeated"
    return f"{format_memory(stored_bytes)}, of which it needs {format_memory(needed_bytes)}"


def _in_file(subject: Subject, index: int, kept: Tensor) -> _Rows:
    storage = next(
        (
            item
            for item in (subject.checkpoint.storages if subject.checkpoint else ())
            if index in item.tensors
        ),
        None,
    )
    rows: _Rows = [
        ("file", shown(kept.file or (subject.checkpoint.path if subject.checkpoint else ""))),
        ("saved as", shown(kept.class_name or kept.kind)),
        ("stride", "" if kept.stride is None else format_shape(kept.stride) or "scalar"),
        ("parts", f"{len(kept.parts):,}" if kept.parts else None),
        ("storage", None if kept.storage is None else shown(kept.storage)),
        ("offset", f"{count_of(kept.offset, 'element')}" if kept.offset else None),
    ]
    if storage is not None:
        size = _storage_text(storage.bytes, kept.logical_bytes)
        rows.append(("size", size))
        if storage.packed_bytes != storage.bytes:
            rows.append(("packed", format_memory(storage.packed_bytes)))
        rows.append(("begins at", f"byte {storage.start:,}"))
    if kept.wasted_bytes:
        rows.append(("wasted", Text(format_memory(kept.wasted_bytes), style=WARNING)))
    return rows
