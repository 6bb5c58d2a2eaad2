"""Operations on lists of tensors, which CUDA walks side by side in few kernels."""

from __future__ import annotations

from torch import Tensor

from simcuda.basis import operations
from simcuda.costs.call import FREE, OpCost, OperationCall
from simcuda.costs.copies import copied_within, same_bytes
from simcuda.costs.launches import foreach_norm, kernels_over, multi_tensor
from simcuda.costs.rules.kernels import ROUNDING, is_whole
from simcuda.costs.rules.reducing import reduce
from simcuda.costs.rules.rule import CostRule

FAST_NORMS = (1.0, 2.0, float("inf"))
OF_INTEGERS: list[str] = operations("lists of integers")
STATE_STEPS = "state_steps"
SINGLE_BYTES = 4


def _lists(call: OperationCall) -> list[list[Tensor]]:
    # The step counts are passed beside the lists that a kernel walks.
    values = (call.argument(name) for name in call.names if name != STATE_STEPS)
    lists = [value for value in values if isinstance(value, list | tuple)]
    return [list(each) for each in lists if each and isinstance(each[0], Tensor)]


def _walks_side_by_side(lists: list[list[Tensor]]) -> bool:
    """Return whether one kernel may walk all lists.

    Their tensors have one type; those at one place have the same shape, and lie alike in memory.
    """
    first = lists[0]
    shapes = [tensor.shape for tensor in first]
    types = {tensor.dtype for tensors in lists for tensor in tensors}
    if len(types) > 1 or any(
        [tensor.shape for tensor in tensors] != shapes for tensors in lists
    ):
        return False
    for place in zip(*lists, strict=True):
        # Contiguous in the lists' own order, or dense in another one that all of them share.
        is_dense = all(tensor.is_contiguous() for tensor in place)
        if not (is_dense or all(same_bytes(each, place[0]) for each in place)):
            return False
    return True


def _without_factors(op: str, lists: list[list[Tensor]]) -> list[list[Tensor]]:
    """Return the lists whose shapes count: of factors without dimensions, one is read for each tensor."""
    # A divisor is not such a factor.
    places = (1, 2) if "addcmul" in op else (1,)
    for place in places if "_addc" in op and op.endswith(".Scalar") else ():
        if not any(
            tensor.dim() or tensor.dtype != lists[0][0].dtype for tensor in lists[place]
        ):
            return lists[:place] + lists[place + 1 :]
    return lists


@CostRule(
    id="foreach",
    ops=tuple(
        f"aten._{name}*"
        for name in ("foreach_", "fused_adam", "fused_sgd", "fused_adagrad")
    ),
    source="ATen/native/cuda/MultiTensorApply.cuh: chunks of 65536 elements; tensor by tensor where "
    "types or strides differ, where the results have another type, and mostly for integers; "
    "ForeachPointwiseOp.cu: a factor of addcmul or addcdiv may have no dimensions (pytorch#172731)",
    example="torch._foreach_add_([x, x], 1.0)",
)
@CostRule(
    id="unscale",
    ops=("aten._amp_foreach_non_finite_check_and_unscale_",),
    source="ATen/native/cuda/AmpKernels.cu: one walk over dense gradients of one type",
    example="torch._amp_foreach_non_finite_check_and_unscale_([x, x], value, value)",
)
def _multi_tensor(call: OperationCall) -> OpCost:
    lists, results = _lists(call), call.outputs
    if not lists:
        return FREE
    makes_results = bool(results) and not any(
        results[0] is tensor for tensor in lists[0]
    )
    first = lists[0][0]
    # The fast path has one type for arguments and results.
    is_promoted = makes_results and results[0].dtype != first.dtype
    name = call.op.split(".")[1].removeprefix("_foreach_").removesuffix("_")
    if is_whole(first) and name in ROUNDING:
        return sum(map(copied_within, results, lists[0]), FREE)
    is_slow = is_promoted or (is_whole(first) and name not in OF_INTEGERS)
    if is_slow or not _walks_side_by_side(_without_factors(call.op, lists)):
        return OpCost(sum(map(kernels_over, lists[0])))
    elements = tuple([tensor.numel() for tensor in lists[0]])
    scalars = isinstance(call.argument("scalars"), list | tuple | Tensor)
    depth = len(lists) + int(makes_results)
    return OpCost(
        multi_tensor(elements, call.profile.multi_tensor, depth=depth, scalars=scalars)
    )


@CostRule(
    id="foreach-copy",
    ops=("aten._foreach_copy_",),
    source="ATen/native/cuda/ForeachBinaryOpList.cu: one walk over both lists; copy_ where they differ",
    example="torch._foreach_copy_([x, x], [x, x])",
)
def _copy(call: OperationCall) -> OpCost:
    """Side by side where the lists are laid out alike, even of two types; else one copy for each tensor."""
    to, source = call.args[:2]
    alike = all(
        a.shape == b.shape and a.stride() == b.stride()
        for a, b in zip(to, source, strict=True)
    )
    one_type = all(
        len({tensor.dtype for tensor in tensors}) == 1 for tensors in (to, source)
    )
    if alike and one_type:
        return OpCost(
            multi_tensor(
                tuple([t.numel() for t in to]), call.profile.multi_tensor, depth=2
            )
        )
    return sum(
        (copied_within(a, b.expand_as(a)) for a, b in zip(to, source, strict=True)),
        FREE,
    )


@CostRule(
    id="foreach-norm",
    ops=("aten._foreach_norm", "aten._foreach_max"),
    source="ATen/native/cuda/ForeachReduceOp.cu: a buffer of partial results is filled, written and reduced",
    example="torch._foreach_norm([x, x])",
)
def _norm(call: OperationCall) -> OpCost:
    tensors, results = _lists(call)[0], call.outputs
    family = "extremum" if "max" in call.op else "norm"
    is_fast = family == "extremum" or (
        tensors[0].is_floating_point() and float(call.argument("ord", 2)) in FAST_NORMS
    )
    if not (is_fast and _walks_side_by_side([tensors])):
        costs = [
            reduce(family, tensor, tuple(range(tensor.dim())), result, call.profile)
            for tensor, result in zip(tensors, results, strict=True)
        ]
        # One after another: only the largest workspaces show in the peak.
        workspaces = max((cost.workspaces for cost in costs), key=sum, default=())
        return OpCost(sum(cost.launches for cost in costs), workspaces=workspaces)
    accumulator = tensors[0].element_size()
    if family == "norm":
        accumulator = max(accumulator, SINGLE_BYTES)
    elements = [tensor.numel() for tensor in tensors]
    return foreach_norm(
        elements,
        call.profile.multi_tensor,
        accumulator_bytes=accumulator,
        result_bytes=results[0].element_size(),
    )
