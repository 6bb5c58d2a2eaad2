"""The cells of a matrix: where to measure. They are known before anything is measured."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from finding_tickets.documents.reading import Document
from finding_tickets.measure.tasks import SIMULATED_DEVICE
from finding_tickets.model.verification import Verification
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.config import CUDA, SIMULATED, MatrixConfig
from finding_tickets.register.staleness import CurrentVerdict, RecordedEvidence, Verdicts, code_inputs

WORK_TREE = "work tree"
_CUDA_VERSION = ", CUDA "


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Where a measurement is made."""

    meter: str
    torch: str
    device: str
    revision: str | None = None  # None for the work tree
    # The absolute path of the Python that has this torch; empty for the tool's own.
    interpreter: str = field(default="", compare=False)
    # What a machine of a cluster must have to have the device.
    resources: Mapping[str, float] = field(default_factory=dict, compare=False)

    @property
    def axes(self) -> tuple[str, str, str]:
        """Device, torch and revision in words; the meter is known from the device."""
        device = SIMULATED if self.meter == SIMULATED else self.device
        return device, f"torch {self.torch}", self.revision or WORK_TREE

    def has(self, measured: Verification | RecordedEvidence) -> bool:
        """Whether a verification is of this cell."""
        # Evidence names a GPU with the version of CUDA, which that of torch decides.
        device = measured.device.partition(_CUDA_VERSION)[0]
        place = measured.meter, measured.torch, device, measured.revision
        return place == (self.meter, self.torch, self.device, self.revision)


def cells(matrix: MatrixConfig, root: Path, own: str) -> tuple[Cell, ...]:
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
        Cell(meter=meter, torch=torch, device=device, revision=revision, interpreter=python, resources=has)
        for revision in (None, *matrix.revisions)
        for meter, device, has in devices
        for torch, python in interpreters.items()
    )


def labels(cells: Sequence[Cell]) -> dict[Cell, str]:
    """A short name for each cell: what not all of them have in common, or the device of a single one."""
    varying = [place for place in range(3) if len({cell.axes[place] for cell in cells}) > 1] or [0]
    return {cell: ", ".join(cell.axes[place] for place in varying) for cell in cells}


def in_cells(
    document: Document, root: Path, folder: str, cells: Sequence[Cell]
) -> dict[Cell, CurrentVerdict]:
    """What is known of a document in each cell of a matrix, from its evidence alone.

    Evidence of a cell is not stale because the torch beside the tool is another one.
    """
    known: dict[Cell, CurrentVerdict] = {}
    verdicts, code = Verdicts(root, folder), code_inputs(document.remediation)
    for revision in dict.fromkeys(cell.revision for cell in cells):
        recorded = verdicts.recorded(document.id.value, code, revision, any_torch=True)
        for cell in (cell for cell in cells if cell.revision == revision):
            found = (
                CurrentVerdict(Verdict.STALE if changed else done.verdict, None, file, done, changed=changed)
                for file, done, changed in recorded
                if cell.has(done)
            )
            # What is fresh comes first, and of that what decides.
            known[cell] = min(
                found,
                key=lambda one: (one.verdict is Verdict.STALE, one.verdict is Verdict.INCONCLUSIVE),
                default=CurrentVerdict(),
            )
    return known
