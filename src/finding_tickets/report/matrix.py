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
    from finding_tickets.model.verification import Sample, Verification
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
    return done.verdict is not Verdict.INCONCLUSIVE or any(claim.holds is not None for claim in done.claims)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How a verdict or a claim came out in a cell, and in words what was measured.

    ``samples`` are those of the variant that a claim is about, of which it is about ``metric``.
    """

    result: str
    text: str
    metric: str = ""
    samples: tuple[Sample, ...] = ()

    @property
    def counts(self) -> Mapping[frozenset[tuple[str, int]], int | None]:
        """By the points that were measured; None of results, which are compared and not counted."""
        from finding_tickets.claims.fitting import ENDINGS

        done = (each for each in self.samples if each.error is None or self.metric in ENDINGS)
        return {frozenset(each.at.items()): each.metrics.get(self.metric) for each in done}

    def agrees(self, other: _Outcome) -> bool:
        """Whether both say the same; where they have other points, what is said of those that both have.

        These may be more than the claim is about, which evidence does not tell.
        """
        if self.result != other.result:
            return False
        if self.text == other.text:
            return True
        here, there = self.counts, other.counts
        both = here.keys() & there.keys()
        return here.keys() != there.keys() and all(here[at] == there[at] for at in both)


def _differences(
    ticket: str, measured: Mapping[Cell, Verification], names: Mapping[Cell, str]
) -> Iterator[Difference]:
    """Verdicts that differ, and claims; what was left open in a cell is neither agreement nor the reverse."""
    found: dict[str, dict[str, _Outcome]] = {VERDICT: {}}
    for cell, done in measured.items():
        for what, outcome in _outcomes(done):
            found.setdefault(what, {})[names[cell]] = outcome
    for what, outcomes in found.items():
        groups = _agreeing(outcomes)
        if len(groups) > 1:
            yield Difference(ticket, what, tuple((_text(group), tuple(group)) for group in groups))


def _outcomes(done: Verification) -> Iterator[tuple[str, _Outcome]]:
    """What was decided, each by what it is about; of times, which are never the same, the result alone."""
    if done.verdict is not Verdict.INCONCLUSIVE:
        yield VERDICT, _Outcome(done.verdict, done.verdict)
    for claim in done.claims:
        if claim.holds is not None:
            mark, variant = MARKS[claim.holds], done.variants.get(claim.variant)
            text = mark if claim.metric == SECONDS else f"{claim.measured} ({mark})"
            yield claim.id, _Outcome(mark, text, claim.metric, variant.samples if variant else ())


def _agreeing(outcomes: Mapping[str, _Outcome]) -> list[dict[str, _Outcome]]:
    """Outcomes by cells, in groups in which each agrees with all; one that fits several is in the first."""
    groups: list[dict[str, _Outcome]] = []
    for name, outcome in outcomes.items():
        fitting = (group for group in groups if all(map(outcome.agrees, group.values())))
        if (group := next(fitting, None)) is None:
            groups.append(group := {})
        group[name] = outcome
    return groups


def _text(group: Mapping[str, _Outcome]) -> str:
    """What the cell says that was measured at most points."""
    return max(group.values(), key=lambda outcome: len(outcome.counts)).text
