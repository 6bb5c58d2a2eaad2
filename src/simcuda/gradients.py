"""Backward formulas that read values on the host, which a dispatch mode makes autograd leave out.

Under a mode autograd takes formulas for tensor subclasses, which never look at values. Here the look that
CUDA takes is taken before the formula, so that its wait is counted; the formula's kernels stay approximate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from simcuda.ledger import Ledger
from simcuda.patches import Patches

Look = Callable[[Any, Any], object]


def install(patches: Patches, ledger: Ledger) -> None:
    """Let the gradients of everything called here look at values as on CUDA."""
    for name in ("prod", "cumprod", "masked_fill", "masked_fill_"):
        for owner in (torch, torch.Tensor):
            if hasattr(owner, name):
                patches.set(owner, **{name: _looking(getattr(owner, name), ledger)})


def _looking(original: Callable[..., Any], ledger: Ledger) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if isinstance(result, Tensor) and result.requires_grad and result.is_cuda and not _is_wrapped(result):
            _look_before(result.grad_fn, ledger)
        return result

    return function


def _is_wrapped(tensor: Tensor) -> bool:
    # Under vmap and its kin CUDA does not look either.
    return torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def _look_before(node: Any, ledger: Ledger) -> None:
    name = "" if node is None else node.name()
    look = LOOKS.get(name)
    if look is None:
        return

    def hook(gradients: Any) -> None:
        # The node is asked for again: a hook that held its own node would never be freed.
        with torch.no_grad():
            if look(torch._C._current_autograd_node(), gradients[0]) is not None:
                ledger.approximate(f"{name} (backward)")

    node.register_prehook(hook)


def _find_zeros(node: Any, _gradient: Any) -> object:
    return (node._saved_self == 0).nonzero() if node._saved_self.dim() else None


def _count_zeros(node: Any, _gradient: Any) -> object:
    values = node._saved_self
    if not values.dim():
        return None
    return (values == 0).sum(_signed(node._saved_dim), keepdim=True).sum().item()


def _ask_for_zeros(node: Any, _gradient: Any) -> object:
    values = node._saved_self
    if values.numel() <= 1 or values.shape[_signed(node._saved_dim)] == 1:
        return None
    return (values == 0).any().item()


def _select_by_mask(node: Any, gradient: Any) -> object:
    # Only a value that needs a gradient gets one; it is the second of the node's inputs.
    needs_one = gradient is not None and node.next_functions[1][0] is not None
    return gradient.masked_select(node._saved_mask) if needs_one else None


def _signed(dimension: int) -> int:
    return dimension - 2**64 if dimension >= 2**63 else dimension


LOOKS: dict[str, Look] = {
    "ProdBackward0": _find_zeros,
    "ProdBackward1": _count_zeros,
    "CumprodBackward0": _ask_for_zeros,
    "MaskedFillBackward1": _select_by_mask,
}
"""What each gradient looks at, by torch/csrc/autograd/FunctionsManual.cpp; None for nothing."""
