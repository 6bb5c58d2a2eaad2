"""The rollback with the narrower wait that the ticket suggests and then advises against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn


def execute_rollback(model: nn.Module, last_good_state: Mapping[str, Any], device: torch.device) -> nn.Module:
    """Load ``last_good_state``, which lies in host memory, into ``model`` on ``device``.

    The wait covers the stream that carries the copies, and no other.

    Returns:
        The model, with its parameters, buffers and extra state as they were.
    """
    state = dict(last_good_state)
    for key, value in state.items():
        if isinstance(value, torch.Tensor):
            state[key] = value.to(device, non_blocking=True)
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()
    model.load_state_dict(state)
    return model
