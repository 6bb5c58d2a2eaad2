"""Operations that are one kernel of ATen, and those that are a known few."""

from __future__ import annotations

from simcuda.call import Call, Cost, nbytes
from simcuda.launches import elementwise
from simcuda.rules.registry import Rule

ONE = (
    *("_softmax", "_softmax_backward_data", "_log_softmax", "_log_softmax_backward_data"),
    *("nll_loss_forward", "native_layer_norm", "native_dropout", "native_dropout_backward"),
    *("tril", "triu", "tril_", "triu_", "flip", "roll", "lerp_", "where", "bucketize", "searchsorted"),
    *("upsample_nearest2d", "upsample_bilinear2d", "max_pool2d_with_indices", "avg_pool2d"),
    *("mse_loss_backward", "repeat", "isnan", "isposinf", "isneginf", "complex", "polar"),
)


def _one(call: Call) -> Cost:
    return Cost(max((elementwise(t.numel(), t.element_size()) for t in call.results()), default=0))


def _fill_then_kernel(call: Call) -> Cost:
    return Cost(2 if call.results()[0].numel() else 0)


def _loss(call: Call) -> Cost:
    tensor, reduced = call.args[0], call.argument("reduction", 1)
    if not reduced:
        return Cost(elementwise(tensor.numel(), tensor.element_size()))
    return Cost(2, workspaces=(nbytes(tensor),))


TOPIC = (
    Rule(
        id="one-kernel",
        ops=tuple(f"aten.{name}" for name in ONE),
        counts=_one,
        source="ATen/native/cuda: one kernel, the results the only allocations",
        example="x.softmax(0)",
    ),
    Rule(
        id="fill-then-kernel",
        ops=("aten.eye", "aten.constant_pad_nd", "aten.nll_loss_backward"),
        counts=_fill_then_kernel,
        source="ATen/native: a fill, then one kernel on a part",
        example="torch.eye(3, device='cuda')",
    ),
    Rule(
        id="elementwise-loss",
        ops=("aten.mse_loss", "aten.smooth_l1_loss", "aten.huber_loss"),
        counts=_loss,
        source="ATen/native/Loss.cpp: the elements' losses in a temporary, then a reduction",
        example="torch.nn.functional.mse_loss(x, x + 1)",
    ),
)
