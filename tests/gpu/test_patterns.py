"""The simulation counts what patterns cost, as derived or as an H100 says."""

from __future__ import annotations

import pytest
from tests.gpu.agreement import assert_agreement
from tests.gpu.pattern import load

import simcuda

# Patterns are written as users write: torch warns of much that they do.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("name", load())
def test_the_simulation_agrees(gpu: simcuda.SimulatedCuda, name: str) -> None:
    """Each metric has the right number, or a range that contains it, or is listed as known to be wrong."""
    assert_agreement(gpu, name)
