"""Cases from ``torch.optim``: a step of every optimizer in every way that it can be done."""

# Many of torch's methods have no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from simcuda.recording.case import Case, Work, digest, seed_all

WAYS: dict[str, dict[str, bool]] = {
    "default": {},
    "loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "capturable": {"capturable": True},
}

SHAPES = ((4, 4), (8, 32), (16, 16), (1, 64), (64, 3), (100, 20))
"""Two dimensions each, which Muon asks for."""


def cases() -> Iterator[Case]:
    """A case for every optimizer and every way that its constructor knows."""
    named = sorted(vars(torch.optim).items())
    kinds = {name: kind for name, kind in named if isinstance(kind, type) and issubclass(kind, Optimizer)}
    for name, kind in kinds.items():
        if kind is Optimizer:
            continue
        accepted = inspect.signature(kind).parameters
        for way, options in WAYS.items():
            if options.keys() <= accepted.keys():
                digest_ = digest(repr(options), repr(SHAPES), inspect.getsource(_prepare))
                yield Case(f"optimizer/{name}/{way}", partial(_prepare, kind, options), digest_)


def _prepare(kind: Any, options: dict[str, bool], seed: int) -> Work:
    """The second step: the first one makes the optimizer's state."""
    generator = seed_all(seed)
    parameters = [nn.Parameter(torch.rand(shape, generator=generator).to("cuda")) for shape in SHAPES]
    if kind is torch.optim.LBFGS:
        # So few iterations that no rounding decides how many there are.
        optimizer = kind(parameters, max_iter=3)
        step = partial(optimizer.step, partial(_loss, optimizer, parameters))
    else:
        optimizer = kind(parameters, **options)
        step = optimizer.step
    _give_gradients(kind, parameters, generator)
    step()
    _give_gradients(kind, parameters, generator)
    return step


def _give_gradients(kind: Any, parameters: list[nn.Parameter], generator: torch.Generator) -> None:
    for parameter in parameters:
        gradient = torch.rand(parameter.shape, generator=generator).to("cuda")
        parameter.grad = gradient.to_sparse() if kind is torch.optim.SparseAdam else gradient


def _loss(optimizer: Optimizer, parameters: list[nn.Parameter]) -> torch.Tensor:
    optimizer.zero_grad()
    loss = torch.stack([(parameter**4).sum() for parameter in parameters]).sum()
    loss.backward()
    return loss
