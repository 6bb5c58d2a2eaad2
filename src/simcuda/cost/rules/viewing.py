"""Views: looking at memory otherwise, and writing into the part of it that is looked at."""

from __future__ import annotations

from collections.abc import Callable

import torch

from simcuda.cost.call import FREE, Call, Cost, nbytes
from simcuda.cost.copies import same_bytes
from simcuda.cost.launches import elementwise
from simcuda.cost.rules.registry import Rule

IN_PLACE = ("squeeze_", "unsqueeze_", "transpose_", "t_", "as_strided_", "detach_")
OTHERWISE_UNSEEN = (
    *("_unsafe_view", "unsafe_split", "unsafe_split_with_sizes", "resize_as_", "record_stream"),
    *("is_same_size", "is_set_to", "is_pinned", "_assert_tensor_metadata"),
)
REARRANGED = ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle")

View = Callable[[Call, torch.Tensor], torch.Tensor]


def _select(call: Call, whole: torch.Tensor) -> torch.Tensor:
    return whole.select(call.argument("dim"), call.argument("index"))


def _slice(call: Call, whole: torch.Tensor) -> torch.Tensor:
    start, end = call.argument("start"), call.argument("end")
    dim, step = call.argument("dim", 0), call.argument("step", 1)
    return torch.ops.aten.slice.Tensor(whole, dim, start, end, step)  # type: ignore[no-any-return]


def _diagonal(call: Call, whole: torch.Tensor) -> torch.Tensor:
    return whole.diagonal(call.argument("offset", 0), call.argument("dim1", 0), call.argument("dim2", 1))


def _as_strided(call: Call, whole: torch.Tensor) -> torch.Tensor:
    return whole.as_strided(call.argument("size"), call.argument("stride"), call.argument("storage_offset"))


VIEWS: dict[str, View] = {
    "select": _select,
    "slice": _slice,
    "diagonal": _diagonal,
    "as_strided": _as_strided,
}


def copied(to: torch.Tensor, source: torch.Tensor) -> Cost:
    """A copy within a device: bytes where both are laid out alike, else a kernel."""
    if not to.numel():
        return FREE
    if same_bytes(to, source):
        return Cost(copies=(("d2d", nbytes(to)),))
    return Cost(launches=elementwise(to.numel(), to.element_size()))


def _view_of(call: Call) -> torch.Tensor:
    name = call.op.split(".")[1].removesuffix("_backward").removesuffix("_scatter")
    return VIEWS[name](call, call.outputs[0])


def _scatter(call: Call) -> Cost:
    whole = copied(call.outputs[0], call.args[0])
    part = copied(_view_of(call), call.args[1])
    return Cost(whole.launches + part.launches, copies=(*whole.copies, *part.copies))


def _backward(call: Call) -> Cost:
    result = call.outputs[0]
    part = copied(_view_of(call), call.args[0])
    return Cost(elementwise(result.numel(), result.element_size()) + part.launches, copies=part.copies)


def _rearrange(call: Call) -> Cost:
    result = call.outputs[0]
    return Cost(launches=elementwise(result.numel(), result.element_size()))


TOPIC = (
    Rule(
        id="look-otherwise",
        ops=tuple(f"aten.{name}" for name in (*IN_PLACE, *OTHERWISE_UNSEEN)),
        counts=FREE,
        source="ATen/native/TensorShape.cpp: sizes and strides alone change",
        example="x.unsqueeze_(0)",
    ),
    Rule(
        id="gradient-of-view",
        ops=tuple(f"aten.{name}_backward" for name in VIEWS if name != "as_strided"),
        counts=_backward,
        source="ATen/native/TensorShape.cpp: zeros, then a copy into the part that was looked at",
        example="torch.ops.aten.select_backward(y[0], [3], 0, 1)",
    ),
    Rule(
        id="write-into-view",
        ops=tuple(f"aten.{name}_scatter" for name in VIEWS),
        counts=_scatter,
        source="ATen/native/TensorShape.cpp: a clone, then a copy into the part that is looked at",
        example="x.slice_scatter(y, 0, 0, 3)",
    ),
    Rule(
        id="rearrange",
        ops=tuple(f"aten.{name}" for name in REARRANGED),
        counts=_rearrange,
        source="ATen/native/PixelShuffle.cpp: a permuted view, made contiguous by one kernel",
        example="torch.pixel_shuffle(torch.rand(1, 4, 2, 2, device='cuda'), 2)",
    ),
)
