"""Gradients issue the operations that they issue on CUDA."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import simcuda
from simcuda import SimulatedCuda

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
    """The look is one copy that the host waits for."""
    cost = cost_of_backward(gpu, function, *shape)
    assert (1, 1, read, ()) == (cost.syncs, cost.d2h, cost.d2h_bytes, cost.unknown)


def test_gradients_under_vmap_do_not_look(gpu: SimulatedCuda) -> None:
    """Batched gradients take the formula without a look on CUDA too."""
    gradients: Function = torch.vmap(torch.func.grad(lambda x: x.prod()))
    with gpu.measure() as cost:
        result = gradients(torch.ones(2, 3, device="cuda"))
    assert (0, [[1.0] * 3] * 2) == (cost.syncs, result.tolist())


def test_a_number_under_vmap_stays_on_the_host(gpu: SimulatedCuda) -> None:
    """It gets the type of what it is multiplied by, as on CUDA: one product, and nothing is copied."""
    x = torch.ones(3, device="cuda")
    with gpu.measure() as cost:
        result = torch.vmap(lambda each: 0.5 * each)(x)
    assert (1, 0, [0.5] * 3) == (cost.launches, cost.h2d, result.tolist())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.gather(0, torch.zeros(2, dtype=torch.int64, device=x.device)),
        lambda x: x.index_select(0, torch.zeros(2, dtype=torch.int64, device=x.device)),
        lambda x: x.topk(2).values,
    ],
)
def test_the_gradient_of_a_choice_is_written_in_place(gpu: SimulatedCuda, function: Function) -> None:
    """Zeros as large as the leaf, into which the few gradients are written: no second copy of them."""
    cost = cost_of_backward(gpu, function, 1000)
    # The sum's own gradient of 4 bytes, which is spread without memory, and 1000 floats of zeros.
    assert (4 + 4000, 2) == (cost.peak_bytes, cost.allocations)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
@pytest.mark.parametrize("values", [[1.0, 1.0], [2.0, float("nan"), 2.0]])
def test_the_gradient_of_an_extreme_is_shared(name: str, values: list[float]) -> None:
    """Elements equal to the result get equal parts, as on the host."""

    def gradient(device: str) -> torch.Tensor:
        leaf = torch.tensor(values, device=device, requires_grad=True)
        torch.autograd.backward(getattr(torch, name)(leaf))
        assert leaf.grad is not None
        return leaf.grad.cpu()

    assert gradient("cpu").equal(gradient("cuda"))


@pytest.mark.usefixtures("gpu")
def test_the_gradient_of_an_extreme_has_a_gradient() -> None:
    """It can be differentiated again: of the maximum times itself, the second derivative is 2."""
    leaf = torch.tensor([1.0, 3.0], device="cuda", requires_grad=True)
    (first,) = torch.autograd.grad(leaf.max() ** 2, leaf, create_graph=True)
    (second,) = torch.autograd.grad(first[1], leaf)
    assert ([0, 6], [0, 2]) == (first.tolist(), second.tolist())


def test_zeros_without_memory_are_gradients_too(gpu: SimulatedCuda) -> None:
    """The sign of a number has a gradient of zeros that take no memory until somebody writes to them."""
    leaf = torch.ones(3, device="cuda", requires_grad=True)
    with gpu.measure() as cost:
        torch.autograd.backward(leaf.sgn().sum())
    assert leaf.grad is not None
    assert ([0.0] * 3, "cuda", 0) == (leaf.grad.tolist(), leaf.grad.device.type, cost.syncs)


def test_a_graph_is_freed_with_its_result(gpu: SimulatedCuda) -> None:
    """The look keeps nothing alive: no byte is left once the result is gone."""
    leaf = torch.ones(4, device="cuda", requires_grad=True)
    with gpu.measure() as cost:
        leaf.mul(2).prod()
    assert 0 == cost.retained_bytes


@pytest.mark.usefixtures("gpu")
def test_a_tensor_may_be_given_by_name() -> None:
    """What stands in for a function of torch takes its arguments by name, as the function does."""
    x = torch.arange(4.0, device="cuda").requires_grad_()
    assert 3.0 == torch.max(input=x).item()
    assert 1.5 == torch.quantile(input=x.detach(), q=torch.tensor(0.5, device="cuda")).item()
