"""Operations that CUDA computes, or of which it returns results, in a wider type than the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from simcuda.cost.rules.rule import HALVES

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@dataclass(frozen=True)
class Widening:
    """How an operation is widened.

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
# for the means and deviations that are returned; SummaryOps.cu: histc of integers, which the host lacks.
WIDENED: Mapping[str, Widening] = {
    "aten.native_layer_norm": Widening(HALVES, torch.float32, (0, None, None)),
    "aten.native_layer_norm_backward": Widening(HALVES, torch.float32, (1, 5, 6)),
    "aten.native_batch_norm": Widening(HALVES, torch.float32, (0, None, None), written=(3, 4)),
    "aten.native_batch_norm_backward": Widening(HALVES, torch.float32, (1, 2, 2)),
    "aten.histc": Widening(INTEGERS, torch.float64, (0,)),
}


@dataclass(frozen=True)
class WideOperation:
    """Stands for an operation in the dispatcher; what it does not have is that operation's own."""

    operation: Any
    widening: Widening

    def __getattr__(self, name: str) -> Any:
        return getattr(self.operation, name)

    def __str__(self) -> str:
        return str(self.operation)

    @property
    def _op(self) -> Callable[..., Any]:
        return self._run

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        how = self.widening
        wide = [
            each.to(how.to) if isinstance(each, torch.Tensor) and each.dtype in how.types else each
            for each in args
        ]
        made = self.operation._op(*wide, **kwargs)
        for place in how.written:
            if args[place] is not None and args[place] is not wide[place]:
                args[place].copy_(wide[place])
        if isinstance(made, torch.Tensor):
            return made.to(args[0].dtype)
        return tuple(
            result if result is None or place is None or args[place] is None else result.to(args[place].dtype)
            for result, place in zip(made, how.results, strict=True)
        )


INTO_A_TYPE = frozenset(
    f"aten.{name}.dtype{out}" for name in ("mm", "bmm", "addmm", "baddbmm") for out in ("", "_out")
)
"""Products that are asked for in a type, for which CUDA alone has a kernel."""


@dataclass(frozen=True)
class ProductIntoType:
    """Stands for one of ``INTO_A_TYPE`` in the dispatcher; what it does not have is that operation's own."""

    operation: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.operation, name)

    def __str__(self) -> str:
        return str(self.operation)

    def _op(self, *args: Any, **kwargs: Any) -> Any:
        names = [argument.name for argument in self.operation._schema.arguments]
        given = dict(zip(names, args, strict=False)) | kwargs
        to, out = given.pop("out_dtype"), given.pop("out", None)
        # What is added may have either type; cuBLAS has matrices of one.
        place = names.index("out_dtype")
        first, second = (given[name] for name in names[place - 2 : place])
        if first.dtype != second.dtype:
            raise RuntimeError("input dtypes must be the same")
        if to not in (first.dtype, torch.float32 if first.dtype in HALVES else first.dtype):
            raise RuntimeError("out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs")
        wide = {name: each.to(to) if isinstance(each, torch.Tensor) else each for name, each in given.items()}
        packet = self.operation.overloadpacket
        return packet.default._op(**wide) if out is None else packet.out._op(**wide, out=out)
