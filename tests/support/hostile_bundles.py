"""Bundles that were changed on purpose, with digests that match again."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import blake3


def reseal(bundle: Path) -> None:
    """Put the digests in a bundle's directory right."""
    path = bundle / "allocations.json"
    document = json.loads(path.read_text())
    elements = (bundle / "elements.db").read_bytes()
    document["elements"] = {"bytes": len(elements), "blake3": blake3.blake3(elements).hexdigest()}
    write_sealed(path, document)


def write_sealed(path: Path, document: dict[str, Any]) -> None:
    """Write an `allocations.json` that ends with its digest."""
    document.pop("digest", None)
    content = json.dumps(document, separators=(",", ":"))[:-1]
    digest = blake3.blake3(content.encode()).hexdigest()
    path.write_text(f'{content},"digest":"{digest}"}}')


def change_database(bundle: Path, *statements: str) -> None:
    """Run SQL on a bundle's database, and put the digests right."""
    database = sqlite3.connect(bundle / "elements.db")
    with database:
        for statement in statements:
            database.execute(statement)
    database.close()
    reseal(bundle)


def _change_device(bundle: Path, key: str, value: int, column: str | None = None) -> None:
    path = bundle / "allocations.json"
    document = json.loads(path.read_text())
    device = document["devices"][0]
    device[key] = value
    if column is not None:
        device["columns"][column] = _packed(bytes(value))
    write_sealed(path, document)


def _many_devices(bundle: Path) -> None:
    """Let each of 400 devices have a million events, for two kilobytes."""
    path = bundle / "allocations.json"
    document = json.loads(path.read_text())
    (device,) = document["devices"]
    columns = dict.fromkeys(device["columns"], _packed(bytes(0)))
    figures = dict.fromkeys(("allocations", "initial_bytes", "peak_bytes", "final_bytes"), 0)
    device |= {**figures, "peak_event": 0, "oom_events": [], "events": 1_000_000}
    device["columns"] = {**columns, "time_us": _packed(bytes(1_000_000))}
    counts = ("initial_bytes", "peak_bytes", "final_bytes", "unknown_frees", "missing_blocks")
    device["check"] |= dict.fromkeys(counts, 0)
    document["devices"] = [{**device, "device": number} for number in range(400)]
    write_sealed(path, document)


def _packed(planes: bytes) -> str:
    """A column of numbers below 256."""
    return base64.b64encode(bytes([0, 0, 1]) + zlib.compress(planes, 9)).decode()


def _changed_size(bundle: Path) -> None:
    """Add a byte to an allocation; all figures stay."""
    path = bundle / "allocations.json"
    document = json.loads(path.read_text())
    columns = document["devices"][0]["columns"]
    packed = base64.b64decode(columns["size"])
    planes = bytearray(zlib.decompress(packed[3:]))
    planes[0] ^= 1
    columns["size"] = base64.b64encode(packed[:3] + zlib.compress(planes)).decode()
    write_sealed(path, document)


def _generated_column(bundle: Path) -> None:
    """Replace a table of names by one whose names are made up as they are read."""
    change_database(
        bundle,
        "drop table frames",
        "create table frames(frame integer primary key, line integer, "
        "name text generated always as (hex(zeroblob(8000000))) virtual, "
        "filename text generated always as (name) virtual, "
        "text text generated always as (name) virtual)",
        "insert into frames(frame, line) with recursive n(i) as (select 0 union all select i + 1 "
        "from n where i < 20000) select i, 1 from n",
    )


def _view(bundle: Path) -> None:
    change_database(
        bundle,
        "drop table annotations",
        "create view annotations as "
        "with recursive n(i) as (select 1 union all select i + 1 from n) "
        "select 'x' as name, 'START' as stage, 0 as device, i as time_us, i as rowid from n",
    )


def _trigger(bundle: Path) -> None:
    change_database(bundle, "create trigger t after insert on settings begin select 1; end")


def _pipe(bundle: Path) -> None:
    (bundle / "elements.db").unlink()
    os.mkfifo(bundle / "elements.db")


def _device_file(bundle: Path) -> None:
    (bundle / "allocations.json").unlink()
    (bundle / "allocations.json").symlink_to("/dev/zero")


def _edited(bundle: Path) -> None:
    database = sqlite3.connect(bundle / "elements.db")
    with database:
        database.execute("update frames set line = line + 1")
    database.close()


# How each bundle is made of a good one, and words of the sentence that refuses it.
ATTACKS: dict[str, tuple[Callable[[Path], None], str]] = {
    "generated column": (_generated_column, "its tables are not snapviewer's"),
    "view": (_view, "its tables are not snapviewer's"),
    "trigger": (_trigger, "its tables are not snapviewer's"),
    "pipe": (_pipe, "not a regular file"),
    "device file": (_device_file, "not a regular file"),
    "edited lines": (_edited, "elements.db is of another bundle, or was changed"),
    "changed size": (_changed_size, "its figures do not follow from its allocations"),
    "changed figures": (
        lambda bundle: change_database(bundle, "update devices set peak_bytes = peak_bytes + 1"),
        "its figures are not those of the allocations",
    ),
    "400 devices": (_many_devices, "it cannot have that many allocations or events"),
    "200 million allocations": (
        lambda bundle: _change_device(bundle, "allocations", 200_000_000, "address"),
        "it cannot have that many allocations or events",
    ),
    "200 million events": (
        lambda bundle: _change_device(bundle, "events", 200_000_000, "time_us"),
        "it cannot have that many allocations or events",
    ),
}
