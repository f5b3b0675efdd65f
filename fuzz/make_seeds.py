"""Makes the fuzzers' first inputs: small snapshots of every kind, in every encoding.

`python fuzz/make_seeds.py DIR` fills DIR/reader and DIR/pickle; what is there already stays.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import pickle
import random
import sys
from pathlib import Path
from typing import Any

from snapviewer.demo import DemoOptions, dump, snapshot

MAX_BYTES = 65_536
MAX_FRAMES = 3

OPTIONS = {
    "tiny": DemoOptions(events=8, live=5, before_recording=False),
    "plain": DemoOptions(events=30, live=8, before_recording=False),
    "older": DemoOptions(events=30, live=8),
    "all-stacks": DemoOptions(events=40, live=8, before_recording=False, context="all"),
    "compiled": DemoOptions(events=40, live=8, before_recording=False, compiled=True),
    "expandable": DemoOptions(events=40, live=8, before_recording=False, expandable=True),
    "pools": DemoOptions(events=60, live=8, before_recording=False, private_pools=True),
    "ring": DemoOptions(events=40, live=8, ring=True, leak=True),
    "host": DemoOptions(events=40, live=8, before_recording=False, host=True),
    "many": DemoOptions(events=30, live=5, devices=2, streams=2, oom=True, host=True),
}


def _shorten(value: Any) -> None:
    """Cut all stacks to a few frames, in place: runs on small inputs are quick."""
    if isinstance(value, dict):
        del value.get("frames", [])[MAX_FRAMES:]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _shorten(item)


def _encodings(plain: dict[str, Any]) -> dict[str, bytes]:
    found = {}
    for protocol in (2, 4, 5):
        file = io.BytesIO()
        dump(plain, file, protocol=protocol)
        found[f"p{protocol}"] = file.getvalue()
    found["p3"] = pickle.dumps(plain, protocol=3)
    found["json"] = json.dumps(plain).encode()
    found["gz"] = gzip.compress(found["p4"], mtime=0)
    found["html"] = b'<script>const files = [{"name": "s", "base64": "%s"}]</script>' % (
        base64.b64encode(found["p4"])
    )
    found["segments"] = pickle.dumps(plain["segments"], protocol=4)
    return found


def main(into: Path) -> None:
    """Write all seeds."""
    readers, pickles = into / "reader", into / "pickle"
    readers.mkdir(parents=True, exist_ok=True)
    pickles.mkdir(parents=True, exist_ok=True)
    for name, options in OPTIONS.items():
        plain = snapshot(options)
        _shorten(plain)
        for encoding, content in _encodings(plain).items():
            if len(content) <= MAX_BYTES:
                (readers / f"{name}-{encoding}").write_bytes(content)
    # The other target makes pickles of whatever bytes it gets.
    for seed in range(64):
        content = random.Random(seed).randbytes(32 << seed % 8)
        (pickles / f"random-{seed}").write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
