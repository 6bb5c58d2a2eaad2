"""Stand-ins for operations that the host lacks, or that it computes in a narrower type than CUDA."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from simcuda.costs.rules.rule import HALVES
from simcuda.device.dispatch_key import recording_gradients

# ATen/native/transformers/cuda/attention.cu: rows of ``logsumexp`` are aligned for the backward pass.
_ALIGNED = 32
_FROM_TOP_LEFT, _FROM_BOTTOM_RIGHT = (
    1,
    2,
)  # sdp::CustomMaskType; flash_attn/mask.h has the second alone


@dataclass(frozen=True)
class StandIn:
    """Stands for an operation in the dispatcher; what it does not have is that operation's own."""

    operation: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.operation, name)

    def __str__(self) -> str:
        return str(self.operation)

    def named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments of a call by their names."""
        names = [argument.name for argument in self.operation._schema.arguments]
        return {**dict(zip(names, args, strict=False)), **kwargs}


@dataclass(frozen=True)
class HostAttention(StandIn):
    """Attention over sequences of many lengths, as jagged tensors use it.

    The values are computed sequence by sequence in single precision, in which CUDA's kernels add up.
    """

    def _op(self, *args: Any, **kwargs: Any) -> Any:
        given = self.named(args, kwargs)
        starts: list[Any] = [
            given.get(f"cum_seq_{side}", given.get(f"cu_seqlens_{side}"))
            for side in "qk"
        ]
        is_flash = "is_causal" in given
        dropout = given["dropout_p"]
        # Without sequences, with a bias, with fewer heads of keys or with a window, the host has nothing.
        is_plain = (
            starts[0] is not None
            and given.get("bias") is None
            and not set(kwargs) - {"scale"}
        )
        if not is_plain or given["query"].shape[-2] != given["key"].shape[-2]:
            return self.operation._op(*args, **kwargs)
        given["starts"] = [each.tolist() for each in starts]
        if given.get("scale") is None:
            given["scale"] = given["query"].shape[-1] ** -0.5
        if is_flash:
            given["custom_mask_type"] = _FROM_BOTTOM_RIGHT if given["is_causal"] else 0
        # The other kernel has a batch of one around all sequences.
        inputs = [
            given[name] if is_flash else given[name][0]
            for name in ("query", "key", "value")
        ]
        if "out" in given:
            # Not by ``int``, which would count as a read.
            given["seed"] = (
                given["rng_state"].tolist()[0]
                if is_flash
                else given["philox_seed"].tolist()
            )
            with recording_gradients():
                leaves = [each.detach().requires_grad_() for each in inputs]
                above = args[0] if is_flash else args[0][0]
                found = gradients(_attend(given, leaves)[:1], (above,), leaves)
            return tuple(found) if is_flash else (*(each[None] for each in found), None)
        given["seed"] = seed = int(torch.randint(2**62, ())) if dropout else 0
        output, sums = _attend(given, inputs)
        if is_flash:
            state, unused = (
                torch.tensor([seed, 0], dtype=torch.uint64),
                torch.empty((), dtype=torch.uint64),
            )
            return output, torch.cat(sums, 1), state, unused, output.new_empty(0)
        longest = given["max_seqlen_q"]
        aligned = (
            math.ceil(longest / _ALIGNED) * _ALIGNED
            if given.get("compute_log_sumexp")
            else 0
        )
        # Where nothing is asked for, nothing is left of each row.
        logsumexp = torch.stack(
            [
                torch.constant_pad_nd(s, (0, aligned - s.shape[1]), math.inf)
                for s in sums
            ]
        )
        return (
            output[None],
            logsumexp,
            torch.tensor(seed),
            torch.tensor(0),
            longest,
            given["max_seqlen_k"],
        )


def _attend(
    how: Mapping[str, Any], inputs: Sequence[Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """Attend within every sequence; return the results, and for each sequence the logarithms of its sums."""
    generator = torch.Generator().manual_seed(how["seed"])
    outputs, sums = [], []
    for rows, keys in zip(*map(pairwise, how["starts"]), strict=True):
        parts = (
            inputs[0][slice(*rows)],
            inputs[1][slice(*keys)],
            inputs[2][slice(*keys)],
        )
        query, key, value = (part.transpose(0, 1).float() for part in parts)
        scores = query @ key.mT * how["scale"]
        if mask := how["custom_mask_type"]:
            more = 0 if mask == _FROM_TOP_LEFT else scores.shape[2] - scores.shape[1]
            scores = scores.masked_fill(
                torch.ones_like(scores).tril(more) == 0, -math.inf
            )
        # A row that sees no key is 0.
        weights = torch.ops.aten._safe_softmax(scores, -1)
        if dropout := how["dropout_p"]:
            weights = (
                weights
                * (torch.rand(scores.shape, generator=generator) >= dropout)
                / (1 - dropout)
            )
        outputs.append((weights @ value).transpose(0, 1).to(inputs[0].dtype))
        sums.append(scores.logsumexp(-1))
    return torch.cat(outputs), sums


def gradients(
    results: Sequence[Tensor], above: Sequence[Tensor | None], leaves: Sequence[Tensor]
) -> list[Tensor]:
    """Go back by autograd from those results that have a gradient."""
    reached, given = [], []
    for result, gradient in zip(results, above, strict=False):
        if gradient is not None:
            reached.append(result)
            given.append(gradient.to(result.dtype))
    return list(torch.autograd.grad(reached, leaves, given, materialize_grads=True))


INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@dataclass(frozen=True)
class Widening:
    """Widen an operation that CUDA has in types, or computes in a precision, that the host lacks.

    Attributes:
        types: Types of the first argument for which it is.
        to: The type that its tensors of such types are converted to.
        results: For each result the position of the argument whose type it has; None for the wide type.
        written: Positions of arguments that the host writes to.
    """

    types: tuple[torch.dtype, ...]
    to: torch.dtype
    results: tuple[int | None, ...]
    written: tuple[int, ...] = ()


# ATen/native/cuda/layer_norm_kernel.cu, Normalization.cu: toAccumulateType(input.scalar_type(), true), also
# for the means and deviations that are returned; SummaryOps.cu: histc of integers, which the host lacks, as
# it does half precision in AveragePool3d.cu, UpSampleBilinear2d.cu (antialiased), MultiMarginLoss.cu,
# MultiLabelMarginCriterion.cu and RreluWithNoise.cu.
_HALF = Widening(HALVES, torch.float32, (0,))
WIDENED: Mapping[str, Widening] = {
    "aten.native_layer_norm": Widening(HALVES, torch.float32, (0, None, None)),
    "aten.native_layer_norm_backward": Widening(HALVES, torch.float32, (1, 5, 6)),
    "aten.native_batch_norm": Widening(
        HALVES, torch.float32, (0, None, None), written=(3, 4)
    ),
    "aten.native_batch_norm_backward": Widening(HALVES, torch.float32, (1, 2, 2)),
    "aten.histc": Widening(INTEGERS, torch.float64, (0,)),
    **{
        f"aten.{name}{way}": _HALF
        for name in (
            "avg_pool3d",
            "_upsample_bilinear2d_aa",
            "_upsample_bicubic2d_aa",
            "multi_margin_loss",
        )
        for way in ("", "_backward")
    },
    "aten.multilabel_margin_loss_forward": Widening(HALVES, torch.float32, (0, 0)),
    "aten.multilabel_margin_loss_backward": _HALF,
    "aten.rrelu_with_noise": Widening(
        (torch.float16,), torch.float32, (0,), written=(1,)
    ),
    "aten.rrelu_with_noise_": Widening(
        (torch.float16,), torch.float32, (0,), written=(0, 1)
    ),
}


@dataclass(frozen=True)
class WideOperation(StandIn):
    """One of ``WIDENED``."""

    widening: Widening

    def _op(self, *args: Any, **kwargs: Any) -> Any:
        how = self.widening
        wide = [
            each.to(how.to)
            if isinstance(each, Tensor) and each.dtype in how.types
            else each
            for each in args
        ]
        made = self.operation._op(*wide, **kwargs)
        for place in how.written:
            if args[place] is not None and args[place] is not wide[place]:
                args[place].copy_(wide[place])
        if isinstance(made, Tensor):
            return args[0] if made is wide[0] else made.to(args[0].dtype)
        return tuple(
            result
            if result is None or place is None or args[place] is None
            else result.to(args[place].dtype)
            for result, place in zip(made, how.results, strict=True)
        )


@dataclass(frozen=True)
class ProductIntoType(StandIn):
    """A product that is asked for in a type."""

    def _op(self, *args: Any, **kwargs: Any) -> Any:
        given = self.named(args, kwargs)
        names = [*given]
        to, out = given.pop("out_dtype"), given.pop("out", None)
        # What is added may have either type; cuBLAS has matrices of one.
        place = names.index("out_dtype")
        first, second = (given[name] for name in names[place - 2 : place])
        if first.dtype != second.dtype:
            raise RuntimeError("input dtypes must be the same")
        if to not in (
            first.dtype,
            torch.float32 if first.dtype in HALVES else first.dtype,
        ):
            raise RuntimeError(
                "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs"
            )
        wide = {
            name: each.to(to) if isinstance(each, Tensor) else each
            for name, each in given.items()
        }
        packet = self.operation.overloadpacket
        return (
            packet.default._op(**wide)
            if out is None
            else packet.out._op(**wide, out=out)
        )


@dataclass(frozen=True)
class SoftmaxToSingle(StandIn):
    """A softmax whose kernel converts half precision to single as it reads, or a gradient back."""

    def _op(self, first: Tensor, *args: Any) -> Any:
        if isinstance(args[-1], torch.dtype):
            gradient: Tensor = self.operation._op(first, *args[:-1], first.dtype)
            return gradient.to(args[-1])
        dim, is_converted = args
        return self.operation._op(first.float() if is_converted else first, dim, False)


@dataclass(frozen=True)
class LogSigmoid(StandIn):
    """The forward pass without the buffer that the host keeps for the gradient: CUDA's has no elements."""

    def _op(self, tensor: Tensor) -> tuple[Tensor, Tensor]:
        result, buffer = self.operation._op(tensor)
        return result, buffer.new_empty(0)


@dataclass(frozen=True)
class LogSigmoidGradient(StandIn):
    """The gradient, for which the host makes the buffer that CUDA does without."""

    def _op(self, gradient: Tensor, tensor: Tensor, _: Tensor) -> Any:
        buffer = torch.ops.aten.log_sigmoid_forward.default(tensor)[1]
        return self.operation._op(gradient, tensor, buffer)


@dataclass(frozen=True)
class Bags(StandIn):
    """Add up embeddings, and make CUDA's results: the bag of each index, places for maxima alone."""

    def _op(
        self,
        weight: Tensor,
        indices: Tensor,
        offsets: Tensor,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        result, bags, sizes, places = self.operation._op(
            weight, indices, offsets, *args, **kwargs
        )
        if not bags.numel():
            bags = (
                torch.bucketize(torch.arange(indices.numel()), offsets, right=True) - 1
            )
        # Maxima have a place for each of their elements.
        return (
            result,
            bags.to(indices.dtype),
            sizes,
            places if places.dim() > 1 else places.new_empty(0),
        )


@dataclass(frozen=True)
class UniqueRows(StandIn):
    """Find unique rows, and leave out places and numbers that nobody asks for."""

    def _op(self, *args: Any, **kwargs: Any) -> Any:
        rows, places, counts = self.operation._op(*args, **kwargs)
        given = self.named(args, kwargs)
        return (
            rows,
            places if given.get("return_inverse") else places.new_empty(0),
            counts if given.get("return_counts") else counts.new_empty(0),
        )


@dataclass(frozen=True)
class Unpooling(StandIn):
    """Reverse a pooling, with a result in the usual order of dimensions."""

    def _op(self, *args: Any) -> Any:
        # ATen/native/cuda/MaxUnpooling.cu.
        return self.operation._op(*args).contiguous()


# ATen/native/cuda/Activation.cpp, log_sigmoid_forward_cuda: the buffer is empty.
FOR_CUDA_ALONE: Mapping[str, type[StandIn]] = (
    {
        f"aten._{kind}_attention_{way}.default": HostAttention
        for kind in ("flash", "efficient")
        for way in ("forward", "backward")
    }
    | {
        f"aten.{name}.dtype{out}": ProductIntoType
        for name in ("mm", "bmm", "addmm", "baddbmm")
        for out in ("", "_out")
    }
    | {
        f"aten.{name}{way}.default": SoftmaxToSingle
        for name in ("_softmax", "_log_softmax")
        for way in ("", "_backward_data")
    }
    | {
        "aten.log_sigmoid_forward.default": LogSigmoid,
        "aten.log_sigmoid_backward.default": LogSigmoidGradient,
        "aten.max_unpool2d.default": Unpooling,
        "aten.max_unpool3d.default": Unpooling,
        "aten.unique_dim.default": UniqueRows,
        "aten.unique_dim_consecutive.default": UniqueRows,
        "aten.unique_consecutive.default": UniqueRows,
        "aten._embedding_bag.default": Bags,
        "aten._embedding_bag_forward_only.default": Bags,
    }
)
"""Computes the values of operations that have a kernel for CUDA alone, or results of their own there."""
