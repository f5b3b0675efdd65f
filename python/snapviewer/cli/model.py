"""`model`: what a model is and computes."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from snapviewer import SnapshotError
from snapviewer.aside import written_aside
from snapviewer.document.pdf import PdfUnavailable
from snapviewer.model.analysis import ModelAnalysis, analyze_file
from snapviewer.model.graph import TensorSpec
from snapviewer.progress import progress_bar
from snapviewer.report.model import console
from snapviewer.report.model.formats import rendered, suffixes

from .arguments import print_json

REPORT = "comprehensive_model_analysis.txt"
ABOUT = "tell what a model is and computes: architecture, parameters, operations, FLOPs, advice"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.epilog = (
        "Nothing of the file is run, and torch is not needed, unless --inference asks for it: that "
        "loads the file's code and runs it, so only do it with files of people you trust."
    )
    parser.add_argument("file", metavar="MODEL", help="TorchScript, .pt2, state dict, .safetensors")
    parser.add_argument(
        "--input",
        action="append",
        type=_input,
        metavar="SHAPE",
        help="what the model is called with, such as 1x3x224x224 or 1x128:int64; once for each",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help=f"the report: {', '.join(suffixes())}"
    )
    parser.add_argument(
        "--no-stats", action="store_true", help="do not read the elements of the parameters"
    )
    parser.add_argument(
        "--quality",
        action="store_true",
        default=None,
        help="what fewer bits would cost, also of large files",
    )
    parser.add_argument(
        "--inference",
        action="store_true",
        help="run the model: times, memory, energy (needs torch)",
    )
    parser.add_argument(
        "--profile", action="store_true", help="the same, and look at the machine as well"
    )
    parser.set_defaults(run=_model)


def add_parser_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `pytorch_parser`, which always writes its report."""
    add_options(parser)
    parser.set_defaults(output=Path(REPORT))


def _input(text: str) -> TensorSpec:
    found = re.fullmatch(r"(\d{1,9}(?:[x×,]\d{1,9})*)(?::([a-z0-9_]{1,20}))?", text.strip().lower())
    if found is None:
        raise argparse.ArgumentTypeError("must be a shape, such as 1x3x224x224 or 1x128:int64")
    shape = tuple(int(size) for size in re.split("[x×,]", found[1]))
    return TensorSpec(shape, found[2] or "float32")


def _model(options: argparse.Namespace) -> None:
    with progress_bar("reading") as progress:
        analysis = analyze_file(
            options.file,
            inputs=options.input,
            has_stats=not options.no_stats,
            has_quality=False if options.no_stats else options.quality,
            is_run=options.inference or options.profile,
            has_system=options.profile,
            progress=progress,
        )
    if options.output is not None:
        content = _rendered(analysis, options.output)
        with written_aside(options.output) as file:
            file.write(content)
    if options.json:
        print_json(analysis.to_dict())
    else:
        _tell(analysis)
        if options.output is not None:
            print(f"Report: {options.output}")


def _rendered(analysis: ModelAnalysis, output: Path) -> bytes:
    try:
        return rendered(analysis, output.suffix)
    except PdfUnavailable as error:
        raise SnapshotError(error.sentence("en")) from None


def _tell(analysis: ModelAnalysis) -> None:
    for part in (
        console.title(),
        console.loading(analysis),
        console.parameters(analysis),
        console.nodes(analysis),
        console.summary(analysis),
    ):
        for line in part:
            print(line)
