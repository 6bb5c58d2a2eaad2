"""What ``torch.jit.trace`` keeps of a module, and checks by running it again."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import simcuda

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.trace. is deprecated")

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "product": lambda x: x.tanh() * 1.5,
    "quotient": lambda x: 1 / (x + 3),
    "floor": lambda x: x // 2,
    "of integers": lambda x: x.long() + 2,
    "promoted": lambda x: x.long() * 2.5,
    "in place": lambda x: x.clone().mul_(2.0).add_(1),
    "chosen": lambda x: torch.where(x > 0, x, 1.0),
}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_numbers_of_a_trace_are_checked_and_run(name: str, device: str) -> None:
    """A trace keeps numbers as tensors; it runs twice, as the second run is of optimised code."""
    function, x = FUNCTIONS[name], torch.tensor([-1.5, 0.5, 3.0])
    expected = function(x)
    with simcuda.device():
        there = x.to(device)
        traced: Any = torch.jit.trace(function, there)  # type: ignore[no-untyped-call]  # not annotated
        results = [traced(there) for _ in range(2)]
        assert {device} == {result.device.type for result in results}
        assert all(torch.equal(expected, result.cpu()) for result in results)
    assert {expected.dtype} == {result.dtype for result in results}


def test_reading_a_number_of_a_trace_waits_for_nothing() -> None:
    """The number is the host's; the one wait is for the result."""
    with simcuda.device() as gpu:
        x = torch.ones(2, device="cuda")
        traced: Any = torch.jit.trace(lambda x: x * 1.5, x)  # type: ignore[no-untyped-call]  # not annotated
        traced(x)
        with gpu.measure() as m:
            values = traced(x).tolist()
    assert ([1.5, 1.5], 1) == (values, m.syncs)
