"""A matrix: the verdict on each document in each cell, and where cells do not agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.errors import BadDataError
from finding_tickets.model.vocabulary import SECONDS, Verdict
from finding_tickets.report.text import MARKS, fields_of
from finding_tickets.verify.matrix import Cell, cells, in_cells, labels

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.model.verification import Verification
    from finding_tickets.register.config import MatrixConfig
    from finding_tickets.register.query import Facts
    from finding_tickets.register.staleness import CurrentVerdict
    from finding_tickets.report.rows import ReportRow

VERDICT = "verdict"
UNREADABLE = "unreadable"
NOT_MEASURED = "not measured"


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
            {
                **fields_of(each, "id", "what"),
                "values": [{"value": value, "cells": names} for value, names in each.values],
            }
            for each in self.differences
        ]
        return {
            "cells": [
                {"name": name, **fields_of(cell, "meter", "torch", "device", "revision")}
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


def matrix_of_rows(rows: Iterable[ReportRow], facts: Facts, declared: MatrixConfig) -> VerdictMatrix:
    """The declared matrix of the documents of a report that can be measured, from their evidence."""
    from finding_tickets.register.staleness import own_torch

    measurable = (
        row.stated
        for row in rows
        if row.verification or row.measured.problem or facts.has_verifier(row.stated)
    )
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
    from finding_tickets.register.staleness import CurrentVerdict

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
    from finding_tickets.claims.metrics import ENDINGS

    outcomes: dict[str, dict[str, CellOutcome]] = {VERDICT: {}}
    for name, done in measured.items():
        if done.verdict is not Verdict.INCONCLUSIVE:
            outcomes[VERDICT][name] = CellOutcome(done.verdict, done.verdict, {})
        for claim in done.claims:
            if claim.holds is not None:
                mark, variant = MARKS[claim.holds], done.variants.get(claim.variant)
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
