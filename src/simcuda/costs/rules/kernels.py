"""Operations that are one kernel of ATen, and those that are a known few."""

from __future__ import annotations

import torch
from torch import Tensor

from simcuda.basis import in_aten, operations
from simcuda.costs.call import FREE, ONE_KERNEL, OpCost, OperationCall
from simcuda.costs.copies import contiguous, copied_within
from simcuda.costs.determinism import fills_memory
from simcuda.costs.launches import kernels_over
from simcuda.costs.reductions import Arithmetic, reduce_all
from simcuda.costs.rules.rule import HALF_BYTES, CostRule

POSITION_BYTES = 8
MEAN = 1
MOST_CHANNELS_OF_CUDNN = 1024
# What C++ makes of a number, whatever it is compared with.
TYPES_OF_NUMBERS = {
    bool: torch.bool,
    int: torch.int64,
    float: torch.float64,
    complex: torch.complex128,
}

ROUNDING: list[str] = operations("rounding")
UNFILLED_OPS = in_aten(operations("unfilled"))


def one_kernel(call: OperationCall) -> OpCost:
    """One kernel over the result, or over the largest of several results."""
    return OpCost(max(map(kernels_over, call.outputs), default=0))


def is_whole(tensor: Tensor) -> bool:
    """Return whether its elements are integers or truth values."""
    return not (tensor.is_floating_point() or tensor.is_complex())


@CostRule(
    id="gradient-of-binary-cross-entropy",
    ops=("aten.binary_cross_entropy_backward",),
    source="ATen/native/cuda/Loss.cu: one kernel; grad_input.mul_(weight); for a mean grad_input.div_",
    example="torch.ops.aten.binary_cross_entropy_backward(value, x, x)",
)
def _loss_backward(call: OperationCall) -> OpCost:
    """The gradient, then its product with the weights, then its division by how many there are."""
    follows = int(call.argument("weight") is not None) + int(
        call.argument("reduction", 1) == MEAN
    )
    return OpCost(kernels_over(call.result) * (1 + follows))


@CostRule(
    id="roll",
    ops=("aten.roll",),
    source="ATen/native/cuda/TensorTransformations.cu: self.contiguous(), then a kernel a dimension",
    example="x.view(2, 4).roll((1, 1), (0, 1))",
)
def _roll(call: OperationCall) -> OpCost:
    """A kernel for each dimension; what is rolled along one is kept until all are done."""
    tensor, result = call.first, call.result
    times = max(1, len(call.argument("dims", ())))
    between = OpCost(temporaries=(result.nbytes,) * (times - 1))
    return contiguous(tensor) + between + OpCost(times * kernels_over(result))


@CostRule(
    id="elementwise-loss",
    ops=("aten.mse_loss", "aten.smooth_l1_loss", "aten.huber_loss"),
    source="ATen/native/Loss.cpp: the elements' losses in a temporary, then a reduction",
    example="torch.nn.functional.mse_loss(x, x + 1)",
)
@CostRule(
    id="binary-cross-entropy",
    ops=("aten.binary_cross_entropy",),
    source="ATen/native/cuda/Loss.cu: the losses, their reduction, and a copy of it over the losses",
    example="torch.nn.functional.binary_cross_entropy(x, x)",
)
def _loss(call: OperationCall) -> OpCost:
    """The losses of the elements, weighted if they have weights, and their reduction if they are reduced."""
    tensor = call.first
    kernels = kernels_over(tensor) * (1 if call.argument("weight") is None else 2)
    # 0 means no reduction.
    if not call.argument("reduction", 1):
        return OpCost(kernels)
    size = tensor.element_size()
    if call.op.startswith("aten.binary_cross_entropy."):
        # Reduced into a tensor of its own, which is copied over the elements' losses.
        around = OpCost(copies=(("d2d", size),), workspaces=(size,))
    else:
        around = OpCost(workspaces=(tensor.nbytes,))
    if not tensor.numel():
        return around + ONE_KERNEL
    work = reduce_all(
        tensor.numel(), Arithmetic("sum", size, size == HALF_BYTES), call.profile
    )
    return around + OpCost(kernels + work.launches, workspaces=work.workspaces)


def number_on_device(number: complex) -> OpCost:
    """A number that C++ makes a tensor of on the device, unseen: a fill, and the bytes of its widest type."""
    return OpCost(1, temporaries=(TYPES_OF_NUMBERS[type(number)].itemsize,))


def _converted(tensor: Tensor, dtype: torch.dtype) -> OpCost:
    if tensor.dtype == dtype:
        return FREE
    return OpCost(kernels_over(tensor), temporaries=(tensor.numel() * dtype.itemsize,))


@CostRule(
    id="where",
    ops=("aten.where",),
    source="ATen/native/TensorCompare.cpp: scalar_tensor of a number on the device, seen on its own; "
    "host tensors and other types are converted; one kernel",
    example="torch.where(x > 0, x, 0.0)",
)
def _where(call: OperationCall) -> OpCost:
    """What is chosen from is converted to the result's type, and a host tensor is copied to the device."""
    result = call.result
    cost = one_kernel(call)
    for tensor, dtype in zip(
        call.inputs[:3], (torch.bool, result.dtype, result.dtype), strict=True
    ):
        if call.is_on_host(tensor):
            size = dtype.itemsize
            cost += OpCost(waits=1, copies=(("h2d", size),), temporaries=(size,))
        else:
            cost += _converted(tensor, dtype)
    return cost


@CostRule(
    id="search-by-order",
    ops=("aten.searchsorted", "aten.bucketize"),
    source="ATen/native/cuda/Bucketization.cu, BucketizationUtils.h: a number becomes a tensor on the "
    "device, contiguous memory of one type, one kernel; given positions are checked, by two reads",
    example="torch.searchsorted(y, x, sorter=index)",
)
def _search(call: OperationCall) -> OpCost:
    """A number is made a tensor; what is searched, and for what, becomes contiguous and of one type."""
    values, sorter = call.argument("self"), call.argument("sorter")
    order = call.argument("boundaries", call.argument("sorted_sequence"))
    common, cost = torch.result_type(order, values), one_kernel(call)
    if not isinstance(values, Tensor):
        cost += number_on_device(values)
        values = torch.empty((), dtype=TYPES_OF_NUMBERS[type(values)], device="meta")
    if not values.numel():
        return FREE
    for tensor in (values, order):
        cost += contiguous(tensor) + _converted(tensor, common)
    if sorter is None:
        return cost
    # The least and the largest position in the given order are read before anything is searched.
    ends = (("d2h", POSITION_BYTES),) * 2
    checks = OpCost(launches=1, waits=2, copies=ends, temporaries=(POSITION_BYTES,) * 2)
    return checks + cost + contiguous(sorter)


@CostRule(
    id="make-unfilled",
    ops=(*UNFILLED_OPS, "aten.set_"),
    source="ATen/native/cuda/TensorFactories.cu: an allocation only; where deterministic algorithms are "
    "asked for, fill_empty_deterministic_ of TensorFactories.h",
    example="torch.empty(4, device='cuda')",
    any_layout=True,
)
def _unfilled(call: OperationCall) -> OpCost:
    """Nothing, or a kernel that fills uninitialised memory."""
    is_filled = (
        fills_memory() and not call.op.startswith("aten.set_") and call.result.numel()
    )
    return ONE_KERNEL if is_filled else FREE


@CostRule(
    id="resize-in-place",
    ops=("aten.resize_",),
    source="ATen/native/cuda/Resize.cpp: memory that grows is copied; where deterministic algorithms are "
    "asked for, fill_resize_deterministic_ of ResizeCommon.h fills what is new, by way of an empty tensor",
    example="torch.ones(4, device='cuda').resize_(8)",
    any_layout=True,
)
def _resized(call: OperationCall) -> OpCost:
    tensor = call.first
    tag = call.storages.of(tensor)
    if (
        not fills_memory()
        or tag is None
        or tag.nbytes >= tensor.untyped_storage().nbytes()
    ):
        return FREE
    return OpCost(2, temporaries=(tensor.element_size(),))


CostRule(
    id="make-filled",
    ops=in_aten(operations("filled")),
    source="ATen/native/TensorFactories.cpp: empty, then one kernel that fills",
    example="torch.zeros(4, device='cuda')",
)(one_kernel)

CostRule(
    id="power-of-number",
    ops=("aten.pow.Scalar", "aten.pow.Scalar_out"),
    source="ATen/native/Pow.cpp: wrapped_scalar_tensor on the device, then one kernel; a fill for 1",
    example="2 ** x",
)(
    lambda call: (
        one_kernel(call) + (FREE if call.first == 1 else number_on_device(call.first))
    )
)


@CostRule(
    id="power-by-number",
    ops=("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Scalar_out"),
    source="ATen/native/Pow.cpp: base.to(common_dtype); out.copy_(base) for an exponent of 1",
    example="x ** 1",
)
def _power(call: OperationCall) -> OpCost:
    """A base of another type is converted; an exponent of 1 is a copy."""
    converted = _converted(call.first, call.result.dtype)
    is_copy = call.argument("exponent") == 1
    return converted + (
        copied_within(call.result, call.first) if is_copy else one_kernel(call)
    )


CostRule(
    id="conjugate-real",
    ops=("aten.conj_physical_",),
    source="ATen/native/UnaryOps.cpp, conj_physical_: nothing, but for complex numbers",
    example="x.conj_physical_()",
    when=lambda call: not call.first.is_complex(),
)(FREE)

CostRule(
    id="round-integers",
    ops=tuple(
        f"aten.{name}{end}" for name in (*ROUNDING, "nan_to_num") for end in ("", "_")
    ),
    source="ATen/native/UnaryOps.cpp: integers are copied; recorded on an H200",
    example="index.floor()",
    when=lambda call: is_whole(call.first),
)(lambda call: copied_within(call.result, call.first))

CostRule(
    id="real-of-complex",
    ops=("aten.abs", "aten.angle", "aten.linalg_vector_norm"),
    source="ATen/native/UnaryOps.cpp, unary_op_impl_with_complex_to_float_out: one kernel into complex "
    "numbers, whose real parts are copied; recorded on an H200. So is a norm of single numbers",
    example="torch.polar(x, x).abs()",
    when=lambda call: (
        call.first.is_complex()
        and not call.result.is_complex()
        and call.first.numel() == call.result.numel()
    ),
)(
    lambda call: (
        one_kernel(call)
        + copied_within(call.result, call.first.real.reshape(call.result.shape))
        + OpCost(workspaces=(call.first.nbytes,))
    )
)

CostRule(
    id="assertion",
    ops=("aten._assert_async",),
    source="ATen/native/cuda/TensorCompare.cu: the check runs on the device",
    example="torch._assert_async(value > -1)",
)(ONE_KERNEL)

CostRule(
    id="grid-sample-by-cudnn",
    ops=("aten.grid_sampler_2d",),
    source="ATen/native/GridSampler.cpp: cuDNN samples up to 1024 channels, if aligned, bilinear and "
    "padded with zeros",
    example="torch.nn.functional.grid_sample(x.view(1, 1, 2, 4), torch.zeros(1, 2, 2, 2).cuda(), "
    "align_corners=True)",
    when=lambda call: (
        tuple(call.args[2:5]) == (0, 0, True)
        and call.first.shape[1] <= MOST_CHANNELS_OF_CUDNN
    ),
    approximate=True,
)(one_kernel)

CostRule(
    id="draw-by-probability",
    ops=("aten.bernoulli", "aten.bernoulli_.Tensor"),
    source="ATen/native/cuda/DistributionTemplates.h, bernoulli_kernel: probabilities in single precision, "
    "or in double for doubles; recorded on an H200",
    example="torch.bernoulli(x.half())",
)(
    lambda call: (
        one_kernel(call)
        + _converted(
            call.argument("p", call.first),
            torch.float64 if call.result.dtype == torch.float64 else torch.float32,
        )
    )
)

CostRule(
    id="one-kernel",
    ops=in_aten(operations("one kernel")),
    source="ATen/native/cuda: one kernel; only the results are allocated",
    example="torch.tril(x[:4].view(2, 2))",
)(one_kernel)

CostRule(
    id="fill-then-kernel",
    ops=in_aten(operations("filled first")),
    source="ATen/native: a fill, then one kernel on a part; the gradients of reflections are contiguous",
    example="torch.eye(3, device='cuda')",
)(
    lambda call: (
        OpCost(2 if call.result.numel() else 0)
        + (contiguous(call.first) if "reflection" in call.op else FREE)
    )
)
