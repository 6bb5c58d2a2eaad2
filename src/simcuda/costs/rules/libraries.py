"""Matrix products and convolutions: what ATen does itself, and how many kernels a library launches.

cuBLAS and cuDNN choose kernels by shapes, types and GPU. How many they are is known from recordings.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import inf

import torch

from simcuda.basis import in_aten, operations
from simcuda.costs.call import (
    ANYTHING,
    FREE,
    MEMORY,
    ONE_KERNEL,
    LibraryWork,
    OpCost,
    OperationCall,
)
from simcuda.costs.copies import contiguous, copied_within
from simcuda.costs.launches import kernels_over
from simcuda.costs.rules.kernels import one_kernel
from simcuda.costs.rules.reducing import reduce
from simcuda.costs.rules.rule import CostRule

PRODUCT = 1, 3
"""Kernels of a product: what is split along the inner dimension is added up by one more, as may a bias."""

CONVOLUTION = 1, 5
"""Kernels of a convolution: it may change layouts, transform its operands, and compute offsets."""

GRADIENT = 1, 4
"""Kernels of a convolution's gradient in one operand."""

GROUPING = (9, 10)
"""Compute capabilities with a kernel for groups of products."""
MOST_AT_ONCE = 3
FUSED_TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


@cache
def _cublas(calls: int) -> OpCost:
    least, most = PRODUCT
    return OpCost(
        library=LibraryWork(
            calls, {"launches": (0, calls * (most - least))}, is_cublas=True
        )
    )


def _cudnn(least: int, most: int, *, by_groups: bool) -> OpCost:
    """Return the work of cuDNN, with workspaces of unknown size; by groups ATen may do it."""
    slack = {"launches": (0.0, most - least), **dict.fromkeys(MEMORY, (0.0, inf))}
    if by_groups:
        slack["aten_launches"] = 0, inf
    return OpCost(library=LibraryWork(least, slack, is_convolution=True))


def _operand(tensor: torch.Tensor) -> OpCost:
    """Pass a matrix, or a batch of them, to cuBLAS: it is copied if no stride of it is 1."""
    if tensor.dim() == 1:
        return FREE if tensor.stride(0) else contiguous(tensor)
    (rows, columns), (down, across) = tensor.shape[-2:], tensor.stride()[-2:]
    fits = (down == 1 and across >= max(1, rows)) or (
        across == 1 and down >= max(1, columns)
    )
    return FREE if fits else contiguous(tensor)


@CostRule(
    id="matrix-product",
    ops=in_aten(operations("of cuBLAS")),
    source="ATen/native/cuda/Blas.cpp: cuBLAS leaves its scalars and results on the device; recorded on "
    "V100, A100, H100 and B300: 1 to 3 kernels; ATen/cuda/CublasHandlePool.cpp: a workspace for each "
    "handle and stream, kept for ever",
    example="torch.mm(x.view(2, 4), x.view(4, 2))",
    approximate=True,
)
def _product(call: OperationCall) -> OpCost:
    """A product, perhaps added to another tensor, which is copied into the result first."""
    result, is_sum = call.result, "beta" in call.names
    added = call.argument(call.names[0]) if is_sum else None
    operands = [call.argument(name) for name in call.names[is_sum : 2 + is_sum]]
    if not result.numel():
        return FREE
    # A sum of products goes from one to the next.
    calls = operands[0].shape[0] if call.op.startswith("aten.addbmm") else 1
    if operands[0].numel():
        cost = _cublas(calls) + _operand(operands[0]) + _operand(operands[1])
    elif result.dim():
        # There is nothing to add up.
        cost = ONE_KERNEL
    else:
        # Recorded on an H100: cuBLAS copies a 0 from the host.
        cost = OpCost(copies=(("h2d", result.nbytes),))
    if added is None or added is result or not call.argument("beta", 1):
        return cost
    # cuBLASLt adds a row to a product, whose matrices have more than one row and column.
    sizes = [size for operand in operands for size in operand.shape]
    is_row = added.dim() == 1 and added.is_contiguous() and added.shape[0] == sizes[-1]
    is_plain = call.argument("beta", 1) == 1 and added.dtype in FUSED_TYPES
    if is_row and is_plain and "addmm" in call.op and min(sizes) > 1:
        return cost
    if "activation" in call.op:
        cost += OpCost(kernels_over(result))
    return cost + copied_within(result, added)


@CostRule(
    id="convolution",
    ops=in_aten(operations("of cuDNN")),
    source="ATen/native/Convolution.cpp: cuDNN, then output.add_(reshape_bias(bias)); recorded on V100: "
    "1 to 5 kernels of cuDNN; the size of its workspace is unknown",
    example="torch.conv2d(x.view(1, 2, 2, 2), torch.rand(3, 2, 1, 1, device='cuda'), y)",
    approximate=True,
)
def _convolution(call: OperationCall) -> OpCost:
    """The bias is added by ATen, but within the kernel for single channels; one by groups may be ATen's."""
    result, weight, groups = call.result, call.args[1], call.argument("groups", 1)
    if not result.numel():
        return FREE
    is_depthwise = (
        not call.argument("transposed", default=False)
        and 1 < groups == call.first.shape[1]
        and not weight.shape[0] % groups
    )
    added = call.argument("bias") is not None and not is_depthwise
    return _cudnn(*CONVOLUTION, by_groups=groups > 1) + OpCost(
        kernels_over(result) if added else 0
    )


@CostRule(
    id="gradient-of-convolution",
    ops=("aten.convolution_backward",),
    source="ATen/native/Convolution.cpp: cuDNN, then grad_output.sum for the bias; recorded on V100: 1 "
    "to 4 kernels of cuDNN for input and weight each",
    example="torch.conv1d(x.view(1, 2, 4), torch.rand(3, 2, 1, device='cuda'), y.requires_grad_()).sum()"
    ".backward()",
    approximate=True,
)
def _convolution_gradients(call: OperationCall) -> OpCost:
    """The gradients of the input and of the weight; the gradient of the bias is a sum by ATen."""
    gradient, (*wanted, of_bias) = call.first, call.argument("output_mask")
    cost = FREE
    if gradient.numel() and any(wanted):
        cost = _cudnn(
            *(sum(wanted) * each for each in GRADIENT),
            by_groups=call.argument("groups", 1) > 1,
        )
    if not of_bias:
        return cost
    others = (0, *range(2, gradient.dim()))
    return cost + reduce("sum", gradient, others, call.outputs[-1], call.profile)


ATTENTION = ANYTHING | {
    "launches": (0, inf),
    "aten_launches": (1, inf),
    "allocations": (1, inf),
}

CostRule(
    id="attention",
    ops=("aten._scaled_dot_product_flash_attention_for_cpu",),
    source="ATen/native/transformers/cuda/attention.cu: one kernel at least, which may leave out logsumexp",
    example="torch.nn.functional.scaled_dot_product_attention(*[x.view(1, 1, 2, 4)] * 3)",
    approximate=True,
)(lambda call: replace(one_kernel(call), library=LibraryWork(0, ATTENTION)))


@CostRule(
    id="fourier-to-real",
    ops=("aten._fft_c2r",),
    source="ATen/native/cuda/SpectralOps.cpp: cuFFT overwrites what it is given: a clone without gaps, "
    "unless other dimensions are transformed before, as of more than 3 and of the first two",
    example="torch.fft.irfft(torch.fft.rfft(x))",
    approximate=True,
)
def _to_real(call: OperationCall) -> OpCost:
    tensor, dims = call.first, list(call.argument("dim"))
    cost = OpCost(library=LibraryWork(1, ANYTHING))
    if len(dims) > MOST_AT_ONCE or dims[:2] == [0, 1]:
        return cost
    # Its layout is all that matters.
    return cost + copied_within(
        torch.empty(tensor.shape, dtype=tensor.dtype, device="meta"), tensor
    )


@CostRule(
    id="grouped-product",
    ops=("aten._grouped_mm",),
    source="ATen/native/cuda/GroupedBlas.cpp: on compute capability 9 and 10, GroupMM.cu for bfloat16, "
    "one kernel for the arguments and one of CUTLASS; ATen/native/GroupedMMUtils.h: else offs.cpu(), and "
    "a product for each group",
    example="torch._grouped_mm(*(torch.ones(size, dtype=torch.bfloat16, device='cuda') for size in "
    "((16, 8), (2, 8, 8))), offs=torch.tensor([8, 16], dtype=torch.int32, device='cuda'))",
    approximate=True,
)
def _grouped_product(call: OperationCall) -> OpCost:
    """A product for each group: one kernel of CUTLASS on bfloat16, else the host reads where groups end."""
    first, second, offsets = call.first, call.args[1], call.argument("offs")
    is_bfloat16 = {first.dtype, second.dtype, call.result.dtype} == {torch.bfloat16}
    if call.profile.capability[0] in GROUPING and is_bfloat16:
        # One for the arguments, in memory of their own, and one of CUTLASS.
        library = LibraryWork(1, dict.fromkeys(MEMORY, (0.0, inf)))
        return OpCost(1, workspaces=(first.element_size(),), library=library)
    if offsets is None:
        return _cublas(1)
    sizes = offsets.diff(prepend=offsets.new_zeros(1))
    products = int(sizes.count_nonzero())
    # Without anything to add up, a result is filled; without rows or columns, there is none.
    filled = len(sizes) - products if first.dim() == second.dim() == 2 else 0
    read = OpCost(filled, 1, (("d2h", offsets.nbytes),))
    return read + _cublas(products) if products else read
