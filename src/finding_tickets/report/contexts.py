"""What a status report is made of: tables and lists computed from entries, with no file and no clock read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from finding_tickets.model.ticket import Ticket
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import ClaimResult
from finding_tickets.model.vocabulary import Severity
from finding_tickets.register.disposition import DISPOSITIONS, UNDECIDED, UNSETTLED, disposition
from finding_tickets.report.entries import Entry
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


@dataclass(frozen=True)
class CrossTable:
    """Counts by two properties; the last row and column are sums, the last cell is the denominator."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Row:
    """One document of the report.

    ``changes`` are its laws before and after the fix, ``disagreement`` the verdicts of meters that differ.
    """

    id: str
    title: str
    path: str
    severity: str
    disposition: str
    verdict: Verdict
    reason: str
    changes: tuple[Change, ...]
    disagreement: str = ""


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


@dataclass(frozen=True)
class Status:
    """The status of a register; every table counts the same ``total`` documents.

    ``query`` chose them; it is empty where they are all there are.
    """

    total: int
    by_disposition: CrossTable
    by_verdict: CrossTable
    rows: tuple[Row, ...]
    refuted: tuple[RefutedClaim, ...]
    open_work: tuple[Work, ...]
    query: str = ""


def status(entries: Sequence[Entry], query: str = "") -> Status:
    """The status of the documents that are ``entries``, in their order."""
    rows = [_row(entry) for entry in entries]
    severities = [*Severity, UNDECIDED, REVIEW]
    return Status(
        total=len(entries),
        by_disposition=cross(rows, "severity", severities, "disposition", [*DISPOSITIONS, UNDECIDED, REVIEW]),
        by_verdict=cross(rows, "severity", severities, "verdict", list(Verdict)),
        rows=tuple(rows),
        refuted=tuple(RefutedClaim(entry.id, claim) for entry in entries for claim in _refuted(entry)),
        open_work=tuple(_work(entries, rows)),
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


def _row(entry: Entry) -> Row:
    finding = isinstance(entry.document, Ticket)
    measured = entry.verification
    return Row(
        id=entry.id,
        title=entry.document.title.value,
        path=entry.document.path,
        severity=(entry.severity or UNDECIDED) if finding else REVIEW,
        disposition=disposition(entry.document) if finding else REVIEW,
        verdict=entry.verdict,
        reason=measured.reason if measured else "",
        changes=tuple(changes(measured)) if measured else (),
        disagreement=entry.disagreement or "",
    )


def _refuted(entry: Entry) -> Sequence[ClaimResult]:
    return refuted(entry.verification) if entry.verification else ()


def _work(entries: Sequence[Entry], rows: Sequence[Row]) -> list[Work]:
    """Unsettled documents, the worst first; a settled one only where its measurement speaks against it."""
    against = {Verdict.REFUTED, Verdict.FAILED, Verdict.STALE, Verdict.INCONCLUSIVE}
    work = [
        Work(row, NEXT_STEP[row.verdict])
        for entry, row in zip(entries, rows, strict=True)
        if entry.status in UNSETTLED or row.verdict in against
    ]
    return sorted(work, key=lambda item: item.row.severity)
