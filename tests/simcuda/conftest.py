"""The devices on which nearly all of these tests run."""

from collections.abc import Iterator

import pytest

import simcuda
from simcuda import SimulatedCuda


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> Iterator[SimulatedCuda]:
    """Open one simulated device, an H200 under CUDA 13, or as many as the file names by ``DEVICES``."""
    with simcuda.device(getattr(request.module, "DEVICES", 1)) as simulated:
        yield simulated
