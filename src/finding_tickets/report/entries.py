"""The register's documents, each beside what the machine measured for it."""

from __future__ import annotations

from dataclasses import dataclass

from finding_tickets.model.review import ImplementationReview
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.verification import Verdict, Verification
from finding_tickets.model.vocabulary import Outcome, Severity, Status
from finding_tickets.register.disposition import outcome_of, status_of
from finding_tickets.register.load import Register


@dataclass(frozen=True)
class Entry:
    """One document, its verdict and the verification that the verdict comes from, if there is one."""

    document: Ticket | ImplementationReview
    verdict: Verdict
    verification: Verification | None = None

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


def entry_of(register: Register, document: Ticket | ImplementationReview) -> Entry:
    """One document of a register with its verdict."""
    return Entry(document, Verdict.UNVERIFIED)
