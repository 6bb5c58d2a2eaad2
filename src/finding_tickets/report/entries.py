"""The register's documents, each beside what the machine measured for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import Verification
from finding_tickets.model.vocabulary import Outcome, Severity, Status
from finding_tickets.register.disposition import outcome_of, status_of
from finding_tickets.register.query import Facts, Measured
from finding_tickets.register.row import Row


@dataclass(frozen=True)
class Entry:
    """One document, its verdict and the verification that the verdict comes from, if there is one.

    ``disagreement`` names the verdicts of meters that differ. ``problem`` is why evidence could not be read.
    ``changed`` names the inputs that made all evidence stale.
    """

    document: Document
    verdict: Verdict
    verification: Verification | None = None
    disagreement: str | None = None
    problem: BadDataError | None = None
    changed: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The document's ID, as it is written there."""
        return self.document.id.value

    @property
    def severity(self) -> Severity | None:
        """How bad a finding is; None for a review and where it is not understood."""
        field = self.document.severity if isinstance(self.document, Ticket) else None
        return field.value if field else None

    @property
    def status(self) -> Status | None:
        """Where a finding stands; None for a review and where it is not understood."""
        return status_of(self.document)

    @property
    def outcome(self) -> Outcome | None:
        """How a finding was resolved."""
        return outcome_of(self.document)


def entries(facts: Facts, rows: Iterable[Row]) -> tuple[Entry, ...]:
    """The documents of rows with their verdicts, in the order of the rows, but for those gone by now."""
    return tuple(each_entry(facts, rows))


def each_entry(facts: Facts, rows: Iterable[Row]) -> Iterator[Entry]:
    """The entries of rows, each read when it is asked for."""
    for row in rows:
        document = facts.document(row)
        if document:
            yield _entry(document, facts.measured(row))


def _entry(document: Document, measured: Measured) -> Entry:
    return Entry(
        document,
        measured.verdict,
        measured.verification,
        measured.disagreement,
        measured.problem,
        measured.changed,
    )
