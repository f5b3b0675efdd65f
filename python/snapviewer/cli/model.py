"""`model`: what a model is, what it computes, and what would make it smaller or faster."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from math import inf, nan
from pathlib import Path
from typing import NoReturn

from snapviewer import SnapshotError
from snapviewer.checkpoint.paths import one_file
from snapviewer.files.atomic_write import atomic_write
from snapviewer.model.analysis import ModelAnalysis, RunOptions, analyze_file
from snapviewer.model.energy import energy_models
from snapviewer.model.energy.estimate import WORLD_G_PER_KWH, WORLD_SOURCE
from snapviewer.model.graph import TensorSpec
from snapviewer.report.model import console
from snapviewer.report.model.document import overview_blocks
from snapviewer.report.model.formats import rendered, suffixes
from snapviewer.report.model.json import to_json
from snapviewer.report.model.quantities import wrap_lines
from snapviewer.report.writers.pdf import PdfUnavailable
from snapviewer.report.writers.text import text_lines
from snapviewer.text.progress import progress_bar
from snapviewer.text.sanitize import json_outline

from . import description_of
from .arguments import seconds
from .running import prints_aside, stoppable

REPORT = "comprehensive_model_analysis.txt"
_USUAL = RunOptions()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.epilog = (
        "No code of the file is run, and torch is not needed, unless --inference or another option "
        "runs the model. That loads and runs the code of the file: do it only with files that "
        "you trust."
    )
    parser.add_argument(
        "file",
        metavar="MODEL",
        help="TorchScript, .pt2, state dict, .safetensors, or a directory with one of them",
    )
    parser.add_argument(
        "--input",
        action="append",
        type=_input,
        metavar="SHAPE",
        help="shape of an input, such as 1x3x224x224 or 1x128:int64; once for each input",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help=f"the report: {', '.join(suffixes())}"
    )
    parser.add_argument(
        "--stats",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="read all elements of the parameters (default: of files up to 2 GiB)",
    )
    parser.add_argument(
        "--quality",
        action="store_true",
        default=None,
        help="compute the cost of fewer bits, also for large files",
    )
    parser.add_argument(
        "--full", action="store_true", help="print every parameter, node and figure, not a summary"
    )
    parser.add_argument(
        "--inference",
        action="store_true",
        help="run the model: times, memory, energy (needs torch)",
    )
    parser.add_argument(
        "--profile", action="store_true", help="run the model and report on the machine as well"
    )
    _add_run_options(parser)
    parser.set_defaults(run=_model, always=None)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    running = parser.add_argument_group("running", "each of the first three also runs the model")
    running.add_argument(
        "--cuda-profiling",
        action="store_true",
        help="run on the GPU, timed by its own events",
    )
    running.add_argument(
        "--memory-debug",
        action="store_true",
        help="record every allocation, whatever PYTORCH_PROFILER_LEVEL is",
    )
    running.add_argument(
        "--energy-monitor",
        action="store_true",
        help="watch the idle machine first, to measure what the runs add to it",
    )
    running.add_argument(
        "--budget",
        type=seconds,
        default=_USUAL.budget_s,
        metavar="SECONDS",
        help="stop after 10 runs or SECONDS (default %(default)g)",
    )
    running.add_argument(
        "--tdp",
        type=_watts,
        metavar="W",
        help="thermal design power of the chip, to estimate energy where no sensor measures it",
    )
    running.add_argument(
        "--carbon-intensity",
        type=_intensity,
        metavar="G",
        help=f"grams of CO2 per kWh ({WORLD_G_PER_KWH:g}, {WORLD_SOURCE})",
    )
    running.add_argument(
        "--energy-model",
        choices=energy_models(),
        default=_USUAL.energy_model,
        help="how to estimate energy where no sensor measures it",
    )


class _MarkedParser(argparse.ArgumentParser):
    """Reports wrong usage as `pytorch_parser` reports all errors: marked, with exit code 1."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"[ERROR] {message}\n")


def pytorch_parser() -> argparse.ArgumentParser:
    """Return the parser of `pytorch_parser`, which always writes its report."""
    parser = _MarkedParser(prog="pytorch_parser", description=description_of("model"))
    add_options(parser)
    parser.set_defaults(always=Path(REPORT), full=True)
    return parser


def _input(text: str) -> TensorSpec:
    found = re.fullmatch(r"(\d{1,9}(?:[x×,]\d{1,9})*)(?::([a-z0-9_]{1,20}))?", text.strip().lower())
    if found is None:
        raise argparse.ArgumentTypeError("must be a shape, such as 1x3x224x224 or 1x128:int64")
    shape = tuple(int(size) for size in re.split("[x×,]", found[1]))
    return TensorSpec(shape, found[2] or "float32")


def _watts(text: str) -> float:
    return _number(text, "W", least=0.0)


def _intensity(text: str) -> float:
    return _number(text, "g/kWh", least=-1.0)


def _number(text: str, unit: str, *, least: float) -> float:
    """Read a number above the least."""
    try:
        number = float(text)
    except ValueError:
        number = nan
    if not least < number < inf or number < 0:
        raise argparse.ArgumentTypeError(f"must be a number of {unit}, such as 65")
    return number


# How long --energy-monitor watches the idle machine.
_IDLE_S = 1.0


def _model(options: argparse.Namespace) -> None:
    is_run = (
        options.inference
        or options.profile
        or options.cuda_profiling
        or options.memory_debug
        or options.energy_monitor
    )
    with ExitStack() as stack:
        if is_run:
            stack.enter_context(prints_aside())
            stack.enter_context(stoppable())
        progress = stack.enter_context(progress_bar("running" if is_run else "reading"))
        analysis = analyze_file(
            one_file(options.file),
            inputs=options.input,
            has_stats=options.stats,
            has_quality=False if options.stats is False else options.quality,
            is_run=is_run,
            has_system=options.profile,
            options=RunOptions(
                device="cuda" if options.cuda_profiling else None,
                tdp_w=options.tdp,
                carbon_intensity=options.carbon_intensity,
                energy_model=options.energy_model,
                idle_s=_IDLE_S if options.energy_monitor else 0.0,
                is_memory_watched=options.memory_debug,
                budget_s=options.budget,
            ),
            progress=progress,
        )
    outputs = [path for path in (options.always, options.output) if path is not None]
    for path, content in [(path, _rendered(analysis, path)) for path in outputs]:
        with atomic_write(path) as file:
            file.write(content)
    if options.json:
        print(json_outline(to_json(analysis)))
    else:
        for line in _lines(analysis, is_full=options.full):
            print(line)
        for path in outputs:
            print(f"Report: {path}")


def _rendered(analysis: ModelAnalysis, output: Path) -> bytes:
    try:
        return rendered(analysis, output.suffix)
    except PdfUnavailable as error:
        raise SnapshotError(error.sentence("en")) from None


def _lines(analysis: ModelAnalysis, *, is_full: bool) -> Iterable[str]:
    if is_full:
        return wrap_lines(console.lines_of(analysis), _width())
    return (*text_lines(overview_blocks(analysis), _width()), "")


def _width() -> int | None:
    """Return how wide the terminal is, or `COLUMNS` says; what goes elsewhere has no width."""
    is_known = sys.stdout.isatty() or os.environ.get("COLUMNS")
    return shutil.get_terminal_size().columns if is_known else None
