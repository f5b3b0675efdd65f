"""Factorisations and solutions of matrices, by the usual counts of their leading terms.

Eigenvalues and singular values come by iterations whose number depends on the data: they have no
formula.
"""

from __future__ import annotations

from math import prod

from snapviewer.model.work.registry import Call, Work, register

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


def _register_cubic(ops: str, thirds: int) -> None:
    @register([f"aten::{op}" for op in ops.split()], _MATRIX, kind="LinearAlgebra")
    def _formula(call: Call) -> Work:
        batch, size = _batch_and_size(call)
        return call.work(other_flops=batch * thirds * size**3 // 3)


for _thirds, _ops in _THIRDS.items():
    _register_cubic(_ops, _thirds)


@register(
    ("aten::linalg_solve", "aten::linalg_solve_ex", "aten::_linalg_solve_ex"),
    "A B",
    kind="LinearAlgebra",
)
def _solve(call: Call) -> Work:
    *batch, _, size = call.shape("A")
    # The factorisation, and two triangular solutions for each right side.
    flops = prod(batch) * 2 * size**3 // 3 + 2 * size * call.output_elements()
    return call.work(other_flops=flops)


@register("aten::linalg_solve_triangular", "self B", kind="LinearAlgebra")
def _solve_triangular(call: Call) -> Work:
    _, size = _batch_and_size(call)
    return call.work(other_flops=size * call.output_elements())


@register(("aten::linalg_lu_solve",), "LU pivots B", kind="LinearAlgebra")
def _solve_factored(call: Call) -> Work:
    return call.work(other_flops=2 * call.shape("LU")[-1] * call.output_elements())


@register("aten::cholesky_solve", "self input2", kind="LinearAlgebra")
def _solve_symmetric(call: Call) -> Work:
    return call.work(other_flops=2 * call.shape("self")[-2] * call.output_elements())


@register(("aten::linalg_qr", "aten::qr", "aten::geqrf"), "A|self|input", kind="LinearAlgebra")
def _orthogonal(call: Call) -> Work:
    *batch, rows, columns = call.shape("A")
    least = min(rows, columns)
    return call.work(other_flops=prod(batch) * (2 * rows * columns * least - 2 * least**3 // 3))
