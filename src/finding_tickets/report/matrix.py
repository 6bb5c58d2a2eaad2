"""A matrix: the verdict on each document in each cell, and where cells do not agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

from finding_tickets.errors import BadDataError
from finding_tickets.model.remediation import SECONDS
from finding_tickets.model.verdict import Verdict
from finding_tickets.register.matrix import CUDA
from finding_tickets.report.verification import MARKS
from finding_tickets.verify.cells import Cell, cells, labels

if TYPE_CHECKING:
    from finding_tickets.model.verification import ClaimResult, Verification
    from finding_tickets.register.matrix import Matrix as Declared
    from finding_tickets.register.query import Facts
    from finding_tickets.report.rows import Row
    from finding_tickets.verify.evidence import Current

VERDICT = "verdict"
UNREADABLE = "unreadable"
NOT_MEASURED = "not measured"
_SAYS_NOTHING = {Verdict.STALE, Verdict.UNVERIFIED}


class CellItem(TypedDict):
    """A column of the matrix; `revision` is null for the work tree."""

    name: str
    meter: Literal["simulated", "cuda"]
    torch: str
    device: str
    revision: str | None


class LineItem(TypedDict):
    """A verdict for each cell: `stale`, `unverified` where nothing was measured, or `unreadable`."""

    id: str
    verdicts: list[str]


class ValueItem(TypedDict):
    """What was measured in some of the cells, by their names."""

    value: str
    cells: list[str]


class DifferenceItem(TypedDict):
    """What the cells do not agree on: the `verdict` of a document, or a claim by its ID."""

    id: str
    what: str
    values: list[ValueItem]


class MatrixItem(TypedDict):
    """Documents by cells; `compared` have a measurement that holds today in more than one."""

    cells: list[CellItem]
    documents: list[LineItem]
    differences: list[DifferenceItem]
    compared: int


@dataclass(frozen=True, slots=True)
class Line:
    """What is known of a document, cell by cell: a verdict, or that its evidence cannot be read."""

    id: str
    states: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The states for people, to whom a cell without evidence is one that was not measured."""
        return tuple(NOT_MEASURED if state == Verdict.UNVERIFIED else state for state in self.states)


@dataclass(frozen=True, slots=True)
class Difference:
    """What cells do not agree on: the verdict of a document, or one of its claims by its ID.

    ``values`` has each value with the names of the cells that have it.
    """

    id: str
    what: str
    values: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def text(self) -> str:
        """One line: ``A-1 fix.syncs: 1 (holds) in torch 2.13.0; 2 (false) in torch 2.11.0``."""
        values = (f"{value} in {' and '.join(cells)}" for value, cells in self.values)
        return f"{self.id} {self.what}: {'; '.join(values)}"


@dataclass(frozen=True)
class Matrix:
    """Documents by cells.

    Attributes:
        cells: The cells, each with its name.
        lines: Every document that has a verifier or evidence.
        differences: Where cells do not agree.
        compared: How many documents have a measurement that holds today in more than one cell.
        problems: Why evidence could not be read.
    """

    cells: Mapping[Cell, str]
    lines: tuple[Line, ...]
    differences: tuple[Difference, ...]
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
    def item(self) -> MatrixItem:
        """The matrix as JSON has it."""
        return MatrixItem(
            cells=[
                {
                    "name": name,
                    "meter": "cuda" if cell.meter == CUDA else "simulated",
                    "torch": cell.torch,
                    "device": cell.device,
                    "revision": cell.revision,
                }
                for cell, name in self.cells.items()
            ],
            documents=[{"id": line.id, "verdicts": list(line.states)} for line in self.lines],
            differences=[
                {
                    "id": each.id,
                    "what": each.what,
                    "values": [{"value": value, "cells": list(cells)} for value, cells in each.values],
                }
                for each in self.differences
            ],
            compared=self.compared,
        )


def recorded(rows: Iterable[Row], facts: Facts, declared: Declared) -> Matrix:
    """The declared matrix of the documents of a report, from their evidence."""
    from finding_tickets.verify.evidence import own_torch

    columns = cells(declared, facts.root.resolve(), own_torch())
    known: dict[str, Mapping[Cell, Current] | None] = {}
    problems = []
    for row in rows:
        if row.verification or row.measured.problem or facts.has_verifier(row.stated):
            try:
                known[row.id] = _recorded(row, facts, columns)
            except BadDataError as error:
                known[row.id] = None
                problems.append(error)
    return matrix(columns, known, problems)


def _recorded(row: Row, facts: Facts, columns: Sequence[Cell]) -> Mapping[Cell, Current]:
    from finding_tickets.verify.evidence import Current, in_cells

    document = facts.document(row.stated)
    if document is None:
        return {cell: Current(Verdict.UNVERIFIED) for cell in columns}
    return in_cells(document, facts.root, facts.config.evidence, columns)


def matrix(
    columns: Sequence[Cell],
    known: Mapping[str, Mapping[Cell, Current] | None],
    problems: Sequence[BadDataError] = (),
) -> Matrix:
    """The matrix of what is known by the IDs of documents; None of one whose evidence cannot be read."""
    names = labels(columns)
    readable = {each: current for each, current in known.items() if current is not None}
    measured = {each: _measured(current) for each, current in readable.items()}
    return Matrix(
        cells=names,
        lines=tuple(Line(each, tuple(_states(current, columns))) for each, current in known.items()),
        differences=tuple(
            difference for each, done in measured.items() for difference in _differences(each, done, names)
        ),
        compared=sum(len(done) > 1 for done in measured.values()),
        problems=tuple(problems),
    )


def _states(known: Mapping[Cell, Current] | None, columns: Sequence[Cell]) -> Iterator[str]:
    for cell in columns:
        yield known[cell].verdict.value if known else UNREADABLE


def _measured(known: Mapping[Cell, Current]) -> dict[Cell, Verification]:
    """The verifications that can be compared: fresh ones that decided something."""
    return {
        cell: current.verification
        for cell, current in known.items()
        if current.verification and current.verdict not in _SAYS_NOTHING and _decides(current.verification)
    }


def _decides(done: Verification) -> bool:
    return bool(_verdict(done)) or any(map(_outcome, done.claims))


def _differences(
    ticket: str, measured: Mapping[Cell, Verification], names: Mapping[Cell, str]
) -> Iterator[Difference]:
    """Verdicts that differ, and claims; what was left open in a cell is neither agreement nor the reverse."""
    found = {VERDICT: {cell: _verdict(done) for cell, done in measured.items()}}
    for cell, done in measured.items():
        for claim in done.claims:
            found.setdefault(claim.id, {})[cell] = _outcome(claim)
    for what, values in found.items():
        cells: dict[str, list[str]] = {}
        for cell, value in values.items():
            if value:
                cells.setdefault(value, []).append(names[cell])
        if len(cells) > 1:
            yield Difference(ticket, what, tuple((value, tuple(each)) for value, each in cells.items()))


def _verdict(done: Verification) -> str:
    return "" if done.verdict is Verdict.INCONCLUSIVE else done.verdict


def _outcome(claim: ClaimResult) -> str:
    """What was measured and how the claim came out; of times the latter alone, which are never the same."""
    if claim.holds is None:
        return ""
    mark = MARKS[claim.holds]
    return mark if claim.metric == SECONDS else f"{claim.measured} ({mark})"
