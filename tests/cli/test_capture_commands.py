"""`record` and `predict` before anything runs: which words are whose, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from snapviewer import _core
from snapviewer.cli import predict
from snapviewer.cli.capture import Parser
from support.program import run_here


@pytest.mark.parametrize(
    ("words", "command", "steps"),
    [
        ("train.py", ["train.py"], 3),
        ("--steps 5 train.py --lr 3", ["train.py", "--lr", "3"], 5),
        ("train.py --lr 3 --steps=5 x", ["train.py", "--lr", "3", "x"], 5),
        ("train.py -- --steps 5", ["train.py", "--steps", "5"], 3),
        ("-m pack.train -m x --gpu t4", ["-m", "pack.train", "-m", "x"], 3),
        ("train.py --json a --no-marks b", ["train.py", "a", "b"], 3),
        ("train.py --step 5", ["train.py", "--step", "5"], 3),
    ],
)
def test_the_script_keeps_the_words_that_are_not_ours(
    words: str, command: list[str], steps: int
) -> None:
    parser = Parser(prog="predict")
    predict.add_options(parser)

    options = parser.parse_args(words.split())

    assert (options.command, options.steps) == (command, steps)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("record", 2, "name a script, or a module with -m"),
        ("predict -m", 2, "name a script, or a module with -m"),
        ("record nowhere.py", 1, "no such script: nowhere.py"),
        ("record --stepz 3 train.py", 2, "no such option: --stepz"),
        ("record train.py -o taken.pickle", 1, "taken.pickle exists; --force replaces it"),
        ("record train.py -o a.pickle -o b.pickle", 2, "a run has one output"),
        ("record train.py -o no/where.pickle", 1, "no such directory: no"),
        ("predict train.py --gpu banana", 2, "unknown GPU: banana; known ones: t4-16gb"),
        ("predict train.py --gpus 17", 2, "must be 16 or less"),
        ("predict train.py --sweep batch=9..1", 2, "must be a name and two numbers"),
        ("predict train.py --value 7", 2, "must be an expression and a number"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    words: str,
    code: int,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("raise SystemExit('it ran')\n")
    (tmp_path / "taken.pickle").write_bytes(b"kept")

    ran = run_here(capsys, *words.split())

    assert ran.code == code
    assert sentence in ran.err
    assert ran.err.count("snapviewer: ") + ran.err.count("error: ") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"train.py", "taken.pickle"}


def test_a_torch_without_cuda_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from snapviewer.capture import null_device

    (tmp_path / "version.py").write_text("__version__ = '2.13.0+cpu'\ncuda = None\n")
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    for root, sentence in [(tmp_path, "has no CUDA"), (None, "PyTorch is not installed")]:
        monkeypatch.setattr(null_device, "_package", lambda name, root=root: root)

        ran = run_here(capsys, "predict", "train.py")

        assert ran.code == 1
        assert sentence in ran.err


def test_a_system_without_the_null_device_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_core, "null_device", lambda: None)

    ran = run_here(capsys, "predict", "train.py")

    assert ran.code == 1
    assert "predictions need Linux on x86-64 or aarch64" in ran.err
