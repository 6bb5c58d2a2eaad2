"""Questions about whole tensors whose yes or no the host reads."""

from __future__ import annotations

import torch

from simcuda.call import Call, Cost
from simcuda.launches import elementwise
from simcuda.profile import Profile
from simcuda.reductions import arithmetic, reduce_all
from simcuda.rules.registry import Rule

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


def _allclose(call: Call) -> Cost:
    """``isclose`` is 13 operations; most of its memory is in use within the one that looks for infinities."""
    first, second = call.args[0], call.args[1]
    shape = torch.broadcast_shapes(first.shape, second.shape)  # type: ignore[no-untyped-call]  # not annotated
    elements = shape.numel()
    answer = read_all(elements, call.profile)
    temporaries: tuple[int, ...]
    if call.argument("rtol", 1e-5) == 0 and call.argument("atol", 1e-8) == 0:
        kernels, temporaries = 1, (elements,)
    else:
        floats = elements * first.element_size()
        # Equal or not, the error allowed, the error, its absolute value, and three truth values.
        kernels, temporaries = 13, (elements, floats, floats, floats, elements, elements, elements)
    kernels *= elementwise(elements, first.element_size())
    return Cost(kernels + answer.launches, 1, 0, answer.copies, (*temporaries, *answer.temporaries))


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
        id="allclose",
        ops=("aten.allclose",),
        counts=_allclose,
        source="ATen/native/TensorCompare.cpp: isclose, all, and one read",
        example="x.allclose(x)",
        approximate=True,
    ),
    Rule(
        id="check-linear-algebra",
        ops=("aten._linalg_check_errors",),
        counts=_error_codes,
        source="ATen/native/BatchLinearAlgebra.cpp: any over the error codes, and one read",
        example="torch.linalg.cholesky(torch.eye(2, device='cuda'))",
    ),
)
