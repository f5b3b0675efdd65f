"""`explore`: browse a checkpoint in the terminal, or keep what is in it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from snapviewer import _core
from snapviewer.checkpoint.paths import one_file
from snapviewer.explorer.app import opening
from snapviewer.explorer.checkpoint import tree_of_checkpoint
from snapviewer.explorer.compare import compare_trees
from snapviewer.explorer.config import ExplorerConfig
from snapviewer.explorer.tree import Tree
from snapviewer.files.atomic_write import atomic_write
from snapviewer.report.tree import html as page
from snapviewer.report.tree import json as document
from snapviewer.report.tree import text
from snapviewer.report.tree.comparison import as_text as comparison_text
from snapviewer.report.tree.diagram import diagram_of
from snapviewer.report.tree.selection import SORTS, Seen
from snapviewer.text.progress import progress_bar

from .arguments import positive, whole

_EXPORTS: dict[str, Callable[[Tree, Seen], str]] = {
    "text": text.as_text,
    "json": lambda tree, seen: f"{document.as_json(tree, seen)}\n",
    "html": page.as_html,
    "svg": lambda tree, _: diagram_of(tree),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.epilog = (
        "Checkpoints are read without torch, and nothing in them is run. Without a terminal, the "
        "tree is printed. For live models: snapviewer.explorer.explore_model(model) in Python."
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        help=".pth, .pt, .pt2, .safetensors, an index of shards, or its directory",
    )
    parser.add_argument("--compare", metavar="OTHER", help="mark what changes from FILE to OTHER")
    parser.add_argument(
        "--export", choices=sorted(_EXPORTS), help="write the tree instead of opening it"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="where to (standard output)"
    )
    parser.add_argument("--depth", type=positive, metavar="N", help="how many levels are unfolded")
    parser.add_argument("--sort", choices=SORTS, default="order", help="of exports (%(default)s)")
    parser.add_argument(
        "--hide-below",
        type=_count,
        default=0,
        metavar="N",
        help="leave modules with fewer parameters out of exports, such as 10K",
    )
    parser.add_argument("--light", action="store_true", help="dark letters on a light background")
    parser.set_defaults(run=_explore, usage_error=parser.error)


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
    options.file = one_file(options.file)
    if options.compare is not None:
        options.compare = one_file(options.compare)
    form = options.export
    if form is None and options.output is not None:
        form = _form_of(options.output)
        if form is None:
            options.usage_error("--export says what is to be written")
    if form is None and opening.is_watched():
        config = _config(options)
        opening.open_explorer(options.file, name=options.file, config=config, other=options.compare)
        return
    if options.compare is not None:
        if form not in (None, "text"):
            options.usage_error("a comparison is exported as text only")
        comparison = compare_trees(_tree(options.file), _tree(options.compare))
        _write(comparison_text(comparison, max_depth=options.depth), options.output)
        return
    seen = Seen(max_depth=options.depth, hide_below=options.hide_below, sort=options.sort)
    _write(_EXPORTS[form or "text"](_tree(options.file), seen), options.output)


def _form_of(output: Path) -> str | None:
    """Return the format that the name of an output stands for."""
    forms = {".txt": "text", ".json": "json", ".html": "html", ".htm": "html", ".svg": "svg"}
    return forms.get(output.suffix.lower())


def _config(options: argparse.Namespace) -> ExplorerConfig | None:
    """Return what was chosen; None for the choices of the last time."""
    if not options.light and options.depth is None:
        return None
    return ExplorerConfig(
        color_scheme="light" if options.light else "dark", max_depth=options.depth
    )


def _tree(file: str) -> Tree:
    with progress_bar("reading") as progress:
        return tree_of_checkpoint(_core.read_checkpoint(file, progress=progress))


def _write(content: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(content)
        return
    with atomic_write(output) as file:
        file.write(content.encode("utf-8", "backslashreplace"))
