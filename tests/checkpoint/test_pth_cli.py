"""`pth`, as somebody calls it: what it prints and where, and how it ends."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from snapviewer import _core
from snapviewer.checkpoint.paths import FailedFile
from snapviewer.checkpoint.statistics import measure
from snapviewer.checkpoint.summary import order_of, prefix_of, summary_of
from snapviewer.report.checkpoint import json as json_report
from snapviewer.report.checkpoint import many as many_report
from snapviewer.report.checkpoint import text
from support.program import Ran, run, run_here
from support.pth_writer import Call, G, S, T, write_pth, write_safetensors

CONTRACT = {
    "file",
    "format",
    "file_bytes",
    "ledger",
    "logical_bytes",
    "unique_bytes",
    "wasted_bytes",
    "tensors",
    "imports",
    "warnings",
}
TENSOR_CONTRACT = {
    "name",
    "kind",
    "dtype",
    "shape",
    "stride",
    "offset",
    "storage",
    "device",
    "requires_grad",
    "logical_bytes",
    "stored_bytes",
}
STATS_CONTRACT = {
    "count",
    "mean",
    "std",
    "min",
    "max",
    "zeros",
    "nan",
    "inf",
    "denormal",
    "l1",
    "l2",
    "skewness",
    "kurtosis",
    "entropy",
    "histogram",
}
NAN, INF = float("nan"), float("inf")

Here = Callable[..., Ran]


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    """Runs the program in this process."""

    return partial(run_here, capsys)


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A checkpoint with tied weights, a view of a large storage, and numbers that are none."""
    path = tmp_path / "model.pth"
    tied = S("tied", bytes(4000))
    large = S("large", bytes(1_000_000))
    write_pth(
        path,
        {
            "layers.10.weight": T("float32", (10, 100), storage=tied),
            "layers.2.weight": T("bfloat16", (8,)),
            "head.weight": T("float32", (10, 100), storage=tied),
            "view": T("float32", (10,), storage=large, offset=7),
            "bad": T("float32", (4,), floats(1, NAN, INF, 0)),
            "moments": T("int64", (3,), device="cuda:1", requires_grad=False),
            "step": 12,
        },
    )
    return path


def parsed(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


# One file


def test_the_document_has_the_keys_of_the_contract(model: Path) -> None:
    ran = run("pth", model, "--json")

    found = parsed(ran.out)
    assert (ran.code, ran.err) == (0, "")
    assert set(found) >= CONTRACT
    assert all(set(tensor) >= TENSOR_CONTRACT for tensor in found["tensors"])
    assert set(found["imports"]) == {"allowed", "flagged"}
    assert (found["file"], found["file_bytes"]) == (str(model), model.stat().st_size)
    assert set(found["ledger"]) == {"tensors", "unreferenced", "pickle", "padding", "archive"}
    assert sum(found["ledger"].values()) == found["file_bytes"]
    assert found["wasted_bytes"] == 1_000_000 - 40


def test_the_advice_adds_up_to_what_is_wasted(model: Path, here: Here) -> None:
    found = parsed(here("pth", model, "--json").out)

    assert [(advice["action"], advice["tensors"]) for advice in found["advice"]] == [
        ("clone", ["view"])
    ]
    assert sum(advice["saved_bytes"] for advice in found["advice"]) == found["wasted_bytes"]
    assert [sharing["tensors"] for sharing in found["sharing"]] == [
        ["layers.10.weight", "head.weight"]
    ]


def test_the_text_contains_what_matters(model: Path, here: Here) -> None:
    ran = here("pth", model)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"{model}  (torch zip)\n")
    assert "save a clone of `view`: 977 KiB → 40 B" in ran.out
    assert "A  3.91 KiB: layers.10.weight and head.weight" in ran.out
    assert "cuda:1" in ran.out
    assert "all allowed by torch" in ran.out
    assert "does not allow" not in ran.out


def test_what_the_tensors_come_to_is_said_without_guessing_why(tmp_path: Path, here: Here) -> None:
    plain, tied = tmp_path / "plain.pth", tmp_path / "tied.pth"
    write_pth(plain, {"x": T("float32", (10,))})
    storage = S("0", bytes(40))
    write_pth(tied, {name: T("float32", (10,), storage=storage) for name in "xy"})

    assert "\n1 tensor, 10 elements: 40 B\n" in here("pth", plain).out
    shown = "\n2 tensors, 20 elements: 80 B, stored in 40 B\n"
    assert shown in here("pth", tied).out


def test_an_expanded_tensor_says_how_little_of_it_is_stored(tmp_path: Path, here: Here) -> None:
    path = tmp_path / "expanded.pth"
    one = S("0", floats(1))
    write_pth(
        path,
        {
            "e": T("float32", (1000, 1000), storage=one, stride=(0, 0)),
            "plain": T("float32", (3,)),
        },
    )

    rows = {line.split()[0]: line for line in here("pth", path).out.splitlines() if line.strip()}

    assert rows["e"].endswith("3.81 MiB  expanded, 4 B stored")
    assert rows["plain"].endswith("12 B")


def test_plain_values_are_listed_if_there_are_any(tmp_path: Path, here: Here) -> None:
    path, bare = tmp_path / "train.pth", tmp_path / "bare.pth"
    groups = [{"lr": 0.25, "betas": (0.9, 0.99)}]
    optimizer = {"state": {0: {"step": 7, "m": T("int8", (1,))}}, "param_groups": groups}
    write_pth(
        path, {"epoch": 3, "w": T("int8", (1,)), "prompt": "a\x1bcat", "optimizer": optimizer}
    )
    write_pth(bare, {"w": T("int8", (1,)), "nested": {"v": T("int8", (1,))}})

    out = here("pth", path).out
    found = parsed(here("pth", path, "--json").out)["values"]

    rows = [line.split(maxsplit=2) for line in out[out.index("  value ") :].splitlines()[1:4]]
    assert rows == [
        ["epoch", "int", "3"],
        ["prompt", "str", "'a\\x1bcat'"],
        ["optimizer.param_groups", "list", "[{lr: 0.25, betas: (0.9, 0.99)}]"],
    ]
    assert list(found) == ["epoch", "prompt", "optimizer.param_groups"]
    assert found["epoch"] == "3"
    assert "  value " not in here("pth", bare).out
    assert parsed(here("pth", bare, "--json").out)["values"] == {}


def test_many_plain_values_are_counted(tmp_path: Path, here: Here) -> None:
    path = tmp_path / "values.pth"
    write_pth(path, {f"v{i}": i for i in range(17)})

    out = here("pth", path).out

    assert "v11 " in out
    assert "v12 " not in out
    assert "  … 5 more (python -m snapviewer.pth_analyzer shows all)" in out
    assert len(parsed(here("pth", path, "--json").out)["values"]) == 17


def test_values_beside_the_tensors_of_many_samples_are_listed(tmp_path: Path, here: Here) -> None:
    path = tmp_path / "samples.pth"
    latent = T("int8", (1,))
    write_pth(path, [{"latent": latent, "prompt": f"cat {i}"} for i in range(300)])

    values = parsed(here("pth", path, "--json").out)["values"]

    assert len(values) == 300
    assert values["[299].prompt"] == "'cat 299'"


def test_a_file_of_one_plain_value_shows_it(tmp_path: Path, here: Here) -> None:
    path = tmp_path / "int.pth"
    write_pth(path, 42)

    assert parsed(here("pth", path, "--json").out)["values"] == {"root": "42"}


def test_a_value_that_holds_itself_is_shown_once(tmp_path: Path, here: Here) -> None:
    path = tmp_path / "cycle.pth"
    loop: dict[str, Any] = {"x": 1}
    loop["self"] = loop
    loop["list"] = [loop]
    write_pth(path, loop)

    ran = here("pth", path)

    assert (ran.code, ran.err) == (0, "")
    assert "  x " in ran.out


def test_what_a_file_would_run_is_said_first(tmp_path: Path, here: Here) -> None:
    path = tmp_path / "evil.pth"
    write_pth(path, {"x": Call(G("posix", "system"), ("touch ran",)), "y": T("int8", (3,))})

    ran = here("pth", path)
    found = parsed(here("pth", path, "--json").out)

    warning = "! imports that torch does not allow by default: posix.system"
    assert ran.out.splitlines()[2] == warning
    assert found["imports"]["flagged"] == ["posix.system"]
    assert not Path("ran").exists()


def test_names_from_a_file_cannot_move_the_cursor(tmp_path: Path, here: Here) -> None:
    path = tmp_path / "names.pth"
    write_pth(path, {"\x1b[2J\r\n" + "x" * 5000: T("int8", (3,)), "": T("int8", (2,))})

    out = here("pth", path).out

    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) < 400


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("file", ["layers.10.weight", "layers.2.weight", "head.weight", "view", "bad", "moments"]),
        ("name", ["bad", "head.weight", "layers.2.weight", "layers.10.weight", "moments", "view"]),
        ("size", ["layers.10.weight", "head.weight", "view", "moments", "layers.2.weight", "bad"]),
        ("waste", ["view", "layers.10.weight", "layers.2.weight", "head.weight", "bad", "moments"]),
        ("dtype", ["layers.2.weight", "layers.10.weight", "head.weight", "view", "bad", "moments"]),
    ],
)
def test_tensors_come_in_the_order_asked_for(
    model: Path, here: Here, sort: str, names: list[str]
) -> None:
    found = parsed(here("pth", model, "--json", "--sort", sort).out)

    assert [tensor["name"] for tensor in found["tensors"]] == names


def test_where_not_all_tensors_are_shown_the_largest_are(model: Path, here: Here) -> None:
    out = here("pth", model, "--top", "2").out

    table = out[out.index("  tensor ") :].splitlines()
    assert [line.split()[0] for line in table[1:3]] == ["layers.10.weight", "head.weight"]
    assert table[3] == "  … 4 more tensors, 96 B (--top 0 shows all)"


def test_groups_add_tensors_up_by_the_beginning_of_their_names(model: Path, here: Here) -> None:
    out = here("pth", model, "--depth", "1").out
    found = parsed(here("pth", model, "--depth", "1", "--json").out)

    groups = {group["name"]: group for group in found["groups"]}
    assert list(groups) == ["layers", "head", "view", "bad", "moments"]
    assert (groups["layers"]["tensors"], groups["layers"]["elements"]) == (2, 1008)
    assert sum(group["logical_bytes"] for group in found["groups"]) == found["logical_bytes"]
    assert "  layers" in out
    assert "layers.10" not in out[: out.index("tensors that share")]


def test_statistics_follow_the_contract_and_json_has_no_nan(model: Path, here: Here) -> None:
    found = parsed(here("pth", model, "--json", "--stats", "--bins", "5").out)

    stats = {tensor["name"]: tensor["stats"] for tensor in found["tensors"]}
    assert all(set(item) == STATS_CONTRACT for item in stats.values())
    bad = stats["bad"]
    assert (bad["count"], bad["nan"], bad["inf"], bad["zeros"]) == (4, 1, 1, 1)
    assert (bad["mean"], bad["min"], bad["max"]) == (0.5, 0, 1)
    assert bad["histogram"] == {"min": 0.0, "max": 1.0, "counts": [1, 0, 0, 0, 1]}


def test_numbers_that_are_none_are_said_first(model: Path, here: Here) -> None:
    out = here("pth", model, "--stats").out

    assert out.splitlines()[2:4] == [
        "! NaN or Inf in 1 tensor",
        "  ! bad: 1 NaN and 1 Inf of 4 elements",
    ]
    assert "histogram" in out


def test_what_cannot_be_measured_says_why(tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    write_pth(path, {"x": T("float32", (2,))})
    summary = summary_of(_core.read_checkpoint(path), "x.pth")

    out = text.as_text(summary, measured={0: "it has no elements"})
    found = json_report.to_json(summary, measured={0: "it has no elements"})

    assert "not measured\n  x: it has no elements" in out
    assert found["tensors"][0]["stats"] is None
    assert found["tensors"][0]["stats_unavailable"] == "it has no elements"


def test_tied_tensors_are_measured_once(model: Path) -> None:
    checkpoint = _core.read_checkpoint(model)

    measured = measure(checkpoint)

    assert len(measured) == 6
    assert measured[0] is measured[2]


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_tables_fit_the_terminal(model: Path, width: int) -> None:
    path = model.with_name("long.pth")
    name = "model.diffusion_model.input_blocks.{}.1.transformer_blocks.0.attn2.to_out.0.weight"
    write_pth(path, {name.format(i): T("float32", (32, 32)) for i in range(3)})
    summary = summary_of(_core.read_checkpoint(path), "long.pth")

    out = text.as_text(summary, width=width)

    rows = [line for line in out.splitlines() if "float32  32×32" in line]
    assert len(rows) == 3
    assert all(len(row) <= width for row in rows)
    assert all(row.split()[0].endswith("weight") for row in rows)


@pytest.mark.parametrize("width", [80, 160])
def test_no_line_is_wider_than_the_terminal(tmp_path: Path, width: int) -> None:
    path = tmp_path / "wide.pth"
    calls = {
        f"call.{i}": Call(G("a_package.with_modules", f"and_a_function_{i}"), ()) for i in range(9)
    }
    storage = S("0", bytes(4_000_000))
    views = {
        f"model.some_rather_long_name.layers.{i}.attention.weight": T(
            "float32", (1000,), storage=storage, offset=i, device="cuda:1"
        )
        for i in range(9)
    }
    values = {f"some.{'long' * 20}.name.{i}": "and a long text " * 20 for i in range(3)}
    write_pth(path, {**values, **calls, **views})
    checkpoint = _core.read_checkpoint(path)
    file = f"{'directory/' * 30}wide.pth"
    measured = measure(checkpoint)

    one = text.as_text(summary_of(checkpoint, file), measured=measured, width=width)
    line = many_report.line_of(file, checkpoint, measured)
    failed = FailedFile(file, "the reason is " + "very " * 60 + "long")
    many = many_report.as_text([line], [failed], width=width)

    for shown in (one, many):
        assert max(map(len, shown.splitlines())) <= width
        assert "and_a_function_0" in shown


@pytest.mark.parametrize("width", [80, 160])
def test_names_beside_statistics_can_be_distinguished(tmp_path: Path, width: int) -> None:
    path = tmp_path / "long.pth"
    name = "model.encoder.layers.{}.attention.output.weight"
    numbers = floats(-1.2345e-5, 1.2345e-5, -1.5e-6, 0)
    write_pth(path, {name.format(i): T("float32", (4,), numbers) for i in range(12)})
    checkpoint = _core.read_checkpoint(path)

    out = text.as_text(
        summary_of(checkpoint, "long.pth"), measured=measure(checkpoint), width=width
    )

    lines = out[out.index("  statistics") :].splitlines()
    names = [line.split()[0] for line in lines[1:13]]
    assert len(set(names)) == 12
    assert ("zeros" in lines[0]) == (width == 160)
    assert "max" in lines[0]
    assert max(map(len, lines)) <= width


def test_statistics_of_what_is_stored_in_part_say_so(tmp_path: Path, here: Here) -> None:
    path = tmp_path / "sparse.pth"
    layout = Call(G("torch.serialization", "_get_layout"), ("torch.sparse_coo",))
    parts = (T("int64", (2, 1)), T("float32", (1,)), Call(G("torch", "Size"), ((3, 3),)), True)
    write_pth(path, {"s": Call(G("torch._utils", "_rebuild_sparse_tensor"), (layout, parts))})

    assert "of sparse and nested tensors: the stored values\n" in (here("pth", path, "--stats").out)
    assert "of sparse" not in here("pth", path).out


def test_safetensors_show_their_metadata(tmp_path: Path, here: Here) -> None:
    path = tmp_path / "x.safetensors"
    write_safetensors(path, {"x": T("float32", (2,))}, {"format": "pt"})

    assert "metadata format: pt" in here("pth", path).out
    assert parsed(here("pth", path, "--json").out)["metadata"] == {"format": "pt"}


@pytest.mark.parametrize("content", [None, b"", b"nothing of the kind"])
def test_a_file_that_is_no_checkpoint_is_refused_in_one_sentence(
    tmp_path: Path, here: Here, content: bytes | None
) -> None:
    path = tmp_path / "bad.pth"
    if content is not None:
        path.write_bytes(content)

    ran = here("pth", path)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("snapviewer: ")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.rstrip().endswith(str(path))


# Many files


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A directory with good checkpoints and a bad one."""
    directory = tmp_path / "many"
    directory.mkdir()
    for number in range(6):
        write_pth(directory / f"{number}.pth", {"x": T("float32", (number + 1,))})
    (directory / "3.pth").write_bytes(b"broken")
    return directory


@pytest.mark.parametrize("jobs", ["1", "2", "7"])
def test_one_failure_does_not_stop_the_rest(many: Path, here: Here, jobs: str) -> None:
    ran = here("pth", many / "*.pth", "--jobs", jobs)

    assert ran.code == 1
    names = [str(many / f"{number}.pth") for number in (0, 1, 2, 4, 5)]
    assert [line.split()[0] for line in ran.out.splitlines()[1:6]] == names
    assert "5 files: " in ran.out
    assert "; 1 failed" in ran.out
    failed = ran.out[ran.out.index("\nfailed\n") :].splitlines()
    assert failed[2].startswith(f"  {many / '3.pth'}: ")
    assert failed[2].count("3.pth") == 1
    assert ran.err == "snapviewer: 1 of 6 files could not be analyzed\n"


def test_many_files_are_one_document(many: Path, here: Here) -> None:
    ran = here("pth", many / "5.pth", many / "[0-3].pth", many / "no*", "--json")

    found = parsed(ran.out)
    assert ran.code == 1
    assert set(found) == {"files", "failed"}
    assert [Path(item["file"]).stem for item in found["files"]] == ["5", "0", "1", "2"]
    assert all(set(item) >= CONTRACT for item in found["files"])
    assert [Path(item["file"]).name for item in found["failed"]] == ["no*", "3.pth"]
    assert all(item["reason"] for item in found["failed"])
    assert not any(item["file"] in item["reason"] for item in found["failed"])


def test_a_wildcard_always_gives_a_list(many: Path, here: Here) -> None:
    ran = here("pth", many / "5*.pth", "--json")

    assert ran.code == 0
    assert len(parsed(ran.out)["files"]) == 1


def test_a_file_with_a_wildcard_in_its_name_is_that_file(tmp_path: Path, here: Here) -> None:
    path = tmp_path / "step[1].pth"
    write_pth(path, {"x": T("int8", (1,))})

    assert parsed(here("pth", path, "--json").out)["file"] == str(path)


def test_a_thousand_files_take_no_more_memory_than_a_few(tmp_path: Path) -> None:
    path = tmp_path / "0.pth"
    write_pth(path, {f"layer.{i}": T("int8", (1,)) for i in range(300)})
    for number in range(1, 1000):
        os.link(path, tmp_path / f"{number}.pth")

    ran = run("pth", str(tmp_path / "*.pth"), directory=tmp_path)

    assert (ran.code, ran.err) == (0, "")
    assert "1,000 files: " in ran.out
    assert "300,000 tensors" in ran.out


# Directories


def test_a_directory_stands_for_the_checkpoints_in_it(many: Path, here: Here) -> None:
    (many / "notes.txt").write_text("no checkpoint")
    (many / "inner.pth").mkdir()

    found = parsed(here("pth", many, "--json").out)

    assert [Path(item["file"]).name for item in found["files"] + found["failed"]] == [
        "0.pth",
        "1.pth",
        "2.pth",
        "4.pth",
        "5.pth",
        "3.pth",
    ]


def test_a_directory_with_an_index_stands_for_that(tmp_path: Path, here: Here) -> None:
    write_safetensors(tmp_path / "m-1.safetensors", {"a": T("int8", (2,))})
    write_safetensors(tmp_path / "m-2.safetensors", {"b": T("int8", (3,))})
    weights = {"a": "m-1.safetensors", "b": "m-2.safetensors"}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 5}, "weight_map": weights}))
    (tmp_path / "other.index.json").write_text("{}")

    found = parsed(here("pth", tmp_path, "--json").out)
    compared = parsed(here("pth", tmp_path, "--diff", index, "--json").out)

    assert found["file"] == str(index)
    assert [tensor["name"] for tensor in found["tensors"]] == ["a", "b"]
    assert compared["is_equal"]


def test_a_directory_without_checkpoints_says_so(tmp_path: Path, here: Here) -> None:
    ran = here("pth", tmp_path)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"snapviewer: no checkpoint in this directory: {tmp_path}\n"


# Names


def test_numbers_in_names_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    names = ["b.10", "b.9", "a", "b.010.c"]
    write_pth(path, {name: T("int8", (1,)) for name in names})
    tensors = _core.read_checkpoint(path).tensors

    order = [names[index] for index in order_of(tensors, "name")]

    assert order == ["a", "b.9", "b.10", "b.010.c"]


@pytest.mark.parametrize(
    ("name", "depth", "prefix"),
    [
        ("a.b.c", 1, "a"),
        ("a.b.c", 2, "a.b"),
        ("a.b.c", 9, "a.b.c"),
        ("[0].x", 1, "[0]"),
        ("state[0].exp", 2, "state[0]"),
        ("..a", 1, "."),
        ("..a", 2, "..a"),
        ("..a[b", 2, "..a"),
        ("a.b[0", 3, "a.b[0"),
        ("[", 1, "["),
        ("", 3, ""),
    ],
)
def test_prefixes_are_made_of_whole_parts(name: str, depth: int, prefix: str) -> None:
    assert prefix_of(name, depth) == prefix
