"""The call tree, compared with a slow and obvious version; and what it is written as."""

from __future__ import annotations

import gzip
import json
import pickle
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import snapviewer
from support import oracle, program, tree_oracle
from support.patience import PATIENT
from support.random_snapshots import snapshots
from support.timeline_cases import loaded, masks

WAYS = st.fixed_dictionaries(
    {
        "by": st.sampled_from(["line", "function", "file"]),
        "shown": st.sampled_from(["folded", "own", "all"]),
        "callers": st.booleans(),
    }
)
MEASURES = ("alive", "allocated", "time")
FILES = sorted(oracle.SNAPSHOTS.glob("*.pickle"))
TORCH = "/usr/lib/python3.12/site-packages/torch/nn/modules/module.py"
LIBRARY = "/usr/lib/python3.12/site-packages/transformers/model.py"
MANY = [
    ("main", "/me/train.py", 9),
    ("step", "/me/train.py", 20),
    ("forward", "/me/model.py", 7),
    ("visit", "/me/model.py", 30),
    ("__call__", TORCH, 1),
    ("_call_impl", TORCH, 2),
    ("generate", LIBRARY, 3),
    ("run", "/usr/lib/python3.12/threading.py", 4),
    ("torch::autograd::generated::MulBackward0::apply(at::Tensor)", "??", 0),
    ("at::native::mul(at::Tensor const&)", "??", 0),
    ("clone", "", 0),
    ("cell", "<ipython-input-1>", 5),
    ("<b>a;b c</b>\x1b[31m", "/me/x y;z.py", 6),
]


def _loaded(content: Any) -> Any:
    with TemporaryDirectory() as directory:
        return loaded(content, Path(directory))


def _tree(device: Any, way: dict[str, Any], mask: Any, **asked: Any) -> Any:
    event, events = asked.get("event"), asked.get("events")
    return device.tree(
        event,
        events=events,
        measure=asked["measure"],
        by=way["by"],
        frames=way["shown"],
        callers=way["callers"],
        where=mask,
    )


def _assert_adds_up(tree: Any) -> None:
    waiting = [0]
    while waiting:
        node = tree.node(waiting.pop())
        below = [tree.node(child) for child in node.children]
        assert node.own + sum(one.weight for one in below) == node.weight
        assert all(one.parent == node.index and one.depth == node.depth + 1 for one in below)
        waiting += node.children


def _assert_as_modelled(snapshot: Any, device: Any, way: Any, mask: Any, **asked: Any) -> None:
    expected = tree_oracle.tree_of(snapshot, device, mask, **way, **asked)

    tree = _tree(device, way, mask, **asked)

    assert tree_oracle.as_dictionary(tree, way["by"]) == expected
    assert [tree.total, tree.count] == [expected[(tree_oracle.ROOT,)][place] for place in (0, 2)]
    _assert_adds_up(tree)


@st.composite
def deep_snapshots(draw: st.DrawFn) -> Any:
    """A few allocations with stacks of any code, in which calls repeat."""
    stacks = draw(st.lists(st.lists(st.sampled_from(MANY), max_size=12), min_size=1, max_size=6))
    frames = [
        [{"name": name, "filename": file, "line": line} for name, file, line in stack]
        for stack in stacks
    ]
    events, time = [], 1_700_000_000_000_000
    for place, which in enumerate(draw(st.lists(st.integers(0, 5), max_size=12))):
        time += which * 7
        size = draw(st.sampled_from([0, 1, 512, 2**40]))
        base: dict[str, Any] = {
            "addr": 4096 * (place + 1),
            "size": size,
            "stream": 0,
            "time_us": time,
        }
        base["frames"] = frames[which % len(frames)]
        events.append({"action": "alloc", **base})
        if which % 2:
            events.append({"action": "free_completed", **base, "frames": []})
    return {"segments": [], "device_traces": [events]}


@given(snapshots(), WAYS, st.data())
@PATIENT
def test_every_tree_is_that_of_the_model(content: Any, way: dict[str, Any], data: Any) -> None:
    snapshot = _loaded(content)
    for device in snapshot.devices:
        events = int(device.events)
        mask = data.draw(masks(device))
        event = data.draw(st.integers(-1, max(events - 1, -1)))
        span = tuple(sorted(data.draw(st.tuples(*[st.integers(0, events)] * 2))))
        for measure in MEASURES:
            _assert_as_modelled(
                snapshot, device, way, mask, measure=measure, event=event, events=span
            )


@given(deep_snapshots(), WAYS)
@PATIENT
def test_stacks_of_any_code_become_the_paths_of_the_model(content: Any, way: Any) -> None:
    snapshot = _loaded(content)
    device = snapshot.devices[0]

    for measure in MEASURES:
        _assert_as_modelled(
            snapshot,
            device,
            way,
            None,
            measure=measure,
            event=device.peak_event,
            events=(0, int(device.events)),
        )


@pytest.mark.parametrize("path", FILES or [Path("absent")], ids=lambda path: path.stem)
@pytest.mark.parametrize("shown", ["folded", "own", "all"])
def test_real_files_have_the_tree_of_the_model(path: Path, shown: str) -> None:
    if not FILES:
        pytest.skip("no published snapshots here")
    snapshot = snapviewer.load(path)
    for number, device in enumerate(snapshot.devices):
        way = {"by": ("line", "function", "file")[number % 3], "shown": shown, "callers": False}
        events = int(device.events)
        for event in {device.peak_event, events // 3 - 1}:
            _assert_as_modelled(
                snapshot, device, way, None, measure="alive", event=event, events=(0, events)
            )
            if events:
                assert (
                    device.tree(event).total == ([device.initial_bytes, *device.totals])[event + 1]
                )


@given(deep_snapshots(), WAYS, st.integers(1, 60), st.integers(1, 5), st.data())
@PATIENT
def test_an_icicle_shows_at_each_pixel_the_node_at_its_centre(
    content: Any, way: Any, width: int, row: int, data: Any
) -> None:
    device = _loaded(content).devices[0]
    tree = _tree(device, way, None, measure="alive")
    focus = data.draw(st.sampled_from([0, *_present(tree)]))
    icicle = tree.icicle(width=width, row=row, focus=focus)
    height = min(icicle.height + 3, 400)

    ids = icicle.image(height=height).ids

    expected = np.full((height, width), 2**32 - 1, dtype=np.int64)
    above = _above(tree, focus)
    for depth, node in enumerate(above):
        expected[depth * row : (depth + 1) * row] = node
    total = tree.node(focus).weight
    for x in range(width) if total else ():
        byte, node = total * (2 * x + 1) // (2 * width), tree.node(focus)
        while True:
            byte -= node.own
            child = _child_at(tree, node, byte) if byte >= 0 else None
            if child is None:
                break
            node, byte = child
            top = node.depth * row
            expected[top : top + row, x] = node.index
    assert ids.tolist() == expected[:height].tolist()
    picked = [[icicle.at(x, y) for x in range(width)] for y in range(icicle.height)]
    shown = [[None if one == 2**32 - 1 else one for one in line] for line in ids.tolist()]
    assert picked[:height] == shown[: icicle.height]


def _present(tree: Any) -> list[int]:
    found, waiting = [], [0]
    while waiting:
        found.append(waiting.pop())
        waiting += tree.node(found[-1]).children
    return found


def _above(tree: Any, node: int) -> list[int]:
    parent = tree.node(node).parent
    return [node] if parent is None else [*_above(tree, parent), node]


def _child_at(tree: Any, node: Any, byte: int) -> Any:
    for index in node.children:
        child = tree.node(index)
        if byte < child.weight:
            return child, byte
        byte -= child.weight
    return None


def _written(tmp_path: Path, stacks: list[list[tuple[str, str, int]]]) -> Path:
    """A snapshot with an allocation of 1,000, 2,000, … bytes for each stack, innermost last."""
    events = [
        {
            "action": "alloc",
            "addr": 4096 * (place + 1),
            "size": 1000 * (place + 1),
            "stream": 0,
            "time_us": 1_700_000_000_000_000 + place,
            "frames": [
                {"name": name, "filename": file, "line": line}
                for name, file, line in reversed(stack)
            ],
        }
        for place, stack in enumerate(stacks)
    ]
    path = tmp_path / "snap.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [events]}))
    return path


@pytest.fixture
def written(tmp_path: Path) -> Path:
    main, step, forward, _, call, *_ = MANY
    return _written(
        tmp_path,
        [[main, step], [main, call, forward, call], [main, call, forward, MANY[6]], [], [MANY[-1]]],
    )


def test_the_command_prints_an_aligned_tree(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = program.run_here(capsys, "tree", written)

    assert ran.code == 0
    assert ran.out.split("\n", 4)[-1] == (
        "     total    share       own  count\n"
        "  14.6 KiB  100.0 %              5 ×  all\n"
        "  5.86 KiB   40.0 %              3 ×    train.py:9 main\n"
        "  4.88 KiB   33.3 %              2 ×      … torch\n"
        "  4.88 KiB   33.3 %  1.95 KiB    2 ×        model.py:7 forward\n"
        "  2.93 KiB   20.0 %  2.93 KiB    1 ×          model.py:3 generate\n"
        "   1,000 B    6.7 %   1,000 B    1 ×      train.py:20 step\n"
        "  4.88 KiB   33.3 %  4.88 KiB    1 ×    x y;z.py:6 <b>a;b c</b>?[31m\n"
        "  3.91 KiB   26.7 %  3.91 KiB    1 ×    no stack recorded\n"
    )


def test_names_are_shortened_to_the_terminal(
    written: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")

    ran = program.run_here(capsys, "tree", written)

    table = ran.out.split("\n")[4:]
    assert max(map(len, table)) <= 58, "a name keeps at least 12 letters"
    assert "…" in ran.out


def test_the_json_has_every_node_and_adds_up(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(program.run_here(capsys, "tree", written, "--json").out)

    assert document["total"] == 15_000
    nodes = {node["node"]: node for node in document["nodes"]}
    for node in nodes.values():
        below = [one["weight"] for one in nodes.values() if one["parent"] == node["node"]]
        assert node["own"] + sum(below) == node["weight"]
    assert {node["kind"] for node in nodes.values()} == {
        *("root", "own", "library", "folded", "no stack")
    }


FOLDED = """\
train.py:9 main;… torch;model.py:7 forward 2000
train.py:9 main;… torch;model.py:7 forward;model.py:3 generate 3000
train.py:9 main;train.py:20 step 1000
x y,z.py:6 <b>a,b c</b>?[31m 5000
no stack recorded 4000
"""


@pytest.mark.parametrize("callers", [False, True])
def test_the_folded_form_is_what_flamegraph_reads(
    written: Path, tmp_path: Path, callers: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "tree.folded"
    more = ["--callers"] if callers else []

    program.run_here(capsys, "tree", written, "-o", output, *more)

    # The root is always the outermost call, whichever way the tree goes.
    assert sorted(output.read_text().splitlines()) == sorted(FOLDED.splitlines())


def test_speedscope_gets_what_its_format_asks_for(
    written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "tree.speedscope.json"

    program.run_here(capsys, "tree", written, "-o", output)

    document = json.loads(output.read_text())
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(document, SPEEDSCOPE)
    (profile,) = document["profiles"]
    frames = [frame["name"] for frame in document["shared"]["frames"]]
    assert len(profile["samples"]) == len(profile["weights"])
    lines = [
        f"{';'.join(frames[place] for place in sample)} {weight}"
        for sample, weight in zip(profile["samples"], profile["weights"], strict=True)
    ]
    assert sorted(line.replace("x y;z", "x y,z").replace("a;b", "a,b") for line in lines) == sorted(
        FOLDED.splitlines()
    )
    assert profile["endValue"] == sum(profile["weights"]) == 15_000


# From speedscope's src/lib/file-format-spec.ts.
SPEEDSCOPE = {
    "type": "object",
    "required": ["$schema", "shared", "profiles"],
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "name": {"type": "string"},
        "exporter": {"type": "string"},
        "activeProfileIndex": {"type": "number"},
        "shared": {
            "type": "object",
            "required": ["frames"],
            "properties": {
                "frames": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "additionalProperties": False,
                        "properties": {
                            "name": {"type": "string"},
                            "file": {"type": "string"},
                            "line": {"type": "number"},
                            "col": {"type": "number"},
                        },
                    },
                }
            },
        },
        "profiles": {
            "type": "array",
            "items": {
                "type": "object",
                "required": [
                    *("type", "name", "unit", "startValue", "endValue", "samples", "weights")
                ],
                "additionalProperties": False,
                "properties": {
                    "type": {"const": "sampled"},
                    "name": {"type": "string"},
                    "unit": {"enum": ["none", "nanoseconds", "seconds", "bytes"]},
                    "startValue": {"type": "number"},
                    "endValue": {"type": "number"},
                    "samples": {
                        "type": "array",
                        "items": {"type": "array", "items": {"type": "number"}},
                    },
                    "weights": {"type": "array", "items": {"type": "number"}},
                },
            },
        },
    },
    "additionalProperties": False,
}


def test_pprof_gets_what_its_format_asks_for(
    written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "tree.pb.gz"

    program.run_here(capsys, "tree", written, "-o", output)

    profile = _profile_class()()
    profile.ParseFromString(gzip.decompress(output.read_bytes()))
    strings = profile.string_table
    assert strings[0] == ""
    types = [(strings[one.type], strings[one.unit]) for one in profile.sample_type]
    assert types == [("inuse_objects", "count"), ("inuse_space", "bytes")]
    assert strings[profile.default_sample_type] == "inuse_space"
    functions = {one.id: strings[one.name] for one in profile.function}
    names = {one.id: functions[one.line[0].function_id] for one in profile.location}
    lines = [
        f"{';'.join(names[id_] for id_ in reversed(sample.location_id))} {sample.value[1]}"
        for sample in profile.sample
    ]
    assert sorted(line.replace("x y;z", "x y,z").replace("a;b", "a,b") for line in lines) == sorted(
        FOLDED.splitlines()
    )
    assert [sample.value[0] for sample in profile.sample] == [1] * 5
    lines_of = {names[one.id]: one.line[0].line for one in profile.location}
    assert lines_of["model.py:7 forward"] == 7
    if pprof := shutil.which("pprof"):
        ran = subprocess.run(
            [pprof, "-top", str(output)], capture_output=True, text=True, check=True
        )
        assert "14.65kB total" in ran.stdout


def _profile_class() -> Any:
    """The messages of pprof's profile.proto that we write, made by Google's own library."""
    pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    number, text, message = 3, 9, 11  # int64, string, message
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="p", syntax="proto3")

    def define(name: str, *fields: tuple[str, int, int, bool, str]) -> None:
        new = file.message_type.add(name=name)
        for field, place, kind, is_repeated, of in fields:
            label = 3 if is_repeated else 1
            one = new.field.add(name=field, number=place, type=kind, label=label)
            if of:
                one.type_name = f".p.{of}"

    define("ValueType", ("type", 1, number, False, ""), ("unit", 2, number, False, ""))
    define("Sample", ("location_id", 1, 4, True, ""), ("value", 2, number, True, ""))
    define("Line", ("function_id", 1, 4, False, ""), ("line", 2, number, False, ""))
    define("Location", ("id", 1, 4, False, ""), ("line", 4, message, True, "Line"))
    names = (("name", 2), ("system_name", 3), ("filename", 4))
    define(
        "Function",
        ("id", 1, 4, False, ""),
        *((name, place, number, False, "") for name, place in names),
    )
    define(
        "Profile",
        ("sample_type", 1, message, True, "ValueType"),
        ("sample", 2, message, True, "Sample"),
        ("location", 4, message, True, "Location"),
        ("function", 5, message, True, "Function"),
        ("string_table", 6, text, True, ""),
        ("default_sample_type", 14, number, False, ""),
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Profile"))


def test_pages_and_pictures_load_nothing(
    written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, picture = tmp_path / "tree.html", tmp_path / "tree.svg"

    program.run_here(capsys, "tree", written, "-o", page, "-o", picture, "--theme", "dark")

    for text in (page.read_text(), picture.read_text()):
        assert "<b>a" not in text
        assert "\x1b" not in text
        assert "src=" not in text.replace("default-src", "").replace("style-src", "")
        addresses = text.replace("http://www.w3.org/2000/svg", "")
        assert "://" not in addresses
    assert "model.py:7 forward" in picture.read_text()
    assert "default-src 'none'" in page.read_text()


def test_a_filter_and_a_range_narrow_the_tree(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filtered = program.run_here(capsys, "tree", written, "--filter", "forward", "--json")
    ranged = program.run_here(
        capsys, "tree", written, "--measure", "allocated", "--events", "1", "2", "--json"
    )

    assert json.loads(filtered.out)["total"] == 5000
    assert json.loads(ranged.out)["total"] == 5000


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--event", "99"], 1, "there is no event 99"),
        (["--events", "1", "2"], 2, "--events needs --measure"),
        (["--measure", "time", "--events", "3", "9"], 1, "there are no events 3 to 9"),
        (["--filter", "size>"], 2, "size"),
        (["-o", "tree.gz"], 2, "the suffix of an output picks its format"),
    ],
)
def test_wrong_usage_is_explained(
    written: Path,
    options: list[str],
    code: int,
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ran = program.run_here(capsys, "tree", written, *options)

    assert ran.code == code
    assert sentence in ran.err


def test_a_node_knows_its_allocations_and_an_allocation_its_node(written: Path) -> None:
    device = snapviewer.load(written).devices[0]
    tree = device.tree(3)

    nodes = [tree.node_of(which) for which in range(5)]
    found, weight = tree.search("forward")

    assert nodes[4] is None, "not alive yet"
    names = [tree.node(node).name for node in nodes[:4] if node is not None]
    assert names == ["step", "forward", "generate", ""]
    (forward,) = found.tolist()
    assert weight == tree.node(forward).weight == 5000
    assert tree.mask(forward).tolist() == [False, True, True, False, False]
    with pytest.raises(ValueError, match="unclosed"):
        tree.search("(")
    with pytest.raises(IndexError):
        tree.node(len(tree))


def test_a_file_without_events_has_the_tree_of_its_state(tmp_path: Path) -> None:
    block: dict[str, Any] = {"address": 4096, "size": 512, "requested_size": 500}
    block["state"] = "active_allocated"
    block["frames"] = [{"name": "main", "filename": "/me/train.py", "line": 9}]
    segment: dict[str, Any] = {
        "device": 0,
        "address": 4096,
        "total_size": 2**21,
        "allocated_size": 512,
    }
    segment |= {"active_size": 512, "stream": 0, "segment_type": "small", "blocks": [block]}
    path = tmp_path / "state.pickle"
    path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": []}))

    tree = snapviewer.load(path).devices[0].tree()

    assert (tree.total, tree.event) == (500, -1)
    assert tree.node(tree.node(0).children[0]).name == "main"
