"""Factorisations and solutions of matrices, by the leading terms of their usual counts.

Eigenvalues and singular values take a number of iterations that depends on the data: they have no
formula.
"""

from __future__ import annotations

from math import prod

from snapviewer.model.work.registry import Call, Formula, Work, register

_MATRIX = "self|A|input|LU"

_THIRDS = {
    1: "linalg_cholesky linalg_cholesky_ex cholesky",
    2: """
        linalg_lu linalg_lu_factor linalg_lu_factor_ex _lu_with_info linalg_det det _linalg_det
        linalg_slogdet slogdet logdet _linalg_slogdet linalg_ldl_factor linalg_ldl_factor_ex
    """,
    6: "linalg_inv linalg_inv_ex inverse cholesky_inverse",
}
"""How many thirds of n³ each takes, for n × n matrices."""


def _batch_and_size(call: Call) -> tuple[int, int]:
    *batch, _, size = call.shape("self")
    return prod(batch), size


def _cubic(thirds: int) -> Formula:
    def formula(call: Call) -> Work:
        batch, size = _batch_and_size(call)
        return call.work(other_flops=batch * thirds * size**3 // 3)

    return formula


for _thirds, _ops in _THIRDS.items():
    register(_ops, _MATRIX, kind="LinearAlgebra")(_cubic(_thirds))


@register("linalg_solve linalg_solve_ex _linalg_solve_ex", "A B", kind="LinearAlgebra")
def _solve(call: Call) -> Work:
    *batch, _, size = call.shape("A")
    # The factorisation, and two triangular solutions for each right side.
    flops = prod(batch) * 2 * size**3 // 3 + 2 * size * call.output_elements()
    return call.work(other_flops=flops)


@register("linalg_solve_triangular", "self B", kind="LinearAlgebra")
def _solve_triangular(call: Call) -> Work:
    _, size = _batch_and_size(call)
    return call.work(other_flops=size * call.output_elements())


@register("linalg_lu_solve", "LU pivots B", kind="LinearAlgebra")
def _solve_factored(call: Call) -> Work:
    return call.work(other_flops=2 * call.shape("LU")[-1] * call.output_elements())


@register("cholesky_solve", "self input2", kind="LinearAlgebra")
def _solve_symmetric(call: Call) -> Work:
    return call.work(other_flops=2 * call.shape("self")[-2] * call.output_elements())


@register("linalg_qr qr geqrf", "A|self|input", kind="LinearAlgebra")
def _orthogonal(call: Call) -> Work:
    *batch, rows, columns = call.shape("A")
    least = min(rows, columns)
    return call.work(other_flops=prod(batch) * (2 * rows * columns * least - 2 * least**3 // 3))
