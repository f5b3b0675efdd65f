"""The .pth analyzer, promise by promise."""

from __future__ import annotations

import glob
import inspect
import multiprocessing
import os
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapviewer import SnapshotError, pth_analyzer
from snapviewer.checkpoint import variables as entries
from snapviewer.pth_analyzer import Field, analyze_pth_file, check_structure, format_size, table_of
from snapviewer.report.checkpoint import variables as table
from support import program
from support.patience import PATIENT
from support.pickle_parts import deep_lists
from support.pth_writer import G, Obj, S, T, write_pth

ROOT = Path(__file__).resolve().parents[2]
MODULE = ("-m", "snapviewer.pth_analyzer")
EXAMPLE = (str(ROOT / "examples" / "analyze_pth_example.py"),)
DOCUMENTED = {
    "file_path",
    "total_size_bytes",
    "total_size_formatted",
    "num_variables",
    "variables",
}

Save = Callable[..., Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Writes a value as a checkpoint."""

    def write(obj: object, name: str = "sample.pth") -> Path:
        path = tmp_path / name
        write_pth(path, obj)
        return path

    return write


@pytest.fixture
def sample(save: Save) -> Path:
    """What the data processing of WanVideo saves: a list with a dict in it."""
    return save(
        [
            T("float32", (3, 224, 224)),
            T("float32", (1, 512)),
            "a string",
            {"video_latent": T("float32", (81, 4, 6, 10)), "prompt": "a cat", "video_id": "v7"},
            7,
        ]
    )


def analyzed(path: Path, max_depth: int = 3) -> dict[str, Any]:
    return analyze_pth_file(str(path), max_depth=max_depth, verbose=False)


def nest(levels: int) -> object:
    """`{"a": {"a": … 1}}`."""
    value: object = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def levels_of(results: dict[str, Any]) -> int:
    """The number of levels shown."""
    found, contents = 0, results["variables"]
    while contents:
        found += 1
        contents = next(iter(contents.values())).get("contents")
    return found


# The functions


@pytest.mark.promise("P01")
def test_the_three_functions_are_where_the_document_says() -> None:
    assert {"analyze_pth_file", "get_size_bytes", "format_size"} <= set(pth_analyzer.__all__)


@pytest.mark.promise("P02")
def test_parameters_have_the_documented_names_order_and_defaults() -> None:
    parameters = inspect.signature(analyze_pth_file).parameters

    defaults = {name: parameter.default for name, parameter in parameters.items()}

    assert list(defaults) == ["pth_file_path", "max_depth", "verbose"]
    assert (defaults["max_depth"], defaults["verbose"]) == (3, True)


@pytest.mark.promise("P03", "P04")
def test_the_results_have_the_documented_keys(sample: Path) -> None:
    results = analyzed(sample)

    assert set(results) >= DOCUMENTED
    assert results["file_path"] == str(sample)
    assert isinstance(results["total_size_bytes"], int)
    assert results["total_size_formatted"] == format_size(results["total_size_bytes"])


@pytest.mark.promise("P05")
def test_variables_are_counted_on_the_top_level_only(sample: Path) -> None:
    assert analyzed(sample)["num_variables"] == 5


@pytest.mark.promise("P06", "P07")
def test_a_dict_gives_its_keys_in_the_order_of_the_file(save: Save) -> None:
    path = save({"zebra": 1, "prompt": "x", "ant": 2})

    variables = analyzed(path)["variables"]

    assert isinstance(variables, OrderedDict)
    assert list(variables) == ["zebra", "prompt", "ant"]
    assert "video_latent" not in variables


@pytest.mark.promise("P08")
@pytest.mark.parametrize("kind", [list, tuple])
def test_a_sequence_gives_its_places(save: Save, kind: type) -> None:
    variables = analyzed(save(kind(["a", T("int64", (2,)), None])))["variables"]

    assert list(variables) == ["[0]", "[1]", "[2]"]


def test_a_file_of_one_value_has_one_variable(save: Save) -> None:
    results = analyzed(save(T("float32", (4, 5))))

    assert (results["num_variables"], list(results["variables"])) == (1, ["root"])
    assert results["variables"]["root"]["shape"] == (4, 5)
    assert results["total_size_bytes"] == 80


@pytest.mark.promise("P09")
def test_a_tensor_has_shape_type_device_and_size(save: Save) -> None:
    info = analyzed(save({"x": T("float32", (3, 224, 224), requires_grad=True)}))["variables"]["x"]

    assert (info["type"], info["class"]) == ("torch.Tensor", "torch.Tensor")
    assert (info["shape"], info["dtype"], info["device"]) == ((3, 224, 224), "float32", "cpu")
    assert info["requires_grad"] is True
    assert (info["size_bytes"], info["size_formatted"]) == (602112, "588.00 KB")


@pytest.mark.promise("P09", "P10")
@pytest.mark.torch
def test_arrays_and_storages_have_the_fields_of_tensors_and_their_own_type(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    values = {
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "array": np.zeros(3),
        "storage": torch.ones(3).untyped_storage(),
    }
    torch.save(values, tmp_path / "like.pth")

    variables = analyzed(tmp_path / "like.pth")["variables"]

    told = {name: (info["type"], info["class"]) for name, info in variables.items()}
    assert told["parameter"] == ("torch.Tensor", "torch.Tensor")
    assert told["array"] == ("numpy.ndarray", "numpy.ndarray")
    assert told["storage"] == ("torch.storage.UntypedStorage", "torch.storage.UntypedStorage")


@pytest.mark.promise("P10")
@pytest.mark.parametrize(
    ("value", "kind", "preview"),
    [
        ("abc", "str", "'abc'"),
        (7, "int", "7"),
        (0.5, "float", "0.5"),
        (True, "bool", "True"),
        (None, "NoneType", "None"),
    ],
)
def test_a_plain_value_has_type_size_and_preview(
    save: Save, value: object, kind: str, preview: str
) -> None:
    info = analyzed(save({"x": value}))["variables"]["x"]

    assert info["type"] == kind
    assert info["value_preview"] == info["preview"] == preview
    assert info["size_bytes"] == value.__sizeof__()
    assert info["size_formatted"] == format_size(info["size_bytes"])
    assert "num_items" not in info


@pytest.mark.promise("P10")
@pytest.mark.torch
@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize(
    ("value", "kind", "preview"),
    [
        (np.float64(0.1), "numpy.float64", "0.1"),
        (np.float32(0.1), "numpy.float32", "0.1"),
        (np.float32(1e-7), "numpy.float32", "1e-07"),
        (np.float16(1.5), "numpy.float16", "1.5"),
        (np.int64(-(2**63)), "numpy.int64", "-9223372036854775808"),
        (np.uint64(2**64 - 1), "numpy.uint64", "18446744073709551615"),
        (np.int8(-1), "numpy.int8", "-1"),
        (np.bool_(True), "numpy.bool", "True"),
        (np.array(258, ">i2")[()], "numpy.int16", "258"),
        (np.float64("nan"), "numpy.float64", "nan"),
    ],
    ids=repr,
)
def test_a_scalar_of_numpy_has_its_type_and_value(
    value: Any, kind: str, preview: str, protocol: int, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"x": value}, tmp_path / "scalar.pth", pickle_protocol=protocol)

    info = analyzed(tmp_path / "scalar.pth")["variables"]["x"]

    assert (info["type"], info["value_preview"], info["preview"]) == (kind, preview, preview)


@pytest.mark.promise("P10")
@pytest.mark.parametrize(
    ("value", "kind"), [({"a": 1, "b": 2}, "dict"), ([1, 2], "list"), ((1, 2), "tuple")]
)
def test_a_collection_has_the_number_of_its_items(save: Save, value: object, kind: str) -> None:
    info = analyzed(save({"x": value}))["variables"]["x"]

    assert (info["type"], info["num_items"]) == (kind, 2)


@pytest.mark.promise("P11")
def test_nested_collections_are_reached_through_contents(save: Save) -> None:
    variables = analyzed(save({"a": {"b": [T("int8", (9,)), "x"]}}))["variables"]

    inner = variables["a"]["contents"]["b"]["contents"]

    assert list(inner) == ["[0]", "[1]"]
    assert inner["[0]"]["shape"] == (9,)


@pytest.mark.promise("P12")
@pytest.mark.parametrize("max_depth", [1, 2, 3, 5, 10])
def test_max_depth_is_the_number_of_levels_shown(save: Save, max_depth: int) -> None:
    results = analyzed(save(nest(12)), max_depth)

    assert levels_of(results) == max_depth
    deepest = results["variables"]["a"]
    for _ in range(max_depth - 1):
        deepest = deepest["contents"]["a"]
    assert (deepest["truncated"], deepest["hidden_items"], deepest["num_items"]) == (True, 1, 1)
    assert "1 item not shown" in table_of(results)


def test_a_file_that_nests_far_deeper_than_python_can_is_read(save: Save) -> None:
    path = save({"x": 1})
    path.write_bytes(deep_lists(5000))

    results = analyzed(path, 10**9)

    assert results["num_variables"] == 1
    assert table_of(results).count("\n") > 5000


@pytest.mark.promise("P13")
def test_quiet_prints_nothing_and_verbose_prints_the_table(
    sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = analyze_pth_file(sample, verbose=False)
    silence = capsys.readouterr()
    analyze_pth_file(sample)
    printed = capsys.readouterr()

    assert (silence.out, silence.err, printed.err) == ("", "", "")
    assert printed.out == table_of(results)


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (45, "45 B"),
        (1023, "1023 B"),
        (1024, "1.00 KB"),
        (2048, "2.00 KB"),
        (169710013, "161.85 MB"),
        (2**20 - 1, "1.00 MB"),
        (3 * 2**30, "3.00 GB"),
        (5 * 2**40, "5.00 TB"),
        (7 * 2**50, "7.00 PB"),
        (2**70, "1024.00 EB"),
    ],
)
def test_sizes_follow_one_rule(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.promise("P16")
def test_the_use_cases_of_the_document_work(save: Save, tmp_path: Path) -> None:
    save({"big": T("float32", (64, 64)), "small": 1}, "a.pth")
    save({"x": T("float32", (2,))}, "b.pth")
    files = sorted(glob.glob(str(tmp_path / "*.pth")))

    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(quiet, files)

    assert [result["file_path"] for result in results] == files
    large = [n for n, info in results[0]["variables"].items() if info.get("size_bytes", 0) > 1024]
    assert large == ["big"]
    assert pickle.loads(pickle.dumps(results)) == results


def quiet(path: str) -> dict[str, Any]:
    return analyze_pth_file(path, verbose=False)


@pytest.mark.promise("P17")
def test_a_file_from_a_gpu_opens_anywhere_and_keeps_its_device(save: Save) -> None:
    info = analyzed(save({"x": T("float16", (8,), device="cuda:3")}))["variables"]["x"]

    assert (info["device"], info["size_bytes"]) == ("cuda:3", 16)


# What is in a file twice, or very often


def test_each_variable_has_its_own_size_and_the_total_counts_shared_memory_once(save: Save) -> None:
    storage = S("0", bytes(400))
    path = save(
        {
            "all": T("float32", (100,), storage=storage),
            "part": T("float32", (10,), storage=storage, offset=5),
            "n": 3,
        }
    )

    results = analyzed(path)

    sizes = {name: info["size_bytes"] for name, info in results["variables"].items()}
    assert sizes == {"all": 400, "part": 40, "n": 28}
    assert results["total_size_bytes"] == 428
    assert results["variables"]["part"]["shares_storage_with"] == "all"
    assert results["variables"]["part"]["logical_bytes"] == 40


def test_an_object_in_two_places_is_named_and_not_counted_again(save: Save) -> None:
    tied = T("float32", (10,))
    config = {"lr": 0.5}
    path = save({"wte": tied, "head": tied, "config": config, "again": [config]})

    results = analyzed(path)

    variables = results["variables"]
    assert (variables["head"]["same_as"], variables["head"]["size_bytes"]) == ("wte", 40)
    counted = ("wte", "config", "again")
    alone = variables["again"]["size_bytes"]
    assert results["total_size_bytes"] == sum(variables[name]["size_bytes"] for name in counted)
    assert alone == sys.getsizeof([None])
    again = variables["again"]["contents"]["[0]"]
    assert again["same_as"] == "config"
    assert "contents" not in again
    assert "same as wte" in table_of(results)


def test_a_view_in_two_places_is_named_once_by_each(save: Save) -> None:
    storage = S("0", bytes(400))
    view = T("float32", (10,), storage=storage)
    path = save({"all": T("float32", (100,), storage=storage), "part": view, "again": view})

    variables = analyzed(path)["variables"]

    assert variables["part"]["shares_storage_with"] == "all"
    assert variables["again"]["same_as"] == "part"
    assert "shares_storage_with" not in variables["again"], "one name is enough"


def test_what_is_hidden_is_not_counted_again_elsewhere(save: Save) -> None:
    shared = ["x" * 1000]
    storage = S("0", bytes(400))
    path = save(
        {
            "deep": {"list": shared, "tensor": T("float32", (100,), storage=storage)},
            "list": shared,
            "view": T("float32", (50,), storage=storage),
        }
    )

    results = analyzed(path, 1)

    variables = results["variables"]
    assert variables["view"]["size_bytes"] == 200
    assert results["total_size_bytes"] == variables["deep"]["size_bytes"]
    assert results["total_size_bytes"] == analyzed(path, 9)["total_size_bytes"]


def test_parameters_are_tensors(save: Save) -> None:
    info = analyzed(save({"x": T("float32", (3,), is_parameter=True)}))["variables"]["x"]

    assert (info["type"], info["kind"], info["size_bytes"]) == ("torch.Tensor", "parameter", 12)


def test_a_cycle_ends_where_it_began(save: Save) -> None:
    loop: dict[str, Any] = {"x": 1}
    loop["inner"] = [loop]

    results = analyzed(save({"loop": loop}), 50)

    inner = results["variables"]["loop"]["contents"]["inner"]["contents"]["[0]"]
    assert inner["same_as"] == "loop"


@pytest.mark.promise("P07")
def test_keys_keep_their_type(save: Save) -> None:
    keys = [0, "0", 1.5, None, True, b"b", (1, "a"), "x"]
    values: list[Any] = ["zero", "text", {7: "deep"}, 1, 2, 3, 4, [5]]
    path = save(dict(zip(keys, values, strict=True)))

    variables = analyzed(path)["variables"]

    assert list(variables) == keys
    assert (variables[0]["preview"], variables["0"]["preview"]) == ("'zero'", "'text'")
    assert list(variables[1.5]["contents"]) == [7]
    assert list(variables["x"]["contents"]) == ["[0]"]
    assert 0 in variables
    assert 1 not in analyzed(save({"1": "text"}))["variables"]


def test_keys_of_other_kinds_have_their_names(save: Save) -> None:
    path = save({((1,), 2): "a", ((3,), 4): "b"})

    variables = analyzed(path)["variables"]

    assert [info["preview"] for info in variables.values()] == ["'a'", "'b'"]
    assert all(isinstance(key, str) for key in variables)
    assert len(set(variables)) == 2


def test_an_object_that_comes_again_has_the_path_of_the_first(
    save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    again: list[object] = [1]
    shared = T("float32", (3,))
    whole: dict[str, Any] = {
        "x": {"list": [0, {"in": again}], "tensor": shared},
        "list": again,
        "tensor": shared,
    }
    whole["whole"] = [whole]

    variables = analyzed(save(whole), 9)["variables"]
    monkeypatch.setattr(entries, "_MAX_PLACE", 4)
    shortened = analyzed(save({"a": whole["x"], "list": again}), 9)["variables"]
    monkeypatch.setattr(entries, "_MAX_PLACE", 3)
    shorter = analyzed(save({"a": whole["x"], "list": again}), 9)["variables"]

    assert variables["list"]["same_as"] == "x.list[1].in"
    assert variables["tensor"]["same_as"] == "x.tensor"
    assert "shares_storage_with" not in variables["tensor"]
    assert variables["whole"]["contents"]["[0]"]["same_as"] == "the file itself"
    assert shortened["list"]["same_as"] == "a.list[1].in"
    assert shorter["list"]["same_as"] == "….list[1].in"


def test_small_and_large_keys_and_containers_are_listed_in_whole(save: Save) -> None:
    wide = tuple(range(16))
    path = save({wide: "a", (): "b", (*wide, 16): "c", "many": list(range(3000))})

    variables = analyzed(path)["variables"]

    assert list(variables)[:2] == [wide, ()]
    assert isinstance(list(variables)[2], str)
    many = variables["many"]
    assert list(many["contents"]) == [f"[{place}]" for place in range(3000)]
    assert "truncated" not in many
    assert analyzed(save({}))["num_variables"] == 0


@pytest.mark.parametrize(("taken", "name"), [(["x"], "x (2)"), (["x", "x (2)"], "x (3)")])
def test_keys_that_are_equal_only_as_text_are_numbered(taken: list[str], name: str) -> None:
    assert entries._free(OrderedDict((key, {}) for key in taken), "x") == name


def test_a_wide_list_is_counted_but_not_listed_to_the_end(
    save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "MAX_ITEMS", 50)
    path = save({"x": [float(i) for i in range(5000)]})

    results = analyzed(path)

    info = results["variables"]["x"]
    assert (info["num_items"], len(info["contents"]), info["hidden_items"]) == (5000, 50, 4950)
    assert "4,950 more items not shown" in table_of(results)


def test_no_file_makes_more_entries_than_the_limit(
    save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "MAX_ENTRIES", 100)
    path = save({"x": [[i] * 9 for i in range(40)], "last": [1, 2]})

    info = analyzed(path)["variables"]

    listed = sum(1 + len(item.get("contents", ())) for item in info["x"]["contents"].values())
    assert listed <= 100
    assert (info["last"]["num_items"], info["last"]["hidden_items"]) == (2, 2)


def test_variables_beyond_the_limit_are_counted_in_the_total(
    save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save([T("int8", (10,)) for _ in range(30)])
    everything = analyzed(path)
    monkeypatch.setattr(entries, "MAX_VARIABLES", 7)

    results = analyzed(path)

    assert (len(results["variables"]), results["num_variables"]) == (7, 30)
    assert (results["truncated"], results["hidden_items"]) == (True, 23)
    assert results["total_size_bytes"] == everything["total_size_bytes"] == 300


_STORAGES = [S(str(key), bytes(40)) for key in range(2)]
_leaves = st.one_of(
    st.integers(-5, 5),
    st.sampled_from(["", "text", "x" * 50]),
    st.builds(
        lambda storage, offset, n: T("float32", (n,), storage=_STORAGES[storage], offset=offset),
        st.integers(0, 1),
        st.integers(0, 5),
        st.integers(1, 5),
    ),
)
_trees = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
        inner.map(lambda value: [value, value]),
        inner.map(lambda value: {"x": value, "y": (value,)}),
    ),
    max_leaves=12,
)


@settings(PATIENT)
@given(st.dictionaries(st.sampled_from("pqrs"), _trees, max_size=4))
def test_parts_never_add_up_to_more_than_the_whole_at_any_depth(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, object]
) -> None:
    path = tmp_path_factory.mktemp("tree") / "x.pth"
    write_pth(path, tree)

    shallow, deep = analyzed(path, 1), analyzed(path, 99)

    assert shallow["total_size_bytes"] == deep["total_size_bytes"]
    sizes = {name: info["size_bytes"] for name, info in shallow["variables"].items()}
    assert sizes == {name: info["size_bytes"] for name, info in deep["variables"].items()}
    waiting = list(deep["variables"].values())
    while waiting:
        info = waiting.pop()
        contents = list(info.get("contents", {}).values())
        counted = [
            item
            for item in contents  # Python writes equal texts as one, which counts once.
            if item["type"] != "str" and not {"same_as", "shares_storage_with"} & item.keys()
        ]
        assert sum(item["size_bytes"] for item in counted) <= info["size_bytes"]
        waiting += contents


# The table


@pytest.mark.promise("P24")
def test_the_head_of_the_table_is_as_documented(sample: Path) -> None:
    results = analyzed(sample)
    size = results["total_size_bytes"]

    lines = table_of(results).splitlines()

    assert lines[:9] == [
        "=" * 80,
        f"PTH File Analysis: {sample}",
        "=" * 80,
        f"Total Size: {format_size(size)} ({size:,} bytes)",
        "Number of Variables: 5",
        "",
        "-" * 80,
        f"{'Variable Name':<40} {'Type':<20} {'Size':<15}",
        "-" * 80,
    ]
    assert lines[-1] == "-" * 80


@pytest.mark.promise("P25")
def test_rows_show_shapes_and_are_indented_below_their_parent(sample: Path) -> None:
    lines = table_of(analyzed(sample)).splitlines()

    assert lines[9] == f"{'[0]':<40} {'Tensor(3, 224, 224)':<20} {'588.00 KB':<15}"
    assert f"{'  video_latent':<40} {'Tensor(81, 4, 6, 10)':<20} {'75.94 KB':<15}" in lines
    assert [line[:4] for line in lines[12:16]] == ["[3] ", "  vi", "  pr", "  vi"]


def test_long_and_hostile_names_do_not_break_the_table(save: Save) -> None:
    path = save(
        {
            f"begin.{'x' * 100}.end": T("float32", (81, 4, 60, 104)),
            "red\x1b[31m\nline": "x",
            "o": Obj(G("some.package", "A" * 90), {"a": 1}),
        }
    )

    rows = table_of(analyzed(path)).splitlines()[9:-1]

    assert rows[0].startswith("begin.")
    assert rows[0][:40].endswith(".end")
    assert rows[0][41:].startswith("Tensor(81, 4, 60, 104) 7.71 MB")
    assert "\x1b" not in "".join(rows)
    assert all(row[40] == " " for row in rows)
    assert all(len(row) <= 80 for row in rows)


def test_a_level_of_thousands_has_a_limited_number_of_rows(
    save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MAX_ROWS", 10)

    text = table_of(analyzed(save(list(range(300)))))

    assert "[9] " in text
    assert "[10] " not in text
    assert "290 more items not shown" in text


# Structures


@pytest.mark.promise("P26")
def test_the_structure_of_wanvideo_is_recognised(save: Save, sample: Path) -> None:
    latent = T("float32", (2, 2))
    flat = save({"video_latent": latent, "prompt": "a", "video_id": "b", "fps": 3}, "flat.pth")
    other = save({"video_latent": latent, "prompt": 7}, "other.pth")

    found = [analyzed(path)["structure"] for path in (sample, flat, other)]

    assert found == ["WanVideo", "WanVideo", None]
    assert check_structure(analyzed(flat)) == []
    assert check_structure(analyzed(other)) == [
        "'prompt' is of type int, not str",
        "Missing expected key 'video_id'",
    ]


@pytest.mark.promise("P26")
def test_any_structure_can_be_checked(save: Save) -> None:
    results = analyzed(save({"a": 1}))

    assert check_structure(results, ["a", "b"]) == ["Missing expected key 'b'"]
    assert check_structure(results, {"a": Field("int"), "b": Field("str", is_required=False)}) == []


# The programs


@pytest.mark.promise("P18")
def test_the_module_prints_the_table(sample: Path) -> None:
    ran = program.run(sample, program=MODULE)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == table_of(analyzed(sample))


@pytest.mark.promise("P19")
def test_quiet_leaves_the_table_out(sample: Path) -> None:
    ran = program.run(sample, "--quiet", program=MODULE)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"{sample}: {analyzed(sample)['total_size_formatted']}, 5 variables\n"


@pytest.mark.promise("P20")
def test_the_module_takes_a_depth(save: Save) -> None:
    path = save(nest(9))

    ran = program.run(path, "--max-depth", "10", program=MODULE)

    assert ran.out == table_of(analyzed(path, 10))
    assert ran.out != table_of(analyzed(path))


@pytest.mark.promise("P23")
@pytest.mark.parametrize("content", [None, b"", b"no checkpoint at all"])
def test_a_file_that_cannot_be_loaded_ends_with_one_sentence(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "bad.pth"
    if content is not None:
        path.write_bytes(content)

    ran = program.run(path, program=MODULE)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Failed to load file: ")
    assert len(ran.err.splitlines()) == 1
    assert str(path) in ran.err
    with pytest.raises((SnapshotError, OSError)):
        analyze_pth_file(path)


@pytest.mark.promise("P20")
@pytest.mark.parametrize("depth", ["0", "-1", "x"])
def test_a_depth_below_one_is_wrong_usage(sample: Path, depth: str) -> None:
    ran = program.run(sample, f"--max-depth={depth}", program=MODULE)

    assert (ran.code, ran.out) == (2, "")
    assert "--max-depth: must be" in ran.err


@pytest.mark.promise("P22")
def test_the_module_takes_files_and_wildcards(save: Save, tmp_path: Path) -> None:
    for name in ("b.pth", "a.pth", "c.pt"):
        save({"x": 1}, name)
    (tmp_path / "d.pth").write_bytes(b"broken")

    ran = program.run("c.pt", "*.pth", "no*", "--quiet", program=MODULE, directory=tmp_path)

    assert [line.split(":")[0] for line in ran.out.splitlines()] == ["c.pt", "a.pth", "b.pth"]
    assert ran.code == 1
    assert [line.rpartition(": ")[2] for line in ran.err.splitlines()] == ["no*", "d.pth"]


@pytest.mark.promise("P21")
def test_the_example_shows_one_file(sample: Path) -> None:
    ran = program.run(sample, program=EXAMPLE)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(table_of(analyzed(sample)))
    assert "Structure: WanVideo" in ran.out


@pytest.mark.promise("P22", "P28")
def test_the_example_expands_wildcards_and_goes_on_after_a_failure(
    save: Save, tmp_path: Path
) -> None:
    for name in ("b.pth", "a.pth"):
        save({"x": 1}, name)
    (tmp_path / "c.pth").write_bytes(b"broken")

    ran = program.run("*.pth", program=EXAMPLE, directory=tmp_path)

    shown = [line for line in ran.out.splitlines() if line.startswith("PTH File")]
    assert shown == ["PTH File Analysis: a.pth", "PTH File Analysis: b.pth"]
    assert ran.code == 1
    assert ran.err.startswith("Failed to load file: ")
    assert "2 files" in ran.out


@pytest.mark.promise("P27")
def test_a_file_larger_than_memory_is_analyzed(save: Save) -> None:
    path = save({"x": T("uint8", (10,))}, "huge.safetensors")
    header = b'{"x":{"dtype":"F32","shape":[34359738368],"data_offsets":[0,137438953472]}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(path, 8 + len(header) + 2**37)  # sparse: it takes no room

    results = analyzed(path)

    assert results["total_size_formatted"] == "128.00 GB"
    assert results["variables"]["x"]["shape"] == (2**35,)
