"""The gradient norm combined on each device first, so that one number per further device has to move."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def combine_norms(norms: Sequence[torch.Tensor]) -> torch.Tensor:
    """Combine the norms of single gradients, 0-d and on any device, into the norm of all.

    Returns:
        A 0-d tensor on the device of the first norm; zero on the host where there is no norm.
    """
    if not norms:
        return torch.zeros(())
    first = norms[0].device
    by_device: dict[torch.device, list[torch.Tensor]] = {}
    for norm in norms:
        by_device.setdefault(norm.device, []).append(norm)
    gathered = [_norm(together).to(first) for together in by_device.values()]
    return _norm(gathered)


def _norm(norms: list[torch.Tensor]) -> torch.Tensor:
    """The norm of norms of one device, in single precision at least."""
    stacked = torch.stack(norms)
    norm: torch.Tensor = torch.linalg.vector_norm(
        stacked, dtype=torch.promote_types(stacked.dtype, torch.float32)
    )
    return norm
