"""What comes out of an operation is what torch says, on its device without elements."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapviewer.model.graph import TensorSpec, Unknown
from snapviewer.model.shapes import ShapeError, UnknownNumber, is_known, outputs_of
from snapviewer.model.shapes.dtypes import DTYPES

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def t(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(shape, dtype)


def i(*shape: int) -> TensorSpec:
    return TensorSpec(shape, "int64")


def b(*shape: int) -> TensorSpec:
    return TensorSpec(shape, "bool")


def _to_torch(value: Any) -> Any:
    if isinstance(value, TensorSpec):
        return torch.empty(value.shape, dtype=getattr(torch, value.dtype), device="meta")
    if isinstance(value, (list, tuple)):
        return [_to_torch(item) for item in value]
    return value


def _from_torch(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return TensorSpec(tuple(value.shape), str(value.dtype).removeprefix("torch."))
    if isinstance(value, (list, tuple)):
        return type(value)(_from_torch(item) for item in value)
    return value


def torch_says(op: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    named = dict(keywords)
    if isinstance(named.get("dtype"), int):
        named["dtype"] = getattr(torch, DTYPES[named["dtype"]])
    if not any(isinstance(value, (TensorSpec, list)) for value in arguments) or op in FACTORIES:
        named["device"] = "meta"
    function = getattr(torch.ops.aten, op)
    return _from_torch(function(*(_to_torch(value) for value in arguments), **named))


FACTORIES = ("zeros", "ones", "full", "empty", "rand", "randn", "arange", "eye", "linspace")

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("conv2d", (t(2, 6, 9, 8), t(4, 3, 3, 2), None, [2, 1], [1, 0], [1, 2], 2), {}),
    ("conv2d", (t(6, 9, 8), t(4, 6, 3, 2)), {}),
    ("conv1d", (t(2, 6, 9), t(4, 6, 3), t(4), [2], [1], [1], 1), {}),
    ("conv3d", (t(1, 2, 5, 6, 7), t(4, 2, 3, 3, 3), None, [1, 1, 1], [1, 1, 1]), {}),
    ("conv_transpose2d", (t(1, 4, 5, 5), t(4, 3, 3, 3), None, [2, 2], [1, 1], [1, 1], 2), {}),
    ("conv_transpose1d", (t(1, 4, 5), t(4, 3, 3)), {}),
    (
        "convolution",
        (t(1, 4, 5, 5), t(4, 3, 3, 3), None, [2, 2], [1, 1], [1, 1], True, [1, 1], 1),
        {},
    ),
    ("bucketize", (t(2, 3), t(5)), {}),
    ("searchsorted", (t(5), t(2, 3)), {}),
    ("searchsorted", (t(5), 3.0), {}),
    ("diff", (i(2, 7),), {}),
    ("diff", (i(2, 7), 2, 0), {}),
    ("diff", (t(2, 7), 1, -1, i(2, 1), i(2, 3)), {}),
    ("fft_fft", (t(2, 7),), {}),
    ("fft_fft", (t(2, 7), 5, 0), {}),
    ("fft_ifft2", (t(3, 4, 5, dtype="complex64"),), {}),
    ("fft_fftn", (t(3, 4, 5), [2, 6]), {}),
    ("fft_rfft", (t(2, 7),), {}),
    ("fft_rfft", (t(2, 7, dtype="float64"), 12), {}),
    ("fft_rfft2", (t(3, 4, 5), None, [0, 1]), {}),
    ("fft_irfft", (t(2, 7, dtype="complex64"),), {}),
    ("fft_irfft", (t(2, 7, dtype="complex64"), 9), {}),
    ("fft_irfftn", (t(2, 7, 5, dtype="complex64"), [8, 4], [0, 2]), {}),
    ("fft_hfft", (t(2, 7, dtype="complex64"),), {}),
    ("fft_fftshift", (t(2, 7),), {}),
    ("linalg_vecdot", (t(2, 3, 4), t(3, 4)), {"dim": -2}),
    ("linalg_slogdet", (t(2, 3, 3),), {}),
    ("linalg_inv_ex", (t(2, 3, 3),), {}),
    ("linalg_svdvals", (t(2, 3, 4),), {}),
    ("linalg_solve_triangular", (t(2, 3, 3), t(3, 4)), {"upper": True}),
    ("_int_mm", (t(32, 8, dtype="int8"), t(8, 16, dtype="int8")), {}),
    (
        "_grouped_mm",
        (t(12, 8, dtype="bfloat16"), t(3, 8, 16, dtype="bfloat16"), t(3, dtype="int32")),
        {},
    ),
    (
        "_grouped_mm",
        (t(8, 16, dtype="bfloat16"), t(16, 24, dtype="bfloat16"), t(3, dtype="int32")),
        {},
    ),
    ("frexp", (t(3),), {}),
    ("special_erfcx", (i(3),), {}),
    ("ldexp", (t(3, 1), i(2)), {}),
    ("linear", (t(2, 3, 4), t(5, 4), t(5)), {}),
    ("mm", (t(2, 3), t(3, 4)), {}),
    ("bmm", (t(5, 2, 3), t(5, 3, 4)), {}),
    ("addmm", (t(4), t(2, 3), t(3, 4)), {}),
    ("baddbmm", (t(5, 2, 4), t(5, 2, 3), t(5, 3, 4)), {}),
    ("matmul", (t(3), t(3)), {}),
    ("matmul", (t(2, 3), t(3)), {}),
    ("matmul", (t(3), t(7, 3, 2)), {}),
    ("matmul", (t(5, 1, 2, 3), t(4, 3, 6)), {}),
    ("mv", (t(2, 3), t(3)), {}),
    ("dot", (t(3), t(3)), {}),
    ("outer", (t(3), t(4)), {}),
    ("einsum", ("bij,bjk->bik", [t(2, 3, 4), t(2, 4, 5)]), {}),
    ("einsum", ("ij,kj", [t(2, 3), t(4, 3)]), {}),
    ("einsum", ("...qd,...kd->...qk", [t(2, 8, 5, 4), t(2, 8, 7, 4)]), {}),
    ("scaled_dot_product_attention", (t(2, 8, 5, 4), t(2, 8, 7, 4), t(2, 8, 7, 6)), {}),
    ("layer_norm", (t(2, 3, 4), [4], t(4), t(4)), {}),
    ("native_layer_norm", (t(2, 3, 4), [3, 4], None, None, 1e-5), {}),
    ("group_norm", (t(2, 4, 3), 2), {}),
    ("batch_norm", (t(2, 4, 3), t(4), t(4), t(4), t(4), False, 0.1, 1e-5, False), {}),
    ("max_pool2d", (t(1, 3, 8, 9), [3, 3], [2, 2], [1, 1], [1, 1], True), {}),
    ("max_pool2d", (t(1, 3, 8, 9), [3, 2]), {}),
    ("avg_pool2d", (t(1, 3, 8, 9), [3, 2], [2, 2], [1, 1], True), {}),
    ("avg_pool1d", (t(3, 8), [3]), {}),
    ("adaptive_avg_pool2d", (t(1, 3, 8, 9), [2, 3]), {}),
    ("adaptive_max_pool2d", (t(1, 3, 8, 9), [2, 3]), {}),
    ("max_pool2d_with_indices", (t(1, 3, 8, 9), [3, 3], [2, 2]), {}),
    ("upsample_nearest2d", (t(1, 3, 8, 9), [16, 5]), {}),
    ("upsample_bilinear2d", (t(1, 3, 8, 9), [16, 5], False), {}),
    ("upsample_bilinear2d", (t(1, 3, 8, 9), None, True, [2.0, 1.5]), {}),
    ("grid_sampler", (t(1, 3, 8, 9), t(1, 4, 5, 2), 0, 0, False), {}),
    ("embedding", (t(10, 4), i(2, 3)), {}),
    ("relu", (t(2),), {}),
    ("gelu", (t(2),), {}),
    ("sigmoid", (i(2),), {}),
    ("abs", (t(2, dtype="complex64"),), {}),
    ("add", (t(2, 1), i(3)), {}),
    ("add", (i(2), 1.5), {}),
    ("add", (t(2, dtype="float16"), 1.5), {}),
    ("mul", (i(2), t(dtype="float64")), {}),
    ("div", (i(2), i(2)), {}),
    ("div", (i(2), 2), {"rounding_mode": "floor"}),
    ("floor_divide", (i(2), 2), {}),
    ("pow", (i(2), 2), {}),
    ("pow", (t(2), 0.5), {}),
    ("eq", (t(2, 1), i(3)), {}),
    ("where", (b(2, 1), t(3), t(1, dtype="float64")), {}),
    ("masked_fill", (t(2, 3), b(3), 0.0), {}),
    ("clamp", (i(3), 0.5), {}),
    ("softmax", (t(2, 3), -1), {}),
    ("log_softmax", (t(2, 3, dtype="float16"), 1, 6), {}),
    ("cumsum", (b(2, 3), 0), {}),
    ("diff", (t(2, 7),), {}),
    ("diff", (i(2, 7), 2, 0), {}),
    ("diff", (i(1, 7), 1, -1, i(1, 1)), {}),
    ("diff", (i(2, 7), 3, 1, i(2, 2), i(2, 4)), {}),
    ("glu", (t(2, 4), 1), {}),
    ("sum", (b(2, 3),), {}),
    ("sum", (t(2, 3), [0], True), {}),
    ("mean", (t(2, 3), [-1]), {}),
    ("mean", (t(2, 3),), {"dtype": 7}),
    ("amax", (t(2, 3), [0, 1], True), {}),
    ("max", (t(2, 3), 1), {}),
    ("max", (t(2, 3), 1, True), {}),
    ("max", (t(2, 3),), {}),
    ("any", (t(2, 3), 1), {}),
    ("argmax", (t(2, 3), 1, True), {}),
    ("argmax", (t(2, 3),), {}),
    ("var", (t(2, 3), [1]), {"correction": 1}),
    ("std", (t(2, 3), True), {}),
    ("var_mean", (t(2, 3), [1]), {"correction": 0}),
    ("logsumexp", (t(2, 3), [1]), {}),
    ("norm", (t(2, 3), 2, [1], True), {}),
    ("linalg_vector_norm", (t(2, 3), 2, [1], True), {}),
    ("prod", (i(2, 3), 1), {}),
    ("view", (t(2, 3, 4), [6, -1]), {}),
    ("reshape", (t(2, 3, 4), [-1]), {}),
    ("flatten", (t(2, 3, 4), 1), {}),
    ("flatten", (t(),), {}),
    ("unflatten", (t(2, 12), 1, [3, -1]), {}),
    ("permute", (t(2, 3, 4), [2, 0, -2]), {}),
    ("transpose", (t(2, 3, 4), 0, -1), {}),
    ("t", (t(2, 3),), {}),
    ("movedim", (t(2, 3, 4), [0], [-1]), {}),
    ("unsqueeze", (t(2, 3), -1), {}),
    ("squeeze", (t(1, 3, 1),), {}),
    ("squeeze", (t(1, 3, 1), 0), {}),
    ("squeeze", (t(1, 3, 1), [0, 1]), {}),
    ("expand", (t(3, 1), [2, -1, 4]), {}),
    ("repeat", (t(3, 1), [2, 1, 4]), {}),
    ("tile", (t(3, 2), [2]), {}),
    ("repeat_interleave", (t(3, 2), 2, 0), {}),
    ("select", (t(3, 2), 1, -1), {}),
    ("slice", (t(9, 2), 0, 1, -2, 3), {}),
    ("narrow", (t(9, 2), 0, 2, 5), {}),
    ("chunk", (t(7, 2), 3), {}),
    ("chunk", (t(7, 2), 5), {}),
    ("split", (t(7, 2), 3), {}),
    ("split_with_sizes", (t(7, 2), [3, 4]), {}),
    ("tensor_split", (t(7, 2), 3), {}),
    ("unbind", (t(3, 2), 1), {}),
    ("cat", ([t(2, 3), i(2, 4)], 1), {}),
    ("stack", ([t(2, 3), t(2, 3)], -1), {}),
    ("hstack", ([t(2), t(3)],), {}),
    ("hstack", ([t(2, 3), t(2, 4)],), {}),
    ("vstack", ([t(3), t(2, 3)],), {}),
    ("dstack", ([t(3), t(1, 3)],), {}),
    ("column_stack", ([t(3), t(3, 2)],), {}),
    ("atleast_3d", (t(3, 2),), {}),
    ("float_power", (t(3), 2), {}),
    ("meshgrid", ([t(2), t(3)],), {"indexing": "xy"}),
    ("unfold", (t(2, 9), 1, 4, 2), {}),
    ("im2col", (t(2, 3, 8, 9), [2, 3], [1, 1], [0, 1], [2, 1]), {}),
    ("diagonal", (t(4, 5), -1), {}),
    ("diag_embed", (t(4, 5), 1), {}),
    ("tril", (t(4, 5),), {}),
    ("pixel_shuffle", (t(1, 8, 3, 4), 2), {}),
    ("pixel_unshuffle", (t(1, 2, 4, 6), 2), {}),
    ("constant_pad_nd", (t(2, 3, 4), [1, 2, 0, 3]), {}),
    ("pad", (t(2, 3, 4, 5), [1, 2, 0, 3], "reflect"), {}),
    ("roll", (t(2, 3), [1], [0]), {}),
    ("flip", (t(2, 3), [1]), {}),
    ("index", (t(5, 6, 7), [None, i(2, 3)]), {}),
    ("index", (t(5, 6, 7), [i(3), None, i(2, 1)]), {}),
    ("index", (t(5, 6, 7), [i(3), i(2, 1)]), {}),
    ("index_select", (t(5, 6), 1, i(3)), {}),
    ("gather", (t(5, 6), 1, i(5, 2)), {}),
    ("scatter", (t(5, 6), 1, i(5, 2), 1.0), {}),
    ("topk", (t(5, 6), 3, 0), {}),
    ("sort", (t(5, 6), 0), {}),
    ("argsort", (t(5, 6), 0), {}),
    ("zeros", ([2, 3],), {}),
    ("full", ([2, 3], 1), {}),
    ("full", ([2, 3], 1.5), {"dtype": 5}),
    ("arange", (5,), {}),
    ("arange", (0, 5.5), {}),
    ("arange", (1, 10, 4), {}),
    ("eye", (3,), {}),
    ("zeros_like", (i(2, 3),), {"dtype": 6}),
    ("new_zeros", (i(2, 3), [4]), {}),
    ("view_as_real", (t(2, dtype="complex64"),), {}),
    ("view_as_complex", (t(3, 2),), {}),
    ("fft_rfft", (t(2, 9),), {}),
    ("fft_fft", (t(2, 9),), {}),
    ("type_as", (t(2), i(2)), {}),
    ("cdist", (t(2, 3, 4), t(5, 4)), {}),
    ("lerp", (t(2), t(2), 0.5), {}),
    ("addcmul", (t(2, 1), t(3), t(3)), {}),
    ("tensordot", (t(2, 3, 4), t(4, 3), [2], [0]), {}),
    ("bitwise_and", (b(2, 1), b(3)), {}),
    ("logical_not", (t(2),), {}),
    ("remainder", (i(2), 3), {}),
    ("minimum", (t(2), t(1, dtype="float64")), {}),
    ("cosine_similarity", (t(2, 3), t(2, 3), 1), {}),
    ("broadcast_tensors", ([t(2, 1), t(3)],), {}),
    ("kron", (t(2, 3), t(4, 5)), {}),
    ("linalg_inv", (t(3, 3),), {}),
    ("linalg_svd", (t(4, 3), False), {}),
]


@pytest.mark.parametrize(("op", "arguments", "keywords"), CASES, ids=lambda value: str(value)[:40])
def test_the_outcome_is_torchs(
    op: str, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    ours = outputs_of(f"aten::{op}", arguments, keywords)

    theirs = torch_says(op, arguments, keywords)
    assert _as_lists(ours) == _as_lists(theirs)


def _as_lists(value: Any) -> Any:
    return [_as_lists(item) for item in value] if isinstance(value, (list, tuple)) else value


INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "bool"]
REALS = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
DTYPE = st.sampled_from(INTEGERS + REALS)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(DTYPE, st.booleans()), min_size=1, max_size=2),
    st.sampled_from([None, True, 2, 2.5]),
)
def test_types_are_promoted_as_torch_does(
    tensors: list[tuple[str, bool]], number: float | None
) -> None:
    specs: list[Any] = [t(2, dtype=name) if dims else t(dtype=name) for name, dims in tensors]
    specs += [] if number is None else [number]
    pair = (specs * 2)[:2]

    ours = outputs_of("aten::mul", pair, {})

    assert ours == _from_torch(torch.mul(*(_to_torch(value) for value in pair)))


SIZE = st.integers(0, 5)


@settings(max_examples=200, deadline=None)
@given(st.lists(SIZE, max_size=4), st.lists(SIZE, max_size=4), st.data())
def test_broadcasting_and_products_are_torchs_or_refused_by_both(
    one: list[int], other: list[int], data: st.DataObject
) -> None:
    op = data.draw(st.sampled_from(["add", "matmul", "expand_as", "view_as"]))
    arguments = (t(*one), t(*other))

    try:
        theirs: Any = torch_says(op, arguments, {})
    except RuntimeError:
        theirs = None
    try:
        ours: Any = outputs_of(f"aten::{op}", arguments, {})
    except ShapeError:
        ours = None

    assert ours == theirs


@settings(max_examples=200, deadline=None)
@given(
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.integers(1, 3),
    st.integers(0, 2),
    st.integers(1, 3),
    st.booleans(),
)
def test_windows_are_counted_as_torch_counts_them(
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: int,
    padding: int,
    dilation: int,
    ceil_mode: bool,
) -> None:
    image, weight = t(1, 2, *size), t(3, 2, *kernel)
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("conv2d", (image, weight, None, [stride] * 2, [padding] * 2, [dilation] * 2)),
        ("conv_transpose2d", (image, t(2, 3, *kernel), None, [stride] * 2, [padding] * 2)),
    ]
    if padding <= min(kernel) // 2:
        spans = (list(kernel), [stride] * 2, [padding] * 2)
        calls.append(("max_pool2d", (image, *spans, [dilation] * 2, ceil_mode)))
        calls.append(("avg_pool2d", (image, *spans, ceil_mode)))
    for op, arguments in calls:
        try:
            theirs: Any = torch_says(op, arguments, {})
        except RuntimeError:
            continue

        assert outputs_of(f"aten::{op}", arguments, {}) == theirs


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 9),
    st.one_of(st.none(), st.integers(-12, 12)),
    st.one_of(st.none(), st.integers(-12, 12)),
    st.integers(1, 4),
)
def test_slices_are_torchs(size: int, start: int | None, end: int | None, step: int) -> None:
    arguments = (t(size, 2), 0, start, end, step)

    assert outputs_of("aten::slice", arguments, {}) == torch_says("slice", arguments, {})


def test_what_is_not_known_stays_so_and_the_rest_is_kept() -> None:
    image = TensorSpec((None, 3, 8, 8), "float32")
    weight = t(4, 3, 3, 3)

    assert outputs_of("aten::conv2d", (image, weight), {}) == TensorSpec((None, 4, 6, 6), "float32")
    assert outputs_of("aten::add", (t(2), UnknownNumber("?")), {}) == t(2)
    assert outputs_of("aten::add", (t(2), Unknown("?")), {}) == Unknown("?")
    sizes = [UnknownNumber("?"), 3]
    assert outputs_of("aten::view", (t(2, 6), sizes), {}) == t(4, 3)


def test_an_operation_without_a_rule_gives_unknown_and_a_bad_call_a_reason() -> None:
    assert not is_known("aten::no_such_op")
    assert isinstance(outputs_of("aten::no_such_op", (t(2),), {}), Unknown)
    with pytest.raises(ShapeError, match="inner sizes"):
        outputs_of("aten::mm", (t(2, 3), t(4, 5)), {})
    with pytest.raises(ShapeError, match="unexpected arguments"):
        outputs_of("aten::mm", (t(2, 3),), {})
