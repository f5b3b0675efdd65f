"""Mutants of the core: those that cargo-mutants lists, all compiled at once.

cargo-mutants compiles each mutant alone, for a minute where others use the machine. Here each
place becomes `if crate::mutant(7) { changed } else { original }`, and the test programs, compiled
once, run with `MUTANT=7`. A change that does not compile is left out and counted as unviable, as
cargo-mutants does; constants, conditions of `let` and words of macros stay as they are.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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
# The text of an expression with another operator; parentheses keep the rest apart.
_EXPRESSIONS = {
    "binary_expression": b"(%(left)s) %(operator)s (%(right)s)",
    "compound_assignment_expr": b"%(left)s %(operator)s (%(right)s)",
    "unary_expression": b"%(right)s",
}
_CONSTANT = ("const_item", "static_item", "attribute_item", "array_type", "type_arguments")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change: its number, what cargo-mutants calls it, its place, and the new text."""

    number: int
    name: str
    file: str
    genre: str
    replacement: str
    span: tuple[int, int]


Changes = list[tuple[int, bytes]]  # of one place: numbers of mutants, and texts


class Source:
    """A file, and where its mutants are: before a place, or instead of a range."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_bytes()
        self.root = Parser(Language(tree_sitter_rust.language())).parse(self.text).root_node
        self.before: dict[int, Changes] = defaultdict(list)
        self.instead: dict[tuple[int, int], Changes] = defaultdict(list)
        # Begin and end of changes in the written file, and their mutants.
        self.ranges: list[tuple[int, int, int]] = []


def try_mutants(what: Path, sample: int | None) -> Iterator[tuple[str, str]]:
    """Yield the name and the result of each mutant of a module, or of a folder."""
    folder = ROOT / "target" / "mutants"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name)
    for path in (*ROOT.glob("Cargo.*"), ROOT / "build.rs"):
        shutil.copy2(path, folder)
    manifest = folder / "Cargo.toml"  # no library for Python has to be linked
    manifest.write_text(manifest.read_text().replace('["cdylib", "rlib"]', '["rlib"]'))
    with (folder / "src/lib.rs").open("a") as file:
        file.write(_SWITCH)
    listed = _listed(what)
    chosen = listed[:: max(1, len(listed) // (sample or len(listed)))]
    left = _compile(folder, chosen)
    room = what.with_suffix("").parts[1]
    programs = _programs(folder, room)
    if len(programs) != 1 + len(TESTS.get(room, ())) or _result(programs, 0) != "survived":
        raise SystemExit("the tests do not compile, or fail without a mutant")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(
            lambda mutant: (
                _result(programs, mutant.number) if mutant.number in left else "unviable"
            ),
            chosen,
        )
        yield from ((mutant.name, result) for mutant, result in zip(chosen, results, strict=True))


def _listed(what: Path) -> list[Mutant]:
    files = str(what / "**" / "*.rs") if what.suffix == "" else str(what)
    listed = subprocess.run(
        ["cargo", "mutants", "--list", "--json", "--file", files],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    found = []
    for number, one in enumerate(json.loads(listed.stdout), start=1):
        lines = (ROOT / one["file"]).read_text(encoding="utf-8").splitlines(keepends=True)
        begin, end = (_offset(lines, one["span"][name]) for name in ("start", "end"))
        changed = (one["genre"], one["replacement"])
        found.append(Mutant(number, one["name"], one["file"], *changed, (begin, end)))
    return found


def _offset(lines: list[str], place: dict[str, int]) -> int:
    """Return the bytes before a line and column, which count from 1."""
    whole, part = lines[: place["line"] - 1], lines[place["line"] - 1][: place["column"] - 1]
    return len("".join([*whole, part]).encode())


def _compile(folder: Path, mutants: Sequence[Mutant]) -> set[int]:
    """Write all mutants, leave out what does not compile, and return the numbers of the others."""
    sources = {name: Source(ROOT / name) for name in dict.fromkeys(one.file for one in mutants)}
    placed = {mutant.number for mutant in mutants if _place(sources[mutant.file], mutant)}
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


def _place(source: Source, mutant: Mutant) -> bool:
    """Note where a mutant goes, and return whether it can go there."""
    begin, end = mutant.span
    node = source.root.descendant_for_byte_range(begin, end - 1)
    if node is None or any(map(_is_constant, _around(node))):
        return False
    replacement = mutant.replacement.encode()
    condition = b"crate::mutant(%d)" % mutant.number
    if mutant.genre in ("BinaryOperator", "UnaryOperator"):
        whole = node.parent
        if whole is None or whole.type not in _EXPRESSIONS:
            return False
        changed = _EXPRESSIONS[whole.type] % {
            b"left": source.text[whole.start_byte : begin],
            b"operator": replacement,
            b"right": source.text[end : whole.end_byte],
        }
        source.instead[whole.start_byte, whole.end_byte].append((mutant.number, changed))
    elif mutant.genre == "FnValue" and "::iter::" not in mutant.replacement:
        value = b"" if replacement == b"()" else replacement
        source.before[begin].append((mutant.number, b"if %s { return %s; } " % (condition, value)))
    elif mutant.genre == "MatchArmGuard" and b"let " not in source.text[begin:end]:
        source.instead[begin, end].append((mutant.number, replacement))
    elif mutant.genre == "MatchArm":
        arm = next((one for one in _around(node) if one.type == "match_arm"), None)
        pattern = arm.child_by_field_name("pattern") if arm is not None else None
        if pattern is None or pattern.child_by_field_name("condition") is not None:
            return False
        source.before[pattern.end_byte].append((mutant.number, b" if !%s" % condition))
    else:
        return False
    return True


def _around(node: Node) -> Iterator[Node]:
    """Yield a node, and all nodes around it."""
    around: Node | None = node
    while around is not None:
        yield around
        around = around.parent


def _is_constant(node: Node) -> bool:
    """Return whether the compiler computes what is inside, where no switch can be."""
    head = (node.text or b"").partition(b"{")[0] if node.type == "function_item" else b""
    return node.type in _CONSTANT or b"const fn" in head


def _written(source: Source, placed: set[int]) -> bytes:
    """Return the file with the mutants that are placed, and note where each is."""
    written = bytearray()
    source.ranges = []
    sites: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for site, changes in source.instead.items():
        if any(number in placed for number, _ in changes):
            sites[site[0]].append(site)

    def put(changes: Changes, before: bytes = b"", after: bytes = b"") -> None:
        for number, text in changes:
            if number in placed:
                written.extend(before % {b"number": number} if before else b"")
                source.ranges.append((len(written), len(written) + len(text), number))
                written.extend(text + after)

    def copy(begin: int, end: int, outer: tuple[int, int]) -> None:
        at = begin
        while at < end:
            if at != outer[0]:
                put(source.before.get(at, []))
            within = [site for site in sites[at] if site[1] - site[0] < outer[1] - outer[0]]
            if not within:
                written.append(source.text[at])
                at += 1
                continue
            inner = max(within, key=lambda site: site[1])
            written.extend(b"(")
            put(source.instead[inner], b"if crate::mutant(%(number)d) { ", b" } else ")
            written.extend(b"{ ")
            start = len(written)
            copy(*inner, inner)
            numbers = [number for number, _ in source.instead[inner]]
            source.ranges += [(start, len(written), number) for number in numbers]
            written.extend(b" })")
            at = inner[1]

    copy(0, len(source.text), (-1, len(source.text)))
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


def _programs(folder: Path, room: str) -> list[tuple[str, str]]:
    """Compile the tests of a folder of `src`, and return programs with the tests to run of each."""
    tests = [f"--test={name}" for name in TESTS.get(room, ())]
    built = [
        (line["executable"], f"{room}::" if line["target"]["name"] == "snapviewer" else "")
        for line in _cargo(folder, "test", "--no-run", "--lib", *tests)
        if line.get("reason") == "compiler-artifact" and line.get("executable")
    ]
    return sorted(built, key=lambda program: not program[1])


def _result(programs: list[tuple[str, str]], number: int) -> str:
    for program, words in programs:
        try:
            ran = subprocess.run(
                [program, *([words] if words else []), "--test-threads=2"],
                cwd=ROOT / "target" / "mutants",  # failures of random cases are noted there
                env={**os.environ, "MUTANT": str(number), "PROPTEST_CASES": "64"},
                capture_output=True,
                timeout=_MAX_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "timeout"
        if ran.returncode:
            return "killed"
    return "survived"
