"""Untrusted TorchScript archives: whatever their code says, nothing of it runs, and it ends."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from snapviewer import SnapshotError, read_checkpoint
from snapviewer.checkpoint import buffers
from snapviewer.checkpoint.code import archive_of
from snapviewer.model.graph import Graph, TensorSpec, Unknown
from snapviewer.model.torchscript import program, read_torchscript, run
from support.pth_writer import G, Obj, T, pickle_of, write_pth
from support.torchscript_writer import module, write_torchscript

X = (TensorSpec((2, 3), "float32"),)


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MAX_STEPS", 100_000)
    monkeypatch.setattr(run, "MAX_NODES", 5_000)


def followed(folder: Path, code: str | bytes) -> Graph:
    return read_torchscript(write_torchscript(folder / "m.pt", code), inputs=X)


ENDLESS = {
    "while true": "while True:\n  y = torch.relu(x)\nreturn x",
    "while true, doing nothing": "while True:\n  pass\nreturn x",
    "while a number stays": "i = 0\nwhile torch.lt(i, 2):\n  i = torch.add(i, 0)\nreturn x",
    "a long range": "for i in range(1000000000000):\n  y = torch.relu(x)\nreturn x",
    "itself": "return (self).forward(x, )",
    "itself, twice": "if bool(x):\n  y = (self).forward(x, )\nelse:\n  y = (self).forward(x, )\n"
    "return y",
    "a list that doubles": "a = [x]\nwhile True:\n  a = torch.add(a, a)\nreturn x",
    "a list in itself": "a = [1]\nfor i in range(10000):\n  a = [a, a]\nreturn torch.stack([a, a])",
    "a list compared with itself": "a = [1]\nb = [1]\nfor i in range(300):\n  a = [a, a]\n"
    "  b = [b, b]\nif torch.eq(a, b):\n  pass\nelse:\n  pass\nreturn x",
    "types without end": f"while True:\n  a = isinstance(x, ({'foo.bar, ' * 1000}))\nreturn x",
    "names without end": f"while True:\n  {'a, ' * 1000} = x\nreturn x",
    "a list that holds itself": "a = [1]\n_0 = torch.append(a, a)\nreturn torch.cat(a)",
}


@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS.keys())
def test_what_never_ends_is_left_with_a_note(tmp_path: Path, body: str) -> None:
    graph = followed(tmp_path, module(body))

    assert any("interpreted up to a limit" in note or "too deeply" in note for note in graph.notes)
    assert not any("1,000,000 steps" in note for note in graph.notes), "the tests set a lower limit"


LARGE = {
    "a list times a number": "a = torch.mul([0], 1000000000000)\nreturn torch.view(x, a)",
    "a text times a number": 'a = torch.mul("ab", 1000000000000)\nreturn x',
    "a text that doubles": 'a = "ab"\nfor i in range(100):\n  a = torch.add(a, a)\nreturn x',
    "a number that squares": "a = 3\nfor i in range(100):\n  a = torch.mul(a, a)\nreturn x",
    "a power": "a = torch.pow(10, 1000000000000)\nreturn x",
    "a shift": "a = torch.__lshift__(1, 1000000000000)\nreturn x",
    "a tensor of zeros": "return torch.zeros([1000000000000, 1000000000000])",
    "many parts": "a = torch.zeros([1000000000000])\nb = torch.unbind(a)\nc = torch.split(a, 1)\n"
    "d = torch.chunk(a, 1000000000000)\nreturn x",
    "a format": 'a = torch.format("{:1000000000000}", 1)\nreturn x',
    "a replacement": 'a = "aaaaaaaaaa"\nfor i in range(20):\n'
    '  a = torch.replace(a, "a", "aaaaaaaaaa")\nreturn x',
    "an equation": f'return torch.einsum("{"a" * 20000}", [x])',
    "a key": "a = (1, 2)\nfor i in range(200):\n  a = (a, a)\nb = {a: 1}\nreturn x",
    "a long literal": f"a = 0x{'f' * 200_000}\nb = torch.pow(a, 64)\nc = torch.remainder(b, a)\n"
    "return torch.add(x, a)",
    "a format of many texts": 'a = torch.mul("\U0001f600", 1000)\n'
    + f"b = torch.format(torch.mul('{{}}', 20000), {'a, ' * 20000})\nreturn x",
    "dimensions": "return torch.zeros(torch.mul([1], 100000))",
    "repeated": "a = torch.repeat(x, torch.mul([2], 60))\nreturn a",
}


@pytest.mark.parametrize("body", LARGE.values(), ids=LARGE.keys())
def test_what_would_be_huge_takes_little_memory(tmp_path: Path, body: str) -> None:
    path = write_torchscript(tmp_path / "m.pt", module(body))

    tracemalloc.start()
    try:
        read_torchscript(path, inputs=X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20


ODD = {
    "a name that is not there": "return y",
    "a method that is not there": "return (self).backward(x, )",
    "an attribute that is not there": "return self.weight",
    "a function that is not there": "return __torch__.elsewhere.f(x, )",
    "a class that is not there": "a = __torch__.N.__new__(__torch__.N)\nreturn (a).f(x, )",
    "an operation that is not there": "return torch.no_such_operation(x)",
    "a constant that is not there": f"return torch.add(x, CONSTANTS.c{'9' * 18})",
    "an import": "import os\nreturn x",
    "a builtin": 'return __import__("os").system("echo")',
    "an attribute of an attribute": "return x.__class__.__mro__[1].__subclasses__()",
    "getattr of a method": 'return getattr(self, "__class__")',
    "a lambda": "return (lambda: 1)()",
    "a comprehension": "return [i for i in range(1000000000)]",
    "an f-string": 'return f"{x!r:>1000000000}"',
    "arguments that do not fit": "return torch.conv2d(x, x, 1, 2, 3, 4, 5, 6, 7, 8)",
    "a wrong keyword": "return torch.relu(x, wrong=1)",
    "no arguments": "return torch.conv2d()",
    "no arguments in place": "return torch.add_()",
    "no arguments in place, of no plain value": "return torch.requires_grad_()",
    "too much to unwrap": "return ops.prim._unwrap_optional(x, x)",
    "tuples in tuples": "a = (1, 2)\nb = (1, 2)\nfor i in range(100):\n  a = (a, a)\n  b = (b, b)\n"
    "if torch.__is__(a, b):\n  pass\nelse:\n  pass\nreturn x",
    "names for too few parts": "a, b, c, = [x]\nreturn a",
    "division by zero": "a = torch.div(1, 0)\nb = torch.remainder(1, 0)\nreturn x",
    "an index that is not there": "return [x][5]",
    "delete": "del x\nreturn x",
    "a slice of nothing": "return torch.slice(x, 9, 0, 1, 0)",
    "a star": "return torch.cat(*[x])",
    "text as a size": 'return torch.view(x, ["a", None])',
    "raise": 'ops.prim.RaiseException("\x1b[31mred\u202e")\nreturn x',
    "bytes": 'return b"abc"',
    "a complex number": "return torch.mul(x, 1j)",
    "true as a method": "return (True).forward(x)",
    "a huge literal": "return torch.add(x, 0x" + "f" * 5000 + ")",
}


@pytest.mark.parametrize("body", ODD.values(), ids=ODD.keys())
def test_what_makes_no_sense_ends_in_a_graph_with_notes(tmp_path: Path, body: str) -> None:
    graph = followed(tmp_path, module(body))

    assert isinstance(graph, Graph)


BROKEN = {
    "no Python": "this is no Python",
    "no text": b"\xff\xfe\x00",
    "a null": "class M(Module):\0",
    "nothing": "",
    "another class": "class N(Module):\n  pass\n",
    "no forward": "class M(Module):\n  pass\n",
    "deep brackets": "x = " + "(" * 100_000,
    "deep signs": "x = " + "-" * 100_000 + "1",
    "deep sums": "x = 1" + "+1" * 100_000,
    "deep attributes": "x = a" + ".a" * 100_000,
    "deep blocks": "".join(" " * n + "if x:\n" for n in range(1000)),
    "many digits": "x = " + "9" * 100_000,
}


@pytest.mark.parametrize("code", BROKEN.values(), ids=BROKEN.keys())
def test_code_that_cannot_be_read_is_refused_with_a_sentence(
    tmp_path: Path, code: str | bytes
) -> None:
    with pytest.raises(SnapshotError) as refused:
        followed(tmp_path, code)

    assert len(str(refused.value)) < 600


def test_code_that_unpacks_to_gigabytes_is_refused_before_it_does(tmp_path: Path) -> None:
    bomb = b"#" * (32 << 20)
    path = write_torchscript(tmp_path / "m.pt", bomb, deflate=True)
    assert path.stat().st_size < 1 << 20

    with pytest.raises(SnapshotError, match="more than 16 MiB of code"):
        read_torchscript(path)


def test_a_size_that_the_directory_lies_about_does_not_matter(tmp_path: Path) -> None:
    path = write_torchscript(tmp_path / "m.pt", b"#" * (8 << 20), deflate=True)
    raw = path.read_bytes()
    declared = (8 << 20).to_bytes(4, "little")
    assert declared in raw
    path.write_bytes(raw.replace(declared, (100).to_bytes(4, "little")))

    with pytest.raises(SnapshotError):
        read_torchscript(path)


def test_code_with_more_words_than_a_model_needs_is_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "MAX_WORDS", 1000)

    with pytest.raises(SnapshotError, match="the code is too large"):
        followed(tmp_path, module("a = [[[[[1]]]]]\n" * 1000))


def test_a_checkpoint_without_code_is_no_model(tmp_path: Path) -> None:
    write_pth(tmp_path / "m.pth", {"weight": T("float32", (2,))})

    with pytest.raises(SnapshotError, match="no TorchScript code"):
        read_torchscript(tmp_path / "m.pth")


def test_a_root_that_is_no_module_is_refused(tmp_path: Path) -> None:
    write_pth(tmp_path / "m.pt", [1, 2], extra_members={"constants.pkl": b"\x80\x02)."})

    with pytest.raises(SnapshotError, match="no module"):
        read_torchscript(tmp_path / "m.pt")


def test_traced_inputs_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    more = {"traced_inputs.pkl": b"\x80\x02cos\nsystem\n(X\x04\0\0\0exittR."}
    path = write_torchscript(tmp_path / "m.pt", module("return torch.relu(x)"), more=more)

    graph = read_torchscript(path)

    assert graph.input_source == "none"
    assert [node.op for node in graph.nodes] == ["aten::relu"]


def _shared(value: object) -> object:
    """A value that holds another one without end, in a few bytes."""
    for _ in range(18):
        value = [value] * 60
    return value


def test_traced_inputs_that_hold_each_other_without_end_are_left(tmp_path: Path) -> None:
    traced = [_shared(T("float32", (2, 3)))]
    more = {"traced_inputs.pkl": pickle_of({"forward": traced})[0]}
    path = write_torchscript(tmp_path / "m.pt", module("return torch.relu(x)"), more=more)

    graph = read_torchscript(path)

    assert graph.inputs == (Unknown("a value that is too large to show"),)
    assert any("interpreted up to a limit" in note for note in graph.notes)


def test_a_packed_weight_that_holds_itself_without_end_is_read_in_part(tmp_path: Path) -> None:
    packed = Obj(G("__torch__.torch.classes.quantized", "LinearPackedParamsBase"), {})
    packed.state["v"] = [T("int8", (5, 3)), _shared(T("float32", (5,)))]
    code = module("return ops.quantized.linear(x, self.p, 1., 0)")
    path = write_torchscript(tmp_path / "m.pt", code, state={"p": packed})

    (node,) = read_torchscript(path, inputs=X).nodes

    assert isinstance(node.arguments[1], tuple)
    assert node.arguments[1][0] == TensorSpec((5, 3), "int8")


def test_buffers_of_modules_that_hold_each_other_are_looked_for_within_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffers, "_MAX_NAMES", 1000)
    root = Obj(G("__torch__", "M"), {"mine": T("float32", (2,))})
    root.state |= {f"m{number}": root for number in range(500)}
    names = ", ".join(f'"b{number}"' for number in range(400))
    code = f'class M(Module):\n  __parameters__ = []\n  __buffers__ = ["mine", {names}]\n'
    members = {"constants.pkl": b"\x80\x02).", "code/__torch__.py": code.encode()}
    write_pth(tmp_path / "m.pt", root, extra_members=members)
    checkpoint = read_checkpoint(tmp_path / "m.pt")

    assert buffers.buffers_of(checkpoint) == {"mine"}
    assert len(list(buffers._in_code(archive_of(checkpoint)))) <= 1000


def test_a_module_that_holds_itself_is_followed_once(tmp_path: Path) -> None:
    root = Obj(G("__torch__", "M"), {"training": False})
    root.state["inner"] = root
    code = module("a = self.inner\nb = a.inner\nreturn torch.relu(x)")
    members = {"constants.pkl": b"\x80\x02).", "code/__torch__.py": code.encode()}
    write_pth(tmp_path / "m.pt", root, extra_members=members)

    assert len(read_torchscript(tmp_path / "m.pt", inputs=X).nodes) == 1


def test_notes_are_few_and_short(tmp_path: Path) -> None:
    body = "\n".join(f"a{n} = torch.operation_{n}{'x' * 1000}(x)" for n in range(200))

    graph = followed(tmp_path, module(body + "\nreturn x"))

    assert len(graph.notes) <= run.MAX_NOTES + 1
    assert all(len(note) <= 400 for note in graph.notes)
    assert graph.notes[0] == "150 more notes were omitted"


SANE = module(
    """
    a = torch.relu(x)
    b = [a, x]
    _0 = torch.append(b, torch.linear(a, self.weight, None))
    for i in range(torch.len(b)):
      c = torch.view(b[i], [-1, torch.size(x, 1)])
      if torch.gt(i, 1):
        d = torch.cat([c, c], 1)
      else:
        d = torch.chunk(c, 2)[0]
    if bool(torch.gt(torch.sum(x), 0)):
      e = torch.conv2d(torch.zeros([1, 2, 8, 8]), torch.zeros([3, 2, 3, 3]), None, [2, 2])
    else:
      e = torch.mul(x, 2.5)
    while torch.lt(torch.len(b), 9):
      _1 = torch.append(b, e)
    return {"a": a, "b": (c, d), "e": e}
    """
)


def _words(code: str) -> Iterator[str]:
    word = ""
    for letter in code:
        if letter.isalnum() or letter in "_.":
            word += letter
            continue
        if word:
            yield word
        word = ""
        yield letter


WORDS = list(_words(SANE))


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(WORDS) - 1),
            st.one_of(
                st.sampled_from(WORDS),
                st.sampled_from(["", "None", "-1", "1e400", "10000000000", "[]", "()", "{}", "*"]),
                st.text(max_size=3),
            ),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_changed_code_gives_a_graph_or_a_sentence(
    tmp_path: Path, changes: list[tuple[int, str]]
) -> None:
    words = list(WORDS)
    for place, word in changes:
        words[place] = word
    code = "".join(words).encode("utf-8", "surrogatepass")
    state = {"training": False, "weight": T("float32", (3, 3))}
    path = write_torchscript(tmp_path / "m.pt", code, state=state)

    for inputs in (X, None):
        try:
            graph = read_torchscript(path, inputs=inputs)
        except SnapshotError:
            continue

        assert isinstance(graph, Graph)


def test_too_many_inputs_are_refused(tmp_path: Path) -> None:
    path = write_torchscript(tmp_path / "m.pt", module("return x"))

    with pytest.raises(SnapshotError, match="takes 1"):
        read_torchscript(path, inputs=X * 2)


def test_an_input_that_no_layer_determines_is_not_guessed(tmp_path: Path) -> None:
    path = write_torchscript(tmp_path / "m.pt", module("return torch.relu(x)"))

    graph = read_torchscript(path)
    inputs, reason = graph.inputs, " ".join(graph.notes)

    assert not any(isinstance(value, TensorSpec) for value in inputs)
    assert "no layer determines them: use --input" in reason
