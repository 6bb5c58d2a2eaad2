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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Adadelta", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"])
def test_capturable_optimizers_never_wait(name: str) -> None:
    """What a CUDA graph can capture does not wait: steps are counted on the device."""
    cost = step(lambda matrices: getattr(optim, name)(matrices, capturable=True), 3)
    assert (0, 0, 0, ()) == (cost.syncs, cost.d2h, cost.h2d, cost.unknown)


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
    names = ("SGD", "Adam", "AdamW", "Adagrad", "NAdam", "RMSprop", "Muon", "ASGD", "Adafactor", "LBFGS")
    package = Path(simcuda.__file__).parent
    sources = [*package.rglob("*.py")]
    words = {word for file in sources for word in re.findall(r"\w+", file.read_text())}
    assert sources
    assert set() == words & set(names)
