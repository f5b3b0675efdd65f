"""`explore`: browse the modules of a checkpoint in the terminal, or write their tree."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from snapviewer import _core
from snapviewer.checkpoint.paths import below, one_file
from snapviewer.explorer.app import opening
from snapviewer.explorer.app.settings import ExplorerConfig
from snapviewer.explorer.checkpoint import tree_of_checkpoint
from snapviewer.explorer.compare import compare_trees
from snapviewer.explorer.tree import Tree
from snapviewer.report.tree import comparison as comparison_report
from snapviewer.report.tree import diagram, text
from snapviewer.report.tree import html as page
from snapviewer.report.tree import json as document
from snapviewer.report.tree.selection import Sort, TreeSelection
from snapviewer.text.progress import progress_bar
from snapviewer.text.sanitize import json_text, sanitize
from snapviewer.text.table import format_table
from snapviewer.text.units import format_bytes

from .errors import CommandError, UsageError
from .options import (
    add_compare,
    add_depth,
    add_json,
    add_output,
    add_sort,
    add_theme,
    add_verbosity,
    compared,
    whole,
)
from .outputs import check_outputs, print_written, write_file

_SUFFIXES = {".txt": "text", ".json": "json", ".html": "html", ".htm": "html", ".svg": "svg"}
# The words of all commands, and the tree's own.
_SORTS: dict[str, Sort] = {"file": "order", "name": "name", "size": "memory", "params": "params"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.epilog = (
        "Checkpoints are read without torch, and no code in them is run. Without a terminal, the "
        "tree is printed. For live models: snapviewer.explorer.explore_model(model) in Python."
    )
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help=".pth, .pt, .pt2, .safetensors, an index of shards, or a directory; without one, "
        "choose from the checkpoints here and below",
    )
    add_compare(parser)
    add_depth(parser, "unfold N levels of modules")
    add_sort(
        parser,
        tuple(_SORTS),
        default="file",
        about="order of modules in outputs (default: %(default)s)",
        aliases={"order": "file", "memory": "size"},
    )
    parser.add_argument(
        "--hide-below",
        type=_count,
        default=0,
        metavar="N",
        help="leave modules with fewer parameters out of outputs, such as 10K",
    )
    add_theme(parser)
    parser.add_argument(
        "--light", action="store_const", dest="theme", const="light", help=argparse.SUPPRESS
    )
    add_json(parser)
    add_output(parser, f"write the tree instead of opening it: {', '.join(_SUFFIXES)}")
    parser.add_argument(
        "--export",
        choices=sorted({*_SUFFIXES.values()}),
        help="format to print, or of -o, whatever its suffix",
    )
    add_verbosity(parser)
    parser.set_defaults(run=_explore)


def _count(text: str) -> int:
    """Read a number of parameters, such as 10K or 1.5M."""
    scale = {"k": 1e3, "m": 1e6, "b": 1e9}.get(text[-1:].lower(), 1)
    if scale == 1:
        number = whole(text)
    else:
        try:
            number = round(float(text[:-1]) * scale)
        except (ValueError, OverflowError):
            raise argparse.ArgumentTypeError("must be a number, such as 1000 or 10K") from None
    if number < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return number


def _explore(options: argparse.Namespace) -> None:
    if options.file is None:
        options.file = _chosen(options)
        if options.file is None:
            return
    first, other = compared(options) or (options.file, None)
    first, other = one_file(first), None if other is None else one_file(other)
    suffixes = tuple(_SUFFIXES) if options.export is None else ()
    check_outputs(options, inputs=[first, *([] if other is None else [other])], suffixes=suffixes)
    forms = {path: options.export or _SUFFIXES[path.suffix.lower()] for path in options.outputs}
    if not (options.json or options.export or forms) and opening.is_interactive():
        opening.open_explorer(first, name=first, config=_config(options), other=other)
        return
    renderers = _renderers(options, first, other)
    printed = "json" if options.json else options.export or "text"
    for form in [*forms.values(), printed]:
        if form not in renderers:
            raise UsageError(f"a comparison can be written as {' or '.join(renderers)}, not {form}")
    contents = [(path, renderers[form]()) for path, form in forms.items()]
    for path, content in contents:
        write_file(path, content)
    if forms and not options.json:
        print_written(options)
    else:
        sys.stdout.write(renderers[printed]())


def _chosen(options: argparse.Namespace) -> str | None:
    """Return the checkpoint that the user chooses; without a terminal, list what there is."""
    if options.json or options.outputs or options.export:
        raise UsageError("name the checkpoint that should be written")
    if opening.is_interactive():
        return opening.choose_file(".", config=_config(options))
    files = below(".")
    if not files:
        raise CommandError("no checkpoint here or below; name one: snapviewer explore FILE")
    rows = [(sanitize(file, 200), format_bytes(os.path.getsize(file))) for file in files]
    print("\n".join(format_table(rows, right={1}, indent="")))
    return None


def _renderers(
    options: argparse.Namespace, first: str, other: str | None
) -> dict[str, Callable[[], str]]:
    """Return what renders the tree, or the comparison of two, by the name of the format."""
    tree = _tree(first)
    if other is not None:
        comparison = compare_trees(tree, _tree(other))
        return {
            "text": lambda: comparison_report.as_text(comparison, max_depth=options.depth),
            "json": lambda: f"{json_text(comparison_report.to_json(comparison))}\n",
        }
    sort = _SORTS[options.sort]
    selection = TreeSelection(max_depth=options.depth, hide_below=options.hide_below, sort=sort)
    return {
        "text": lambda: text.as_text(tree, selection),
        "json": lambda: f"{json_text(document.to_json(tree, selection))}\n",
        "html": lambda: page.as_html(tree, selection),
        "svg": lambda: diagram.as_svg(tree),
    }


def _config(options: argparse.Namespace) -> ExplorerConfig | None:
    """Return what was chosen; None for the choices of the last time."""
    if options.theme is None and options.depth is None:
        return None
    return ExplorerConfig(color_scheme=options.theme or "dark", max_depth=options.depth)


def _tree(file: str) -> Tree:
    with progress_bar("reading") as progress:
        return tree_of_checkpoint(_core.read_checkpoint(file, progress=progress))
