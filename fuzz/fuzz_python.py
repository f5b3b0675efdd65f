"""Fuzzes the readers that are written in Python: event logs, and the code of TorchScript.

`python fuzz/fuzz_python.py TARGET CORPUS [options of libFuzzer]`. Each input is read as a file;
what is found is rendered as a report, which must not contain what a terminal would interpret.
Anything but the reader's own errors is a finding.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

with atheris.instrument_imports(include=["snapviewer.events", "snapviewer.model.torchscript"]):
    from snapviewer.events.analysis import analyze
    from snapviewer.events.log import read_log
    from snapviewer.events.reader import LogError
    from snapviewer.model.torchscript import read_torchscript, run

from snapviewer import SnapshotError
from snapviewer.model.graph import TensorSpec
from snapviewer.report.events.report import report_on
from snapviewer.report.writers.markdown import as_markdown
from snapviewer.text.sanitize import replace_controls
from support.torchscript_writer import write_torchscript

_INPUTS = (TensorSpec((2, 3, 8, 8), "float32"),)


def _events(content: bytes, folder: Path) -> None:
    path = folder / "events.json"
    path.write_bytes(content)
    try:
        log = read_log(path)
    except LogError as error:
        _check_sentence(error.sentence("zh"))
        _check_sentence(error.sentence("en"))
        return
    document = report_on(analyze(log), language="en")
    text = as_markdown(document)
    assert replace_controls(text) == text


def _torchscript(content: bytes, folder: Path) -> None:
    path = write_torchscript(folder / "model.pt", content)
    try:
        graph = read_torchscript(path, inputs=_INPUTS)
    except SnapshotError as error:
        _check_sentence(str(error))
        return
    assert len(graph.nodes) <= run.MAX_NODES


def _check_sentence(sentence: str) -> None:
    assert len(sentence.splitlines()) == 1, sentence


TARGETS: dict[str, Callable[[bytes, Path], None]] = {
    "events": _events,
    "torchscript": _torchscript,
}


def main(target: str, options: list[str]) -> None:
    """Run a target until libFuzzer ends it."""
    # Long programs are stopped by these; shorter ones try more.
    run.MAX_STEPS, run.MAX_NODES = 20_000, 1_000
    with tempfile.TemporaryDirectory() as folder:
        atheris.Setup([sys.argv[0], *options], lambda data: TARGETS[target](data, Path(folder)))
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
