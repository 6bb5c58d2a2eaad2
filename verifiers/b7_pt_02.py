"""Workload for B7-PT-02: a model whose parameters differ in type, layout, size and device."""

from __future__ import annotations

from math import inf, nan, prod

import torch
from torch import nn

from finding_tickets.workload import Point, Workload, main

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
SPECIAL = (nan, inf, -inf, 1.0)


def shapes(params: int, largest: int, width: int) -> list[tuple[int, int]]:
    """The first parameter has ``largest`` elements, the second none, others 2 rows of ``width`` and more."""
    return [(2, largest // 2), (0, 3), *((2, width + index % 3) for index in range(2, params))][:params]


def point(
    params: int, grads: int, largest: int, *, width: int = 2, devices: int = 1, strided: int = 0
) -> Point:
    """A point whose ``total`` is the number of elements in all weights and gradients.

    ``grads`` counts the parameters that have a gradient, ``devices`` the devices that hold parameters,
    ``strided`` the parameters that are not contiguous, the first one among them, ``empty`` the weights and
    gradients without elements.
    """
    sizes = [prod(shape) for shape in shapes(params, largest, width)]
    looked_at = sizes + sizes[:grads]
    return Point(
        params=params,
        grads=grads,
        devices=devices,
        largest=largest,
        total=sum(looked_at),
        width=width,
        strided=strided,
        empty=looked_at.count(0),
    )


def build(point: Point, device: str, generator: torch.Generator) -> tuple[nn.Module]:
    """A model at ``point``: some parameters hold NaN or Inf, and a counter is no parameter at all."""
    model = nn.Module()
    model.register_buffer("steps", torch.zeros((), dtype=torch.int64).to(device))
    special = torch.randint(len(SPECIAL), (point.params, 2), generator=generator).tolist()
    for index, shape in enumerate(shapes(point.params, point.largest, point.width)):
        place = f"{device}:{index % point.devices}" if point.devices > 1 else device
        weight, gradient = (
            _values(point, index, shape, SPECIAL[which], generator).to(place) for which in special[index]
        )
        parameter = nn.Parameter(weight)
        parameter.grad = gradient if index < point.grads else None
        model.register_parameter(f"parameter{index}", parameter)
    return (model,)


def _values(
    point: Point, index: int, shape: tuple[int, ...], last: float, generator: torch.Generator
) -> torch.Tensor:
    values = torch.rand(shape, generator=generator).to(DTYPES[index % len(DTYPES)])
    values[..., -1:] = last
    # The second parameter is contiguous in any order, as it has no elements.
    return values.t().contiguous().t() if index <= point.strided > 0 else values


workload = Workload(
    ticket="B7-PT-02",
    build=build,
    devices=lambda point: max(point.devices, 1),
    sweep=[
        point(0, 0, 0, devices=0),
        point(1, 1, 300),
        point(4, 4, 2000, width=500),
        point(5, 1, 70_000, width=20_000),
        point(7, 7, 500, width=200),
        point(12, 5, 90, width=40),
        point(14, 0, 1000, width=300),
        point(20, 20, 60, width=25),
        point(30, 30, 24),
        point(64, 20, 40),
        point(90, 45, 60),
        point(100, 100, 230),
        point(6, 5, 1 << 20),
        point(9, 4, 5000, width=1500, devices=2),
        point(16, 16, 900, width=300, devices=3),
        point(10, 7, 300, width=90, devices=4),
        point(8, 8, 400, width=150, strided=2),
        point(11, 6, 128, width=40, strided=5),
        point(7, 3, 1 << 20, strided=1),
    ],
)

if __name__ == "__main__":
    main(workload)
