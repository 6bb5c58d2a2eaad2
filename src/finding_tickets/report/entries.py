"""The register's documents, each beside what the machine measured for it."""

from __future__ import annotations

from dataclasses import dataclass

from finding_tickets.errors import BadDataError
from finding_tickets.markdown.reading import Document
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import Verification
from finding_tickets.model.vocabulary import Outcome, Severity, Status
from finding_tickets.register.disposition import outcome_of, status_of
from finding_tickets.register.load import Register
from finding_tickets.register.measured import measured


@dataclass(frozen=True)
class Entry:
    """One document, its verdict and the verification that the verdict comes from, if there is one.

    ``disagreement`` names the verdicts of meters that differ. ``problem`` is why evidence could not be read.
    """

    document: Document
    verdict: Verdict
    verification: Verification | None = None
    disagreement: str | None = None
    problem: BadDataError | None = None

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


def entries(register: Register) -> tuple[Entry, ...]:
    """Every document of a register with its verdict, in the register's order."""
    return tuple(entry_of(register, document) for document in register.documents)


def entry_of(register: Register, document: Document) -> Entry:
    """One document of a register with its verdict; evidence that cannot be read becomes its problem."""
    try:
        current = measured(register, document)
    except BadDataError as error:
        return Entry(document, Verdict.UNVERIFIED, problem=error)
    if current is None:
        return Entry(document, Verdict.UNVERIFIED)
    return Entry(document, current.verdict, current.verification, current.disagreement)
