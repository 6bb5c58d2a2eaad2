"""Gradients that look at values on CUDA."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

import simcuda
from simcuda import SimulatedCuda


@pytest.fixture
def gpu() -> Iterator[SimulatedCuda]:
    """One simulated device."""
    with simcuda.device() as simulated:
        yield simulated


Function = Callable[[torch.Tensor], torch.Tensor]


def cost_of_backward(gpu: SimulatedCuda, function: Function, *shape: int) -> simcuda.Measurement:
    """What the backward pass of a function of one leaf costs."""
    leaf = torch.ones(shape, device="cuda", requires_grad=True)
    result = function(leaf).sum()
    with gpu.measure() as cost:
        torch.autograd.backward(result)
    return cost


@pytest.mark.parametrize(
    ("function", "shape", "read"),
    [
        # How many zeros there are: 32 bits by nonzero, 64 bits as a sum; whether there are any: one byte.
        (lambda x: torch.prod(x), (4,), 4),  # noqa: PLW0108 - the simulation replaces the name
        (lambda x: x.prod(), (1,), 4),
        (lambda x: x.prod(-1), (2, 3), 8),
        (lambda x: x.cumprod(0), (4,), 1),
        # The value's gradient is selected by the mask, whose trues are counted in 32 bits.
        (lambda x: torch.zeros(4, device="cuda").masked_fill(torch.ones(4, device="cuda") > 0, x), (), 4),
    ],
)
def test_a_gradient_that_looks_at_values_waits_once(
    gpu: SimulatedCuda, function: Function, shape: tuple[int, ...], read: int
) -> None:
    """The look is one copy that the host waits for, and the formula is approximate."""
    cost = cost_of_backward(gpu, function, *shape)
    assert (1, 1, read, ()) == (cost.syncs, cost.d2h, cost.d2h_bytes, cost.unknown)
    assert any(name.endswith("(backward)") for name in cost.approximate)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x.prod(), ()),
        (lambda x: x.cumprod(0), (1,)),
        (lambda x: x.masked_fill(x > 0, 0.0), (4,)),
        (lambda x: x.max(), (4,)),
    ],
)
def test_other_gradients_do_not_wait(gpu: SimulatedCuda, function: Function, shape: tuple[int, ...]) -> None:
    """A single number's product, and a filled tensor itself, have gradients that need no look."""
    assert 0 == cost_of_backward(gpu, function, *shape).syncs


def test_gradients_under_vmap_do_not_look(gpu: SimulatedCuda) -> None:
    """Batched gradients take the formula without a look on CUDA too."""
    gradients: Function = torch.vmap(torch.func.grad(lambda x: x.prod()))
    with gpu.measure() as cost:
        result = gradients(torch.ones(2, 3, device="cuda"))
    assert (0, [[1.0] * 3] * 2) == (cost.syncs, result.tolist())


def test_a_graph_is_freed_with_its_result(gpu: SimulatedCuda) -> None:
    """The look keeps nothing alive: no byte is left once the result is gone."""
    leaf = torch.ones(4, device="cuda", requires_grad=True)
    with gpu.measure() as cost:
        leaf.mul(2).prod()
    assert 0 == cost.retained_bytes
