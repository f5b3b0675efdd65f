"""Makes the fuzzers' first inputs: small snapshots, bundles, checkpoints, logs, code, SQL, filters.

`python fuzz/make_seeds.py DIR` fills a folder of DIR for each target; what is there already stays.
Real snapshots, where there are some, become bundles: of these, and of demos.
"""

from __future__ import annotations

import base64
import gzip
import importlib.util
import io
import json
import pickle
import random
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from snapviewer import _core
from snapviewer.demo import DemoOptions, dump, snapshot
from support import oracle, pth_writer
from support.events_sample import SAMPLE, rich_log
from support.pth_writer import Call, G, Obj, S, T
from support.torchscript_writer import module

MAX_BYTES = 65_536
MAX_BUNDLE_BYTES = 400_000
MAX_FRAMES = 3

FILTERS = (
    "attention|mlp size>=1MiB lifetime<100",
    '!"optimizer step" conv\\d+ size=512..4KiB',
    "lifetime>=2ms event>=10 alive=1..3 stream=0",
    "pool=0 category=activation stack=none !stack=3",
    '"a \\"b\\" c" (?i)Forward.*$ [a-z]{2,8} \\S \\bx\\b',
    "size!=5 size<=1.5GiB size>1e3",
)
QUERIES = (
    "select device, count(*), sum(size) from allocations group by device having sum(size) > 5",
    "select callstack, sum(size) over (partition by start_time % 7) from allocs order by 2 limit 9",
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < 9) select * from n",
    "select * from events where event between 2 and 5 and action like '%all_c' escape '!'",
    "select e.key, e.value from stacks, json_each(stacks.frames) e join frames on frame = e.value",
    "select replace(name, 'a', 'bb'), instr(filename, '.'), trim(name, 'in'), name glob 'i[a-n]*' "
    "from frames",
    "select printf('%x %s %.3f %,d', address, hex(address), size / 3.0, size) from allocations",
    "select group_concat(distinct state), json_group_object(block, size) from blocks union all "
    "select max(state), min(block) from blocks",
    "select *, (select count(*) from identities i where i.idx <= a.idx) from at_peak a",
    "select json_extract(value, '$.key[1]'), value ->> '$.key', json_type(value) from metadata",
    "select upper(name), substr(name, -2, 5), unicode(name), quote(name), char(65, 66) from frames",
    "select date('now', '+1 day'), strftime('%s', 5), round(2.5), abs(-1), typeof(x'00') "
    "from settings",
    "select * from pragma_table_info('allocations')",
    "values (1, 'a'), (null, x'ff') intersect select 1, cast('a' as text) collate nocase",
    "select length(zeroblob(1000000)), randomblob(9), iif(1, 2, 3), coalesce(null, 1)",
)

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


def _values() -> dict[str, object]:
    """What people save, in small."""
    shared = S("7", bytes(range(64)), "float32")
    values = G("torch._utils", "_rebuild_tensor_v2")
    indices = T("int64", (2, 1))
    numbers = Call(values, (shared, 0, (2,), (1,), False, {}))
    size = Call(G("torch", "Size"), ([3, 3],))
    layout = Call(G("torch.serialization", "_get_layout"), ("torch.sparse_coo",))
    sparse = G("torch._utils", "_rebuild_sparse_tensor")
    scale = (G("torch", "per_tensor_affine"), 0.5, 3)
    quantized = G("torch._utils", "_rebuild_qtensor")
    state = (1, (2,), Call(G("numpy", "dtype"), ("f4", False, True)), False, b"12345678")
    array = G("numpy.core.multiarray", "_reconstruct")
    module: dict[str, object] = {"_parameters": {"weight": T("float32", (2, 2), is_parameter=True)}}
    module |= {"_buffers": {}, "_modules": {"inner": Obj(G("torch.nn", "Linear"), {"a": 1})}}
    weights = {"w": T("float32", (3, 4)), "b": T("bfloat16", (3,), requires_grad=True)}
    views = [T("float32", (2, 3), storage=shared, stride=(1, 2), offset=n) for n in range(3)]
    adam = {"state": {0: {"step": 3, "exp_avg": T("float32", (2,))}}, "param_groups": [{"lr": 0.1}]}
    return {
        "weights": weights,
        "views": views,
        "optimizer": {"model": weights, "optimizer": adam, "epoch": 2**70, "note": "é"},
        "module": Obj(G("models", "Net"), module),
        "sparse": Call(sparse, (layout, (indices, numbers, size, True))),
        "quantized": Call(quantized, (shared, 0, (4,), (1,), scale, False, {})),
        "array": {"a": Call(array, (G("numpy", "ndarray"), (0,), b"b"), state)},
        "sets": {"a": {1, 2}, "b": frozenset((3,)), "c": b"bytes", "d": bytearray(b"array")},
        "code": [Call(G("posix", "system"), ("true",)), Obj(G("a.b", "C"), (None, {"slot": 1}))],
        "storage": [shared, T("float8_e4m3fn", (3,))],
    }


def _checkpoints() -> Iterator[tuple[str, bytes]]:
    """Checkpoints of every format, and what each is called."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "it"
        for name, value in _values().items():
            for protocol in (2, 4):
                pth_writer.write_pth(path, value, protocol=protocol)
                yield f"{name}-zip{protocol}", path.read_bytes()
            pth_writer.write_pth(path, value, deflate=True, byteorder="big")
            yield f"{name}-deflated", path.read_bytes()
            for protocol in (1, 2):
                pth_writer.write_legacy(path, value, protocol=protocol)
                yield f"{name}-legacy{protocol}", path.read_bytes()
            pth_writer.write_tar(path, value)
            yield f"{name}-tar", path.read_bytes()
        tensors = {"a": T("float32", (2, 3)), "b": T("bool", (5,)), "c": T("int64", (0,))}
        pth_writer.write_safetensors(path, tensors, {"format": "pt"})
        yield "safetensors", path.read_bytes()
        pth_writer.write_pth(path, {"x": T("int8", (2,))})
        yield "exported", _exported(path.read_bytes())
        older = {"serialized_state_dict.pt": path.read_bytes(), "version": b"8.7"}
        older |= {"serialized_exported_program.json": b"{}", "serialized_constants.pt": b""}
        yield "exported-older", pth_writer.zip_of(list(older.items()))
        if importlib.util.find_spec("torch"):
            yield from _by_torch(path)


def _exported(inputs: bytes) -> bytes:
    """What torch.export writes, in small."""
    number = [{"as_int": 2}]
    meta = {"dtype": 7, "sizes": number, "strides": [{"as_int": 1}], "layout": 7}
    meta |= {"storage_offset": {"as_int": 0}, "requires_grad": True, "device": {"type": "cpu"}}
    weight = {"path_name": "weight_0", "is_param": True, "use_pickle": False, "tensor_meta": meta}
    members = {
        "archive_format": b"pt2",
        "data/weights/weight_0": bytes(8),
        "data/weights/model_weights_config.json": json.dumps({"config": {"w": weight}}).encode(),
        "data/sample_inputs/model.pt": inputs,
        "models/model.json": b"{}",
        "byteorder": b"little",
    }
    return pth_writer.zip_of([(f"m/{name}", data) for name, data in members.items()])


def _by_torch(path: Path) -> Iterator[tuple[str, bytes]]:
    """A few that torch itself writes."""
    import torch

    linear = torch.nn.Linear(2, 3)
    optimizer = torch.optim.Adam(linear.parameters())
    linear(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    saved = {"model": linear.state_dict(), "optimizer": optimizer.state_dict()}
    for is_zip in (True, False):
        torch.save(saved, path, _use_new_zipfile_serialization=is_zip)
        yield f"torch-{'zip' if is_zip else 'legacy'}", path.read_bytes()
    torch.save(linear, path)
    yield "torch-module", path.read_bytes()
    torch.jit.script(linear).save(str(path))
    yield "torch-script", path.read_bytes()
    exported = path.with_suffix(".pt2")
    torch.export.save(torch.export.export(linear, (torch.ones(1, 2),)), str(exported))
    yield "torch-export", exported.read_bytes()


def _logs() -> Iterator[tuple[str, bytes]]:
    """Logs of memory events, as arrays and as lines."""
    for name, entries in {"sample": list(SAMPLE), "rich": rich_log()}.items():
        yield f"{name}-array", json.dumps(entries).encode()
        yield f"{name}-lines", "".join(f"{json.dumps(entry)}\n" for entry in entries).encode()
    yield "torn", b'{"event": "init", "peak_memory": 5}\n{"event": "step_0", "incre'


def _code(checkpoints: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """The code of TorchScript: by hand, and what torch writes."""
    bodies = {
        "relu": "return torch.relu(x)",
        "loop": "for i in range(3):\n  x = torch.add(x, i)\nreturn x",
        "branch": "if torch.gt(torch.size(x, 0), 1):\n  y = torch.neg(x)\nelse:\n  y = x\nreturn y",
        "list": "a = [x, x]\n_0 = torch.append(a, x)\nreturn torch.cat(a, 0)",
        "while": "i = 0\nwhile torch.lt(i, 4):\n  i = torch.add(i, 1)\nreturn x",
        "format": 'a = torch.format("{} {}", 1, "b")\nreturn torch.view(x, [-1, 8])',
    }
    for name, body in bodies.items():
        yield name, module(body).encode()
    if found := checkpoints.get("torch-script"):
        with zipfile.ZipFile(io.BytesIO(found)) as archive:
            for member in archive.namelist():
                if member.endswith(".py"):
                    yield member.replace("/", "-"), archive.read(member)


def _bundles(into: Path) -> Iterator[tuple[str, Path]]:
    """Bundles of demos and of the smallest real snapshots, as directories."""
    files = sorted(oracle.SNAPSHOTS.glob("*.pickle"), key=lambda path: path.stat().st_size)[:10]
    with tempfile.TemporaryDirectory() as folder:
        for name, options in OPTIONS.items():
            path = Path(folder) / f"demo-{name}"
            path.write_bytes(_encodings(snapshot(options))["p4"])
            files.append(path)
        for path in files:
            bundle = into / path.stem
            shutil.rmtree(bundle, ignore_errors=True)  # of an older format, maybe
            _core.convert(path, bundle)
            if sum(file.stat().st_size for file in bundle.iterdir()) <= MAX_BUNDLE_BYTES:
                yield path.stem, bundle
            else:
                shutil.rmtree(bundle)


def _bundle_seeds(bundle: Path) -> Iterator[tuple[str, bytes]]:
    """A bundle as its target has it: a zip, and both files without their digests."""
    files = {file.name: file.read_bytes() for file in bundle.iterdir()}
    for name, method in {"stored": zipfile.ZIP_STORED, "deflated": zipfile.ZIP_DEFLATED}.items():
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", method) as archive:
            for member, content in files.items():
                archive.writestr(member, content)
        yield name, packed.getvalue()
    document = files["allocations.json"].rpartition(b',"elements":')[0]
    yield "files", document + b"\0" + files["elements.db"]


def main(into: Path) -> None:
    """Write all seeds."""
    targets = (
        *("reader", "pickle", "checkpoint", "checkpoint_pickle", "events", "torchscript"),
        *("bundle", "bundle_columns", "database", "sql", "filter", "sample_bundles"),
    )
    folders = {name: into / name for name in targets}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    for name, options in OPTIONS.items():
        plain = snapshot(options)
        _shorten(plain)
        for encoding, content in _encodings(plain).items():
            if len(content) <= MAX_BYTES:
                (folders["reader"] / f"{name}-{encoding}").write_bytes(content)
    # These targets make something of whatever bytes they get.
    for seed in range(64):
        content = random.Random(seed).randbytes(32 << seed % 8)
        for target in ("pickle", "bundle_columns", "database"):
            (folders[target] / f"random-{seed}").write_bytes(content)
    for name, bundle in _bundles(folders["sample_bundles"]):
        for kind, content in _bundle_seeds(bundle):
            (folders["bundle"] / f"{name}-{kind}").write_bytes(content)
    for target, texts in {"sql": QUERIES, "filter": FILTERS}.items():
        for number, text in enumerate(texts):
            (folders[target] / str(number)).write_text(text)
    checkpoints = dict(_checkpoints())
    for name, content in checkpoints.items():
        if len(content) <= MAX_BYTES:
            (folders["checkpoint"] / name).write_bytes(content)
    for name, content in _logs():
        (folders["events"] / name).write_bytes(content)
    for name, content in _code(checkpoints):
        (folders["torchscript"] / name).write_bytes(content)
    # The first byte is for the target, which adds the protocol and the STOP itself.
    for name, value in _values().items():
        for protocol in (0, 2, 4):
            content = pth_writer.pickle_of(value, protocol=protocol)[0]
            (folders["checkpoint_pickle"] / f"{name}-{protocol}").write_bytes(b"\0" + content)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
