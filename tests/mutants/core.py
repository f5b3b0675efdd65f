"""Mutants of the core: those that cargo-mutants lists, all compiled at once.

cargo-mutants compiles each mutant alone, for a minute where others use the machine. Here each
place becomes `if crate::mutant(7) { changed } else { original }`, and the test programs, compiled
once, run with `MUTANT=7`. A change that does not compile is left out and counted as unviable, as
cargo-mutants does; constants, conditions of `let` and words of macros stay as they are.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tree_sitter_rust
from tree_sitter import Language, Node, Parser

ROOT = Path(__file__).resolve().parents[2]
# The tests of a folder besides its own in `src`.
TESTS = {
    "checkpoint": ("checkpoint",),
    "lifetimes": ("lifetimes", "pools", "shortcuts"),
    "timeline": ("timeline", "chosen"),
}
_SWITCH = """
/// Returns whether a mutant is under test.
pub fn mutant(number: u32) -> bool {
    static UNDER_TEST: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {
        std::env::var("MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    });
    *UNDER_TEST == number
}
"""
_MAX_SECONDS = 120
_CONSTANT = ("const_item", "static_item", "attribute_item", "array_type", "type_arguments")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change: its number, what cargo-mutants calls it, its file, and the new text."""

    number: int
    name: str
    file: str
    genre: str
    replacement: str
    span: tuple[int, int]


@dataclass
class Source:
    """A file, and where its mutants are: before a place, after it, or instead of a range."""

    text: bytes
    instead: dict[tuple[int, int], list[tuple[int, bytes]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    before: dict[int, list[tuple[int, bytes]]] = field(default_factory=lambda: defaultdict(list))
    ranges: list[tuple[int, int, int]] = field(default_factory=list)
    """Begin and end of changes in the written file, and their mutants."""


def try_mutants(whats: Sequence[Path], sample: int | None) -> Iterator[tuple[str, str, str]]:
    """Yield the folder or file, the name and the result of each mutant."""
    folder = ROOT / "target" / "mutants"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name)
    for path in (*ROOT.glob("Cargo.*"), ROOT / "build.rs"):
        shutil.copy2(path, folder)
    manifest = folder / "Cargo.toml"  # no library for Python has to be linked
    manifest.write_text(manifest.read_text().replace('["cdylib", "rlib"]', '["rlib"]'))
    chosen: list[tuple[str, Mutant]] = []
    for what in whats:
        listed = _listed(what, 1 + len(chosen) * 1000)
        step = max(1, len(listed) // (sample or len(listed)))
        chosen += [(what.as_posix(), mutant) for mutant in listed[::step]]
    with (folder / "src/lib.rs").open("a") as file:
        file.write(_SWITCH)
    left = _compile(folder, [mutant for _, mutant in chosen])
    programs = _programs(folder, {of(Path(what)) for what in map(str, whats)})
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(
            lambda pair: _result(programs, Path(pair[0]), pair[1], pair[1].number in left), chosen
        )
        for (what, mutant), result in zip(chosen, results, strict=True):
            yield what, mutant.name, result


def of(what: Path) -> str:
    """Return the first folder below `src`, or the file."""
    return what.with_suffix("").parts[1]


def _listed(what: Path, first: int) -> list[Mutant]:
    files = str(what / "**" / "*.rs") if what.suffix == "" else str(what)
    listed = subprocess.run(
        ["cargo", "mutants", "--list", "--json", "--file", files],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    found = []
    for number, one in enumerate(json.loads(listed.stdout), start=first):
        lines = (ROOT / one["file"]).read_text(encoding="utf-8").splitlines(keepends=True)
        begin, end = (
            len("".join([*lines[: at["line"] - 1], lines[at["line"] - 1][: at["column"] - 1]]).encode())
            for at in (one["span"]["start"], one["span"]["end"])
        )
        changed = (one["genre"], one["replacement"])
        found.append(Mutant(number, one["name"], one["file"], *changed, (begin, end)))
    return found


def _compile(folder: Path, mutants: Sequence[Mutant]) -> set[int]:
    """Write all mutants, leave out what does not compile, and return the numbers of the others."""
    sources: dict[str, Source] = {}
    placed: set[int] = set()
    for mutant in mutants:
        if mutant.file not in sources:
            sources[mutant.file] = Source((ROOT / mutant.file).read_bytes())
        source = sources[mutant.file]
        tree = Parser(Language(tree_sitter_rust.language())).parse(source.text)
        if _place(source, tree.root_node, mutant):
            placed.add(mutant.number)
    while True:
        for name, source in sources.items():
            (folder / name).write_bytes(_written(source, placed))
        wrong = _errors(folder, sources)
        if not wrong:
            return placed
        print(f"{len(wrong & placed)} do not compile", flush=True)
        if not wrong & placed:
            raise SystemExit("the mutated core does not compile, for another reason")
        placed -= wrong


def _place(source: Source, root: Node, mutant: Mutant) -> bool:
    """Note where a mutant goes, and return whether it can go there."""
    begin, end = mutant.span
    node = root.descendant_for_byte_range(begin, end - 1)
    around = node
    while around is not None:
        is_const = around.type == "function_item" and b"const fn" in (around.text or b"").split(b"{")[0]
        if around.type in _CONSTANT or is_const:
            return False
        around = around.parent
    condition = f"crate::mutant({mutant.number})".encode()
    if mutant.genre in ("BinaryOperator", "UnaryOperator"):
        whole = node.parent if node is not None else None
        kinds = ("binary_expression", "compound_assignment_expr", "unary_expression")
        if whole is None or whole.type not in kinds:
            return False
        left = source.text[whole.start_byte : begin]
        right = source.text[end : whole.end_byte]
        changed = right
        if whole.type == "binary_expression":
            changed = b"(%s) %s (%s)" % (left, mutant.replacement.encode(), right)
        elif whole.type == "compound_assignment_expr":
            changed = b"%s %s (%s)" % (left, mutant.replacement.encode(), right)
        source.instead[whole.start_byte, whole.end_byte].append((mutant.number, changed))
    elif mutant.genre == "FnValue":
        if "::iter::" in mutant.replacement:  # no type is two iterators
            return False
        value = b"" if mutant.replacement == "()" else mutant.replacement.encode()
        source.before[begin].append((mutant.number, b"if %s { return %s; } " % (condition, value)))
    elif mutant.genre == "MatchArmGuard":
        guard = source.text[begin:end]
        if b"let " in guard:
            return False
        source.instead[begin, end].append((mutant.number, mutant.replacement.encode()))
    elif mutant.genre == "MatchArm":
        arm = root.descendant_for_byte_range(begin, end - 1)
        while arm is not None and arm.type != "match_arm":
            arm = arm.parent
        pattern = arm.child_by_field_name("pattern") if arm is not None else None
        if pattern is None or pattern.child_by_field_name("condition") is not None:
            return False
        source.before[pattern.end_byte].append((mutant.number, b" if !%s" % condition))
    else:
        return False
    return True


def _written(source: Source, placed: set[int]) -> bytes:
    """Return the file with the mutants that are placed, and note where each is."""
    written = bytearray()
    source.ranges = []

    def put(number: int, text: bytes) -> None:
        source.ranges.append((len(written), len(written) + len(text), number))
        written.extend(text)

    sites = {at: [one for one in changes if one[0] in placed] for at, changes in source.instead.items()}

    def copy(begin: int, end: int, outer: tuple[int, int] | None) -> None:
        at = begin
        while at < end:
            if outer is None or at > outer[0]:
                for number, text in source.before.get(at, ()):
                    if number in placed:
                        put(number, text)
            inner = max(
                (site for site in sites if site[0] == at and site[1] <= end and sites[site] and (outer is None or site[1] - site[0] < outer[1] - outer[0])),
                key=lambda site: site[1],
                default=None,
            )
            if inner is None:
                written.append(source.text[at])
                at += 1
                continue
            written.extend(b"(")
            for number, text in sites[inner]:
                written.extend(b"if crate::mutant(%d) { " % number)
                put(number, text)
                written.extend(b" } else ")
            written.extend(b"{ ")
            start = len(written)
            copy(*inner, inner)
            source.ranges += [(start, len(written), number) for number, _ in sites[inner]]
            written.extend(b" })")
            at = inner[1]

    copy(0, len(source.text), None)
    return bytes(written)


def _cargo(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target")}
    ran = subprocess.run(
        ["cargo", *arguments, "--locked", "--message-format=json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]


def _errors(folder: Path, sources: dict[str, Source]) -> set[int]:
    """Return the mutants that errors of the compiler point to: the smallest place that has it."""
    wrong: set[int] = set()
    for line in _cargo(folder, "check", "--lib"):
        message = line.get("message") or {}
        if not isinstance(message, dict) or message.get("level") != "error":
            continue
        spans = sorted(message["spans"], key=lambda span: not span["is_primary"])
        for span in spans:
            source = sources.get(span["file_name"])
            around = [
                (end - begin, number)
                for begin, end, number in (source.ranges if source else ())
                if begin <= span["byte_start"] and span["byte_end"] <= end
            ]
            if around:
                least = min(size for size, _ in around)
                wrong |= {number for size, number in around if size == least}
                break
        else:
            if spans:
                print(message["rendered"])
    return wrong


def _programs(folder: Path, names: set[str]) -> dict[str, str]:
    """Compile the tests, and return their programs by name; `lib` for those in `src`."""
    tests = [f"--test={test}" for name in names for test in TESTS.get(name, ())]
    return {
        "lib" if "lib" in line["target"]["kind"] or "rlib" in line["target"]["kind"] else line["target"]["name"]: line["executable"]
        for line in _cargo(folder, "test", "--no-run", "--lib", *tests)
        if line.get("reason") == "compiler-artifact" and line.get("executable")
    }


def _result(programs: dict[str, str], what: Path, mutant: Mutant, is_viable: bool) -> str:
    if not is_viable:
        return "unviable"
    module = "::".join(Path(mutant.file).with_suffix("").parts[1:]).removesuffix("::mod")
    # The tests of a folder: of the module itself, then of all its siblings, then those in `tests`.
    top = of(what)
    runs = [(programs["lib"], module), (programs["lib"], f"{top}::")]
    runs += [(programs[test], "") for test in TESTS.get(top, ())]
    for program, words in runs:
        try:
            ran = subprocess.run(
                [program, *([words] if words else []), "--test-threads=2"],
                cwd=ROOT,
                env={**os.environ, "MUTANT": str(mutant.number), "PROPTEST_CASES": "64"},
                capture_output=True,
                timeout=_MAX_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "timeout"
        if ran.returncode:
            return "killed"
    return "survived"
