"""The isolation check before the change: gradients squared and summed tensor by tensor."""

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
    norm_sq = torch.as_tensor(sum(gradient.pow(2).sum() for gradient in gradients))
    return norm_sq.sqrt().item()
