"""How often PyTorch's optimizers make the host wait: as often as their Python code asks tensors for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import simcuda
from simcuda import Measurement

Make = Callable[[Sequence[torch.nn.Parameter]], Any]
optim = torch.optim


def step(make: Make, parameters: int) -> Measurement:
    """What the third step over that many matrices costs; the first makes the optimizer's state."""
    with simcuda.device() as gpu:
        matrices = [torch.nn.Parameter(torch.rand(4, 4, device="cuda")) for _ in range(parameters)]
        stepper = make(matrices)
        for _ in range(3):
            for matrix in matrices:
                matrix.grad = torch.rand_like(matrix)
            with gpu.measure() as cost:
                stepper.step()
        matrices.clear()
    return cost


WITHOUT_WAITS = (
    *("SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "Muon"),
)
CAPTURABLE = ("Adam", "AdamW", "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop")
RATES: dict[str, Callable[[], Any]] = {
    "a number": lambda: 0.1,
    "on the host": lambda: torch.tensor(0.1),
    "on the device": lambda: torch.tensor(0.1).cuda(),
}


def never_waits(cost: Measurement) -> bool:
    """Whether a step reads and copies nothing, and leaves nothing unknown."""
    return (0, 0, 0, ()) == (cost.syncs, cost.d2h, cost.h2d, cost.unknown)


@pytest.mark.parametrize("name", WITHOUT_WAITS)
def test_most_optimizers_never_wait(name: str) -> None:
    """Steps are counted on the host; a rate that is a host tensor goes into kernels by its value."""
    for rate in ("a number", "on the host"):
        assert never_waits(step(lambda matrices: getattr(optim, name)(matrices, lr=RATES[rate]()), 3))  # noqa: B023 - called at once


@pytest.mark.slow
@pytest.mark.parametrize("name", CAPTURABLE)
def test_capturable_optimizers_never_wait(name: str) -> None:
    """What a CUDA graph can capture does not wait: steps are counted on the device."""
    assert never_waits(step(lambda matrices: getattr(optim, name)(matrices, capturable=True), 3))


# One kernel walks all parameters; Adam and Adagrad count the steps by another one before.
@pytest.mark.parametrize(("name", "kernels"), [("SGD", 1), ("Adam", 2), ("AdamW", 2), ("Adagrad", 2)])
@pytest.mark.parametrize("rate", RATES)
def test_fused_optimizers_never_wait(name: str, kernels: int, rate: str) -> None:
    """A fused step takes its learning rate as a number or as a tensor, from the host or the device."""
    cost = step(lambda matrices: getattr(optim, name)(matrices, lr=RATES[rate](), fused=True), 3)
    assert never_waits(cost)
    assert kernels == cost.launches


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [1, 4, 7])
@pytest.mark.parametrize(
    ("make", "waits_each"),
    [
        # The step is read, from which the new mu is computed on the host and written.
        (optim.ASGD, 2),
        # The step, eta and mu are read, and the new eta and mu are written.
        (lambda matrices: optim.ASGD(matrices, foreach=False), 5),
        # The norm of the parameter and that of its update.
        (optim.Adafactor, 2),
        (lambda matrices: optim.Adafactor(matrices, foreach=False), 2),
        # The step size is a device tensor where a number is asked for.
        (lambda matrices: optim.Adam(matrices, lr=torch.tensor(0.1).cuda(), foreach=False), 1),
    ],
)
def test_some_optimizers_wait_for_each_parameter(make: Make, waits_each: int, parameters: int) -> None:
    """Their waits are in proportion to the number of parameters, each with its copy."""
    cost = step(make, parameters)
    assert waits_each * parameters == cost.syncs == cost.d2h + cost.h2d
    assert () == cost.unknown


def test_a_learning_rate_on_the_device_is_read_once() -> None:
    """SGD multiplies by the rate within its addition, whose factor is a number: one read for all."""
    cost = step(lambda matrices: optim.SGD(matrices, lr=RATES["on the device"]()), 5)
    assert (1, 1) == (cost.syncs, cost.d2h)


def test_lbfgs_waits_more_with_every_iteration() -> None:
    """Each iteration compares losses, gradients and directions on the host."""
    waits = []
    for iterations in (1, 2, 4, 8):
        with simcuda.device() as gpu:
            torch.manual_seed(0)  # how far a search goes depends on the values
            matrix = torch.nn.Parameter(torch.rand(4, 4, device="cuda"))
            stepper: Any = optim.LBFGS([matrix], max_iter=iterations)

            def loss(stepper: Any = stepper, matrix: torch.nn.Parameter = matrix) -> torch.Tensor:
                stepper.zero_grad()
                value = ((matrix - 2) ** 4).sum()
                torch.autograd.backward(value)
                return value

            with gpu.measure() as cost:
                stepper.step(loss)
        waits.append(cost.syncs)
    assert sorted(set(waits)) == waits


def test_no_optimizer_is_written_down() -> None:
    """The counts above follow from operations: the simulation knows no optimizer by name."""
    names = (*WITHOUT_WAITS, "ASGD", "Adafactor", "LBFGS")
    package = Path(simcuda.__file__).parent
    sources = [*package.rglob("*.py")]
    words = {word for file in sources for word in re.findall(r"\w+", file.read_text())}
    assert sources
    assert set() == words & set(names)
