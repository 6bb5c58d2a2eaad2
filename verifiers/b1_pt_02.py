"""Workload for B1-PT-02: roll a model back while other streams may still be writing its parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from finding_tickets.workload import Point, Workload, main

DTYPES = (torch.float32, torch.bfloat16, torch.int64)
LARGE = 1 << 20


class Host(nn.Module):
    """A model whose state holds tensors of many kinds and one value that is no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch = 0

    def get_extra_state(self) -> int:
        """The epoch, saved beside the tensors."""
        return self.epoch

    def set_extra_state(self, state: int) -> None:
        """Take back a saved epoch."""
        self.epoch = state


def point(
    tensors: int, pageable: int = 0, *, written: int = 0, remote: int = 0, elsewhere: int = 0, large: int = 0
) -> Point:
    """A point with ``tensors`` tensors that hold elements, and an empty one if there are any.

    ``pageable`` counts those saved in pageable memory, ``remote`` those that live on a second device. While
    the rollback runs, side streams write ``written`` parameters of the first device and ``elsewhere`` of the
    second. ``large`` is 1 where a tensor has a million elements.
    """
    return Point(
        tensors=tensors,
        pageable=pageable,
        written=written,
        remote=remote,
        elsewhere=elsewhere,
        devices=2 if remote else 1,
        large=large,
    )


def build(
    point: Point, device: str, generator: torch.Generator
) -> tuple[nn.Module, dict[str, Any], torch.device]:
    """A model, its saved state in host memory, and the device to roll back on.

    Every second parameter of a type that can have a gradient has one; a rollback leaves gradients alone.
    """
    model = Host()
    for index in range(point.tensors):
        place = f"{device}:1" if index < point.remote else device
        values = _values(point, index, generator).to(place)
        parameter = nn.Parameter(values, requires_grad=values.is_floating_point())
        if parameter.requires_grad and index % 2 == 0:
            parameter.grad = torch.ones_like(values)
        model.register_parameter(f"tensor{index}", parameter)
    if point.tensors:
        model.register_parameter("nothing", nn.Parameter(torch.empty(0).to(device)))
    pinned = {f"tensor{index}" for index in range(point.pageable, point.tensors) if device != "cpu"}
    saved = {name: _save(value, pin=name in pinned) for name, value in model.state_dict().items()}
    parameters = list(model.parameters())
    if device != "cpu":
        _write_on_a_side_stream(parameters[: point.elsewhere])
        _write_on_a_side_stream(parameters[point.remote : point.remote + point.written])
    return model, saved, torch.device(device)


def _values(point: Point, index: int, generator: torch.Generator) -> torch.Tensor:
    size = LARGE if point.large and not index else 3 + index
    values = torch.rand(2, size, generator=generator).to(DTYPES[index % len(DTYPES)])
    return values.t() if index % 2 else values


def _save(value: Any, *, pin: bool) -> Any:
    """What was good once: other values than the model's, in host memory."""
    if not isinstance(value, torch.Tensor):
        return value + 1
    saved = value.cpu() + 1
    return saved.pin_memory() if pin else saved


def _write_on_a_side_stream(parameters: Iterable[nn.Parameter]) -> None:
    """Start writes that the current stream knows nothing of, once what it has made so far is there."""
    for parameter in parameters:
        side = torch.cuda.Stream(parameter.device)  # type: ignore[no-untyped-call]  # torch has no types here
        side.wait_stream(torch.cuda.current_stream(parameter.device))
        with torch.cuda.stream(side):
            parameter.data.mul_(2)


workload = Workload(
    ticket="B1-PT-02",
    build=build,
    read=lambda model: model.state_dict(),
    devices=lambda point: point.devices,
    sweep=[
        point(0),
        point(1),
        point(1, 1),
        point(4, large=1),
        point(6, 6),
        point(9, 2),
        point(20, 11),
        point(5, written=2),
        point(12, 3, written=7),
        point(8, 8, written=8),
        point(7, remote=3),
        point(10, 4, remote=5, written=2),
        point(11, remote=6, elsewhere=4),
        point(9, 5, remote=7, elsewhere=7),
        point(14, 14, remote=8, elsewhere=2, large=1),
        point(13, 1, remote=2, written=3, elsewhere=1),
    ],
)

if __name__ == "__main__":
    main(workload)
