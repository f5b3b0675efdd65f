"""`model`: describe a model file; `pytorch_parser` does so in the words that it promises.

Models may be run here, which is other people's code: TorchScript prints through C++, past Python's
streams, and a loop in it does not return to Python when Ctrl-C is pressed.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from math import inf, nan
from pathlib import Path
from typing import NoReturn

from snapviewer.checkpoint.paths import one_file
from snapviewer.files.atomic_write import atomic_write
from snapviewer.model.analysis import ModelAnalysis, RunOptions, analyze_file
from snapviewer.model.energy import energy_models
from snapviewer.model.energy.estimate import WORLD_G_PER_KWH, WORLD_SOURCE
from snapviewer.model.graph import TensorSpec
from snapviewer.report.model import console
from snapviewer.report.model.document import full_text, overview_blocks
from snapviewer.report.model.formats import rendered_parts, suffixes
from snapviewer.report.model.json import to_json
from snapviewer.report.model.quantities import wrap_lines
from snapviewer.report.model.text import as_text
from snapviewer.report.writers.pdf import PdfUnavailable
from snapviewer.report.writers.text import text_lines
from snapviewer.text.progress import progress_bar
from snapviewer.text.sanitize import json_outline

from . import description_of
from .errors import CommandError
from .options import add_json, add_output, add_verbosity, seconds
from .outputs import check_outputs, output_width, print_written, write_file

REPORT = "comprehensive_model_analysis.txt"
_USUAL = RunOptions()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    _add_analysis_options(parser, "FILE")
    parser.add_argument(
        "--full", action="store_true", help="print every parameter, operation and figure"
    )
    add_output(parser, f"write the report: {', '.join(suffixes())}")
    add_verbosity(parser)
    parser.set_defaults(run=_model)


class _MarkedParser(argparse.ArgumentParser):
    """Reports wrong usage as `pytorch_parser` reports all errors: marked, with exit code 1."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"[ERROR] {message}\n")


def pytorch_parser() -> argparse.ArgumentParser:
    """Return the parser of `pytorch_parser`, which prints everything and replaces its reports."""
    parser = _MarkedParser(prog="pytorch_parser", description=description_of("model"))
    _add_analysis_options(parser, "MODEL")
    add_output(parser, f"another report: {', '.join(suffixes())}", has_force=False)
    parser.set_defaults(run=_pytorch_parser)
    return parser


def _add_analysis_options(parser: argparse.ArgumentParser, metavar: str) -> None:
    parser.epilog = (
        "No code in the file is run, and torch is not needed, unless --inference or another option "
        "that runs the model is given. Those load and run the file's code: use them only with "
        "files that you trust."
    )
    parser.add_argument(
        "file",
        metavar=metavar,
        help="TorchScript, .pt2, state dict, .safetensors, or a directory with one of them",
    )
    parser.add_argument(
        "--input",
        action="append",
        type=_input,
        metavar="SHAPE",
        help="shape of an input, such as 1x3x224x224 or 1x128:int64; once per input",
    )
    add_json(parser)
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
        help="compute the error of lower precision (default: of files up to 2 GiB)",
    )
    parser.add_argument(
        "--inference",
        action="store_true",
        help="run the model and measure times, memory and energy (needs torch)",
    )
    parser.add_argument(
        "--profile", action="store_true", help="--inference, and measure the machine too"
    )
    _add_run_options(parser)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    running = parser.add_argument_group("running", "The first three imply --inference.")
    running.add_argument(
        "--cuda-profiling",
        action="store_true",
        help="run on the GPU, timed by CUDA events",
    )
    running.add_argument(
        "--memory-debug",
        action="store_true",
        help="track every allocation, whatever PYTORCH_PROFILER_LEVEL is",
    )
    running.add_argument(
        "--energy-monitor",
        action="store_true",
        help="measure the idle machine first, and report what the runs add",
    )
    running.add_argument(
        "--budget",
        type=seconds,
        default=_USUAL.budget_s,
        metavar="SECONDS",
        help="stop after 10 runs or SECONDS (default: %(default)g)",
    )
    running.add_argument(
        "--tdp",
        type=_watts,
        metavar="W",
        help="design power of the chip, for estimates where no sensor measures",
    )
    running.add_argument(
        "--carbon-intensity",
        type=_intensity,
        metavar="G",
        help=f"grams of CO2 per kWh (default: {WORLD_G_PER_KWH:g}, {WORLD_SOURCE})",
    )
    running.add_argument(
        "--energy-model",
        choices=energy_models(),
        default=_USUAL.energy_model,
        help="model of the energy where no sensor measures (default: %(default)s)",
    )


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


# How long --energy-monitor measures the idle machine.
_IDLE_S = 1.0


def _model(options: argparse.Namespace) -> None:
    check_outputs(options, inputs=[options.file], suffixes=suffixes())
    analysis = _analyzed(options)
    _write(analysis, options.outputs)
    if options.json:
        print(json_outline(to_json(analysis)))
    elif options.outputs:
        print_written(options)
    else:
        width = output_width(options)
        if options.full:
            lines = full_text(analysis, width)
        else:
            lines = text_lines(overview_blocks(analysis), width)
        print("\n".join(lines))
    _check_run(analysis)


def _pytorch_parser(options: argparse.Namespace) -> None:
    analysis = _analyzed(options)
    outputs, options.outputs = [Path(REPORT), *options.outputs], []
    _write(analysis, [path for path in outputs if not _is_text(path)])
    for path in filter(_is_text, outputs):
        write_file(path, as_text(analysis))
    if options.json:
        print(json_outline(to_json(analysis)))
    else:
        for line in wrap_lines(console.lines_of(analysis), output_width(options)):
            print(line)
        for path in outputs:
            print(f"Report: {path}")
    _check_run(analysis)


def _is_text(path: Path) -> bool:
    return path.suffix.lower() not in suffixes() or path.suffix.lower() == ".txt"


def _check_run(analysis: ModelAnalysis) -> None:
    """Fail if the model could not be run; everything else was analyzed and written."""
    if analysis.why_not_run is not None:
        raise CommandError(analysis.why_not_run)


def _analyzed(options: argparse.Namespace) -> ModelAnalysis:
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
        return analyze_file(
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


def _write(analysis: ModelAnalysis, outputs: Sequence[Path]) -> None:
    # None is replaced before all of them are complete.
    with ExitStack() as stack:
        try:
            for path in outputs:
                file = stack.enter_context(atomic_write(path))
                file.writelines(rendered_parts(analysis, path.suffix))
        except PdfUnavailable as error:
            raise CommandError(error.sentence("en")) from None


_GRACE_S = 2.0  # how long Python has to end by itself
_INTERRUPTED = 130


@contextmanager
def prints_aside() -> Iterator[None]:
    """Send what is printed meanwhile to standard error: standard output is for the answer."""
    try:
        kept = os.dup(1)
    except OSError:  # there is no standard output
        yield
        return
    sys.stdout.flush()
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


@contextmanager
def stoppable() -> Iterator[None]:
    """Let Ctrl-C end the program even if what runs never comes back to Python.

    Nothing is being written meanwhile, so nothing is left half-written.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    is_over = threading.Event()
    watch = threading.Thread(target=_watch, args=(reading, is_over), daemon=True)
    watch.start()
    try:
        yield
    finally:
        is_over.set()
        signal.set_wakeup_fd(before)
        os.write(writing, b"\0")
        watch.join()
        os.close(reading)
        os.close(writing)


def _watch(reading: int, is_over: threading.Event) -> None:
    while not is_over.is_set():
        if os.read(reading, 1) == bytes([signal.SIGINT]) and not is_over.wait(_GRACE_S):
            os.write(2, b"\ninterrupted\n")
            os._exit(_INTERRUPTED)
