"""The sixteen calls of which PyTorch tests that they wait, or do not: ``test_sync_warning`` in its tests."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn.functional import one_hot

from simcuda import SimulatedCuda

SIZE = 4
Call = Callable[["Data"], object]


class Data:
    """What the calls work on, all on the device but for what says otherwise."""

    def __init__(self) -> None:
        self.x = torch.rand(SIZE, device="cuda")
        self.y = torch.rand((), device="cuda")
        self.index = torch.randint(SIZE, (3,), device="cuda")
        self.index_on_host = self.index.cpu()
        self.repeats = torch.full((1,), 2, device="cuda")
        self.mask = torch.tensor([True, False, True, False], device="cuda")

    def put(self, where: Any, value: Any) -> None:
        """Assign to part of ``x``."""
        self.x[where] = value


NO_WAIT: dict[str, Call] = {
    "x[mask] = 1.0": lambda d: d.put(d.mask, 1.0),
    "x[index] = y": lambda d: d.put(d.index, d.y),
    "x[index]": lambda d: d.x[d.index],
    "one_hot(index, n)": lambda d: one_hot(d.index, num_classes=SIZE),
    "randperm(20000)": lambda _: torch.randperm(20000, device="cuda"),
    "repeat_interleave(x, 2, output_size)": lambda d: torch.repeat_interleave(d.x, 2, output_size=2 * SIZE),
    "repeat_interleave(x, repeats, output_size)": lambda d: torch.repeat_interleave(
        d.x, d.repeats, output_size=2 * SIZE
    ),
    "any(y)": lambda d: torch.any(d.y),
}

WAIT: dict[str, Call] = {
    "x[mask] = y": lambda d: d.put(d.mask, d.y),
    "x[index_on_host] = y": lambda d: d.put(d.index_on_host, d.y),
    "x[mask]": lambda d: d.x[d.mask],
    "x[index_on_host]": lambda d: d.x[d.index_on_host],
    "x.nonzero()": lambda d: d.x.nonzero(),
    "if y": lambda d: d.x if d.y else d.y,
    "one_hot(index)": lambda d: one_hot(d.index),
    "repeat_interleave(x, repeats)": lambda d: torch.repeat_interleave(d.x, d.repeats),
}

LEVELS = ("warn", "error")


def watch(level: str) -> None:
    """Let CUDA warn of waits, or refuse them."""
    torch.cuda.set_sync_debug_mode(level)


@pytest.mark.parametrize("call", NO_WAIT.values(), ids=NO_WAIT)
def test_these_do_not_wait(gpu: SimulatedCuda, call: Call) -> None:
    """No wait is counted, and neither level of the debug mode objects."""
    data = Data()
    for level in LEVELS:
        watch(level)
        with warnings.catch_warnings(), gpu.measure() as cost:
            warnings.simplefilter("error")
            call(data)
        assert 0 == cost.syncs


@pytest.mark.parametrize("call", WAIT.values(), ids=WAIT)
def test_these_wait(gpu: SimulatedCuda, call: Call) -> None:
    """Waits are counted, the debug mode warns of them, and on its other level raises."""
    data = Data()
    with gpu.measure() as cost:
        call(data)
    assert cost.syncs > 0
    watch("warn")
    with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
        call(data)
    watch("error")
    with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
        call(data)
