"""Workload for B3-CR-05: norms of gradients that lie on one device, on two and on three."""

from __future__ import annotations

from math import inf, nan

import torch
from torch import nn

from finding_tickets.workload import Point, Workload, main

SIZES = ((5,), (0, 3), (4, 6), (), (1000,))
LARGE = 1 << 20


def point(local: int, *remote: int, half: int = 0, large: int = 0, special: int = 0) -> Point:
    """A point with ``local`` norms on the first device and the given numbers on further ones.

    ``remote`` counts the norms that are not on the first device, ``half`` those among them that have two
    bytes. ``large`` is 1 where a gradient has a million elements, ``special`` where some hold NaN or Inf.
    """
    return Point(
        norms=local + sum(remote),
        remote=sum(remote),
        devices=1 + len(remote),
        half=half,
        large=large,
        special=special,
    )


def build(point: Point, device: str, generator: torch.Generator) -> tuple[list[torch.Tensor]]:
    """The norm of every gradient, those of the first device first."""
    gradients = [parameter.grad for parameter in parameters(point, device, generator)]
    return ([torch.linalg.vector_norm(gradient) for gradient in gradients if gradient is not None],)


def parameters(point: Point, device: str, generator: torch.Generator) -> list[nn.Parameter]:
    """Parameters with ``point.norms`` gradients, and where there are any, one parameter without."""
    made = []
    for index in range(point.norms):
        gradient = _gradient(point, index, generator).to(_place(point, device, index))
        parameter = nn.Parameter(torch.zeros_like(gradient))
        parameter.grad = gradient
        made.append(parameter)
    return made + [nn.Parameter(torch.ones(3).to(device)) for _ in made[:1]]


def _place(point: Point, device: str, index: int) -> str:
    local = point.norms - point.remote
    if index < local or point.devices == 1:
        return device
    return f"{device}:{1 + (index - local) % (point.devices - 1)}"


def _gradient(point: Point, index: int, generator: torch.Generator) -> torch.Tensor:
    shape = (LARGE,) if point.large and not index else SIZES[index % len(SIZES)]
    values = torch.rand(shape, generator=generator)
    if point.special:
        values.view(-1)[-1:] = (nan, inf, 0.0)[index % 3]
    if point.norms - index <= point.half:
        return values.to(torch.bfloat16)
    return values.t() if len(shape) == 2 else values


workload = Workload(
    ticket="B3-CR-05",
    build=build,
    devices=lambda point: point.devices,
    sweep=[
        point(0),
        point(1),
        point(2, large=1),
        point(7),
        point(120, special=1),
        point(1, 1),
        point(3, 5),
        point(9, 2, special=1),
        point(4, 11, half=3),
        point(2, 3, 1),
        point(6, 4, 4, large=1),
        point(3, 9, 8, half=7),
        point(5, 6, 13, half=12),
        point(2, 2, 7, 4),
        point(30, 20, 25),
        point(100, 60),
    ],
)

if __name__ == "__main__":
    main(workload)
