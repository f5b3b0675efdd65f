"""The table that `pth_analyzer` prints.

Columns are 40, 20 and 15 wide. Long names are shortened in the middle. The shape of a tensor is not
cut: it pushes the size to the right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from snapviewer.text.sanitize import sanitize, shorten_middle

MAX_ROWS = 1000  # of one container; the results have more
_WIDTH = 80
_NAME, _TYPE, _SIZE = 40, 20, 15
_MAX_INDENT = 24
_MAX_SHAPE = 60


def table_of(results: Mapping[str, Any]) -> str:
    """Return the results of `analyze_pth_file` as a table."""
    line, double = "-" * _WIDTH, "=" * _WIDTH
    total = f"{results['total_size_formatted']} ({results['total_size_bytes']:,} bytes)"
    head = [
        double,
        f"PTH File Analysis: {sanitize(str(results['file_path']))}",
        double,
        f"Total Size: {total}",
        f"Number of Variables: {results['num_variables']}",
        "",
        line,
        _row("Variable Name", "Type", "Size"),
        line,
    ]
    return "\n".join([*head, *_rows(results), line]) + "\n"


def _row(name: str, kind: str, size: str) -> str:
    return f"{name:<{_NAME}} {kind:<{_TYPE}} {size:<{_SIZE}}"


def _rows(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rows depth first, with a stack: files may nest deeper than Python can recurse."""
    stack = [_level(results, results["variables"])]
    while stack:
        indent = " " * min(2 * (len(stack) - 1), _MAX_INDENT)
        item = next(stack[-1], None)
        if item is None:
            stack.pop()
        elif isinstance(item, str):
            yield _row(indent + item, "", "")
        else:
            name, entry = item
            label = shorten_middle(sanitize(str(name), 400), _NAME - len(indent))
            yield _row(indent + label, _type_text(entry), _size_text(entry))
            if "contents" in entry:
                stack.append(_level(entry, entry["contents"]))


def _level(
    owner: Mapping[str, Any], contents: Mapping[Any, Any]
) -> Iterator[tuple[Any, dict[str, Any]] | str]:
    """Yield the entries of a container, then how many are left out."""
    for place, (name, entry) in enumerate(contents.items()):
        if place == MAX_ROWS:
            break
        yield name, entry
    left_out = max(len(contents) - MAX_ROWS, 0) + owner.get("hidden_items", 0)
    if left_out:
        more = " more" if contents else ""
        yield f"… {left_out:,}{more} item{'s' if left_out > 1 else ''} not shown"


def _type_text(entry: Mapping[str, Any]) -> str:
    if "shape" in entry:
        what = "Tensor" if entry["type"] == "torch.Tensor" else entry["type"].rpartition(".")[2]
        shape = ", ".join(map(str, entry["shape"]))
        return f"{sanitize(what, _TYPE)}({shorten_middle(shape, _MAX_SHAPE)})"
    return shorten_middle(sanitize(entry["type"], 400), _TYPE)


def _size_text(entry: Mapping[str, Any]) -> str:
    size = entry["size_formatted"]
    for key, words in (("same_as", "same as"), ("shares_storage_with", "shares memory with")):
        if key in entry:
            return f"{size}  {words} {shorten_middle(sanitize(entry[key], 400), _NAME)}"
    return str(size)
