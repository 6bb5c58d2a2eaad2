"""Linear algebra by cuSOLVER and cuBLAS: when PyTorch's code waits is known, kernels and workspaces are not.

What the libraries do within one call is not counted. Where PyTorch takes MAGMA, or a solver that works on the
host too, there is no rule, and the operation is reported as unknown.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from simcuda.basis import in_aten, operations
from simcuda.costs.call import FREE, MEMORY, LibraryWork, OpCost, OperationCall
from simcuda.costs.rules.host_reads import check_error_codes
from simcuda.costs.rules.rule import CostRule

UNCHECKED: list[str] = operations("unchecked")
BY_LU: list[str] = operations("by LU")

CODE_BYTES = 4
SMALL_MATRIX = 16
MEDIUM_MATRIX = 128
FEW_MATRICES = 16

# Operands are copied into matrices by columns: byte by byte where they are so already, else by a kernel.
_MATRICES = dict.fromkeys(
    (*MEMORY, "launches", "aten_launches", "d2d", "d2d_bytes"), (0, inf)
)
FACTORIZED = LibraryWork(0, _MATRICES)
# It finds eigenvalues, singular values and pivots on host and device together, by as many copies as it likes.
_BETWEEN = ("syncs", "stream_syncs", "drains", "h2d", "h2d_bytes", "d2h", "d2h_bytes")
CUSOLVER = LibraryWork(0, _MATRICES | dict.fromkeys(_BETWEEN, (0, inf)))


def _avoids_magma(call: OperationCall) -> bool:
    """Square matrices that are single, small, or few and of medium size; others are left to MAGMA."""
    matrix = call.inputs[0]
    rows, columns = matrix.shape[-2:]
    count = matrix.shape[:-2].numel()
    # The heuristics of ``lu_factor`` in ATen, by size and number of matrices.
    few = rows <= MEDIUM_MATRIX and count <= FEW_MATRICES
    return bool(rows == columns and (count == 1 or rows <= SMALL_MATRIX or few))


@CostRule(
    id="factorize-unchecked",
    ops=in_aten(UNCHECKED),
    source="ATen/native/cuda/linalg/BatchLinearAlgebra.cpp: cuSOLVER or cuBLAS, whatever the batch; "
    "error codes stay on the device, unless check_errors is set; cholesky reads any over them",
    example="torch.linalg.cholesky_ex(torch.eye(2, device='cuda'))",
    approximate=True,
)
@CostRule(
    id="factorize-by-lu",
    ops=in_aten(BY_LU),
    source="ATen/native/cuda/linalg/BatchLinearAlgebra.cpp, lu_factor: cuSOLVER or cuBLAS for square "
    "matrices, single, up to 16 rows, or up to 16 of up to 128 rows; MAGMA, which waits, for others",
    example="torch.linalg.inv_ex(torch.eye(2, device='cuda'))",
    approximate=True,
)
def _factorized(call: OperationCall) -> OpCost:
    if call.argument("check_errors", default=call.op.startswith("aten.cholesky.")):
        return _checked(call)
    has_work = int(any(tensor.numel() for tensor in call.inputs))
    if call.op.split(".")[1] in BY_LU and not _avoids_magma(call):
        # Its queue is waited for at the end; on an H100 3 waits for 3 rows.
        return OpCost(has_work, waits=has_work, library=CUSOLVER)
    return OpCost(has_work, library=FACTORIZED)


CostRule(
    id="factorize-indefinite",
    ops=("aten.linalg_ldl_factor_ex",),
    source="ATen/native/cuda/linalg/BatchLinearAlgebraLib.cpp: cuSOLVER, except for hermitian matrices; its "
    "sytrf reads pivots, so that this is the least; on an H100 7 for 5 rows",
    example="torch.linalg.ldl_factor_ex(torch.eye(2, device='cuda'))",
    when=lambda call: not call.argument("hermitian", default=False),
    approximate=True,
)(lambda call: replace(_factorized(call), library=CUSOLVER))


CostRule(
    id="solve-indefinite",
    ops=("aten.linalg_ldl_solve",),
    source="ATen/native/cuda/linalg/BatchLinearAlgebraLib.cpp: the device is waited for before cuSOLVER "
    "begins, whose kernels and copies are its own",
    example="torch.linalg.ldl_solve(*torch.linalg.ldl_factor(torch.eye(2, device='cuda')), y[:2, None])",
    approximate=True,
)(
    lambda call: replace(
        _factorized(call),
        waits=int(call.result.numel() > 0),
        library=LibraryWork(
            0, {**CUSOLVER.slack, "stream_syncs": (1, inf), "device_syncs": (0, inf)}
        ),
    )
)


def _checked(call: OperationCall) -> OpCost:
    matrix = call.inputs[0]
    if not matrix.numel():
        return FREE
    codes = matrix.shape[:-2].numel()
    work = OpCost(1, temporaries=(CODE_BYTES * codes,), library=FACTORIZED)
    return work + check_error_codes(codes, call.profile)


CostRule(
    id="eigenvalues",
    ops=("aten._linalg_eigh", "aten.linalg_lstsq"),
    source="ATen/native/BatchLinearAlgebra.cpp: the host reads any over the error codes; cuSOLVER copies to "
    "the host and back by itself, so that this is the least",
    example="torch.linalg.eigh(torch.eye(2, device='cuda'))",
    approximate=True,
)(lambda call: replace(_checked(call), library=CUSOLVER))


@CostRule(
    id="singular-values",
    ops=("aten._linalg_svd",),
    source="ATen/native/cuda/linalg/BatchLinearAlgebraLib.cpp: convergence is read, then error codes; "
    "cuSOLVER copies by itself, so that this is the least",
    example="torch.linalg.svd(torch.eye(2, device='cuda'))",
    when=lambda call: call.argument("driver") is None,
    approximate=True,
)
def _singular_values(call: OperationCall) -> OpCost:
    matrix = call.inputs[0]
    if not matrix.numel():
        return FREE
    # Before the check, all error codes are copied to see whether the iteration converged.
    checked = _checked(call)
    convergence = ("d2h", CODE_BYTES * matrix.shape[:-2].numel())
    return replace(
        checked, waits=2, copies=(convergence, *checked.copies), library=CUSOLVER
    )
