"""What the tests of patterns share: one simulated device for all of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import simcuda


@pytest.fixture(scope="module")
def gpu() -> Iterator[simcuda.SimulatedCuda]:
    """Return an open device: to open one for each pattern would double the time."""
    with torch.random.fork_rng(devices=[]), simcuda.device() as opened:
        yield opened
