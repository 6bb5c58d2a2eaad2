"""The device on which the rules are tried."""

from collections.abc import Iterator

import pytest

import simcuda
from simcuda import SimulatedCuda


@pytest.fixture
def gpu() -> Iterator[SimulatedCuda]:
    """One simulated device, an H200 under CUDA 13."""
    with simcuda.device() as simulated:
        yield simulated
