"""The isolation check with one read for both sides, over mixed types and devices, by public functions."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn


@torch.no_grad()
def check_isolation(host: Iterable[nn.Parameter], seed: Iterable[nn.Parameter]) -> dict[str, float]:
    """L2 norms of the gradients of the host and of the seed, 0 for a side without gradients."""
    host_gradients = [parameter.grad for parameter in host if parameter.grad is not None]
    seed_gradients = [parameter.grad for parameter in seed if parameter.grad is not None]
    sides = {"host_norm": host_gradients, "seed_norm": seed_gradients}
    norms = [nn.utils.get_total_norm(gradients) for gradients in sides.values() if gradients]
    values = iter(torch.stack([norm.to(norms[0].device) for norm in norms]).tolist() if norms else [])
    return {side: next(values) if gradients else 0.0 for side, gradients in sides.items()}
