"""A matrix: the cells where documents are measured, the verdicts there, and where cells do not agree."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.claims.metrics import ENDINGS
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.measure.tasks import SIMULATED_DEVICE
from finding_tickets.model.verification import Verification
from finding_tickets.model.vocabulary import SECONDS, Verdict
from finding_tickets.register.config import CUDA, SIMULATED, MatrixConfig
from finding_tickets.register.staleness import (
    CurrentVerdict,
    RecordedEvidence,
    Verdicts,
    code_inputs,
    own_torch,
)

if TYPE_CHECKING:
    from finding_tickets.register.index import Row
    from finding_tickets.register.query import Facts

WORK_TREE = "work tree"
VERDICT = "verdict"
UNREADABLE = "unreadable"
NOT_MEASURED = "not measured"
AXES = ("meter", "torch", "device", "revision")
"""What tells cells apart."""
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
        return place == tuple(getattr(self, axis) for axis in AXES)


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


@dataclass(frozen=True, slots=True)
class MatrixLine:
    """What is known of a document, cell by cell: a verdict, or that its evidence cannot be read."""

    id: str
    states: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The states for people, to whom a cell without evidence is one that was not measured."""
        return tuple(NOT_MEASURED if state == Verdict.UNVERIFIED else state for state in self.states)


@dataclass(frozen=True, slots=True)
class MatrixDifference:
    """What cells do not agree on: the verdict of a document, or one of its claims by its ID.

    ``values`` has each value with the names of the cells that have it.
    """

    id: str
    what: str
    values: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def text(self) -> str:
        """One line: ``A-1 fix.syncs: 1 (holds) in torch 2.13.0; 2 (false) in torch 2.11.0``."""
        values = (f"{value} in {' and '.join(names)}" for value, names in self.values)
        return f"{self.id} {self.what}: {'; '.join(values)}"


@dataclass(frozen=True, slots=True)
class VerdictMatrix:
    """Documents by cells, each with its name.

    ``compared`` is how many documents have a measurement that holds today in more than one cell. ``problems``
    say why evidence could not be read.
    """

    cells: Mapping[Cell, str]
    lines: tuple[MatrixLine, ...]
    differences: tuple[MatrixDifference, ...]
    compared: int
    problems: tuple[BadDataError, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the cells."""
        return tuple(self.cells.values())

    @property
    def summary(self) -> str:
        """How many documents could be compared, and on how many of them the cells agree."""
        if not self.compared:
            return "no document is measured in more than one cell"
        agreeing = self.compared - len({difference.id for difference in self.differences})
        noun = "document that is" if self.compared == 1 else "documents that are"
        return f"the cells agree on {agreeing} of {self.compared} {noun} measured in more than one"

    @property
    def item(self) -> dict[str, object]:
        """The matrix as JSON has it."""
        differences = [
            {**asdict(each), "values": [{"value": value, "cells": names} for value, names in each.values]}
            for each in self.differences
        ]
        return {
            "cells": [
                {"name": name, **{axis: getattr(cell, axis) for axis in AXES}}
                for cell, name in self.cells.items()
            ],
            "documents": [{"id": line.id, "verdicts": line.states} for line in self.lines],
            "differences": differences,
            "compared": self.compared,
        }


@dataclass(frozen=True, slots=True)
class CellOutcome:
    """How a verdict or a claim came out in a cell, and in words what was measured.

    ``counts`` are by the points that were measured; None of results, which are compared and not counted.
    """

    result: str
    text: str
    counts: Mapping[frozenset[tuple[str, int]], int | None]

    def agrees(self, other: CellOutcome) -> bool:
        """Whether both say the same; where they have other points, what is said of those that both have.

        These may be more than the claim is about, which evidence does not tell.
        """
        if self.result != other.result:
            return False
        # Laws that are written alike need no comparison of samples.
        if self.text == other.text:
            return True
        here, there = self.counts, other.counts
        # A device may not have been able to run all points.
        both = here.keys() & there.keys()
        return here.keys() != there.keys() and all(here[at] == there[at] for at in both)


def matrix_of_rows(rows: Iterable[Row], facts: Facts, declared: MatrixConfig) -> VerdictMatrix:
    """The declared matrix of the documents of a report that can be measured, from their evidence."""
    known = ((row, facts.measured(row)) for row in rows)
    measurable = (row for row, now in known if now.verification or now.problem or facts.has_verifier(row))
    documents = (each for each in map(facts.document, measurable) if each)
    columns = cells(declared, facts.root.resolve(), own_torch())
    return matrix_of_documents(documents, columns, facts.root, facts.config.evidence)


def matrix_of_documents(
    documents: Iterable[Document],
    columns: Sequence[Cell],
    root: Path,
    folder: str,
    verified: Iterable[Verification] = (),
) -> VerdictMatrix:
    """The matrix by the evidence in ``folder``, and by verifications of this run that may have left none."""
    names = labels(columns)
    now: dict[str, dict[Cell, CurrentVerdict]] = {}
    for each in verified:
        here = {cell: CurrentVerdict(each.verdict, each) for cell in columns if cell.has(each)}
        now.setdefault(each.ticket, {}).update(here)
    lines, differences, problems, compared = [], [], [], 0
    for document in documents:
        ticket = document.id.value
        try:
            states = in_cells(document, root, folder, columns) | now.get(ticket, {})
        except BadDataError as error:
            # The exit code tells of evidence that cannot be read; the matrix is still shown.
            problems.append(error)
            lines.append(MatrixLine(ticket, (UNREADABLE,) * len(columns)))
            continue
        lines.append(MatrixLine(ticket, tuple(states[cell].verdict.value for cell in columns)))
        measured = {
            names[cell]: state.verification
            for cell, state in states.items()
            # What is stale cannot be compared, nor what decided nothing.
            if state.verification and state.verdict not in {Verdict.STALE, Verdict.UNVERIFIED}
            if state.verification.verdict is not Verdict.INCONCLUSIVE
            or any(claim.holds is not None for claim in state.verification.claims)
        }
        # A cell that agrees with no other says nothing about agreement.
        compared += len(measured) > 1
        differences += _differences(ticket, measured)
    return VerdictMatrix(names, tuple(lines), tuple(differences), compared, tuple(problems))


def _differences(ticket: str, measured: Mapping[str, Verification]) -> list[MatrixDifference]:
    """Verdicts that differ, and claims; what was left open in a cell is neither agreement nor the reverse."""
    outcomes: dict[str, dict[str, CellOutcome]] = {VERDICT: {}}
    for name, done in measured.items():
        if done.verdict is not Verdict.INCONCLUSIVE:
            outcomes[VERDICT][name] = CellOutcome(done.verdict, done.verdict, {})
        for claim in done.claims:
            if claim.holds is not None:
                variant = done.variants.get(claim.variant)
                mark = "holds" if claim.holds else "false"
                # Times are never the same: of those the result alone is compared.
                text = mark if claim.metric == SECONDS else f"{claim.measured} ({mark})"
                # A run that raised counted only a part, unless the claim is about how runs end.
                counts = {
                    frozenset(each.at.items()): each.metrics.get(claim.metric)
                    for each in (variant.samples if variant else ())
                    if each.error is None or claim.metric in ENDINGS
                }
                outcomes.setdefault(claim.id, {})[name] = CellOutcome(mark, text, counts)
    found = []
    for what, by_cell in outcomes.items():
        # Cells are put in groups in which each agrees with all; one that fits several is in the first.
        groups: list[dict[str, CellOutcome]] = []
        for name, outcome in by_cell.items():
            fitting = (group for group in groups if all(map(outcome.agrees, group.values())))
            if (group := next(fitting, None)) is None:
                groups.append(group := {})
            group[name] = outcome
        if len(groups) > 1:
            # Of a group, the cell that was measured at most points says what was measured.
            said = [max(group.values(), key=lambda outcome: len(outcome.counts)).text for group in groups]
            values = tuple((text, tuple(group)) for text, group in zip(said, groups, strict=True))
            found.append(MatrixDifference(ticket, what, values))
    return found
