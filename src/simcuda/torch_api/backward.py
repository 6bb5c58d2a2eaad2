"""What the backward pass does differently because Python sees its operations, and how that is undone.

Where gradients meet at one tensor, the autograd engine adds the new one in place to the old one, if it alone
holds that. Here Python holds every storage too, so it makes a new tensor instead, which would raise the peak.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch

from simcuda.cost.copies import same_bytes

# What nobody else in Python holds is held by torch, by two tuples of arguments, a local name and what counts.
_HELD_BY_THE_ARGUMENTS = 6
# Besides the engine: the argument itself, and what Python's wrapper holds.
_HELD_BY_THE_ENGINE = 3
_STORAGE_HELD_BY_ONE_TENSOR = 2

ADDING = frozenset(
    f"{name}Backward0"
    for name in (
        *("Atan2", "Cholesky", "CholeskyInverse", "CholeskySolve", "LinalgCholeskyEx", "LinalgDet"),
        *("LinalgLstsq", "LinalgLu", "LinalgLuFactorEx", "LinalgLuSolve", "LinalgPinv", "LinalgQr"),
        *("LinalgSvd", "Logcumsumexp", "LuUnpack", "Mvlgamma", "NativeGroupNorm", "SpecialI1E"),
        *("SpecialLogNdtr", "StdMean", "TriangularSolve", "VarMean"),
    )
)
"""Formulas that add tensors themselves: what is added there is taken for theirs, not for the engine's."""


def is_in_backward() -> bool:
    """Whether the autograd engine is at work."""
    return torch._C._current_graph_task_id() != -1


def joins_gradients(args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> bool:
    """Whether an addition is the engine's, to a gradient that nothing else holds."""
    if kwargs or len(args) != 2 or not is_in_backward() or torch.is_grad_enabled():
        return False
    old = args[0]
    if not isinstance(old, torch.Tensor) or old is args[1] or sys.getrefcount(old) > _HELD_BY_THE_ARGUMENTS:
        return False
    storage = old.untyped_storage()
    return (
        cast("Any", old)._use_count() <= _HELD_BY_THE_ENGINE
        and torch._C._storage_Use_Count(storage._cdata) <= _STORAGE_HELD_BY_ONE_TENSOR
        and isinstance(args[1], torch.Tensor)
        and old.dtype == args[1].dtype
        and old.shape == args[1].shape
        and same_bytes(old, old)
        and torch._C._current_autograd_node().name() not in ADDING
    )
