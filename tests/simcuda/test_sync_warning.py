"""The sixteen calls of which PyTorch tests that they wait, or do not: ``test_sync_warning`` in its tests."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from simcuda import SimulatedCuda

NAMES = """
x, y = torch.rand(4, device="cuda"), torch.rand((), device="cuda")
index = torch.randint(4, (3,), device="cuda")
on_host, repeats = index.cpu(), torch.full((1,), 2, device="cuda")
mask = torch.tensor([True, False, True, False], device="cuda")
"""
NO_WAIT = (
    "x[mask] = 1.0",
    "x[index] = y",
    "x[index]",
    "torch.nn.functional.one_hot(index, num_classes=4)",
    "torch.randperm(20000, device='cuda')",
    "torch.repeat_interleave(x, 2, output_size=8)",
    "torch.repeat_interleave(x, repeats, output_size=8)",
    "torch.any(y)",
)
WAIT = (
    "x[mask] = y",
    "x[on_host] = y",
    "x[mask]",
    "x[on_host]",
    "x.nonzero()",
    "x if y else y",
    "torch.nn.functional.one_hot(index)",
    "torch.repeat_interleave(x, repeats)",
)


@pytest.fixture
def names(gpu: SimulatedCuda) -> dict[str, Any]:
    """What the calls work on, all on the device but for what says otherwise."""
    assert gpu
    made: dict[str, Any] = {"torch": torch}
    exec(NAMES, made)  # noqa: S102 - the code is ours
    return made


@pytest.mark.parametrize("code", NO_WAIT)
def test_these_do_not_wait(gpu: SimulatedCuda, names: dict[str, Any], code: str) -> None:
    """No wait is counted, and neither level of the debug mode objects."""
    for level in ("warn", "error"):
        torch.cuda.set_sync_debug_mode(level)
        with warnings.catch_warnings(), gpu.measure() as cost:
            warnings.simplefilter("error")
            exec(code, names)  # noqa: S102 - the code is above
        assert 0 == cost.syncs


@pytest.mark.parametrize("code", WAIT)
def test_these_wait(gpu: SimulatedCuda, names: dict[str, Any], code: str) -> None:
    """Waits are counted, the debug mode warns of them, and on its other level raises."""
    with gpu.measure() as cost:
        exec(code, names)  # noqa: S102 - the code is above
    assert cost.syncs > 0
    torch.cuda.set_sync_debug_mode("warn")
    with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
        exec(code, names)  # noqa: S102 - as above
    torch.cuda.set_sync_debug_mode("error")
    with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
        exec(code, names)  # noqa: S102 - as above
