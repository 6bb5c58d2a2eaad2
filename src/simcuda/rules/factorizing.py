"""Linear algebra by cuSOLVER and cuBLAS: whether the host waits is known, kernels and workspaces are not.

For batches PyTorch chooses between libraries by size, and some of those wait: where that can happen, only
single matrices are covered. What has no rule here is reported as unknown.
"""

from __future__ import annotations

from dataclasses import replace

from simcuda.call import FREE, Call, Cost
from simcuda.rules.registry import Rule

_UNCHECKED = (
    *("linalg_inv_ex", "_linalg_solve_ex", "linalg_lu_factor_ex", "linalg_lu", "linalg_lu_solve"),
    *("_linalg_det", "_linalg_slogdet", "linalg_qr", "linalg_householder_product", "cholesky_solve"),
)
_UNCHECKED_IN_BATCHES = ("linalg_cholesky_ex", "linalg_solve_triangular", "triangular_solve")

CODE_BYTES = 4


def _is_single(call: Call) -> bool:
    return bool(call.inputs[0].dim() == 2)


def _one_kernel_at_least(call: Call) -> Cost:
    return Cost(launches=1 if any(tensor.numel() for tensor in call.inputs) else 0)


def _checked(call: Call) -> Cost:
    if not call.inputs[0].numel():
        return FREE
    # A single error code is converted by a kernel, the truth value copied, then read.
    return Cost(launches=2, waits=1, copies=(("d2d", 1), ("d2h", 1)), temporaries=(CODE_BYTES, 1, 1))


def _singular_values(call: Call) -> Cost:
    checked = _checked(call)
    if checked is FREE:
        return FREE
    # Before that, all error codes are copied to see whether the iteration converged.
    return replace(checked, waits=2, copies=(("d2h", CODE_BYTES), *checked.copies))


def _cross(call: Call) -> Cost:
    return Cost(launches=1 if call.outputs[0].numel() else 0)


TOPIC = (
    Rule(
        id="factorize-unchecked",
        ops=tuple(f"aten.{name}" for name in _UNCHECKED),
        counts=_one_kernel_at_least,
        source="ATen/native/cuda/linalg/BatchLinearAlgebra.cpp: error codes stay on the device",
        example="torch.linalg.inv_ex(torch.eye(2, device='cuda'))",
        when=_is_single,
        approximate=True,
    ),
    Rule(
        id="factorize-unchecked-batches",
        ops=tuple(f"aten.{name}" for name in _UNCHECKED_IN_BATCHES),
        counts=_one_kernel_at_least,
        source="ATen/native/cuda/linalg/BatchLinearAlgebra.cpp: error codes stay on the device",
        example="torch.linalg.cholesky_ex(torch.eye(2, device='cuda'))",
        approximate=True,
    ),
    Rule(
        id="factorize-checked",
        ops=("aten._linalg_eigh", "aten.cholesky", "aten.cholesky_inverse"),
        counts=_checked,
        source="ATen/native/BatchLinearAlgebra.cpp: the error codes are read",
        example="torch.linalg.eigh(torch.eye(2, device='cuda'))",
        approximate=True,
    ),
    Rule(
        id="singular-values",
        ops=("aten._linalg_svd",),
        counts=_singular_values,
        source="ATen/native/cuda/linalg/BatchLinearAlgebraLib.cpp: convergence is read, then error codes",
        example="torch.linalg.svd(torch.eye(2, device='cuda'))",
        when=lambda call: _is_single(call) and call.argument("driver") is None,
        approximate=True,
    ),
    Rule(
        id="cross-product",
        ops=("aten.linalg_cross",),
        counts=_cross,
        source="ATen/native/cuda/CrossKernel.cu: one kernel",
        example="torch.linalg.cross(torch.ones(3, device='cuda'), torch.ones(3, device='cuda'))",
    ),
)
