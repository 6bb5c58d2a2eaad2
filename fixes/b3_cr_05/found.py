"""The gradient norm as the ticket found it: every norm moves to the first one's device on its own."""

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
    gathered = [norm.to(first) for norm in norms]
    return torch.stack(gathered).pow(2).sum().sqrt()
