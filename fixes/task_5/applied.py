"""The isolation check as the change left it: one multi-tensor norm call for each side."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn


@torch.no_grad()
def check_isolation(host: Iterable[nn.Parameter], seed: Iterable[nn.Parameter]) -> dict[str, float]:
    """L2 norms of the gradients of the host and of the seed, 0 for a side without gradients.

    Raises:
        RuntimeError: The gradients of one side live on several devices.
    """
    host_gradients = [parameter.grad for parameter in host if parameter.grad is not None]
    seed_gradients = [parameter.grad for parameter in seed if parameter.grad is not None]
    return {"host_norm": _norm(host_gradients), "seed_norm": _norm(seed_gradients)}


def _norm(gradients: list[torch.Tensor]) -> float:
    if not gradients:
        return 0.0
    norms = torch._foreach_norm(gradients)  # noqa: SLF001 - the change under review calls it
    return torch.stack(norms).pow(2).sum().sqrt().item()
