"""Sequences and segments whose lengths are checked on the host, or made there."""

from __future__ import annotations

import torch

from simcuda.cost.call import ONE_KERNEL, OpCost, OperationCall
from simcuda.cost.reductions import Arithmetic, reduce_all
from simcuda.cost.rules.rule import INDEX_BYTES, CostRule

SEGMENT_KERNELS = 4


def _lengths(call: OperationCall) -> OpCost:
    """Both lengths and where each target begins, copied to the device from host lists one after the other.

    Lengths that are device tensors are read first.
    """
    # The lists are copied one by one, each by a blocking copy.
    lengths = [call.argument(name) for name in ("input_lengths", "target_lengths")]
    size = INDEX_BYTES * call.args[0 if call.op.startswith("aten._ctc_loss.") else 1].shape[1]
    read = [n for n in lengths if isinstance(n, torch.Tensor) and not call.is_on_host(n)]
    copies = (*(("d2h", n.nbytes) for n in read), *((("h2d", size),) * 3 if size else ()))
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
        return OpCost(SEGMENT_KERNELS if lengths is not None else 1)
    # No length may be negative.
    least = reduce_all(lengths.numel(), Arithmetic("extremum", INDEX_BYTES), call.profile)
    sums = lengths.numel() // max(lengths.shape[-1], 1)
    # One truth value is copied, several are reduced.
    copied = (("d2d", 1),) if sums == 1 else ()
    kernels = least.launches + 2 + (1 - len(copied))
    copies = (("d2h", lengths.element_size()), *copied, ("d2h", 1))
    offsets = (lengths.numel() + sums) * lengths.element_size()
    return OpCost(
        SEGMENT_KERNELS + kernels, 2, copies, temporaries=(offsets,), passing=(lengths.element_size(),)
    )


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
        where = (
            f"{lengths.dim()}D {lengths.device} {lengths.type().split('.')[-1].removesuffix('Tensor')} tensor"
        )
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {where}")
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
)(lambda call: _lengths(call) + OpCost(4, workspaces=(call.argument("log_alpha").nbytes,)))
