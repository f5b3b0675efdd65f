"""Mutation testing of one module: changes it in one place at a time, and runs the tests.

    make mutants WHAT=python/snapviewer/events/analysis.py [TESTS=tests/events]
    make mutants WHAT=src/lifetimes [TESTS=tests/pools.rs]

Python modules are mutated by mutmut in a copy of the project, and each mutant meets the tests that
call the mutated function; tests that start the program in a process of its own do not count. Rust
modules, or folders of them, are mutated by cargo-mutants, and meet their own tests in `src`, or the
files of `tests` that are named. With `--sample 40`, about 40 mutants evenly spread over the files
are tried, the same ones each time. Mutants that survive are printed as differences.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("python", "tests", "docs", "examples", "pyproject.toml", "README.md", "*.py")
MUTMUT = Path(sys.executable).with_name("mutmut")
KILLED = ("killed", "timeout", "suspicious")


def main() -> int:
    """Mutate what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", type=Path, help="a module, .py or .rs, or a folder in src")
    parser.add_argument("tests", nargs="*", help="the tests (default: those of its package)")
    parser.add_argument("--seconds", type=int, default=900, help="stop after (default: 900)")
    parser.add_argument("--sample", type=int, help="about so many mutants (Rust; default: all)")
    options = parser.parse_args()
    what = options.what.resolve().relative_to(ROOT)
    if what.parts[0] == "src":
        return _rust(what, options.tests, options.seconds, options.sample)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        return _python(what, options.tests or [_tests_of(what)], options.seconds, Path(folder))


def _tests_of(what: Path) -> str:
    room = ROOT / "tests" / what.parts[2]
    return f"tests/{room.name}" if room.is_dir() else "tests"


def _rust(what: Path, tests: list[str], seconds: int, sample: int | None) -> int:
    if shutil.which("cargo-mutants") is None:
        print("needs cargo-mutants: cargo install --locked cargo-mutants")
        return 1
    files = str(what / "**" / "*.rs") if what.suffix == "" else str(what)
    of_module = "::".join(what.with_suffix("").parts[1:])
    selected = [f"--test={Path(test).stem}" for test in tests] or ["--lib", of_module]
    # The tests pass as they are (`make test`); a slow machine should not end a mutant by timeout.
    command = ["cargo", "mutants", "--in-place", "--file", files, *_shard(files, sample)]
    command += ["--baseline", "skip"]
    command += ["--timeout", "100", "--build-timeout", "600", "--colors", "never"]
    # Compiling takes most of the time: it begins with what the last run compiled, unoptimized.
    environment = {
        **os.environ,
        "CARGO_TARGET_DIR": str(ROOT / "target" / "mutants"),
        "CARGO_PROFILE_DEV_OPT_LEVEL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_INCREMENTAL": "1",
    }
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        # cargo-mutants would copy `.venv` and `target` too.
        _copy(("src", "tests", "Cargo.*", "build.rs"), Path(folder))
        with subprocess.Popen(
            [*command, "--", "--locked", *selected], cwd=folder, env=environment
        ) as running:
            try:
                running.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGINT)  # it ends the cargo that it started
                print(f"stopped after {seconds} s")
        found = Path(folder) / "mutants.out"
        lists = {
            name: (found / f"{name}.txt").read_text()
            for name in ("caught", "missed", "timeout", "unviable")
        }
    print(lists["missed"])
    counts = {name: len(lines.splitlines()) for name, lines in lists.items()}
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    killed = counts["caught"] + counts["timeout"]
    _print_share(what, killed, killed + counts["missed"])
    return 0


def _shard(files: str, sample: int | None) -> list[str]:
    if sample is None:
        return ["--shuffle"]
    listed = subprocess.run(
        ["cargo", "mutants", "--list", "--file", files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    shards = max(1, len(listed.stdout.splitlines()) // sample)
    return ["--shard", f"0/{shards}", "--sharding", "round-robin"]


def _python(what: Path, tests: list[str], seconds: int, folder: Path) -> int:
    # mutmut expects packages in the folder itself or in src/.
    _copy(COPIED, folder)
    (folder / "python").rename(folder / "src")
    module = Path("src", *what.parts[1:])
    # Tests that start processes, or read the sources, do not fit the copy. They run unmutated.
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    unfit = _failing(tests, folder, environment)
    with (folder / "pyproject.toml").open("a") as file:
        file.write(
            "\n[tool.mutmut]\n"
            'source_paths = ["src"]\n'
            f'only_mutate = ["{module}"]\n'
            'also_copy = ["docs", "examples", "README.md", "convert_snap.py", "gui.py"]\n'
            f"pytest_add_cli_args_test_selection = {tests}\n"
            f"pytest_add_cli_args = {['-n', '0', *(f'--deselect={test}' for test in unfit)]}\n"
            'process_isolation = "forkserver"\n'
        )
    log = folder / "mutmut.log"
    with log.open("w") as file:
        try:
            subprocess.run(
                [MUTMUT, "run", "--max-children", str(os.cpu_count() or 1)],
                cwd=folder,
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            print(f"stopped after {seconds} s")
    return _print_python(what, folder, log)


def _copy(patterns: tuple[str, ...], folder: Path) -> None:
    for pattern in patterns:
        for path in ROOT.glob(pattern):
            copy = shutil.copytree if path.is_dir() else shutil.copy2
            copy(path, folder / path.name)


def _failing(tests: list[str], folder: Path, environment: dict[str, str]) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-rf", "--tb=no", *tests],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = ran.stdout.splitlines()
    return [line.split()[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]


def _print_python(what: Path, folder: Path, log: Path) -> int:
    listed = _mutmut(folder, "results", "--all", "true").splitlines()
    results = dict(line.strip().rsplit(": ", 1) for line in listed if ": " in line)
    if not results:
        print(log.read_text()[-3000:])
        return 1
    for name, result in results.items():
        if result not in (*KILLED, "not checked"):
            print(f"{result}:\n{_mutmut(folder, 'show', name)}")
    counts = Counter(results.values())
    print(", ".join(f"{count} {result}" for result, count in counts.most_common()))
    tried = sum(counts.values()) - counts["not checked"]
    _print_share(what, sum(counts[result] for result in KILLED), tried)
    return 0


def _mutmut(folder: Path, *arguments: str) -> str:
    ran = subprocess.run(
        [MUTMUT, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    return ran.stdout


def _print_share(what: Path, killed: int, tried: int) -> None:
    share = f"{killed / tried:.1%}" if tried else "none tried"
    print(f"{what}: {killed} of {tried} mutants killed ({share})")


if __name__ == "__main__":
    sys.exit(main())
