"""The cells of a matrix: everything that decides where a measurement is made, known before any is."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from finding_tickets.measure.report import SIMULATED_DEVICE
from finding_tickets.model.verification import Verification
from finding_tickets.register.matrix import CUDA, SIMULATED, Matrix

WORK_TREE = "work tree"
_CUDA_VERSION = ", CUDA "
"""What evidence names a GPU by ends with the version of CUDA, which that of torch decides."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A meter, a version of torch, a device and a revision, which is None for the work tree.

    ``interpreter`` is the absolute path of the Python that has this torch, and empty for the tool's own.
    ``resources`` is what a machine of a cluster must have to have the device.
    """

    meter: str
    torch: str
    device: str
    revision: str | None = None
    interpreter: str = field(default="", compare=False)
    resources: Mapping[str, float] = field(default_factory=dict, compare=False)

    def has(self, done: Verification) -> bool:
        """Whether a verification was made here."""
        device = done.device.partition(_CUDA_VERSION)[0]
        return (self.meter, self.torch, self.device, self.revision) == (
            done.meter,
            done.torch,
            device,
            done.revision,
        )


def cells(matrix: Matrix, root: Path, own: str) -> tuple[Cell, ...]:
    """Every cell of a matrix, the work tree's first; ``own`` is the version of the torch beside the tool."""
    interpreters = {own: ""} | {
        version: str(Path(root, os.path.expanduser(python)))  # noqa: PTH111 - raises nothing without a home
        for version, python in matrix.torch.items()
    }
    devices: list[tuple[str, str, Mapping[str, float]]] = []
    if SIMULATED in matrix.meters:
        devices.append((SIMULATED, SIMULATED_DEVICE, {}))
    if CUDA in matrix.meters:
        devices += [(CUDA, gpu, resources) for gpu, resources in matrix.gpus.items()]
    return tuple(
        Cell(
            meter=meter,
            torch=version,
            device=device,
            revision=revision,
            interpreter=python,
            resources=resources,
        )
        for revision in (None, *matrix.revisions)
        for meter, device, resources in devices
        for version, python in interpreters.items()
    )


def labels(cells: Sequence[Cell]) -> dict[Cell, str]:
    """A short name for each cell: what not all of them have in common, or the device of a single one."""
    varying = [axis for axis in _AXES if len(set(map(axis, cells))) > 1] or _AXES[:1]
    return {cell: ", ".join(axis(cell) for axis in varying) for cell in cells}


def _device(cell: Cell) -> str:
    return SIMULATED if cell.meter == SIMULATED else cell.device


def _torch(cell: Cell) -> str:
    return f"torch {cell.torch}"


def _revision(cell: Cell) -> str:
    return cell.revision or WORK_TREE


_AXES: tuple[Callable[[Cell], str], ...] = (_device, _torch, _revision)
