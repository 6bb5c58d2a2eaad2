"""Workload for TASK-5: host and seed with few gradients and with more than one launch can take."""

from __future__ import annotations

from math import inf, nan

import torch
from torch import nn

from finding_tickets.workload import Point, Workload, main

WIDTH = 8
SPECIAL = (nan, inf, -inf, 0.0, 1.0, 2.0, 3.0, 4.0)


def point(
    host: int, seed: int, *, largest: int = WIDTH, strided: int = 0, mixed: int = 0, devices: int = 1
) -> Point:
    """A point with numbers of gradients; ``sides`` counts the sides that have any, at least two each.

    ``largest`` is the number of elements of the host's first gradient, ``strided`` is 1 where that one is not
    contiguous, ``mixed`` 1 where the host's second has another type, and ``devices`` 2 where the host's
    gradients alternate between two devices.
    """
    sides = (host > 0) + (seed > 0)
    return Point(
        host=host, seed=seed, sides=sides, largest=largest, strided=strided, mixed=mixed, devices=devices
    )


def build(
    point: Point, device: str, generator: torch.Generator
) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The parameters of the host and of the seed; each side has one more that has no gradient.

    At the point without gradients there are no parameters either.
    """
    if not point.sides:
        return [], []
    host = _gradients(point.host, device, generator)
    if point.largest > WIDTH:
        values = torch.rand(point.largest // 2, 2, generator=generator).to(device)
        host[0] = values.t() if point.strided else values
    if point.mixed:
        host[1] = host[1].to(torch.bfloat16)
    if point.devices > 1:
        host[1::2] = [gradient.to(f"{device}:1") for gradient in host[1::2]]
    seed = _gradients(point.seed, device, generator)
    return _parameters(host, device), _parameters(seed, device)


def _gradients(count: int, device: str, generator: torch.Generator) -> list[torch.Tensor]:
    """Small gradients in one allocation: every third is a transposed matrix, and the last is empty.

    Of three sides about one holds NaN or Inf.
    """
    values = torch.rand(count, 2, WIDTH // 2, generator=generator)
    values[:1, 0, 0] = SPECIAL[int(torch.randint(len(SPECIAL), (), generator=generator))]
    rows = values.to(device).unbind()
    gradients = [row.t() if index % 3 == 1 else row for index, row in enumerate(rows)]
    return [*gradients[:-1], *(last[:0] for last in gradients[-1:])]


def _parameters(gradients: list[torch.Tensor], device: str) -> list[nn.Parameter]:
    parameters = [nn.Parameter(torch.ones(3).to(device))]
    for gradient in gradients:
        parameter = nn.Parameter(gradient.detach())
        parameter.grad = gradient
        parameters.append(parameter)
    return parameters


workload = Workload(
    ticket="TASK-5",
    build=build,
    devices=lambda point: point.devices,
    sweep=[
        point(0, 0),
        point(2, 0),
        point(0, 3),
        point(5, 4),
        point(7, 9, largest=1 << 20),
        point(3, 2, largest=100_000),
        point(9, 0, largest=100_000),
        point(5, 200, largest=70_000),
        point(8, 6, largest=1 << 20, strided=1),
        point(50, 2),
        point(100, 40),
        point(13, 6, mixed=1),
        point(129, 30, mixed=1),
        point(60, 0, mixed=1),
        point(401, 3),
        point(1000, 11),
        point(4, 800),
        point(3, 90),
        point(11, 250),
        point(6, 5, devices=2),
        point(9, 0, devices=2),
        point(20, 7, devices=2),
    ],
)

if __name__ == "__main__":
    main(workload)
