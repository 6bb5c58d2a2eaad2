"""Sequences and segments whose lengths are checked on the host, or made there."""

from __future__ import annotations

from math import inf

import torch

from simcuda.costs.call import MEMORY, ONE_KERNEL, LibraryWork, OpCost, OperationCall
from simcuda.costs.copies import contiguous
from simcuda.costs.launches import kernels_over
from simcuda.costs.rules.kernels import one_kernel
from simcuda.costs.rules.reducing import reduce
from simcuda.costs.rules.rule import INDEX_BYTES, CostRule

SEGMENT_KERNELS = 4


def _lengths(call: OperationCall) -> OpCost:
    """Both lengths and where each target begins, copied to the device from host lists one after the other.

    Lengths that are device tensors are read first.
    """
    # The lists are copied one by one, each by a blocking copy.
    lengths = [call.argument(name) for name in ("input_lengths", "target_lengths")]
    size = (
        INDEX_BYTES
        * call.args[0 if call.op.startswith("aten._ctc_loss.") else 1].shape[1]
    )
    read = [
        n for n in lengths if isinstance(n, torch.Tensor) and not call.is_on_host(n)
    ]
    copies = (
        *(("d2h", n.nbytes) for n in read),
        *((("h2d", size),) * 3 if size else ()),
    )
    return OpCost(waits=len(copies), copies=copies, temporaries=(size,) * 3)


@CostRule(
    id="reduce-segments",
    ops=("aten.segment_reduce",),
    source="ATen/native/SegmentReduce.cpp: min and sum of the lengths are read; zeros, cat, cumsum and "
    "one kernel",
    example="torch.segment_reduce(x, 'sum', lengths=torch.tensor([3, 5]).cuda())",
    approximate=True,
)
def _reduce_segments(call: OperationCall) -> OpCost:
    """The least length and whether the lengths add up are read, unless they are trusted."""
    lengths = call.argument("lengths")
    if lengths is None or call.argument("unsafe", default=False):
        return OpCost(SEGMENT_KERNELS)
    # One truth value is copied, several are reduced.
    is_single = 0 < lengths.numel() == lengths.shape[-1]
    copies = (
        ("d2h", lengths.element_size()),
        *((("d2d", 1),) if is_single else ()),
        ("d2h", 1),
    )
    return OpCost(SEGMENT_KERNELS + 3, 2, copies, temporaries=(lengths.nbytes,))


@CostRule(
    id="pack-sequences",
    ops=("aten._pack_padded_sequence",),
    source="ATen/native/PackedSequence.cpp: lengths must be on the host; a copy for each run of steps",
    example="torch.nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 4).cuda(), [3, 1])",
    approximate=True,
    takes_host_tensors=True,
)
def _pack(call: OperationCall) -> OpCost:
    """The sequences, one after another, by a kernel at least; the sizes of the steps stay on the host.

    Raises:
        RuntimeError: The lengths are on the device, with CUDA's message.
    """
    lengths = call.argument("lengths")
    if not call.is_on_host(lengths):
        kind = lengths.type().split(".")[-1].removesuffix("Tensor")
        where = f"{lengths.dim()}D {lengths.device} {kind} tensor"
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {where}"
        )
    return OpCost(1)


CostRule(
    id="align-sequences",
    ops=("aten._ctc_loss",),
    source="ATen/native/cuda/LossCTC.cu: two at::tensor and one cuda() of host lists, then one kernel",
    example="torch.ops.aten._ctc_loss(torch.rand(5, 1, 3, device='cuda'), index[None, 1:], [5], [2])",
    takes_host_tensors=True,
)(lambda call: _lengths(call) + ONE_KERNEL)

# Filled twice, walked backward, then the probabilities of all labels; beside the likelihoods forward.
CostRule(
    id="gradient-of-alignment",
    ops=("aten._ctc_loss_backward",),
    source="ATen/native/cuda/LossCTC.cu: the lists are copied again",
    example="torch.nn.functional.ctc_loss(torch.rand(5, 1, 3, device='cuda').requires_grad_(), "
    "index[None, 1:], [5], [2]).backward()",
    approximate=True,
    takes_host_tensors=True,
)(
    lambda call: (
        _lengths(call) + OpCost(4, workspaces=(call.argument("log_alpha").nbytes,))
    )
)

CUDNN = LibraryWork(
    1, dict.fromkeys(("launches", "d2d", "d2d_bytes", *MEMORY), (0, inf))
)
"""Kernels, copies within the device and workspaces of cuDNN for a recurrent layer are its own choice.

Recorded on an H100: 4 kernels of an LSTM, and 18 and a copy where it has a projection.
"""

_CELL = "torch.ops.aten._thnn_fused_{}_cell({}, {}, torch.ones(1, 1, device='cuda'))"
_CELLS = {
    "lstm": "torch.ones(1, 4, device='cuda')",
    "gru": "torch.ones(1, 3, device='cuda')",
}


@CostRule(
    id="recurrent-layer",
    ops=("aten._cudnn_rnn",),
    source="ATen/native/cudnn/RNN.cpp: one call of cuDNN; time comes first, by a copy; weights that are not "
    "flat are copied to a buffer that is filled with zeros",
    example="torch.nn.LSTM(8, 2, device='cuda')(x[None])",
    approximate=True,
)
def _layer(call: OperationCall) -> OpCost:
    tensor, cost = call.first, OpCost(library=CUDNN)
    if call.argument("batch_first") and not call.argument("batch_sizes"):
        cost += contiguous(tensor.transpose(0, 1))
    if call.argument("weight_buf") is not None:
        return cost
    return cost + OpCost(
        1, copies=tuple(("d2d", weight.nbytes) for weight in call.argument("weight"))
    )


@CostRule(
    id="gradient-of-recurrent-layer",
    ops=("aten._cudnn_rnn_backward",),
    source="ATen/native/cudnn/RNN.cpp: two calls of cuDNN; zeros for gradients that are not there, and zeros "
    "to which those of the weights are added",
    example="torch.nn.LSTM(8, 2, device='cuda')(x[None])[0].sum().backward()",
    approximate=True,
)
def _layer_backward(call: OperationCall) -> OpCost:
    forward = [call.argument("output"), call.argument("hx"), call.argument("cx")]
    given = [call.argument(name) for name in ("grad_output", "grad_hy", "grad_cy")]
    cost = OpCost(int(bool(call.argument("output_mask")[3])), library=CUDNN)
    for tensor, gradient in zip(forward, given, strict=True):
        if tensor is not None and gradient is None:
            cost += OpCost(kernels_over(tensor), temporaries=(tensor.nbytes,))
    return cost


for _name, _example in _CELLS.items():
    CostRule(
        id=f"{_name}-cell",
        ops=(f"aten._thnn_fused_{_name}_cell",),
        source="ATen/native/cuda/RNN.cu: one kernel; what the backward pass needs is kept",
        example=_CELL.format(_name, _example, _example),
    )(one_kernel)


@CostRule(
    id="gradient-of-lstm-cell",
    ops=("aten._thnn_fused_lstm_cell_backward_impl",),
    source="ATen/native/cuda/RNN.cu: one kernel, and a sum of the gates' gradients for the bias",
    example="torch.nn.LSTMCell(8, 2, device='cuda')(x[None])[0].sum().backward()",
)
@CostRule(
    id="gradient-of-gru-cell",
    ops=("aten._thnn_fused_gru_cell_backward",),
    source="ATen/native/cuda/RNN.cu: one kernel, and a sum of the gates' gradients for each bias",
    example="torch.nn.GRUCell(8, 2, device='cuda')(x[None]).sum().backward()",
)
def _cell_backward(call: OperationCall) -> OpCost:
    cost = OpCost(int(call.result.numel() > 0))
    if not call.argument("has_bias"):
        return cost
    is_long = "lstm" in call.op
    gates = call.outputs[: 1 if is_long else 2]
    biases = call.outputs[2 if is_long else 3 :]
    sums = (
        reduce("sum", of, (0,), bias, call.profile)
        for of, bias in zip(gates, biases, strict=True)
    )
    return sum(sums, cost)
