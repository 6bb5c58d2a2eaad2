"""Autocast for ``cuda`` on the simulated device."""

from __future__ import annotations

import torch
from torch.utils.checkpoint import checkpoint

import simcuda


def test_autocast_lowers_the_type_of_products() -> None:
    """A linear layer computes in half precision within autocast, not where it is disabled nor outside."""
    with simcuda.device() as gpu:
        layer, x = torch.nn.Linear(4, 4, device="cuda"), torch.ones(2, 4, device="cuda")
        with gpu.measure() as cost, torch.autocast("cuda"):
            assert torch.is_autocast_enabled()
            types = [layer(x).dtype]
            with torch.autocast("cuda", enabled=False):
                types.append(layer(x).dtype)
        types.append(layer(x).dtype)
    assert [torch.float16, torch.float32, torch.float32] == types
    assert "autocast" in cost.approximate


def test_autocast_leaves_no_trace_on_the_cpu() -> None:
    """The CPU's own autocast type is the same before and after."""
    before = torch.get_autocast_dtype("cpu")
    with simcuda.device(), torch.autocast("cuda", torch.float16):
        pass
    assert before == torch.get_autocast_dtype("cpu")
    assert not torch.is_autocast_enabled("cpu")


def test_checkpoints_recompute_under_autocast() -> None:
    """A checkpointed layer is recomputed in the type of its first pass."""
    with simcuda.device():
        layer, x = torch.nn.Linear(4, 4, device="cuda"), torch.ones(2, 4, device="cuda", requires_grad=True)
        with torch.autocast("cuda", torch.bfloat16):
            y = checkpoint(layer, x, use_reentrant=False)
        torch.autograd.backward(y.float().sum())
        assert torch.bfloat16 == y.dtype
        assert x.grad is not None
        assert torch.device("cuda", 0) == x.grad.device
