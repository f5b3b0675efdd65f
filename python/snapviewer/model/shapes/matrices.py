"""Products of matrices: linear layers, einsum, attention, decompositions."""

from __future__ import annotations

from typing import TypeGuard

from snapviewer.model.graph import TensorSpec
from snapviewer.model.shapes.dimensions import (
    ShapeError,
    Size,
    axis,
    broadcast,
    multiply,
    same,
    tensors_in,
    whole,
)
from snapviewer.model.shapes.dtypes import real_of, result_type
from snapviewer.model.shapes.registry import Output, arguments, shape_function


@shape_function("linear", "mkldnn::_linear_pointwise")
def _linear(
    input: TensorSpec,  # noqa: A002
    weight: TensorSpec,
    bias: object = None,
    *rest: object,
) -> Output:
    if not input.shape or not 1 <= len(weight.shape) <= 2:
        raise ShapeError("a linear layer needs an input and a weight with dimensions")
    same(input.shape[-1], weight.shape[-1], "features of the input and of the weight differ")
    return TensorSpec((*input.shape[:-1], *weight.shape[:-1]), input.dtype)


@shape_function("mm")
def _mm(self: TensorSpec, mat2: TensorSpec, *rest: object) -> Output:
    if len(self.shape) != 2 or len(mat2.shape) != 2:
        raise ShapeError("a matrix has two dimensions")
    same(self.shape[1], mat2.shape[0], "inner sizes of a product differ")
    return TensorSpec((self.shape[0], mat2.shape[1]), self.dtype)


@shape_function("bmm")
def _bmm(self: TensorSpec, mat2: TensorSpec) -> Output:
    if len(self.shape) != 3 or len(mat2.shape) != 3:
        raise ShapeError("a batch of matrices has three dimensions")
    batch = same(self.shape[0], mat2.shape[0], "batches differ")
    same(self.shape[2], mat2.shape[1], "inner sizes of a product differ")
    return TensorSpec((batch, self.shape[1], mat2.shape[2]), self.dtype)


@shape_function("addmm", "_addmm_activation")
def _addmm(
    self: object, mat1: TensorSpec, mat2: TensorSpec, *rest: object, **named: object
) -> Output:
    return _mm(mat1, mat2)


@shape_function("baddbmm")
def _baddbmm(self: object, batch1: TensorSpec, batch2: TensorSpec, **named: object) -> Output:
    return _bmm(batch1, batch2)


@shape_function("addbmm")
def _addbmm(self: object, batch1: TensorSpec, batch2: TensorSpec, **named: object) -> Output:
    return TensorSpec((batch1.shape[1], batch2.shape[2]), batch1.dtype)


@shape_function("addmv")
def _addmv(self: object, mat: TensorSpec, vec: TensorSpec, **named: object) -> Output:
    return TensorSpec(mat.shape[:1], mat.dtype)


@shape_function("addr")
def _addr(self: object, vec1: TensorSpec, vec2: TensorSpec, **named: object) -> Output:
    return TensorSpec((*vec1.shape, *vec2.shape), vec1.dtype)


@shape_function("outer", "ger")
def _outer(self: TensorSpec, vec2: TensorSpec) -> Output:
    return TensorSpec((*self.shape, *vec2.shape), result_type([self, vec2]))


@shape_function("matmul", "linalg_matmul", "mv", "dot", "vdot")
def _matmul(self: TensorSpec, other: TensorSpec) -> Output:
    left, right = self.shape, other.shape
    if not left or not right:
        raise ShapeError("a number is not a matrix")
    rows: tuple[Size, ...] = left[-2:-1]
    columns: tuple[Size, ...] = right[-1:] if len(right) > 1 else ()
    same(left[-1], right[-2] if len(right) > 1 else right[-1], "inner sizes of a product differ")
    return TensorSpec((*broadcast(left[:-2], right[:-2]), *rows, *columns), self.dtype)


@shape_function("inner")
def _inner(self: TensorSpec, other: TensorSpec) -> Output:
    if not self.shape or not other.shape:
        return TensorSpec(self.shape or other.shape, self.dtype)
    same(self.shape[-1], other.shape[-1], "inner sizes of a product differ")
    return TensorSpec((*self.shape[:-1], *other.shape[:-1]), self.dtype)


@shape_function("linalg_multi_dot", "chain_matmul")
def _multi_dot(tensors: object) -> Output:
    specs = tensors_in(tensors)
    result = specs[0]
    for spec in specs[1:]:
        product = _matmul(result, spec)
        assert isinstance(product, TensorSpec)
        result = product
    return result


@shape_function("tensordot")
def _tensordot(
    self: TensorSpec, other: TensorSpec, dims_self: object, dims_other: object
) -> Output:
    if not isinstance(dims_self, (list, tuple)) or not isinstance(dims_other, (list, tuple)):
        raise ShapeError("the dimensions are unknown")
    gone, lost = ({whole(d) or 0 for d in dims} for dims in (dims_self, dims_other))
    gone, lost = {d % len(self.shape) for d in gone}, {d % len(other.shape) for d in lost}
    left = [size for place, size in enumerate(self.shape) if place not in gone]
    right = [size for place, size in enumerate(other.shape) if place not in lost]
    return TensorSpec((*left, *right), self.dtype)


@shape_function("einsum")
def _einsum(equation: object, tensors: object, path: object = None) -> Output:
    specs = tensors_in(tensors)
    if not isinstance(equation, str) or len(equation) > 10_000:
        raise ShapeError("the equation is unknown")
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(specs):
        raise ShapeError(f"the equation has {len(terms)} terms for {len(specs)} tensors")
    sizes: dict[str, Size] = {}
    spread: list[tuple[Size, ...]] = []
    for term, spec in zip(terms, specs, strict=True):
        front, dots, back = term.partition("...")
        if len(front) + len(back) > len(spec.shape) or (not dots and len(front) != len(spec.shape)):
            raise ShapeError(f"the term {term[:50]!r} does not fit its tensor")
        end = len(spec.shape) - len(back)
        spread.append(spec.shape[len(front) : end])
        named = (*spec.shape[: len(front)], *spec.shape[end:])
        for letter, size in zip(front + back, named, strict=True):
            old = sizes.get(letter, 1)
            sizes[letter] = broadcast((old,), (size,))[0]
    middle = broadcast(*spread)
    if not arrow:
        letters = inputs.replace("...", "").replace(",", "")
        output = "..." * ("..." in inputs) + "".join(
            letter for letter in sorted(set(letters)) if letters.count(letter) == 1
        )
    front, dots, back = output.partition("...")
    try:
        shape = (*(sizes[x] for x in front), *(middle if dots else ()), *(sizes[x] for x in back))
    except KeyError as error:
        raise ShapeError(
            f"the result of the equation has a letter {error} that no term has"
        ) from None
    return TensorSpec(shape, result_type(specs))


@shape_function("scaled_dot_product_attention")
def _attention(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    attn_mask: object = None,
    dropout_p: object = 0.0,
    is_causal: object = False,
    *,
    scale: object = None,
    enable_gqa: object = False,
) -> Output:
    if min(len(query.shape), len(key.shape), len(value.shape)) < 2:
        raise ShapeError("attention needs at least two dimensions")
    same(query.shape[-1], key.shape[-1], "queries and keys differ in size")
    same(key.shape[-2], value.shape[-2], "keys and values differ in number")
    if enable_gqa is True:
        front = query.shape[:-2]
    else:
        front = broadcast(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    return TensorSpec((*front, query.shape[-2], value.shape[-1]), query.dtype)


@shape_function(
    "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
    "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_cudnn_attention "
    "_scaled_dot_product_attention_math"
)
def _attention_parts(
    query: TensorSpec, key: TensorSpec, value: TensorSpec, *rest: object, **named: object
) -> Output:
    return (
        TensorSpec((*query.shape[:-1], value.shape[-1]), query.dtype),
        TensorSpec(query.shape[:-1], "float32"),
    )


@shape_function("_native_multi_head_attention")
def _native_attention(
    query: TensorSpec, key: TensorSpec, value: TensorSpec, *rest: object, **named: object
) -> Output:
    order = (
        "embed_dim num_head qkv_weight qkv_bias proj_weight proj_bias mask need_weights "
        "average_attn_weights"
    )
    given = arguments(order, rest, named)
    if given.get("need_weights", True) is not True:
        return (query, TensorSpec((), query.dtype))
    is_mean = given.get("average_attn_weights", True) is True
    heads = () if is_mean else (whole(given.get("num_head")),)
    return (
        query,
        TensorSpec((query.shape[0], *heads, query.shape[1], key.shape[1]), query.dtype),
    )


@shape_function("cdist")
def _cdist(x1: TensorSpec, x2: TensorSpec, *rest: object) -> Output:
    front = broadcast(x1.shape[:-2], x2.shape[:-2])
    return TensorSpec((*front, x1.shape[-2], x2.shape[-2]), x1.dtype)


@shape_function("bilinear")
def _bilinear(
    input1: TensorSpec, input2: TensorSpec, weight: TensorSpec, bias: object = None
) -> Output:
    return TensorSpec((*input1.shape[:-1], weight.shape[0]), input1.dtype)


def _is_tensor(value: object) -> TypeGuard[TensorSpec]:
    return isinstance(value, TensorSpec)


@shape_function("_grouped_mm", "transformers::grouped_mm_fallback")
def _grouped_mm(
    self: TensorSpec, mat2: TensorSpec, offs: object = None, *rest: object, **named: object
) -> Output:
    left, right = self.shape, mat2.shape
    if not {len(left), len(right)} <= {2, 3}:
        raise ShapeError("groups of matrices have two or three dimensions")
    groups: tuple[Size, ...] = ()
    if len(left) == len(right):
        # Each group is a product of its own: of a batch, or of slices between offsets.
        groups = (left[0],) if len(left) == 3 else offs.shape if _is_tensor(offs) else (None,)
    same(left[-1], right[-2], "inner sizes of a product differ")
    return TensorSpec((*groups, left[-2], right[-1]), self.dtype)


@shape_function("_int_mm")
def _int_mm(self: TensorSpec, mat2: TensorSpec) -> Output:
    return TensorSpec((self.shape[0], mat2.shape[1]), "int32")


@shape_function("linalg_vecdot")
def _vecdot(x: TensorSpec, y: TensorSpec, *, dim: object = -1) -> Output:
    shape = broadcast(x.shape, y.shape)
    place = axis(dim, len(shape))
    return TensorSpec((*shape[:place], *shape[place + 1 :]), result_type([x, y]))


@shape_function("_sparse_mm", "smm", "hspmm")
def _sparse_mm(sparse: TensorSpec, dense: TensorSpec, *rest: object) -> Output:
    return TensorSpec((sparse.shape[0], dense.shape[-1]), dense.dtype)


@shape_function("linalg_inv_ex", "linalg_cholesky_ex")
def _checked(self: TensorSpec, *rest: object, **named: object) -> Output:
    return (self, TensorSpec(self.shape[:-2], "int32"))


@shape_function("linalg_slogdet", "slogdet")
def _slogdet(self: TensorSpec) -> Output:
    front = self.shape[:-2]
    return (TensorSpec(front, self.dtype), TensorSpec(front, real_of(self.dtype)))


@shape_function("linalg_pinv", "pinverse")
def _pinv(self: TensorSpec, *rest: object, **named: object) -> Output:
    *front, rows, columns = self.shape
    return TensorSpec((*front, columns, rows), self.dtype)


def _inner_size(rows: Size, columns: Size) -> Size:
    return min(rows, columns) if rows is not None and columns is not None else None


@shape_function("linalg_eigvalsh linalg_svdvals")
def _values(self: TensorSpec, *rest: object, **named: object) -> Output:
    *front, rows, columns = self.shape
    return TensorSpec((*front, _inner_size(rows, columns)), real_of(self.dtype))


@shape_function("linalg_solve_triangular")
def _solved(self: TensorSpec, B: TensorSpec, **named: object) -> Output:  # noqa: N803
    return TensorSpec((*broadcast(self.shape[:-2], B.shape[:-2]), *B.shape[-2:]), B.dtype)


@shape_function("linalg_det", "det", "logdet")
def _det(self: TensorSpec) -> Output:
    return TensorSpec(self.shape[:-2], self.dtype)


@shape_function("linalg_solve")
def _solve(A: TensorSpec, B: TensorSpec, *, left: object = True) -> Output:  # noqa: N803
    return B


@shape_function("linalg_qr", "qr")
def _qr(A: TensorSpec, mode: object = "reduced") -> Output:  # noqa: N803
    *front, rows, columns = A.shape
    inner = _inner_size(rows, columns)
    q = TensorSpec((*front, rows, inner), A.dtype)
    return (q, TensorSpec((*front, inner, columns), A.dtype))


@shape_function("linalg_svd")
def _svd(A: TensorSpec, full_matrices: object = True, **named: object) -> Output:  # noqa: N803
    *front, rows, columns = A.shape
    inner = _inner_size(rows, columns)
    left, right = (rows, columns) if full_matrices is True else (inner, inner)
    return (
        TensorSpec((*front, rows, left), A.dtype),
        TensorSpec((*front, inner), real_of(A.dtype)),
        TensorSpec((*front, right, columns), A.dtype),
    )


@shape_function("linalg_eigh")
def _eigh(self: TensorSpec, UPLO: object = "L") -> Output:  # noqa: N803
    return (TensorSpec(self.shape[:-1], real_of(self.dtype)), self)


@shape_function("linalg_cross", "cross")
def _cross(self: TensorSpec, other: TensorSpec, *rest: object, **named: object) -> Output:
    return TensorSpec(broadcast(self.shape, other.shape), result_type([self, other]))


@shape_function("kron")
def _kron(self: TensorSpec, other: TensorSpec) -> Output:
    rank = max(len(self.shape), len(other.shape))
    one, two = ((1,) * (rank - len(spec.shape)) + spec.shape for spec in (self, other))
    shape = tuple(multiply(pair) for pair in zip(one, two, strict=True))
    return TensorSpec(shape, result_type([self, other]))
