"""Mutation testing of one module: changes it in one place at a time, and runs the tests.

    make mutants WHAT=python/snapviewer/events/analysis.py [TESTS=tests/events]
    make mutants WHAT=src/lifetimes

Python modules are mutated by mutmut, and each mutant meets the tests that call the mutated function
(`forked.py`); tests that start the program in a process of its own do not count. Rust
modules, or folders of them, meet their own tests in `src` and those that `core.py` lists. With
`--sample 40`, about 40 mutants evenly spread over the files are tried, the same ones each time.
Mutants that survive are printed.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from mutmut.mutation.file_mutation import MutatedFile, mutate_file_contents

from mutants import core

ROOT = Path(__file__).resolve().parents[2]
KILLED = ("killed", "timeout")


def main() -> int:
    """Mutate what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", type=Path, help="a module, .py or .rs, or a folder in src")
    parser.add_argument("tests", nargs="*", help="the tests (default: those of its package)")
    parser.add_argument("--seconds", type=int, default=900, help="stop after (default: 900)")
    parser.add_argument("--sample", type=int, help="try about so many (default: all)")
    options = parser.parse_args()
    what = options.what.resolve().relative_to(ROOT)
    if what.parts[0] == "src":
        return _rust(what, options.sample)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tests = options.tests or [_tests_of(what)]
        return _python(what, tests, options.seconds, options.sample, Path(folder))


def _tests_of(what: Path) -> str:
    room = ROOT / "tests" / what.parts[2]
    return f"tests/{room.name}" if room.is_dir() else "tests"


def _rust(what: Path, sample: int | None) -> int:
    if shutil.which("cargo-mutants") is None:
        print("needs cargo-mutants: cargo install --locked cargo-mutants")
        return 1
    counts: Counter[str] = Counter()
    for name, result in core.try_mutants(what, sample):
        counts[result] += 1
        if result not in KILLED:
            print(f"{result}: {name}", flush=True)
    print(", ".join(f"{count} {result}" for result, count in counts.most_common()))
    killed = sum(counts[result] for result in KILLED)
    _print_share(what, killed, killed + counts["survived"])
    return 0


def _python(what: Path, tests: list[str], seconds: int, sample: int | None, folder: Path) -> int:
    # A copy with the mutated module comes before the project's own package.
    shutil.copytree(ROOT / "python", folder / "python")
    os.chdir(ROOT)  # mutmut looks for sources here
    mutated = mutate_file_contents(str(what), what.read_text(encoding="utf-8"))
    (folder / what).write_text(mutated.code, encoding="utf-8")
    module = ".".join(what.with_suffix("").parts[1:]).removesuffix(".__init__")
    results = folder / "results.json"
    names = [f"{module}.{name}" for name in mutated.mutant_names]
    names = names[:: max(1, len(names) // (sample or len(names)))]
    job = {"mutants": names, "results": str(results), "seconds": seconds}
    (folder / "job.json").write_text(json.dumps(job))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-n", "0", "-p", "mutants.forked", *tests],
        env={
            **os.environ,
            "MUTANTS": str(folder / "job.json"),
            "PYTHONPATH": f"{folder / 'python'}{os.pathsep}{ROOT / 'tests'}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if not results.exists():
        print(ran.stdout[-3000:], ran.stderr[-3000:])
        return 1
    tried = dict(map(str.split, results.read_text().splitlines()))
    return _print_python(what, tried, mutated)


def _print_python(what: Path, results: dict[str, str], mutated: MutatedFile) -> int:
    for name, result in results.items():
        if result not in KILLED:
            function = name.rsplit(".", 1)[1]
            print(f"{result}: {function}")
            print(*_difference(mutated, function), sep="\n", end="\n\n")
    counts = Counter(results.values())
    skipped = len(mutated.mutant_names) - len(results)
    print(", ".join(f"{count} {result}" for result, count in counts.most_common()), end="")
    print(f", {skipped} not tried" if skipped else "")
    _print_share(what, sum(counts[result] for result in KILLED), len(results))
    return 0


def _difference(mutated: MutatedFile, function: str) -> list[str]:
    lines = mutated.code.splitlines()
    spans = mutated.line_span_by_function_name
    before, after = (
        lines[spans[name].start : spans[name].end]
        for name in (f"{function.rsplit('__mutmut_', 1)[0]}__mutmut_orig", function)
    )
    changed = list(difflib.unified_diff(before, after, lineterm="", n=2))[3:]
    return [line for line in changed if "__mutmut_" not in line]


def _print_share(what: Path, killed: int, tried: int) -> None:
    share = f"{killed / tried:.1%}" if tried else "none tried"
    print(f"{what}: {killed} of {tried} mutants killed ({share})")


if __name__ == "__main__":
    sys.exit(main())
