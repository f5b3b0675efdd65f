"""Module Details of a single tensor: its layout in memory, or in the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from snapviewer.explorer.explored_model import ExploredModel, is_missing
from snapviewer.explorer.formats import shape_or_scalar
from snapviewer.explorer.safe_call import CallFailure, safe_call
from snapviewer.explorer.tree import TensorEntry
from snapviewer.text.units import count_of, format_bytes

from . import ui

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer._core import Tensor

_MAX_PLACES = 4
_Rows = list[tuple[str, "str | Text | None"]]


def content(explored: ExploredModel, entry: TensorEntry, width: int) -> RenderableType:
    """Show a tensor without reading its elements."""
    live, kept = explored.tensor_of(entry), explored.file_tensor_of(entry)
    model = explored.tree.root.sums
    whole = model.buffers if entry.is_buffer else model.parameters
    of = "buffers" if entry.is_buffer else "parameters"
    elements = Text(f"{entry.elements:,}").append(
        f"  {ui.percent(entry.elements, whole)} of all {of}" if whole else "", style=ui.QUIET
    )
    learned = "trainable parameter" if entry.is_trainable else "frozen parameter"
    return ui.stack(
        ui.title(entry.path, width=width),
        ui.sentence(f"The live tensor cannot be read {live}.", style=ui.WARNING)
        if type(live) is CallFailure
        else None,
        ui.section(
            "Tensor",
            ui.key_values(
                [
                    ("kind", "buffer" if entry.is_buffer else learned),
                    ("shape", shape_or_scalar(entry.shape)),
                    ("elements", elements),
                    ("dtype", ui.short_name(entry.dtype)),
                    ("device", ui.short_name(entry.device)),
                    ("memory", format_bytes(entry.size_bytes)),
                    ("tied", tie_text(explored, entry)),
                ]
            ),
        ),
        ui.section(
            "In memory", None if is_missing(live) else ui.key_values(_in_memory(entry, live))
        ),
        ui.section("In the file", ui.key_values(_in_file(explored, *kept)) if kept else None),
    )


def tie_text(explored: ExploredModel, entry: TensorEntry) -> Text | None:
    """Return where else the same elements are used; None if nowhere."""
    if entry.tied_to is not None:
        return Text(f"tied to {ui.short_name(entry.tied_to)}", style=ui.WARNING)
    places = explored.index.ties.get(entry.path, ())
    if not places:
        return None
    text = ", ".join(ui.short_name(place) for place in places[:_MAX_PLACES])
    left = len(places) - _MAX_PLACES
    return Text(f"also used at {text}{f' and {left:,} more' if left > 0 else ''}", style=ui.WARNING)


def _in_memory(entry: TensorEntry, live: Any) -> _Rows:
    layout = safe_call(lambda: str(live.layout).removeprefix("torch."))
    if layout != "strided":
        return [("layout", ui.short_name(str(layout)))]
    strides = safe_call(lambda: tuple(live.stride()))
    address = safe_call(lambda: int(live.data_ptr()))
    stored = safe_call(lambda: int(live.untyped_storage().nbytes()))
    offset = safe_call(lambda: int(live.storage_offset()))
    gradient = safe_call(lambda: live.grad)
    rows: _Rows = [
        ("stride", _or_failure(strides, shape_or_scalar)),
        ("layout", _or_failure(safe_call(lambda: _order_of(live)), str)),
        (
            "address",
            _or_failure(address, lambda at: hex(at) if at else "none: no elements"),
        ),
        ("storage", _or_failure(stored, lambda size: _storage_text(size, entry.size_bytes))),
        ("offset", _or_failure(offset, lambda at: f"{count_of(at, 'element')}" if at else "")),
    ]
    if not isinstance(gradient, CallFailure) and not entry.is_buffer:
        rows.append(("gradient", "none" if gradient is None else "computed"))
    return rows


def _or_failure(answer: Any, format_answer: Any) -> str:
    return str(answer) if isinstance(answer, CallFailure) else format_answer(answer)


def _order_of(live: Any) -> str:
    import torch

    if live.is_contiguous():
        return "contiguous"
    if live.dim() == 4 and live.is_contiguous(memory_format=torch.channels_last):
        return "channels last"
    return "not contiguous"


def _storage_text(stored_bytes: int, needed_bytes: int) -> str:
    if stored_bytes == needed_bytes:
        return f"{format_bytes(stored_bytes)}, not shared"
    if stored_bytes < needed_bytes:
        return f"{format_bytes(stored_bytes)}: elements are repeated"
    return f"{format_bytes(stored_bytes)}, of which it needs {format_bytes(needed_bytes)}"


def _in_file(explored: ExploredModel, index: int, kept: Tensor) -> _Rows:
    storage = next(
        (
            item
            for item in (explored.checkpoint.storages if explored.checkpoint else ())
            if index in item.tensors
        ),
        None,
    )
    rows: _Rows = [
        (
            "file",
            ui.short_name(kept.file or (explored.checkpoint.path if explored.checkpoint else "")),
        ),
        ("saved as", ui.short_name(kept.class_name or kept.kind)),
        ("stride", "" if kept.stride is None else shape_or_scalar(kept.stride)),
        ("parts", f"{len(kept.parts):,}" if kept.parts else None),
        ("storage", None if kept.storage is None else ui.short_name(kept.storage)),
        ("offset", f"{count_of(kept.offset, 'element')}" if kept.offset else None),
    ]
    if storage is not None:
        size = _storage_text(storage.bytes, kept.logical_bytes)
        rows.append(("size", size))
        if storage.packed_bytes != storage.bytes:
            rows.append(("packed", format_bytes(storage.packed_bytes)))
        rows.append(("file offset", f"byte {storage.start:,}"))
    if kept.wasted_bytes:
        rows.append(("wasted", Text(format_bytes(kept.wasted_bytes), style=ui.WARNING)))
    return rows
