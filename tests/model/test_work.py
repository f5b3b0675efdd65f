"""The work of an operation equals what counting its multiplications one by one gives."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer.model.graph import Node, TensorSpec, Unknown, Value
from snapviewer.model.work import Uncounted, Work, totals_of, work_of
from snapviewer.model.work import registry as registry_module
from snapviewer.model.work.einsum import contract
from snapviewer.model.work.images import windows
from snapviewer.model.work.registry import Call, is_counted, kind_of, register
from snapviewer.model.work.sizes import bits_of, bytes_of

SMALL = st.integers(1, 4)


def tensor(*shape: int | None, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(shape, dtype)


def node(
    op: str,
    *arguments: Value,
    out: Value | Sequence[Value] = (),
    times: int = 1,
    **keywords: Value,
) -> Node:
    outputs = tuple(out) if isinstance(out, list | tuple) else (out,)
    return Node(0, op, "", "", arguments, tuple(keywords.items()), outputs, (), times)


def counted(operation: Node) -> Work:
    work = work_of(operation)
    assert isinstance(work, Work), work
    return work


# Convolutions


def conv_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


@st.composite
def convolutions(draw: st.DrawFn) -> dict[str, tuple[int, ...] | int]:
    dimensions = draw(st.integers(1, 3))
    groups = draw(st.integers(1, 3))
    kernel = tuple(draw(SMALL) for _ in range(dimensions))
    dilation = draw(st.integers(1, 2))
    sizes = tuple(dilation * (size - 1) + 1 + draw(st.integers(0, 4)) for size in kernel)
    return {
        "batch": draw(SMALL),
        "groups": groups,
        "inputs": groups * draw(SMALL),
        "outputs": groups * draw(SMALL),
        "kernel": kernel,
        "sizes": sizes,
        "stride": draw(st.integers(1, 3)),
        "padding": draw(st.integers(0, 2)),
        "dilation": dilation,
    }


@given(convolutions())
def test_a_convolution_multiplies_once_for_each_tap_of_each_window(case: dict[str, int]) -> None:
    kernel: tuple[int, ...] = case["kernel"]  # type: ignore[assignment]
    sizes: tuple[int, ...] = case["sizes"]  # type: ignore[assignment]
    stride, padding, dilation = case["stride"], case["padding"], case["dilation"]
    after = tuple(
        conv_size(size, taps, stride, padding, dilation)
        for size, taps in zip(sizes, kernel, strict=True)
    )
    inputs, outputs, groups = case["inputs"], case["outputs"], case["groups"]
    expected = 0
    for _ in range(case["batch"]):
        for channel in range(outputs):
            group = channel // (outputs // groups)
            mine = [one for one in range(inputs) if one // (inputs // groups) == group]
            for _ in itertools.product(*map(range, after)):
                expected += len(mine) * sum(1 for _ in itertools.product(*map(range, kernel)))

    work = counted(
        node(
            f"aten::conv{len(kernel)}d",
            tensor(case["batch"], inputs, *sizes),
            tensor(outputs, inputs // groups, *kernel),
            None,
            (stride,),
            (padding,),
            (dilation,),
            groups,
            out=tensor(case["batch"], outputs, *after),
        )
    )

    assert work.macs == expected
    assert work.flops == 2 * expected


@given(st.tuples(SMALL, SMALL, SMALL, SMALL), st.tuples(SMALL, SMALL), st.integers(1, 3))
def test_a_transposed_convolution_spreads_each_input_over_its_window(
    sizes: tuple[int, int, int, int], kernel: tuple[int, int], groups: int
) -> None:
    batch, inputs, height, width = sizes
    outputs = 2
    expected = 0
    for _ in itertools.product(range(batch), range(inputs * groups), range(height), range(width)):
        expected += outputs * kernel[0] * kernel[1]

    arguments = (tensor(batch, inputs * groups, height, width),)
    weight = tensor(inputs * groups, outputs, *kernel)
    out = tensor(batch, outputs * groups, height + kernel[0] - 1, width + kernel[1] - 1)
    plain = node("aten::conv_transpose2d", *arguments, weight, out=out)
    general = node(
        "aten::convolution",
        *arguments,
        weight,
        None,
        (1, 1),
        (0, 0),
        (1, 1),
        True,
        (0, 0),
        groups,
        out=out,
    )

    assert counted(plain).macs == expected
    assert counted(general).macs == expected


# Products


@st.composite
def products(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Two shapes for a matmul, broadcasting and vectors among them, and that of the product."""
    shared = draw(SMALL)
    batch = draw(st.lists(SMALL, max_size=2))
    # One of the two has a batch size, the other has it too, or 1, or not so many dimensions.
    ones = draw(st.lists(st.sampled_from(["left", "right", "neither"]), max_size=2))
    left = [1 if one == "left" else size for size, one in zip(batch, [*ones, "", ""], strict=False)]
    right = [
        1 if one == "right" else size for size, one in zip(batch, [*ones, "", ""], strict=False)
    ]
    rows, columns = draw(st.lists(SMALL, max_size=1)), draw(st.lists(SMALL, max_size=1))
    if not (rows and columns):
        # A vector has no batch, and the other may have one.
        right = right if columns else []
        left = left if rows else []
    whole = [
        max(left[place] if left else 1, right[place] if right else 1)
        for place in range(max(len(left), len(right)))
    ]
    return (*left, *rows, shared), (*right, shared, *columns), (*whole, *rows, *columns)


@given(products())
def test_a_product_multiplies_once_for_each_shared_element_of_each_output(
    shapes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
) -> None:
    left, right, out = shapes
    expected = sum(left[-1] for _ in itertools.product(*map(range, out)))

    work = counted(node("aten::matmul", tensor(*left), tensor(*right), out=tensor(*out)))

    assert work.macs == expected


@pytest.mark.parametrize(
    ("op", "shapes", "out", "macs"),
    [
        ("aten::linear", [(2, 5, 8), (16, 8), (16,)], (2, 5, 16), 2 * 5 * 16 * 8),
        ("aten::addmm", [(16,), (3, 8), (8, 16)], (3, 16), 3 * 8 * 16),
        ("aten::_addmm_activation", [(16,), (3, 8), (8, 16)], (3, 16), 3 * 8 * 16),
        ("aten::mm", [(3, 8), (8, 16)], (3, 16), 3 * 8 * 16),
        ("aten::bmm", [(2, 3, 8), (2, 8, 16)], (2, 3, 16), 2 * 3 * 8 * 16),
        ("aten::baddbmm", [(2, 3, 16), (2, 3, 8), (2, 8, 16)], (2, 3, 16), 2 * 3 * 8 * 16),
        ("aten::addbmm", [(3, 16), (2, 3, 8), (2, 8, 16)], (3, 16), 2 * 3 * 8 * 16),
        ("aten::mv", [(3, 8), (8,)], (3,), 3 * 8),
        ("aten::addmv", [(3,), (3, 8), (8,)], (3,), 3 * 8),
        ("aten::dot", [(8,), (8,)], (), 8),
        ("aten::outer", [(8,), (3,)], (8, 3), 0),
        ("aten::bilinear", [(2, 3), (2, 4), (5, 3, 4)], (2, 5), 2 * 5 * (3 * 4 + 4)),
        ("aten::conv_tbc", [(9, 2, 4), (3, 4, 5), (5,)], (7, 2, 5), 7 * 2 * 5 * 3 * 4),
    ],
)
def test_products_have_the_multiply_adds_of_their_definition(
    op: str, shapes: list[tuple[int, ...]], out: tuple[int, ...], macs: int
) -> None:
    work = counted(node(op, *(tensor(*shape) for shape in shapes), out=tensor(*out)))

    assert work.macs == macs


def test_a_product_of_complex_numbers_counts_four_real_ones() -> None:
    factors = (tensor(2, 3, dtype="complex64"), tensor(3, 4, dtype="complex64"))

    assert counted(node("aten::mm", *factors, out=tensor(2, 4, dtype="complex64"))).macs == 96


def test_a_chain_of_products_is_counted_in_its_cheapest_order() -> None:
    matrices = (tensor(10, 30), tensor(30, 5), tensor(5, 60))

    work = counted(node("aten::linalg_multi_dot", matrices, out=tensor(10, 60)))

    assert work.macs == min(10 * 30 * 5 + 10 * 5 * 60, 30 * 5 * 60 + 10 * 30 * 60)


# Einstein sums


@given(
    st.sampled_from(
        ["ij,jk->ik", "bij,bjk->bik", "ij,kj->ik", "bhqd,bhkd->bhqk", "ij,ij->", "ij,jk"]
    ),
    st.dictionaries(st.sampled_from("bhqkdij"), st.integers(2, 4)),
)
def test_a_sum_over_shared_labels_multiplies_once_for_each_choice_of_all_labels(
    equation: str, sizes: dict[str, int]
) -> None:
    left = equation.partition("->")[0].split(",")
    shapes = [tuple(sizes.get(label, 2) for label in part) for part in left]
    choices = prod(sizes.get(label, 2) for label in set("".join(left)))

    assert contract(equation, shapes).macs == choices


@pytest.mark.parametrize(
    ("equation", "shapes", "macs"),
    [
        ("i,j->ij", [(3,), (4,)], 0),
        ("ij->ji", [(3, 4)], 0),
        ("ij,k->ik", [(3, 4), (5,)], 0),
        ("...ij,...jk->...ik", [(2, 7, 3, 4), (7, 4, 5)], 2 * 7 * 3 * 4 * 5),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], 2 * 3 * 4 + 2 * 4 * 5),
        ("ij,jk,ik->i", [(2, 3), (3, 4), (2, 4)], 2 * 3 * 4 + 2 * 4),
    ],
)
def test_an_einstein_sum_meets_its_operands_from_left_to_right(
    equation: str, shapes: list[tuple[int, ...]], macs: int
) -> None:
    assert contract(equation, shapes).macs == macs


def test_a_path_says_which_operands_meet_first() -> None:
    shapes = [(2, 3), (3, 4), (4, 5)]

    assert contract("ij,jk,kl->il", shapes, path=(1, 2, 0, 1)).macs == 3 * 4 * 5 + 2 * 3 * 5


# Attention


@given(SMALL, SMALL, SMALL, SMALL, SMALL, SMALL)
def test_attention_multiplies_for_its_scores_and_for_its_values(
    batch: int, heads: int, positions: int, keys: int, features: int, value_features: int
) -> None:
    expected = 0
    for _ in itertools.product(range(batch), range(heads), range(positions), range(keys)):
        expected += features + value_features
    arguments = (
        tensor(batch, heads, positions, features),
        tensor(batch, heads, keys, features),
        tensor(batch, heads, keys, value_features),
    )
    out = tensor(batch, heads, positions, value_features)

    for op in (
        "aten::scaled_dot_product_attention",
        "aten::_scaled_dot_product_flash_attention",
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        "aten::_scaled_dot_product_efficient_attention",
        "aten::_scaled_dot_product_cudnn_attention",
        "aten::_scaled_dot_product_attention_math",
    ):
        assert counted(node(op, *arguments, out=out)).macs == expected


def test_grouped_queries_share_keys_but_not_multiplications() -> None:
    query, shared = tensor(1, 8, 16, 4), tensor(1, 2, 16, 4)

    work = counted(
        node(
            "aten::scaled_dot_product_attention", query, shared, shared, out=query, enable_gqa=True
        )
    )

    assert work.macs == 2 * 8 * 16 * 16 * 4


def test_a_fused_encoder_layer_counts_as_its_parts_do() -> None:
    batch, positions, features, heads, hidden = 2, 5, 8, 2, 32
    rows = batch * positions
    source = tensor(batch, positions, features)
    fused = node(
        "aten::_transformer_encoder_layer_fwd",
        *(source, features, heads),
        *(tensor(3 * features, features), tensor(3 * features)),
        *(tensor(features, features), tensor(features), False, False, 1e-5),
        *(tensor(features) for _ in range(4)),
        *(tensor(hidden, features), tensor(hidden), tensor(features, hidden), tensor(features)),
        out=source,
    )
    head = tensor(batch, heads, positions, features // heads)
    normed = node(
        "aten::layer_norm", source, (features,), tensor(features), tensor(features), out=source
    )
    parts = [
        node(
            "aten::linear", source, tensor(3 * features, features), out=tensor(rows, 3 * features)
        ),
        node("aten::scaled_dot_product_attention", head, head, head, out=head),
        node("aten::linear", source, tensor(features, features), out=source),
        node("aten::add", source, source, out=source),
        normed,
        node("aten::linear", source, tensor(hidden, features), out=tensor(rows, hidden)),
        node("aten::relu", tensor(rows, hidden), out=tensor(rows, hidden)),
        node("aten::linear", tensor(rows, hidden), tensor(features, hidden), out=source),
        node("aten::add", source, source, out=source),
        normed,
    ]

    assert counted(fused).macs == totals_of(parts).work.macs
    assert counted(fused).flops == totals_of(parts).work.flops


def test_packed_sequences_of_unknown_lengths_are_not_counted_as_if_they_were_full() -> None:
    query = tensor(40, 8, 64)
    packed = node("aten::_flash_attention_forward", query, query, query, tensor(3), out=query)

    assert work_of(packed) == Uncounted("the lengths of its packed sequences are not in the graph")


# Recurrent layers


@given(
    st.sampled_from([("aten::lstm", 4), ("aten::gru", 3), ("aten::rnn_tanh", 1)]),
    SMALL,
    SMALL,
    SMALL,
    SMALL,
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
)
def test_a_recurrent_layer_multiplies_each_weight_at_each_step(
    layer: tuple[str, int],
    steps: int,
    batch: int,
    features: int,
    hidden: int,
    layers: int,
    is_bidirectional: bool,
    is_packed: bool,
) -> None:
    op, gates = layer
    directions = 1 + is_bidirectional
    weights: list[Value] = []
    expected = 0
    for number in range(layers):
        width = features if number == 0 else hidden * directions
        for _ in range(directions):
            weights += [tensor(gates * hidden, width), tensor(gates * hidden, hidden)]
            weights += [tensor(gates * hidden), tensor(gates * hidden)]
            for _ in itertools.product(range(steps), range(batch), range(gates), range(hidden)):
                expected += width + hidden
    state = tensor(layers * directions, batch, hidden)
    hx: Value = (state, state) if op == "aten::lstm" else state
    rest = (True, layers, 0.0, False, is_bidirectional)
    out = (tensor(steps, batch, hidden * directions), state)
    if is_packed:
        data = tensor(steps * batch, features)
        run = node(op, data, tensor(steps, dtype="int64"), hx, tuple(weights), *rest, out=out)
    else:
        run = node(op, tensor(steps, batch, features), hx, tuple(weights), *rest, False, out=out)

    assert counted(run).macs == expected


def test_projections_of_an_lstm_are_products_too() -> None:
    features, hidden, projected, steps = 64, 128, 32, 10
    weights = (
        tensor(4 * hidden, features),
        tensor(4 * hidden, projected),
        tensor(4 * hidden),
        tensor(4 * hidden),
        tensor(projected, hidden),
    )
    state = (tensor(1, 1, projected), tensor(1, 1, hidden))
    run = node(
        "aten::lstm", tensor(steps, 1, features), state, weights, out=tensor(steps, 1, projected)
    )

    work = counted(run)

    assert work.macs == steps * (4 * hidden * (features + projected) + hidden * projected)
    assert work.flops == 2 * work.macs + steps * hidden * 13


def test_a_layer_with_packed_weights_is_uncounted_if_the_graph_does_not_have_them() -> None:
    packed = node(
        "aten::quantized_lstm", tensor(3, 2, 5), (), (Unknown("packed"),), out=tensor(3, 2, 6)
    )

    assert isinstance(work_of(packed), Uncounted)


# The truths of the issue


HEADS = tensor(1, 8, 128, 64)


@pytest.mark.parametrize(
    ("operation", "macs"),
    [
        pytest.param(
            node(
                "aten::lstm",
                tensor(10, 1, 64),
                (tensor(1, 1, 128), tensor(1, 1, 128)),
                (tensor(512, 64), tensor(512, 128), tensor(512), tensor(512)),
                out=tensor(10, 1, 128),
            ),
            983_040,
            id="LSTM 64→128, 10 steps",
        ),
        pytest.param(
            node("aten::scaled_dot_product_attention", *[HEADS] * 3, out=HEADS),
            16_777_216,
            id="attention, 8 heads of 128×64",
        ),
        pytest.param(
            node(
                "aten::conv_transpose2d",
                tensor(1, 16, 16, 16),
                tensor(16, 32, 4, 4),
                out=tensor(1, 32, 32, 32),
            ),
            2_097_152,
            id="transposed convolution",
        ),
        pytest.param(
            node(
                "aten::einsum",
                "bij,bjk->bik",
                (tensor(4, 16, 32), tensor(4, 32, 32)),
                out=tensor(4, 16, 32),
            ),
            65_536,
            id="einsum as bmm",
        ),
    ],
)
def test_the_known_truths_are_met_exactly(operation: Node, macs: int) -> None:
    assert counted(operation).macs == macs


# Everything else


@given(st.integers(1, 60), st.integers(1, 60))
def test_adaptive_windows_sum_up_as_the_windows_themselves_do(inputs: int, outputs: int) -> None:
    expected = 0
    for index in range(outputs):
        start = index * inputs // outputs
        end = -(-(index + 1) * inputs // outputs)
        expected += end - start

    assert windows(inputs, outputs) == expected


@pytest.mark.parametrize(
    ("operation", "flops"),
    [
        (node("aten::relu_", tensor(2, 3), out=tensor(2, 3)), 6),
        (node("aten::add", tensor(2, 3), tensor(3), out=tensor(2, 3)), 6),
        (node("aten::add", tensor(1, 3), tensor(2, 1), out=tensor(2, 3)), 6),
        (node("aten::glu", tensor(2, 4), out=tensor(2, 2)), 8),
        (node("aten::softmax", tensor(2, 3), -1, out=tensor(2, 3)), 30),
        (node("aten::sum", tensor(2, 3), out=tensor()), 6),
        (node("aten::max", tensor(2, 3), 1, out=(tensor(2), tensor(2, dtype="int64"))), 6),
        (node("aten::layer_norm", tensor(2, 3), (3,), tensor(3), tensor(3), out=tensor(2, 3)), 48),
        (node("aten::layer_norm", tensor(2, 3), (3,), None, None, out=tensor(2, 3)), 36),
        (
            node("aten::batch_norm", tensor(2, 3), *[tensor(3)] * 4, False, out=tensor(2, 3)),
            24,
        ),
        (
            node("aten::batch_norm", tensor(2, 3), *[tensor(3)] * 4, True, out=tensor(2, 3)),
            48,
        ),
        (node("aten::rms_norm", tensor(2, 3), (3,), tensor(3), out=tensor(2, 3)), 24),
        (node("aten::max_pool2d", tensor(1, 1, 4, 4), (2, 2), out=tensor(1, 1, 2, 2)), 16),
        (node("aten::avg_pool2d", tensor(1, 1, 4, 4), (2,), out=tensor(1, 1, 2, 2)), 16),
        (node("aten::adaptive_avg_pool2d", tensor(1, 2, 7, 7), (1, 1), out=tensor(1, 2, 1, 1)), 98),
        (node("aten::upsample_bilinear2d", tensor(1, 1, 2, 2), out=tensor(1, 1, 4, 4)), 128),
        (node("aten::upsample_nearest2d", tensor(1, 1, 2, 2), out=tensor(1, 1, 4, 4)), 0),
        (node("aten::sort", tensor(2, 8), out=(tensor(2, 8), tensor(2, 8))), 48),
        (node("aten::topk", tensor(2, 8), 4, out=(tensor(2, 4), tensor(2, 4))), 32),
        (
            node("aten::fft_fft", tensor(2, 8, dtype="complex64"), out=tensor(2, 8)),
            5 * 2 * 8 * 3,
        ),
        (node("aten::cumsum", tensor(2, 8), 1, out=tensor(2, 8)), 16),
        (node("aten::dropout", tensor(2, 8), 0.5, False, out=tensor(2, 8)), 0),
        (node("aten::linalg_cholesky", tensor(2, 6, 6), out=tensor(2, 6, 6)), 2 * 6**3 // 3),
    ],
)
def test_other_operations_cost_the_stated_flops(operation: Node, flops: int) -> None:
    work = counted(operation)

    assert (work.macs, work.flops) == (0, flops)


@pytest.mark.parametrize("op", ["view", "permute", "transpose", "flatten", "expand", "unsqueeze"])
def test_a_view_costs_nothing_and_is_counted(op: str) -> None:
    assert work_of(node(f"aten::{op}", tensor(2, 3), out=tensor(6))) == Work(0, 0, 0, 0)


def test_arithmetic_on_sizes_is_no_work_whatever_it_is_called() -> None:
    assert work_of(node("aten::floordiv_of_tomorrow", 7, 2, out=3)) == Work(0, 0, 0, 0)


def test_a_copy_moves_what_it_writes() -> None:
    work = counted(node("aten::cat", (tensor(2, 3), tensor(4, 3)), 0, out=tensor(6, 3)))

    assert (work.flops, work.read_bytes, work.written_bytes) == (0, 72, 72)


def test_an_embedding_reads_the_rows_it_needs_and_not_its_table() -> None:
    table, indices = tensor(50_000, 64, dtype="float16"), tensor(1, 128, dtype="int64")

    work = counted(node("aten::embedding", table, indices, out=tensor(1, 128, 64, dtype="float16")))

    assert work.read_bytes == 128 * 64 * 2 + 128 * 8
    assert work.written_bytes == 128 * 64 * 2


def test_a_product_reads_its_factors_and_writes_its_result_once() -> None:
    factors = (tensor(2, 3, dtype="bfloat16"), tensor(3, 4, dtype="bfloat16"))

    work = counted(node("aten::mm", *factors, out=tensor(2, 4, dtype="bfloat16")))

    assert (work.read_bytes, work.written_bytes, work.is_traffic_exact) == (36, 16, True)


def test_traffic_of_an_unknown_type_says_that_it_is_not_exact() -> None:
    work = counted(node("aten::relu", tensor(2, dtype=""), out=tensor(2, dtype="")))

    assert (work.read_bytes, work.is_traffic_exact) == (8, False)


def test_what_runs_several_times_counts_as_often() -> None:
    once = counted(node("aten::mm", tensor(2, 3), tensor(3, 4), out=tensor(2, 4)))

    often = counted(node("aten::mm", tensor(2, 3), tensor(3, 4), out=tensor(2, 4), times=7))

    assert (often.macs, often.read_bytes) == (7 * once.macs, 7 * once.read_bytes)


def test_arguments_count_by_their_names_as_by_their_places() -> None:
    out = tensor(1, 8, 5, 5)
    weight = tensor(8, 3, 3, 3)
    placed = node("aten::conv2d", tensor(1, 3, 7, 7), weight, None, out=out)
    named = node("aten::conv2d", input=tensor(1, 3, 7, 7), weight=weight, bias=None, out=out)

    assert work_of(placed) == work_of(named)


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (node("my::op", tensor(2), out=tensor(2)), "there is no formula for it"),
        (
            node("aten::mm", tensor(None, 3), tensor(3, 4), out=tensor(2, 4)),
            "`self`: the size of a dimension is unknown (?×3)",
        ),
        (
            node("aten::mm", Unknown("a branch"), tensor(3, 4), out=tensor(2, 4)),
            "the shape of `self` is unknown: a branch",
        ),
        (
            node("aten::relu", tensor(2), out=Unknown("no shape function")),
            "the shape of its output is unknown: no shape function",
        ),
        (
            node("aten::mm", tensor(), tensor(), out=tensor(2)),
            "its shapes do not fit the operation",
        ),
        (
            node(
                "quantized::conv2d", tensor(1, 3, 8, 8), Unknown("packed"), out=tensor(1, 8, 6, 6)
            ),
            "its weights are packed, and their shapes are not in the graph",
        ),
        (
            node(
                "torchvision::roi_align",
                tensor(1, 3, 8, 8),
                tensor(5, 5),
                1.0,
                7,
                7,
                -1,
                out=tensor(5, 3, 7, 7),
            ),
            "the number of samples of a region depends on the data",
        ),
    ],
)
def test_what_cannot_be_counted_says_why(operation: Node, why: str) -> None:
    assert work_of(operation) == Uncounted(why)


def test_packed_convolutions_are_counted_by_the_tensors_inside() -> None:
    packed = ("2", (tensor(14, dtype="int16"), tensor(8, 3, 3, 3, dtype="qint8")), (tensor(8),))

    work = counted(
        node("quantized::conv2d_relu", tensor(1, 3, 8, 8), packed, 1.0, 0, out=tensor(1, 8, 6, 6))
    )

    assert work.macs == 8 * 6 * 6 * 27


def test_a_deformable_convolution_is_a_convolution_of_samples() -> None:
    work = counted(
        node(
            "torchvision::deform_conv2d",
            tensor(2, 3, 8, 8),
            tensor(4, 3, 3, 3),
            tensor(2, 18, 6, 6),
            tensor(2, 9, 6, 6),
            out=tensor(2, 4, 6, 6),
        )
    )

    assert work.macs == 2 * 4 * 36 * 27
    assert work.flops == 2 * work.macs + 9 * (2 * 3 * 9 * 36)


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("aten::_convolution", "Convolution"),
        ("aten::addmm", "Linear"),
        ("aten::bmm", "MatMul"),
        ("aten::scaled_dot_product_attention", "Attention"),
        ("aten::mkldnn_rnn_layer", "Recurrent"),
        ("aten::embedding_bag", "Embedding"),
        ("aten::native_layer_norm", "Normalization"),
        ("aten::hardtanh_", "Activation"),
        ("aten::max_pool2d_with_indices", "Pooling"),
        ("aten::mul_", "ElementWise"),
        ("aten::mean", "Reduction"),
        ("aten::_safe_softmax", "Softmax"),
        ("aten::reshape", "Reshape"),
        ("aten::nothing_of_the_kind", "Other"),
        ("", "Other"),
        ("_", "Other"),
    ],
)
def test_each_operation_has_its_kind(op: str, kind: str) -> None:
    assert kind_of(op) == kind


def test_a_user_can_teach_a_new_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "_entries", dict(registry_module._entries))

    @register("my::rotary", "query cos sin", kind="Attention")
    def rotary(call: Call) -> Work:
        return call.work(other_flops=3 * call.elements("query"))

    assert is_counted("my::rotary")
    assert kind_of("my::rotary_") == "Attention"
    assert counted(node("my::rotary", tensor(2, 5), out=tensor(2, 5))).flops == 30


def test_totals_add_up_by_kind_and_list_what_is_missing() -> None:
    product = node("aten::mm", tensor(2, 3), tensor(3, 4), out=tensor(2, 4))
    strange = node("my::op", tensor(2), out=tensor(2))
    relu = node("aten::relu", tensor(2, 4), out=tensor(2, 4))

    totals = totals_of([relu, product, strange, relu])

    assert totals.work.macs == 24
    assert totals.work.flops == 48 + 16
    assert list(totals.by_kind) == ["MatMul", "Activation"]
    assert totals.counts == {"Activation": 2, "MatMul": 1, "Other": 1}
    assert totals.uncounted == ((strange, "there is no formula for it"),)


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        ("float64", 64),
        ("torch.bfloat16", 16),
        ("float8_e5m2", 8),
        ("float4_e2m1fn_x2", 8),
        ("int4", 8),
        ("uint1", 8),
        ("bool", 8),
        ("quint4x2", 4),
        ("bits2x4", 8),
        ("complex128", 128),
        ("qint32", 32),
        ("", None),
        ("float\n32", None),
    ],
)
def test_types_have_the_bits_that_torch_gives_them(dtype: str, bits: int | None) -> None:
    assert bits_of(dtype) == bits


def test_packed_elements_round_up_to_whole_bytes() -> None:
    assert bytes_of(tensor(3, dtype="quint4x2")) == 2


# What an untrusted file may contain

VALUES: st.SearchStrategy[Value] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**20), 10**20),
        st.floats(),
        st.text(max_size=5),
        st.just(Unknown("why not")),
        st.builds(
            TensorSpec,
            st.lists(st.one_of(st.none(), st.integers(-2, 10**12)), max_size=6).map(tuple),
            st.sampled_from(["float32", "", "nonsense", "complex64"]),
        ),
    ),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=8,
)


@given(
    st.sampled_from(sorted(registry_module._entries)),
    st.lists(VALUES, max_size=8).map(tuple),
    st.lists(VALUES, max_size=3).map(tuple),
)
def test_no_shapes_whatsoever_break_a_formula(
    op: str, arguments: tuple[Value, ...], outputs: tuple[Value, ...]
) -> None:
    work = work_of(Node(0, op, "", "", arguments, (), outputs, ()))

    assert isinstance(work, Uncounted) or min(work.macs, work.flops, work.read_bytes) >= 0


def test_tuples_that_stand_for_more_values_than_there_are_atoms_end_quickly() -> None:
    nested: Value = tensor(2)
    for _ in range(300):
        nested = (nested, nested)

    work = work_of(node("aten::cat", nested, out=tensor(2)))

    assert work == Uncounted("it has more than 100,000 values")


def test_an_equation_without_end_is_not_followed() -> None:
    endless = node("aten::einsum", "a," * 100_000, (tensor(2),) * 5, out=tensor())

    assert isinstance(work_of(endless), Uncounted)


@pytest.mark.parametrize(("dimensions", "times"), [(64, 1), (1, 2**4000)])
def test_sizes_beyond_all_measure_are_not_counted(dimensions: int, times: int) -> None:
    vast = TensorSpec((2**62,) * dimensions, "float32")
    product = Node(0, "aten::mul", "", "", (vast, vast), (), (vast,), (), times)

    assert work_of(product) == Uncounted("its sizes are too large")
