"""What the host reads: single values, and answers about whole tensors, such as whether two are equal."""

from __future__ import annotations

from simcuda.cost.call import FREE, OpCost, OperationCall
from simcuda.cost.launches import kernels_over
from simcuda.cost.reductions import arithmetic, reduce_all
from simcuda.cost.rules.rule import CostRule
from simcuda.profile import Profile

BOOL_BYTES = 1
COPY_OF_ANSWER = ("d2h", BOOL_BYTES)


def read_all_or_any(elements: int, profile: Profile) -> OpCost:
    """The cost of reducing booleans with all or any, and of waiting for the answer.

    Args:
        elements: Number of booleans.
        profile: The kind of device.
    """
    if elements == 1:
        # There is nothing to reduce: the value is copied into the result.
        return OpCost(waits=1, copies=(("d2d", BOOL_BYTES), COPY_OF_ANSWER), temporaries=(BOOL_BYTES,))
    work = reduce_all(elements, arithmetic("logical", BOOL_BYTES), profile)
    # Without elements, as for an empty batch of matrices, a kernel fills in the answer.
    launches = work.launches if elements else 1
    temporaries = (BOOL_BYTES, *work.workspaces)
    return OpCost(launches=launches, waits=1, copies=(COPY_OF_ANSWER,), temporaries=temporaries)


def check_error_codes(codes: int, profile: Profile) -> OpCost:
    """The cost of asking whether any error code is not 0; a kernel converts a single code first."""
    conversion = OpCost(launches=1, temporaries=(BOOL_BYTES,)) if codes == 1 else FREE
    return conversion + read_all_or_any(codes, profile)


def _equal(call: OperationCall) -> OpCost:
    first, second = call.args[0], call.args[1]
    if first.shape != second.shape or not first.numel():
        return FREE
    # ATen first checks whether both are the same memory.
    if first.data_ptr() == second.data_ptr() and first.stride() == second.stride():
        return FREE
    comparison = OpCost(launches=kernels_over(first), temporaries=(first.numel() * BOOL_BYTES,))
    return comparison + read_all_or_any(first.numel(), call.profile)


TOPIC = (
    CostRule(
        id="read-one-value",
        ops=("aten._local_scalar_dense",),
        counts=lambda call: OpCost(waits=1, copies=(("d2h", call.args[0].element_size()),)),
        source="ATen/native/cuda/CUDAScalar.cu: a copy into pinned memory, then a wait for the stream",
        example="x[0].item()",
    ),
    CostRule(
        id="equal",
        ops=("aten.equal",),
        counts=_equal,
        source="ATen/native/cuda/Equal.cpp: eq, all, and one read, unless both are the same memory",
        example="x.equal(x + 1)",
    ),
    CostRule(
        id="check-linear-algebra",
        ops=("aten._linalg_check_errors",),
        counts=lambda call: check_error_codes(call.argument("info").numel(), call.profile),
        source="ATen/native/BatchLinearAlgebra.cpp: any over the error codes, which the host reads",
        example="torch.linalg.cholesky(torch.eye(2, device='cuda'))",
    ),
)
