"""Questions about whole tensors whose yes or no the host reads."""

from __future__ import annotations

import torch

from simcuda.cost.call import Call, Cost
from simcuda.cost.launches import elementwise
from simcuda.cost.reductions import arithmetic, reduce_all
from simcuda.cost.rules.registry import Rule
from simcuda.profile import Profile

TRUTH_BYTES = 1
ANSWER = ("d2h", TRUTH_BYTES)


def read_all(elements: int, profile: Profile) -> Cost:
    """Whether all, or any, of that many truth values hold, and the wait for the answer."""
    if elements == 1:
        return Cost(waits=1, copies=(("d2d", TRUTH_BYTES), ANSWER), temporaries=(TRUTH_BYTES,))
    work = reduce_all(elements, arithmetic("logical", TRUTH_BYTES), profile)
    launches = work.launches if elements else 1
    return Cost(launches, 1, 0, (ANSWER,), (TRUTH_BYTES, *work.workspaces))


def _equal(call: Call) -> Cost:
    first, second = call.args[0], call.args[1]
    if first.shape != second.shape or not first.numel() or _is_same_memory(first, second):
        return Cost()
    answer = read_all(first.numel(), call.profile)
    compared = elementwise(first.numel(), first.element_size())
    temporaries = (first.numel() * TRUTH_BYTES, *answer.temporaries)
    return Cost(compared + answer.launches, 1, 0, answer.copies, temporaries)


def _is_same_memory(first: torch.Tensor, second: torch.Tensor) -> bool:
    return first.data_ptr() == second.data_ptr() and first.stride() == second.stride()


def _error_codes(call: Call) -> Cost:
    codes = call.argument("info")
    if codes.numel() == 1:
        # A single code is converted by a kernel, and the truth value copied into the result.
        copies = (("d2d", TRUTH_BYTES), ANSWER)
        return Cost(launches=1, waits=1, copies=copies, temporaries=(TRUTH_BYTES, TRUTH_BYTES))
    return read_all(codes.numel(), call.profile)


TOPIC = (
    Rule(
        id="equal",
        ops=("aten.equal",),
        counts=_equal,
        source="ATen/native/cuda/Equal.cpp: eq, all, and one read, unless both are the same memory",
        example="x.equal(x + 1)",
    ),
    Rule(
        id="check-linear-algebra",
        ops=("aten._linalg_check_errors",),
        counts=_error_codes,
        source="ATen/native/BatchLinearAlgebra.cpp: any over the error codes, and one read",
        example="torch.linalg.cholesky(torch.eye(2, device='cuda'))",
    ),
)
