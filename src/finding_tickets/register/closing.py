"""Closing a ticket, with what it rests on; the document keeps a record of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

from finding_tickets.documents.edits import add_below, add_section, mark_earlier, row_of
from finding_tickets.documents.reading import Document
from finding_tickets.documents.remediation import read_sidecar
from finding_tickets.documents.sections import DocumentPart, SectionKind
from finding_tickets.documents.source import Splices
from finding_tickets.errors import GateError, UsageError
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import ELSEWHERE, OUTCOME, Outcome, Verdict
from finding_tickets.register.actions import (
    KEYS,
    TITLES,
    DocumentEdit,
    MetadataKey,
    as_step,
    tick_items,
    touched,
    write_row,
)
from finding_tickets.register.disposition import SETTLED_AS, check_transition, status_of
from finding_tickets.register.entries import Entry, outcome_of
from finding_tickets.register.files import sidecar_names

_WORDS = {
    Outcome.FIXED: "Fixed",
    Outcome.WONT_FIX: "Won't fix",
    Outcome.NOT_A_BUG: "Not a bug",
    Outcome.DUPLICATE: "Duplicate",
}
_RESOLUTION = MetadataKey(("Resolution",))
_FIELDS = frozenset(
    {"outcome", "resolution", "closed", "evidence", "corrections", TITLES}
)
_CLOSED = "Resolution"
_BEFORE = (SectionKind.REMEDIATION, SectionKind.APPENDIX)
# The variants on whose claims a verdict rests.
_DECIDING = ("found.", "fix.", ELSEWHERE)


@dataclass(frozen=True)
class Closing:
    """The outcome of a ticket, with the reason and the date."""

    outcome: Outcome
    today: date  # the day that the record names
    reason: str = ""  # in a sentence
    original: str | None = None  # the ID of the ticket that this one is a duplicate of
    forced: bool = (
        False  # whether it is closed as fixed although no measurement shows that
    )

    def record(self, verdict: Verdict | None) -> list[str]:
        """Return the lines of the section Resolution; ``verdict`` is given for a ticket closed as fixed."""
        original = f" of `{self.original}`" if self.original else ""
        lines = [
            f"**Status:** {_WORDS[self.outcome]}{original}",
            f"**Closed:** {self.today.isoformat()}",
        ]
        if verdict is Verdict.VERIFIED:
            lines.append(f"**Measured:** {verdict}")
        elif self.forced:
            lines.append(f"**Forced:** closed as fixed while its verdict is {verdict}")
        return [*lines, f"**Reason:** {self.reason}"] if self.reason else lines


@as_step
def close_ticket(
    edit: DocumentEdit,
    wanted: Closing,
    verdict_of: Callable[[Document], Verdict],
    root: Path,
) -> None:
    """Close a ticket of the register at ``root``; its remediation may be in a separate file.

    Raises (the step does):
        UsageError: It is closed already, or it is a review.
        GateError: It is to be closed as fixed, and no measurement shows that it is.
        BadDataError: The document cannot be edited so that it reads back.
    """
    ticket, status = _ticket(edit), SETTLED_AS[wanted.outcome]
    check_transition(status_of(ticket), "close", status)
    whole = _with_sidecar(root, ticket)
    verdict = verdict_of(whole) if wanted.outcome is Outcome.FIXED else None
    if verdict and not wanted.forced:
        # Nothing is called fixed that no measurement shows to be fixed.
        if verdict is not Verdict.VERIFIED:
            message = f"{ticket.id.value} is {verdict}, not verified: it stays open"
            # What is reproduced was measured, and a fix is what it lacks.
            step = "fix" if verdict is Verdict.REPRODUCED else "verify"
            hint = f"tickets {step} {ticket.id.value}, or --force with a --reason"
            raise GateError(message, hint=hint)
        if whole.remediation and whole.remediation.decision == "keep":
            message = f"what is verified of {ticket.id.value} is the decision to keep the code, not a fix"
            raise GateError(message, hint="--as wont-fix, or --force with a --reason")
    write_row(edit, KEYS["status"], [status])
    # Only a document that has such a row gets its outcome there, too: the section below says it anyway.
    if row_of(edit.page, _RESOLUTION.labels):
        write_row(edit, _RESOLUTION, [wanted.outcome])
    if verdict is Verdict.VERIFIED:
        tick_items(_answered_items(whole), True)(edit)
    resolutions = _resolutions(edit)
    # A record of another outcome is of the past.
    is_outdated = outcome_of(ticket) not in {None, wanted.outcome}
    tries = _ways_to_record(edit, resolutions, wanted.record(verdict), is_outdated)
    closed = f"**Closed:** {wanted.today.isoformat()}"
    expected = partial(_is_recorded, outcome=wanted.outcome, title=_CLOSED, text=closed)
    # What these sections say may be read no more.
    old = [touched(edit.document, part.start, part.end) for part in resolutions]
    edit.change(
        f"the resolution {wanted.outcome}", tries, expected, _FIELDS.union(*old)
    )


def _with_sidecar(root: Path, ticket: Ticket) -> Ticket:
    """Return a ticket with the remediation that stands beside it, if one does."""
    for name in sidecar_names(ticket.path, ticket.id.value):
        if (root / name).is_file() and not ticket.remediation:
            remediation, _ = read_sidecar((root / name).read_bytes(), name)
            return ticket.model_copy(update={"remediation": remediation})
    return ticket


def original_of(duplicate: Entry, original: Entry) -> Entry:
    """Check the original of a duplicate, and return it.

    Raises:
        UsageError: It is the same one, or is closed as a duplicate itself.
    """
    if original.id == duplicate.id:
        raise UsageError(f"{original.id} cannot be a duplicate of itself")
    if original.outcome == Outcome.DUPLICATE:
        hint = "name the ticket that both repeat"
        raise UsageError(f"{original.id} is closed as a duplicate itself", hint=hint)
    return original


def _ticket(edit: DocumentEdit) -> Ticket:
    if not isinstance(edit.document, Ticket):
        raise UsageError(
            f"{edit.document.id.value} is a review, which is neither open nor closed"
        )
    return edit.document


def _answered_items(ticket: Document) -> list[int]:
    """The items, from 1, that claims answer on which the verdict rests; the others are for people."""
    block = ticket.remediation
    answers = [
        block.answer_to(item.text) if block else None for item in ticket.checklist
    ]
    known = (
        {name for name in block.claim_names if name.startswith(_DECIDING)}
        if block
        else set()
    )
    if block and block.differs:
        # What was compared is equal; that the rest may differ is for people.
        known.discard(OUTCOME)
    return [
        at
        for at, each in enumerate(answers, 1)
        if each and each.claims and known >= {*each.claims}
    ]


def _resolutions(edit: DocumentEdit) -> list[DocumentPart]:
    """The sections that say how the ticket was resolved; its title is not one, whatever it says."""
    title = edit.document.title.span.start
    below = [
        part
        for part in edit.page.parts
        if part.heading and not part.start <= title < part.heading.end
    ]
    return [part for part in below if part.kind is SectionKind.RESOLUTION]


def _ways_to_record(
    edit: DocumentEdit,
    resolutions: Sequence[DocumentPart],
    lines: Sequence[str],
    is_outdated: bool,
) -> Iterator[Splices]:
    """Yield ways to record how the ticket was closed, given its existing resolutions."""
    # A section that people began is continued, where nothing in it is of the past.
    first = resolutions[0] if resolutions else None
    if first and first.heading and first.name == _CLOSED.lower() and not is_outdated:
        yield add_below(edit.page, first.heading, lines)
    earlier = [mark_earlier(part.heading) for part in resolutions if part.heading]
    for marked in (earlier,) if is_outdated else ((), earlier):
        for added in add_section(edit.page, _CLOSED, lines, _BEFORE):
            yield [*marked, *added]


def _is_recorded(
    document: Document, outcome: Outcome | None, title: str, text: str
) -> bool:
    """Return True if a document has this outcome, and a section of this title that says so."""
    titled = (
        each.body.raw
        for each in document.sections
        if each.title.casefold() == title.casefold()
    )
    return outcome_of(document) is outcome and any(text in body for body in titled)
