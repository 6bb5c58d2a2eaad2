"""What a report is made of: tables and lists computed from rows, with no file and no clock read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from finding_tickets.model.problem import Problem
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import ClaimResult, Verification
from finding_tickets.model.vocabulary import Severity
from finding_tickets.register import row as register
from finding_tickets.register.disposition import DISPOSITIONS, UNDECIDED, UNSETTLED, disposed
from finding_tickets.register.query import Facts, Measured
from finding_tickets.report.entries import Entry, each_entry
from finding_tickets.report.measured import Change, changes, refuted

SUM = "sum"
REVIEW = "review"
NEXT_STEP = {
    Verdict.VERIFIED: "close it: what it claims is measured",
    Verdict.REFUTED: "restate it: the code does not do what the finding says",
    Verdict.FAILED: "mend the fix: it does not do what is claimed",
    Verdict.REPRODUCED: "write a fix: the finding is measured",
    Verdict.INCONCLUSIVE: "make it measurable",
    Verdict.STALE: "measure it again: something it depends on has changed",
    Verdict.UNVERIFIED: "measure it",
}


class Profile(StrEnum):
    """What a report in SARIF is for: everything, or what GitHub is to show."""

    FULL = "full"
    GITHUB = "github"


@dataclass(frozen=True)
class CrossTable:
    """Counts by two properties; the last row and column are sums, the last cell is the denominator."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One document of the report.

    Attributes:
        stated: What the document says of itself, as lists and queries know it.
        measured: Its verdict, and the verification that comes from if there is one.
        severity: ``P0`` to ``P4``, ``not stated``, or ``review`` for an implementation review.
        disposition: What people decided, ``not stated``, or ``review``.
        changes: Its laws before and after the fix, of each metric that is claimed.
        contradictions: Where lint finds that the document contradicts itself.
    """

    stated: register.Row
    measured: Measured
    severity: str
    disposition: str
    changes: tuple[Change, ...] = ()
    contradictions: tuple[Problem, ...] = ()

    @property
    def id(self) -> str:
        """The ID, as the register spells it."""
        return self.stated.id

    @property
    def title(self) -> str:
        """The title, without the words that only say what kind of document it is."""
        return self.stated.title

    @property
    def path(self) -> str:
        """The file, from the register's root."""
        return self.stated.path

    @property
    def verdict(self) -> Verdict:
        """What was measured."""
        return self.measured.verdict

    @property
    def verification(self) -> Verification | None:
        """The verification that the verdict comes from."""
        return self.measured.verification

    @property
    def reason(self) -> str:
        """Why the verdict is what it is; empty without a verification."""
        return self.verification.reason if self.verification else ""

    @property
    def disagreement(self) -> str:
        """The verdicts of meters that differ; empty where they do not."""
        return self.measured.disagreement or ""


@dataclass(frozen=True)
class RefutedClaim:
    """A claim that measuring has shown to be false."""

    ticket: str
    claim: ClaimResult


@dataclass(frozen=True)
class Work:
    """A document that is not settled, and what would settle it."""

    row: Row
    step: str


@dataclass(frozen=True, slots=True)
class Changed:
    """Something that a document states, or its verdict, before and now; empty where it was not stated."""

    id: str
    what: str
    before: str
    now: str


@dataclass(frozen=True)
class Since:
    """What is different from a revision.

    Attributes:
        revision: As it was asked for.
        commit: Its whole id.
        added: IDs of documents that were not there.
        removed: IDs of documents that are not there any more.
        changed: Severities, dispositions and verdicts that were others.
    """

    revision: str
    commit: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[Changed, ...]


@dataclass(frozen=True)
class Status:
    """The status of a register; every table counts the same ``total`` documents.

    ``query`` chose them; it is empty where they are all there are. ``since`` is there where it was asked for.
    """

    total: int
    by_disposition: CrossTable
    by_verdict: CrossTable
    rows: tuple[Row, ...]
    refuted: tuple[RefutedClaim, ...]
    open_work: tuple[Work, ...]
    query: str = ""
    since: Since | None = None


@dataclass(frozen=True)
class Report:
    """What a writer of a report is given.

    Attributes:
        facts: The register that the report is about.
        status: Its tables and lists.
        template: The name of the template to fill in, where the format has one.
        profile: What a report in SARIF is for.
    """

    facts: Facts
    status: Status
    template: str = ""
    profile: Profile = Profile.FULL

    @property
    def rows(self) -> tuple[Row, ...]:
        """One for each document, in the order of the query."""
        return self.status.rows

    @property
    def query(self) -> str:
        """What chose the documents; empty where they are all there are."""
        return self.status.query

    @property
    def since(self) -> Since | None:
        """What is different from the revision that was asked for, if one was."""
        return self.status.since

    @property
    def templates(self) -> Path:
        """The folder of the register's own templates, which come first."""
        return self.facts.root / self.facts.config.templates

    def entries(self) -> Iterator[Entry]:
        """Each document whole, read when it is asked for and not kept; those gone by now are left out."""
        return each_entry(self.facts, (row.stated for row in self.rows))


def row_of(stated: register.Row, measured: Measured) -> Row:
    """The row of one document."""
    finding = stated.kind == "finding"
    return Row(
        stated=stated,
        measured=measured,
        severity=(stated.severity or UNDECIDED) if finding else REVIEW,
        disposition=disposed(stated.status, stated.outcome) if finding else REVIEW,
        changes=tuple(changes(measured.verification)) if measured.verification else (),
    )


def status(rows: Iterable[Row], query: str = "") -> Status:
    """The status of the documents that are ``rows``, in their order."""
    rows = tuple(rows)
    severities = [*Severity, UNDECIDED, REVIEW]
    return Status(
        total=len(rows),
        by_disposition=cross(rows, "severity", severities, "disposition", [*DISPOSITIONS, UNDECIDED, REVIEW]),
        by_verdict=cross(rows, "severity", severities, "verdict", list(Verdict)),
        rows=rows,
        refuted=tuple(RefutedClaim(row.id, claim) for row in rows for claim in _refuted(row)),
        open_work=tuple(_work(rows)),
        query=query,
    )


def cross(
    items: Sequence[Row], down: str, names: Sequence[str], across: str, columns: Sequence[str]
) -> CrossTable:
    """Count items by two of their attributes, in the order given; names that no item has are left out."""
    cells = Counter((getattr(item, down), getattr(item, across)) for item in items)
    present = [column for column in columns if any(cells[name, column] for name in names)]
    rows = [(str(name), [cells[name, column] for column in present]) for name in names]
    rows = [(name, counts) for name, counts in rows if any(counts)]
    rows.append((SUM, [sum(counts) for counts in zip(*(counts for _, counts in rows), strict=True)]))
    return CrossTable(
        (*map(str, present), SUM), tuple((name, (*counts, sum(counts))) for name, counts in rows)
    )


def _refuted(row: Row) -> Sequence[ClaimResult]:
    return refuted(row.verification) if row.verification else ()


def _work(rows: Sequence[Row]) -> list[Work]:
    """Unsettled documents, the worst first; a settled one only where its measurement speaks against it."""
    against = {Verdict.REFUTED, Verdict.FAILED, Verdict.STALE, Verdict.INCONCLUSIVE}
    work = [
        Work(row, NEXT_STEP[row.verdict])
        for row in rows
        if row.stated.status in UNSETTLED or row.verdict in against
    ]
    return sorted(work, key=lambda item: item.row.severity)
