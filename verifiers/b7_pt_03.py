"""Workload for B7-PT-03: gradients of many sizes, also where the free memory is in pieces."""

from __future__ import annotations

from math import inf, nan, prod

import torch
from torch import nn

from finding_tickets.workload import Point, Workload, main

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
SPECIAL = (nan, inf, -inf, 0.0, 1.0)
MIB = 1 << 20
PIECE = 2 * MIB // 4
PIECES = 10


def shapes(grads: int, largest: int, width: int) -> list[tuple[int, int]]:
    """The first gradient has ``largest`` elements, the second none, others 2 rows of ``width`` and more."""
    return [(2, largest // 2), (0, 3), *((2, width + index % 3) for index in range(2, grads))][:grads]


def point(
    grads: int, largest: int, *, width: int = 2, frozen: int = 0, devices: int = 1, strided: int = 0
) -> Point:
    """A point whose ``total`` is the number of elements in all gradients.

    ``frozen`` counts parameters without a gradient, ``devices`` the devices that hold gradients, ``strided``
    the gradients that are not contiguous, the first one among them.
    """
    return Point(
        grads=grads,
        frozen=frozen,
        largest=largest,
        total=sum(prod(shape) for shape in shapes(grads, largest, width)),
        devices=devices,
        strided=strided,
        fragmented=0,
        width=width,
    )


def fragmented(grads: int, largest: int) -> Point:
    """A point with gradients of one size, where no free piece of memory takes a copy of them all.

    More than twice as much is free, between the pieces that frozen parameters hold.
    """
    return Point(
        grads=grads,
        frozen=PIECES // 2,
        largest=largest,
        total=grads * largest,
        devices=1,
        strided=0,
        fragmented=1,
        width=0,
    )


def build(point: Point, device: str, generator: torch.Generator) -> tuple[list[nn.Parameter]]:
    """The seed's parameters at ``point``; gradients hold zeros, NaN and Inf."""
    special = torch.randint(len(SPECIAL), (point.grads,), generator=generator).tolist()
    parameters = []
    alike = [(point.largest,)] * point.grads
    for index, shape in enumerate(
        alike if point.fragmented else shapes(point.grads, point.largest, point.width)
    ):
        place = f"{device}:{index % point.devices}" if point.devices > 1 else device
        gradient = _values(point, index, shape, SPECIAL[special[index]], generator).to(place)
        parameter = nn.Parameter(torch.zeros_like(gradient))
        parameter.grad = gradient
        parameters.append(parameter)
    if point.fragmented:
        return (parameters + _leave_holes(device),)
    return (parameters + [nn.Parameter(torch.ones(3).to(device)) for _ in range(point.frozen)],)


def _values(
    point: Point, index: int, shape: tuple[int, ...], last: float, generator: torch.Generator
) -> torch.Tensor:
    values = torch.rand(shape, generator=generator).to(DTYPES[0 if point.fragmented else index % len(DTYPES)])
    values[..., -1:] = last
    # The second gradient is contiguous in any order, as it has no elements.
    return values.t().contiguous().t() if index <= point.strided > 0 else values


def _leave_holes(device: str) -> list[nn.Parameter]:
    """Fill a segment with pieces and give every second one back; the others belong to frozen parameters."""
    pieces = [torch.empty(PIECE).to(device) for _ in range(PIECES)]
    return [nn.Parameter(piece, requires_grad=False) for piece in pieces[::2]]


workload = Workload(
    ticket="B7-PT-03",
    build=build,
    read=lambda statistics: statistics.tolist(),
    devices=lambda point: point.devices,
    # One segment of PIECES pieces, and four of 2 MiB for the gradients and what is made of one of them.
    memory=lambda point: 4 * PIECE * PIECES + 4 * 2 * MIB if point.fragmented else None,
    sweep=[
        point(0, 0),
        point(0, 0, frozen=3),
        point(2, 0),
        point(1, 300),
        point(3, 2000, frozen=1),
        point(4, 70_000, width=30_000),
        point(7, 500, width=200, frozen=2),
        point(12, 90, width=40, frozen=5),
        point(16, 60, width=5),
        point(6, MIB, width=1000, frozen=1),
        point(9, 5000, devices=2),
        point(14, 900, width=300, devices=3, frozen=3),
        point(10, 700, width=20, devices=4),
        point(8, 400, strided=2),
        point(11, 128, width=40, frozen=2, strided=5),
        point(5, MIB, strided=1),
        fragmented(3, 200_000),
        fragmented(3, 180_000),
        fragmented(4, 150_000),
    ],
)

if __name__ == "__main__":
    main(workload)
