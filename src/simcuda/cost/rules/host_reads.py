"""What the host reads: single values, and answers about whole tensors, such as whether two are equal."""

from __future__ import annotations

from simcuda.cost.call import FREE, OpCost, OperationCall
from simcuda.cost.launches import kernels_over
from simcuda.cost.reductions import arithmetic, reduce_all
from simcuda.cost.rules.rule import CostRule
from simcuda.profile import Profile

TRUTH_BYTES = 1
ANSWER = ("d2h", TRUTH_BYTES)


def read_all(elements: int, profile: Profile) -> OpCost:
    """Whether all, or any, of that many truth values hold, and the wait for the answer.

    Args:
        elements: How many truth values there are.
        profile: The kind of device.
    """
    if elements == 1:
        # There is nothing to reduce: the value is copied into the result.
        return OpCost(waits=1, copies=(("d2d", TRUTH_BYTES), ANSWER), temporaries=(TRUTH_BYTES,))
    work = reduce_all(elements, arithmetic("logical", TRUTH_BYTES), profile)
    launches = work.launches if elements else 1
    return OpCost(launches, waits=1, copies=(ANSWER,), temporaries=(TRUTH_BYTES, *work.workspaces))


def check_error_codes(codes: int, profile: Profile) -> OpCost:
    """Whether any of that many error codes is not 0; a single code is converted by a kernel first."""
    converted = OpCost(launches=1, temporaries=(TRUTH_BYTES,)) if codes == 1 else FREE
    return converted + read_all(codes, profile)


def _equal(call: OperationCall) -> OpCost:
    first, second = call.args[0], call.args[1]
    if first.shape != second.shape or not first.numel():
        return FREE
    # ATen asks for the same memory before it compares anything.
    if first.data_ptr() == second.data_ptr() and first.stride() == second.stride():
        return FREE
    comparison = OpCost(kernels_over(first), temporaries=(first.numel() * TRUTH_BYTES,))
    return comparison + read_all(first.numel(), call.profile)


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
