"""Linear layers and matrix products.

Every output of a product is a sum over the shared dimension, so the multiply-adds are the outputs
times its size, whatever is broadcast. An addend takes the place of the addition that the first term
does not need.
"""

from __future__ import annotations

from math import prod

from snapviewer.model.work.registry import (
    Call,
    Uncounted,
    Work,
    matrix_product,
    per_output,
    register,
)
from snapviewer.model.work.sizes import NotKnownError, elements_of, whole_shape

_PRODUCTS = """
    mm bmm matmul mv inner linalg_matmul _int_mm _dyn_quant_matmul_4bit _scaled_mm _scaled_mm_v2
    _weight_int4pack_mm _weight_int4pack_mm_for_cpu _weight_int4pack_mm_with_scales_and_zeros
    _weight_int8pack_mm
"""

register("linear mkldnn_linear", "input|self weight", kind="Linear")(matrix_product("input"))
register("addmm", "self mat1 mat2", kind="Linear")(matrix_product("mat1"))
register("_addmm_activation", "self mat1 mat2", kind="Linear")(matrix_product("mat1", flops=1))
register(_PRODUCTS, "self|inp", kind="MatMul")(matrix_product("self"))
register("baddbmm", "self batch1 batch2", kind="MatMul")(matrix_product("batch1"))
register("outer ger kron", "self", kind="ElementWise")(per_output(1))
register("addr", "self", kind="ElementWise")(per_output(2))


@register("dot vdot", "self", kind="MatMul")
def _dot(call: Call) -> Work:
    return call.work(macs=call.elements("self"))


@register("linalg_vecdot", "x y", kind="MatMul")
def _dots(call: Call) -> Work:
    return call.work(macs=max(call.elements("x"), call.elements("y")))


@register("addbmm", "self batch1 batch2", kind="MatMul")
def _sum_over_products(call: Call) -> Work:
    batch, _, shared = call.shape("batch1")
    return call.work(macs=call.output_elements() * batch * shared)


@register("addmv", "self mat vec", kind="MatMul")
def _sum_and_vector_product(call: Call) -> Work:
    return call.work(macs=call.elements("mat"))


@register("tensordot", "self other dims_self dims_other", kind="MatMul")
def _tensordot(call: Call) -> Work:
    shape = call.shape("self")
    shared = prod(shape[dim] for dim in call.integers("dims_self"))
    return call.work(macs=call.output_elements() * shared)


@register("chain_matmul linalg_multi_dot", "matrices|tensors", kind="MatMul")
def _chain(call: Call) -> Work:
    shapes = [whole_shape(spec) for spec in call.tensors("matrices")]
    return call.work(macs=_cheapest_chain(shapes))


def _cheapest_chain(shapes: list[tuple[int, ...]]) -> int:
    """Return the multiply-adds of a chain of products in the best order, which torch uses.

    >>> _cheapest_chain([(10, 30), (30, 5), (5, 60)])
    4500
    """
    if len(shapes) > 64:
        raise NotKnownError("the chain has more than 64 matrices")
    sizes = [shapes[0][0] if len(shapes[0]) > 1 else 1] if shapes else []
    for shape in shapes[:-1]:
        sizes.append(shape[-1])
    if shapes:
        sizes.append(shapes[-1][1] if len(shapes[-1]) > 1 else 1)
    count = len(shapes)
    best = [[0] * count for _ in range(count)]
    for length in range(2, count + 1):
        for start in range(count - length + 1):
            end = start + length - 1
            best[start][end] = min(
                best[start][cut]
                + best[cut + 1][end]
                + sizes[start] * sizes[cut + 1] * sizes[end + 1]
                for cut in range(start, end)
            )
    return best[0][-1] if count else 0


@register("bilinear", "input1 input2 weight", kind="Linear")
def _bilinear(call: Call) -> Work:
    outputs, left, right = call.shape("weight")
    rows = call.elements("input1") // max(left, 1)
    # Each output is xᵀ W y: first x with W, then the result with y.
    return call.work(macs=rows * outputs * (left * right + right))


@register("cdist _cdist_forward pdist _pdist_forward", "x1|self", kind="MatMul")
def _distances(call: Call) -> Work:
    # A subtraction, a power and an addition for each coordinate of each pair.
    return call.work(other_flops=3 * call.output_elements() * call.shape("x1")[-1])


@register(
    "_grouped_mm _scaled_grouped_mm transformers::grouped_mm_fallback",
    "self|input mat2|weight",
    kind="MatMul",
)
def _grouped(call: Call) -> Work:
    left, right = call.tensor("self"), call.tensor("mat2")
    if len(left.shape) == 2 and len(right.shape) == 2:
        # The groups divide the inner dimension among them.
        return call.work(macs=elements_of(left) * whole_shape(right)[-1])
    return call.work(macs=call.output_elements() * whole_shape(left)[-1])


@register(
    "_sparse_mm _sparse_addmm _sparse_sparse_matmul _sparse_mm_reduce_impl sparse_sampled_addmm "
    "sspaddmm hspmm smm",
    kind="MatMul",
)
def _sparse(call: Call) -> Uncounted:
    return Uncounted("the number of zeros in its elements is not in the graph")


@register(
    "_sparse_semi_structured_linear _sparse_semi_structured_mm _cslt_sparse_mm", kind="MatMul"
)
def _semi_structured(call: Call) -> Uncounted:
    return Uncounted(
        "half of its elements are omitted, and which operand is sparse is not in the graph"
    )


@register("matrix_power linalg_matrix_power", "self n", kind="MatMul")
def _power(call: Call) -> Work | Uncounted:
    exponent = call.integer("n")
    if exponent < 0:
        return Uncounted("it inverts the matrix first")
    # By squaring: a product for each bit after the first, and one more for each that is set.
    products = max(exponent.bit_length() - 1, 0) + max(exponent.bit_count() - 1, 0)
    return call.work(macs=products * call.elements("self") * call.shape("self")[-1])
