"""Fill the reference pages with what the program itself knows: a hook of `mkdocs build`.

A page contains a line "Generated from the program by `make docs`: NAME.", and what the function
under that name returns takes its place. Nothing generated is committed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from unittest.mock import Mock, patch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests")]

import griffe

import snapviewer
from snapviewer import cli, demo
from snapviewer.explorer.app import keys as explorer_keys
from snapviewer.gui import commands as gui_commands
from snapviewer.gui import dialogs
from snapviewer.snapshot.schema import described_tables
from support.golden_inputs import write_models

MARKER = re.compile(r"^\*Generated from the program by `make docs`: (.+)\.\*$", re.MULTILINE)
MAX_EXAMPLE = 60
os.environ["COLUMNS"] = "88"  # the width of usage lines, whatever the terminal's


def on_page_markdown(markdown: str, **_: object) -> str:
    """Replace the markers of a page; mkdocs calls it."""
    return MARKER.sub(lambda found: GENERATED[found[1]](), markdown)


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(_escaped, line))} |\n" for line in lines)


def _escaped(cell: str) -> str:
    """Escape the bars of a cell; in code, where mkdocs would show the escape, they may stay."""
    parts = cell.split("`")
    parts[::2] = [part.replace("|", "\\|") for part in parts[::2]]
    return "`".join(parts)


# Commands


def commands() -> str:
    """Write every command with its options, as argparse knows them."""
    parts = []
    for group, names in cli.GROUPS.items():
        parts.append(f"## {group}\n")
        for name in names:
            parts += [f"### {name}\n", _command(_parser(name))]
    return "\n".join(parts)


def _parser(name: str) -> argparse.ArgumentParser:
    """Return the parser that prints the help of a command."""
    with (
        patch.object(argparse.ArgumentParser, "print_help", autospec=True) as printed,
        suppress(SystemExit),
    ):
        cli.main([name, "--help"])
    parser: argparse.ArgumentParser = printed.call_args.args[0]
    return parser


def _command(parser: argparse.ArgumentParser) -> str:
    usage = re.sub(r"^(usage: | {7})", "", parser.format_usage().rstrip(), flags=re.MULTILINE)
    parts = [f"{parser.description}\n", f"```text\n{usage}\n```\n"]
    parts.append(table(["option", "effect"], _options(parser)))
    if parser.epilog:
        parts.append(f"\n{parser.epilog}\n")
    return "\n".join(parts)


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    formatter = parser._get_formatter()
    for action in parser._actions:
        if action.help is argparse.SUPPRESS or isinstance(action, argparse._HelpAction):
            continue
        yield (
            f"`{formatter._format_action_invocation(action)}`",
            formatter._expand_help(action) if action.help else "",
        )


# Filters, keys


def filter_examples() -> str:
    """Write the examples that the window's help shows."""
    return table(
        ["filter", "matches"], ((f"`{text}`", words) for text, words in dialogs.FILTER_SYNTAX)
    )


def window_keys() -> str:
    """Write the keys by menu, from the list that menus and bindings are made of."""
    known = gui_commands.commands_of(Mock(), Mock())
    parts = []
    for menu in gui_commands.MENUS:
        mine = [command for command in known if command.menu.split("/")[0] == menu]
        rows = ((f"`{command.shown}`" if command.shown else "", command.label) for command in mine)
        parts += [f"### {menu}\n", table(["key", "command"], rows)]
    parts += ["### Mouse\n", table(["mouse", "effect"], iter(dialogs.MOUSE))]
    return "\n".join(parts)


def explorer_keys_of() -> str:
    """Write the explorer's keys, by what they are for."""
    parts = []
    for title, group in explorer_keys.GROUPS.items():
        parts += [
            f"### {title}\n",
            table(["key", "effect"], ((f"`{key.shown}`", key.words) for key in group)),
        ]
    return "\n".join(parts)


# SQL


def sql() -> str:
    """Write every table and view: texts from the schema, columns from a real file."""
    tables: list[str] = []
    views: list[str] = []
    with tempfile.TemporaryDirectory() as own:
        bundle = Path(own) / "snap.zip"
        demo.write_demo(Path(own) / "snap.pickle", demo.DemoOptions(events=200))
        snapviewer.convert(Path(own) / "snap.pickle", bundle)
        for name, described in described_tables().items():
            columns, _, _ = snapviewer.query(bundle, f"select * from {name} limit 0")
            rows = ((f"`{column}`", described.notes.get(column, "")) for column in columns)
            summary = f"{described.summary[0].upper()}{described.summary[1:]}."
            about = f"{summary} {described.about}".rstrip()
            part = f"### {name}\n\n{about}\n\n{table(['column', 'meaning'], rows)}"
            if described.view:
                part += f"\n```sql\n{described.view}\n```\n"
            (views if described.view else tables).append(part)
    return "\n".join(["## Tables\n", *tables, "## Views\n", *views])


# JSON


def json_documents() -> str:
    """Run the commands with --json on small files and list every key."""
    parts = []
    with tempfile.TemporaryDirectory() as own:
        folder = Path(own)
        _write_samples(folder)
        for name, arguments in JSON_COMMANDS.items():
            output = io.StringIO()
            with redirect_stdout(output):
                code = cli.main([argument.replace("@", f"{folder}/") for argument in arguments])
            if code:
                raise RuntimeError(f"{name} --json failed with exit code {code}")
            document = json.loads(output.getvalue().replace(f"{folder}/", ""))
            shown = " ".join(arguments).replace("@", "")
            rows = (
                (f"`{path}`", kind, f"`{example}`") for path, kind, example in keys_of(document)
            )
            parts.append(
                f"## {name}\n\n`snapviewer {shown}`\n\n{table(['key', 'type', 'example'], rows)}"
            )
    return "\n".join(parts)


JSON_COMMANDS = {
    "info": ["info", "@snap.pickle", "--json"],
    "report": ["report", "@snap.pickle", "--top", "3", "--json"],
    "segments": ["segments", "@snap.pickle", "--json"],
    "whatif": ["whatif", "@snap.pickle", "--conf", "expandable_segments:True", "--json"],
    "diff": ["diff", "@snap.pickle", "@snap.pickle", "--top", "3", "--json"],
    "query": ["query", "@snap.pickle", "select device, peak_bytes from devices", "--json"],
    "render": ["render", "@snap.pickle", "-o", "@snap.png", "--json"],
    "convert": ["convert", "@snap.pickle", "-o", "@snap.zip", "--json"],
    "demo": ["demo", "-o", "@demo.pickle", "--events", "200", "--json"],
    "pth": ["pth", "@state.pth", "--stats", "--json"],
    "model": ["model", "@network.pt", "--json"],
    "explore": ["explore", "@state.pth", "--json"],
    "events": ["events", "@memory_events.json", "--lang", "en", "--json"],
}


def _write_samples(folder: Path) -> None:
    demo.write_demo(folder / "snap.pickle", demo.DemoOptions(events=8000, oom=True))
    write_models(folder)
    guide = (ROOT / "docs/guide/events.md").read_text(encoding="utf-8")
    log = re.search(r"^```json\n(\[.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert log is not None
    (folder / "memory_events.json").write_text(log[1], encoding="utf-8")


def keys_of(document: object) -> Iterator[tuple[str, str, str]]:
    """List the keys of a document with their types; those of list elements once."""
    found: dict[str, tuple[list[str], str]] = {}
    for key, kind, example in _walk(document, ""):
        kinds, shown = found.get(key, ([], example))
        found[key] = (kinds if kind in kinds else [*kinds, kind], shown)
        if kinds == ["null"]:
            found[key] = ([kind, "null"] if kind != "null" else kinds, example)
    elements = tuple(key.partition("[]")[0] for key in found if "[]" in key)
    for key, (kinds, example) in found.items():
        if kinds != ["list"] or example != "[]" or key not in elements:
            yield key, " or ".join(kinds), example


def _walk(value: object, path: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, dict) and value.keys() >= QUANTITY:
        yield path, "quantity", f"{value['value']} {value['unit']}, {value['status']}"
    elif isinstance(value, dict) and value:
        is_named = path.rpartition(".")[2] in NAMED
        for key, item in value.items():
            yield from _walk(item, f"{path}.{'*' if is_named else key}".lstrip("."))
    elif isinstance(value, list) and any(isinstance(item, str | dict | list) for item in value):
        for item in value:
            yield from _walk(item, f"{path}[]")
    else:
        yield path, TYPES[type(value)], _shortened(json.dumps(value, ensure_ascii=False))


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_EXAMPLE else f"{text[:MAX_EXAMPLE]}…"


TYPES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
    list: "list",
    dict: "object",
}
QUANTITY = {"value", "unit", "status", "source"}
# Maps whose keys come from the file.
NAMED = ("by_type", "layers", "round_trips")


class DoctestBlocks(griffe.Extension):
    """Turn the examples in docstrings into blocks of code; mkdocstrings loads it."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Fence each example of a docstring."""
        if obj.docstring is not None:
            text = re.sub(r" *# doctest: \+\w+", "", obj.docstring.value)
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\1\n```", text)


EXAMPLE = re.compile(r"(^>>> .*(?:\n.+)*)", re.MULTILINE)


def names_of(package: str) -> str:
    """Write a reference for mkdocstrings to every public name of a package."""
    module = import_module(package)
    names = (name for name in module.__all__ if callable(getattr(module, name)))
    return "\n".join(f"::: {package}.{name}" for name in names)


GENERATED: dict[str, Callable[[], str]] = {
    "commands": commands,
    "filter examples": filter_examples,
    "window keys": window_keys,
    "explorer keys": explorer_keys_of,
    "sql": sql,
    "json": json_documents,
    **{
        f"names of {package}": partial(names_of, package)
        for package in (
            "snapviewer.pth_analyzer",
            "snapviewer.model",
            "snapviewer.explorer",
            "snapviewer.events",
        )
    },
}
