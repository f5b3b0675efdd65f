"""The graph of an exported program is that of its run: the same operations, the same shapes."""

from __future__ import annotations

import copy
import operator
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import snapviewer
from snapviewer.model.graph import Graph, Node, TensorSpec, Unknown
from snapviewer.model.pt2 import archive, nodes, read_pt2
from snapviewer.model.pt2.nodes import flatten
from snapviewer.model.pt2.symbols import (
    NotEvaluatedError,
    evaluate,
    solve,
    symbol_of,
    symbols_of,
)
from snapviewer.model.pt2.values import Sizes
from support.patience import PATIENT
from support.pt2_writer import named, operation, program, tensor, write_pt2


class TestWithoutTorch:
    def test_operations_have_their_module_shapes_and_parameters(self, tmp_path: Path) -> None:
        graph = read_pt2(write_pt2(tmp_path / "m.pt2", program()))

        assert graph.source == "pt2"
        assert graph.input_source == "sample"
        assert graph.inputs == (TensorSpec((4, 8), "float32"),)
        assert graph.nodes == (
            Node(
                number=0,
                op="aten::linear",
                module="fc",
                module_type="Linear",
                arguments=(TensorSpec((4, 8), "float32"), TensorSpec((10, 8), "float32"), None),
                keywords=(),
                outputs=(TensorSpec((4, 10), "float32"),),
                parameters=("fc.weight",),
            ),
        )
        assert graph.notes == (
            "dynamic sizes are those of the sample input (s0 is at least 2 and at most 64)",
        )

    @pytest.mark.parametrize("packed", [False, True])
    def test_both_layouts_are_read(self, tmp_path: Path, packed: bool) -> None:
        newer = read_pt2(write_pt2(tmp_path / "newer.pt2", program(), packed=packed))
        older = read_pt2(write_pt2(tmp_path / "older.pt2", program(), older=True, packed=packed))

        assert newer == older

    def test_sizes_that_vary_can_be_chosen(self, tmp_path: Path) -> None:
        path = write_pt2(tmp_path / "m.pt2", program())

        graph = read_pt2(path, inputs=[TensorSpec((32, 8), "float32")])

        assert graph.input_source == "given"
        assert graph.inputs == (TensorSpec((32, 8), "float32"),)
        assert graph.nodes[0].outputs == (TensorSpec((32, 10), "float32"),)
        assert "dynamic sizes are those of the given inputs" in graph.notes[0]

    @pytest.mark.parametrize(
        ("inputs", "complaint"),
        [
            ([], "takes 1 tensors, not 0"),
            ([TensorSpec((1, 8), "")], "s0 is at least 2 and at most 64, not 1"),
            ([TensorSpec((65, 8), "")], "not 65"),
            ([TensorSpec((4, 9), "")], r"dimension 1 of the input x \(4×8\) is not dynamic"),
            ([TensorSpec((4, 8, 1), "")], r"the input x \(4×8\) cannot be 4×8×1"),
            ([TensorSpec((4, None), "")], "is not given"),
        ],
    )
    def test_inputs_that_the_program_does_not_take_are_refused(
        self, tmp_path: Path, inputs: list[TensorSpec], complaint: str
    ) -> None:
        path = write_pt2(tmp_path / "m.pt2", program())

        with pytest.raises(snapviewer.SnapshotError, match=complaint):
            read_pt2(path, inputs=inputs)

    def test_another_dtype_is_noted(self, tmp_path: Path) -> None:
        path = write_pt2(tmp_path / "m.pt2", program())

        graph = read_pt2(path, inputs=[TensorSpec((4, 8), "float16")])

        assert graph.inputs == (TensorSpec((4, 8), "float32"),)
        assert any("stays float32" in note for note in graph.notes)

    def test_a_size_of_several_symbols_follows_from_the_others(self, tmp_path: Path) -> None:
        made = program(
            tensor_values={
                "x": tensor(("s0", 4), ("2*s0 + s1", 11)),
                "p_fc_weight": tensor(10, 8),
                "linear": tensor(("s1", 3)),
            }
        )
        path = write_pt2(tmp_path / "m.pt2", made)

        graph = read_pt2(path, inputs=[TensorSpec((5, 17), "")])

        assert graph.nodes[0].outputs == (TensorSpec((7,), "float32"),)

    def test_sizes_that_contradict_each_other_are_refused(self, tmp_path: Path) -> None:
        made = program(tensor_values={"x": tensor(("s0", 4), ("2*s0", 8))})
        path = write_pt2(tmp_path / "m.pt2", made)

        with pytest.raises(snapviewer.SnapshotError, match="together with the other sizes"):
            read_pt2(path, inputs=[TensorSpec((5, 11), "")])

    def test_a_size_that_is_computed_is_not_known(self, tmp_path: Path) -> None:
        made = program(
            tensor_values={
                "x": tensor(4, 8),
                "p_fc_weight": tensor(10, 8),
                "linear": tensor(("Symbol('u0', integer=True)", None), 10),
            }
        )

        graph = read_pt2(write_pt2(tmp_path / "m.pt2", made))

        assert graph.nodes[0].outputs == (TensorSpec((None, 10), "float32"),)
        assert any("some sizes depend on computed values" in note for note in graph.notes)

    def test_without_kinds_arguments_are_matched_by_name(self, tmp_path: Path) -> None:
        made = program()
        for given_argument in made["graph_module"]["graph"]["nodes"][0]["inputs"]:
            del given_argument["kind"]

        (node,) = read_pt2(write_pt2(tmp_path / "m.pt2", made)).nodes

        assert node.arguments == ()
        assert [name for name, _ in node.keywords] == ["input", "weight", "bias"]

    @pytest.mark.parametrize(
        ("argument", "value"),
        [
            ({"as_int": 3}, 3),
            ({"as_ints": [1, 2]}, (1, 2)),
            ({"as_bool": True}, True),
            ({"as_float": 0.5}, 0.5),
            ({"as_float": "-Infinity"}, float("-inf")),
            ({"as_string": "mean"}, "mean"),
            ({"as_scalar_type": 13}, "bfloat16"),
            ({"as_device": {"type": "cuda", "index": 1}}, "cuda:1"),
            ({"as_sym_int": {"as_name": "n"}}, 6),
            ({"as_sym_int": {"as_int": 5}}, 5),
            ({"as_sym_ints": [{"as_name": "n"}, {"as_int": -1}]}, (6, -1)),
            ({"as_sym_bool": {"as_bool": True}}, True),
            ({"as_tensors": [{"name": "x"}]}, (TensorSpec((4, 8), "float32"),)),
            (
                {"as_optional_tensors": [{"as_none": True}, named("x")]},
                (None, TensorSpec((4, 8), "float32")),
            ),
            ({"as_tensor": {"name": "nobody"}}, Unknown("the file does not describe this tensor")),
            (
                {"as_sym_int": {"as_name": "nobody"}},
                Unknown("a number that is unknown before a run"),
            ),
            ({"as_int": 10**30}, Unknown("a number that torch does not support")),
            ({"as_float": 10**400}, Unknown("a number that torch does not support")),
            ({"as_sym_int": {"as_int": 10**30}}, Unknown("a number that torch does not support")),
            ({"as_ints": 4}, Unknown("the file does not describe this argument")),
            ({"as_what": 4}, Unknown("arguments of this kind are not supported: as_what")),
            ({}, Unknown("arguments of this kind are not supported: nothing")),
        ],
    )
    def test_each_kind_of_argument_is_read(
        self, tmp_path: Path, argument: dict[str, Any], value: object
    ) -> None:
        made = program(
            nodes=[operation("torch.ops.lib.f.default", ("a", argument), outputs=[named("x")])],
            sym_int_values={"n": {"as_expr": {"expr_str": "s0 + 2", "hint": {"as_int": 6}}}},
        )

        (node,) = read_pt2(write_pt2(tmp_path / "m.pt2", made)).nodes

        assert node.arguments == (value,)

    def test_what_only_works_with_sizes_is_left_out(self, tmp_path: Path) -> None:
        size = [{"as_sym_int": {"as_name": "n"}}]
        made = program(
            nodes=[
                operation("torch.ops.aten.sym_size.int", ("self", named("x")), outputs=size),
                operation("_operator.mul", ("a", {"as_int": 2}), outputs=size),
                operation("torch.ops.aten._assert_scalar.default", outputs=[]),
                operation("torch.ops.mine.writes_into.default", ("x", named("x")), outputs=[]),
                operation(
                    "torch.ops.aten.relu.default", ("self", named("x")), outputs=[named("x")]
                ),
            ]
        )

        graph = read_pt2(write_pt2(tmp_path / "m.pt2", made))

        assert [node.op for node in graph.nodes] == ["mine::writes_into", "aten::relu"]
        assert [node.number for node in graph.nodes] == [0, 1]

    @pytest.mark.parametrize(
        ("stack", "module"),
        [
            ("L__self__,,app.Net", ("", "Net")),
            ("L__self__,,app.Net;1403,a.0,torch.nn.Linear", ("a.0", "Linear")),
            ("L__self__,,app.Net;L__self__d.x,y,d.x,y,app.In", ("d.x,y", "In")),
            ("L__self__,,app.Net;L__self__a@2,a,app.In", ("a", "In")),
            ("L['self'],L['self'],app.Net;k,L['self'].a.b,app.In", ("a.b", "In")),
            ("", ("", "")),
            (",", ("", "")),
            (";;,;", ("", "")),
        ],
    )
    def test_the_innermost_module_is_found(
        self, tmp_path: Path, stack: str, module: tuple[str, str]
    ) -> None:
        made = program(
            nodes=[operation("torch.ops.aten.relu.default", outputs=[named("x")], stack=stack)]
        )

        (node,) = read_pt2(write_pt2(tmp_path / "m.pt2", made)).nodes

        assert (node.module, node.module_type) == module

    def test_the_usual_one_of_several_programs_is_shown(self, tmp_path: Path) -> None:
        path = write_pt2(tmp_path / "m.pt2", program())
        with zipfile.ZipFile(path, "a") as target:
            target.writestr("m/models/another.json", "{}")

        graph = read_pt2(path)

        assert len(graph.nodes) == 1
        assert "models/model.json is shown, not models/another.json" in graph.notes[0]

    def test_it_needs_no_torch(self, tmp_path: Path) -> None:
        path = write_pt2(tmp_path / "m.pt2", program())
        code = (
            "import sys\n"
            "for name in ('torch', 'psutil', 'pynvml'): sys.modules[name] = None\n"
            "from snapviewer.model.pt2 import read_pt2\n"
            "print(len(read_pt2(sys.argv[1]).nodes))\n"
        )

        ran = subprocess.run(
            [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
        )

        assert ran.stdout == "1\n"


class TestBadFiles:
    @pytest.mark.parametrize(
        ("description", "complaint"),
        [
            (b"", "no JSON"),
            (b"\xff\xfe{", "no JSON"),
            (b"[" * 200_000, "no JSON"),
            (b'{"a": ' + b"9" * 5000 + b"}", "no JSON|no graph"),
            (b"[]", "no JSON object"),
            (b"{}", "no graph"),
            (b'{"graph_module": []}', "no graph"),
        ],
    )
    @pytest.mark.parametrize("older", [False, True])
    def test_a_description_that_is_none_is_refused(
        self, tmp_path: Path, description: bytes, complaint: str, older: bool
    ) -> None:
        path = write_pt2(tmp_path / "m.pt2", description, older=older)

        with pytest.raises(snapviewer.SnapshotError, match=complaint):
            read_pt2(path)

    @pytest.mark.parametrize("packed", [False, True])
    @pytest.mark.parametrize(
        ("limit", "description", "complaint"),
        [
            ("MAX_BYTES", b" " * 10_000, "at most 1000 are read"),
            ("MAX_VALUES", {"a": [{}] * 600}, "more than 1,000 values"),
        ],
    )
    def test_a_description_of_too_many_bytes_or_values_is_refused(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        limit: str,
        description: Any,
        complaint: str,
        packed: bool,
    ) -> None:
        monkeypatch.setattr(archive, limit, 1000)
        path = write_pt2(tmp_path / "m.pt2", description, packed=packed)

        with pytest.raises(snapviewer.SnapshotError, match=complaint):
            read_pt2(path)

    def test_more_operations_than_any_model_has_are_left_out(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(nodes, "MAX_NODES", 10)
        block = {"as_graph": {"name": "g", "graph": {"nodes": [{}] * 8}}}
        wrapped = operation("torch.ops.higher_order.wrap", ("", block), outputs=[])
        made = program(nodes=[wrapped, wrapped, {}])

        graph = read_pt2(write_pt2(tmp_path / "m.pt2", made))

        assert len(graph.nodes) == 10
        assert any("after the first 10 are omitted" in note for note in graph.notes)

    def test_a_bomb_that_lies_about_its_length_is_refused(self, tmp_path: Path) -> None:
        path = write_pt2(tmp_path / "m.pt2", b" " * 10_000_000, packed=True)
        declared, other = (10_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little")
        path.write_bytes(path.read_bytes().replace(declared, other))

        with pytest.raises(snapviewer.SnapshotError, match="does not unpack to the 10 bytes"):
            read_pt2(path)

    def test_other_files_are_refused(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "other.zip", "w") as target:
            target.writestr("x", "y")
        (tmp_path / "text").write_text("hello")

        for name in ("other.zip", "text"):
            with pytest.raises(snapviewer.SnapshotError):
                read_pt2(tmp_path / name)
        with pytest.raises(FileNotFoundError):
            read_pt2(tmp_path / "nothing")

    @pytest.mark.parametrize(
        ("member", "complaint"),
        [("m/extra/x", "has no program"), ("m/data/aotinductor/model/a.so", "compiled code")],
    )
    def test_an_archive_without_a_program_is_refused(
        self, tmp_path: Path, member: str, complaint: str
    ) -> None:
        path = tmp_path / "m.pt2"
        with zipfile.ZipFile(path, "w") as target:
            target.writestr("m/archive_format", "pt2")
            target.writestr("m/archive_version", "0")
            target.writestr(member, b"x")

        with pytest.raises(snapviewer.SnapshotError, match=complaint):
            read_pt2(path)

    def test_blocks_in_blocks_in_blocks_end(self, tmp_path: Path) -> None:
        graph: dict[str, Any] = {"nodes": [], "inputs": []}
        for _ in range(100):
            held = {"as_graph": {"name": "g", "graph": graph}}
            node = operation("torch.ops.higher_order.wrap", ("", held), outputs=[])
            graph = {"nodes": [node], "inputs": []}

        read = read_pt2(write_pt2(tmp_path / "m.pt2", {"graph_module": {"graph": graph}}))

        assert read.nodes == ()
        assert any("nested deeper than 64" in note for note in read.notes)

    def test_sizes_beyond_all_measure_take_no_time(self, tmp_path: Path) -> None:
        made = program(
            tensor_values={"x": tensor(*[2**62] * 100_000), "linear": tensor(-1, 10**3000)}
        )

        (node,) = read_pt2(write_pt2(tmp_path / "m.pt2", made)).nodes

        assert all(isinstance(value, Unknown) for value in (node.arguments[0], *node.outputs))

    def test_expressions_beyond_all_measure_are_not_worked_out(self) -> None:
        sizes = Sizes({"s0": 3}, _left_characters=10)

        worked = [sizes.size({"as_expr": {"expr_str": f"s0 + {n}"}}) for n in (1, 2, 1)]

        assert worked == [4, None, 4]
        assert sizes.is_incomplete

    @PATIENT
    @given(st.data())
    def test_whatever_stands_in_the_description_is_a_graph_or_a_sentence(
        self, tmp_path: Path, data: st.DataObject
    ) -> None:
        made = program()
        junk = st.one_of(
            st.none(),
            st.booleans(),
            st.integers(-(2**70), 2**70),
            st.floats(),
            st.text(max_size=10),
            st.just([]),
            st.just({}),
            st.just([{}]),
            st.just({"as_int": 1}),
            st.just({"as_graph": {"graph": {"nodes": [{}]}}}),
        )
        for _ in range(data.draw(st.integers(1, 3))):
            holder, key = data.draw(st.sampled_from(places(made)))
            holder[key] = copy.deepcopy(data.draw(junk))
        path = write_pt2(tmp_path / "m.pt2", made)

        for inputs in (None, [TensorSpec((8, 8), "")]):
            with suppress(snapviewer.SnapshotError):
                assert isinstance(read_pt2(path, inputs=inputs), Graph)


def places(document: Any) -> list[tuple[Any, Any]]:
    """All places of a document where something stands."""
    keys: list[Any] = []
    if isinstance(document, dict):
        keys = list(document)
    elif isinstance(document, list):
        keys = list(range(len(document)))
    found = [(document, key) for key in keys]
    for key in keys:
        found.extend(places(document[key]))
    return found


class TestSymbols:
    @PATIENT
    @given(
        st.recursive(
            st.one_of(
                st.integers(0, 50).map(str),
                st.sampled_from(["s0", "s1"]),
            ),
            lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
                lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
            ),
            max_leaves=12,
        ),
        st.integers(1, 100),
        st.integers(1, 100),
    )
    def test_an_expression_is_worked_out_as_python_does(
        self, expression: str, first: int, second: int
    ) -> None:
        values = {"s0": first, "s1": second}
        try:
            expected = eval(expression, {"__builtins__": {}}, dict(values))
        except ZeroDivisionError:
            with pytest.raises(NotEvaluatedError):
                evaluate(expression, values)
        else:
            if expected.bit_length() < 200:
                assert evaluate(expression, values) == expected

    @pytest.mark.parametrize(
        ("expression", "value"),
        [
            ("Mul(Integer(2), Symbol('s0', positive=True, integer=True))", 14),
            ("Add(Symbol('s0'), Mul(Integer(-1), Integer(3)))", 4),
            ("Pow(Symbol('s0'), Integer(2))", 49),
            ("FloorDiv(Add(Symbol('s0'), Integer(-1)), Integer(2))", 3),
            ("Mod(Symbol('s0'), Integer(4))", 3),
            ("Max(Integer(1), Symbol('s0'))", 7),
            ("Min(Integer(1), Symbol('s0'))", 1),
            ("-s0", -7),
            ("s0/7", 1),
        ],
    )
    def test_torchs_way_to_write_expressions_is_understood(
        self, expression: str, value: int
    ) -> None:
        assert evaluate(expression, {"s0": 7}) == value

    @pytest.mark.parametrize(
        "expression",
        [
            "",
            "s1",
            "__import__('os').system('true')",
            "open('x')",
            "[s0 for s0 in (1,)]",
            "(" * 3000,
            "-" * 4000 + "1",
            "9**9**9**9",
            "Pow(Integer(10), Integer(10000))",
            "s0" + "*s0" * 1000,
            "x" * 5000,
            "\x00",
            "Symbol()",
            "Integer()",
            "Integer(True)",
            "Add(Integer(1.5))",
            "s0/2",
            "s0//0",
            "lambda: 1",
            "Symbol('\ud800')",
        ],
    )
    def test_what_is_no_such_expression_is_not_worked_out(self, expression: str) -> None:
        with pytest.raises(NotEvaluatedError):
            evaluate(expression, {"s0": 7})

        assert symbol_of(expression) in (None, "s1", "\ud800", "x" * 5000)
        assert isinstance(symbols_of(expression), set)

    @PATIENT
    @given(st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 1000))
    def test_a_linear_expression_is_solved(self, slope: int, shift: int, size: int) -> None:
        expression = f"{slope}*s0 + {shift}"

        found = solve(expression, slope * size + shift, {})

        assert found == (("s0", size) if slope else None)

    def test_what_has_no_one_solution_is_not_solved(self) -> None:
        assert solve("2*s0", 9, {}) is None
        assert solve("s0 + s1", 9, {}) is None
        assert solve("s0*s0", 10, {}) is None


# From here on with torch, which writes real files and knows the truth.


def exported(path: Path, module: Any, inputs: tuple[Any, ...], **options: Any) -> Any:
    """Export a module into a file, and return the program."""
    import torch

    made = torch.export.export(module.eval(), inputs, **options)
    torch.export.save(made, path)
    return made


def run(made: Any, inputs: tuple[Any, ...]) -> list[tuple[str, list[tuple[int, ...]]]]:
    """Really run a program: the operations that give tensors, with their shapes."""
    import torch

    seen = []

    class Listening(torch.fx.Interpreter):  # type: ignore[misc]
        def run_node(self, node: Any) -> Any:
            result = super().run_node(node)
            if node.op == "call_function" and node.target is not operator.getitem:
                many = result if isinstance(result, tuple | list) else [result]
                shapes = [tuple(one.shape) for one in many if isinstance(one, torch.Tensor)]
                if shapes:
                    seen.append((str(node.target._schema.name), shapes))
            return result

    module = made.module(check_guards=False)
    Listening(module).run(*torch.utils._pytree.tree_leaves(inputs))
    return seen


def shapes(graph: Graph) -> list[tuple[str, list[tuple[int | None, ...]]]]:
    return [
        (
            node.op,
            [value.shape for value in flatten(node.outputs) if isinstance(value, TensorSpec)],
        )
        for node in graph.nodes
    ]


def multiply_adds(graph: Graph) -> int:
    """Those of linear layers, convolutions and matrix products, the slow and obvious way."""
    total = 0
    for node in graph.nodes:
        tensors = [value for value in flatten(node.arguments) if isinstance(value, TensorSpec)]
        (first, *_) = [*flatten(node.outputs)] or [None]
        if not isinstance(first, TensorSpec):
            continue
        made = 1
        for size in first.shape:
            made *= size or 0
        if node.op in ("aten::linear", "aten::conv2d"):
            for size in tensors[1].shape[1:]:
                made *= size or 0
            total += made * node.times
        elif node.op == "aten::matmul":
            total += made * (tensors[0].shape[-1] or 0) * node.times
        elif node.op == "aten::scaled_dot_product_attention":
            query, key = tensors[0].shape, tensors[1].shape
            total += 2 * made * (key[-2] or 0) * node.times
            assert query[-1] == first.shape[-1]
    return total


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def _small_net(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    nn = torch.nn

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, padding=1)
            self.norm = nn.BatchNorm2d(8)
            self.head = nn.Linear(8, 10)
            self.register_buffer("scale", torch.ones(10))

        def forward(self, x: Any) -> Any:
            x = torch.relu(self.norm(self.conv(x))).mean((2, 3))
            left, right = torch.split(x, [3, 5], 1)
            return {"out": self.head(x) * self.scale, "parts": (left, right)}

    return Net(), (torch.randn(4, 3, 16, 16),)


def _lstm(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    return torch.nn.LSTM(64, 128, batch_first=True), (torch.randn(2, 10, 64),)


def _encoder(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (
        torch.randn(2, 7, 32),
    )


def _gpt(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    nn = torch.nn

    class Gpt(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(50, 32)
            self.qkv = nn.Linear(32, 96)
            self.out = nn.Linear(32, 50, bias=False)
            self.out.weight = self.tokens.weight

        def forward(self, ids: Any) -> Any:
            batch, length = ids.shape
            q, k, v = self.qkv(self.tokens(ids)).chunk(3, -1)
            q, k, v = (t.reshape(batch, length, 4, 8).transpose(1, 2) for t in (q, k, v))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(batch, length, 32))

    return Gpt(), (torch.randint(0, 50, (2, 9)),)


MODELS: list[Callable[[Any], tuple[Any, tuple[Any, ...]]]] = [_small_net, _lstm, _encoder, _gpt]


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
class TestWithTorch:
    @pytest.mark.parametrize(
        ("make", "strict"), [*((make, False) for make in MODELS), (_small_net, True), (_gpt, True)]
    )
    def test_a_programs_operations_and_shapes_are_those_of_a_run(
        self, torch: Any, tmp_path: Path, make: Callable[[Any], Any], strict: bool
    ) -> None:
        module, inputs = make(torch)
        made = exported(tmp_path / "m.pt2", module, inputs, strict=strict)

        graph = read_pt2(tmp_path / "m.pt2")

        assert shapes(graph) == run(made, inputs)
        assert graph.inputs == tuple(
            TensorSpec(tuple(one.shape), str(one.dtype).removeprefix("torch.")) for one in inputs
        )
        assert {name for node in graph.nodes for name in node.parameters} <= {
            name
            for name, _ in (
                *module.named_parameters(remove_duplicate=False),
                *module.named_buffers(),
            )
        }

    def test_operations_know_their_modules(self, torch: Any, tmp_path: Path) -> None:
        module, inputs = _small_net(torch)
        exported(tmp_path / "m.pt2", module, inputs)

        found = {
            node.op: (node.module, node.module_type, node.parameters)
            for node in read_pt2(tmp_path / "m.pt2").nodes
        }

        assert found["aten::conv2d"] == ("conv", "Conv2d", ("conv.weight", "conv.bias"))
        assert found["aten::linear"] == ("head", "Linear", ("head.weight", "head.bias"))
        assert found["aten::relu"] == ("", "Net", ())
        assert found["aten::mul"] == ("", "Net", ("scale",))

    @pytest.mark.parametrize("size", [3, 4, 11])
    def test_shapes_for_other_sizes_are_those_of_a_run_with_them(
        self, torch: Any, tmp_path: Path, size: int
    ) -> None:
        module, (ids,) = _gpt(torch)
        dim = torch.export.Dim
        made = exported(
            tmp_path / "m.pt2",
            module,
            (ids,),
            dynamic_shapes=({0: dim("batch", min=2, max=64), 1: dim("length", min=2, max=64)},),
        )
        sample = read_pt2(tmp_path / "m.pt2")

        graph = read_pt2(tmp_path / "m.pt2", inputs=[TensorSpec((size, 2 * size), "int64")])

        assert shapes(sample) == run(made, (ids,))
        assert shapes(graph) == run(made, (torch.zeros(size, 2 * size, dtype=torch.int64),))
        assert multiply_adds(graph) == size * 2 * size * (32 * 96 + 32 * 50 + 2 * 2 * size * 32)

    def test_a_size_that_depends_on_numbers_is_not_known(self, torch: Any, tmp_path: Path) -> None:
        class Finds(torch.nn.Module):  # type: ignore[misc]
            def forward(self, x: Any) -> Any:
                return torch.nonzero(x) * 2

        exported(tmp_path / "m.pt2", Finds(), (torch.ones(4, 8),))

        graph = read_pt2(tmp_path / "m.pt2")

        assert shapes(graph) == [("aten::nonzero", [(None, 2)]), ("aten::mul", [(None, 2)])]
        assert any("some sizes depend on computed values" in note for note in graph.notes)

    def test_blocks_are_inlined(self, torch: Any, tmp_path: Path) -> None:
        from torch._higher_order_ops import map as map_each
        from torch._higher_order_ops import while_loop

        nn = torch.nn

        class Blocks(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

            def forward(self, x: Any) -> Any:
                y = torch.cond(x.sum() > 0, self.a, lambda x: self.b(self.a(x)), (x,))
                with torch.no_grad():
                    z = self.a(y)
                _, w = while_loop(
                    lambda i, w: i < 5, lambda i, w: (i + 1, w @ w), (torch.tensor(0), z @ z.T)
                )
                return w, map_each(lambda t, q: t @ q, torch.ones(6, 4, 4), torch.ones(4, 4))

        exported(tmp_path / "m.pt2", Blocks(), (torch.randn(4, 8),))

        graph = read_pt2(tmp_path / "m.pt2")

        linear = [node for node in graph.nodes if node.op == "aten::linear"]
        assert [node.parameters for node in linear] == [
            ("a.weight", "a.bias"),
            ("b.weight", "b.bias"),
            ("a.weight", "a.bias"),
        ]
        products = [node for node in graph.nodes if node.op == "aten::matmul"]
        assert [(node.outputs, node.times) for node in products] == [
            ((TensorSpec((4, 4), "float32"),), 1),
            ((TensorSpec((4, 4), "float32"),), 1),
            ((TensorSpec((4, 4), "float32"),), 6),
        ]
        assert not any(node.op.startswith("higher_order::") for node in graph.nodes)
        assert [node.number for node in graph.nodes] == list(range(len(graph.nodes)))
        assert any("larger of its branches counts (false_graph_0)" in one for one in graph.notes)
        assert any("body counts once" in one for one in graph.notes)

    def test_what_vmap_goes_over_counts_for_each_element(self, torch: Any, tmp_path: Path) -> None:
        nn = torch.nn

        class Mapped(nn.Module):  # type: ignore[misc, name-defined]
            def forward(self, x: Any, y: Any) -> Any:
                each = torch.vmap(torch.vmap(lambda row: row @ y))(x)
                return each, x[0, 0] @ y

        exported(tmp_path / "m.pt2", Mapped(), (torch.rand(2, 3, 4, 5), torch.rand(5, 6)))

        graph = read_pt2(tmp_path / "m.pt2")

        assert multiply_adds(graph) == 6 * 4 * 5 * 6 + 4 * 5 * 6
        assert all(node.op.startswith("aten::") for node in graph.nodes)
        assert graph.notes == ()

    @pytest.mark.parametrize(
        ("name", "giga"),
        [
            ("resnet18", 1.814),
            ("mobilenet_v3_small", None),
            pytest.param("vit_b_16", 17.564, marks=pytest.mark.exhaustive),
        ],
    )
    def test_published_networks_have_their_shapes_and_multiply_adds(
        self, torch: Any, tmp_path: Path, name: str, giga: float | None
    ) -> None:
        models = pytest.importorskip("torchvision").models
        module, inputs = models.get_model(name), (torch.randn(1, 3, 224, 224),)
        made = exported(tmp_path / "m.pt2", module, inputs)

        graph = read_pt2(tmp_path / "m.pt2")

        assert shapes(graph) == run(made, inputs)
        if giga is not None:
            assert multiply_adds(graph) / 1e9 == pytest.approx(giga, abs=0.03)
