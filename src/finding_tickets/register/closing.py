"""Closing a ticket, with what it rests on, and opening it again; the document keeps a record of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from finding_tickets.documents.edit.changes import add_below, add_section, mark_earlier, row_of, tick
from finding_tickets.documents.edit.page import Page
from finding_tickets.documents.edit.splices import Splices
from finding_tickets.documents.reading import Document
from finding_tickets.documents.sections import DocumentPart, SectionKind
from finding_tickets.documents.source import plain
from finding_tickets.errors import GateError, UsageError
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Outcome, Verdict
from finding_tickets.register.actions import KEYS, TITLES, EditPlan, MetadataKey, Step, row_plan
from finding_tickets.register.disposition import (
    REOPENED_AS,
    SETTLED_AS,
    check_transition,
    outcome_of,
    status_of,
)
from finding_tickets.register.index import Row
from finding_tickets.register.semantic_diff import touched

_WORDS = {
    Outcome.FIXED: "Fixed",
    Outcome.WONT_FIX: "Won't fix",
    Outcome.NOT_A_BUG: "Not a bug",
    Outcome.DUPLICATE: "Duplicate",
}
_RESOLUTION = MetadataKey(("Resolution",), lambda value, _: value, "")
_FIELDS = frozenset({"outcome", "resolution", "closed", "evidence", "corrections", TITLES})
_CLOSED, _REOPENED = "Resolution", "Reopened"
_DECIDING = ("found", "fix")
"""The variants on whose claims a verdict rests."""


@dataclass(frozen=True)
class Closing:
    """What a ticket is closed as.

    Attributes:
        outcome: What came of it.
        today: The day that the record names.
        reason: Why, in a sentence.
        original: The ID of the ticket that this one is a duplicate of.
        forced: Whether it is closed as fixed although no measurement shows that.
    """

    outcome: Outcome
    today: date
    reason: str = ""
    original: str | None = None
    forced: bool = False

    def record(self, verdict: Verdict | None) -> list[str]:
        """The lines of the section Resolution; ``verdict`` is that of a ticket that is closed as fixed."""
        original = f" of `{self.original}`" if self.original else ""
        lines = [f"**Status:** {_WORDS[self.outcome]}{original}", f"**Closed:** {self.today.isoformat()}"]
        if verdict is Verdict.VERIFIED:
            lines.append(f"**Measured:** {verdict}")
        elif self.forced:
            lines.append(f"**Forced:** closed as fixed while its verdict is {verdict}")
        return [*lines, f"**Reason:** {self.reason}"] if self.reason else lines


def closing(wanted: Closing, verdict_of: Callable[[Document], Verdict]) -> Step:
    """Close a ticket.

    Raises (the step does):
        UsageError: It is closed already, or it is a review.
        GateError: It is to be closed as fixed, and no measurement shows that it is.
        BadDataError: The document cannot be edited so that it reads back.
    """

    def step(page: Page) -> Sequence[EditPlan]:
        ticket, status = _ticket(page), SETTLED_AS[wanted.outcome]
        check_transition(status_of(ticket), "close", status)
        verdict = verdict_of(ticket) if wanted.outcome is Outcome.FIXED else None
        if verdict and not wanted.forced:
            # Nothing is called fixed that no measurement shows to be fixed.
            if verdict is not Verdict.VERIFIED:
                message = f"{ticket.id.value} is {verdict}, not verified: it stays open"
                hint = f"tickets verify {ticket.id.value}, or --force with a --reason"
                raise GateError(message, hint=hint)
            if ticket.remediation and ticket.remediation.decision == "keep":
                message = f"what is verified of {ticket.id.value} is the decision to keep the code, not a fix"
                raise GateError(message, hint="--as wont-fix, or --force with a --reason")
        plans = [row_plan(page, KEYS["status"], [status])]
        if row_of(page, _RESOLUTION.labels):
            plans.append(row_plan(page, _RESOLUTION, [wanted.outcome]))
        if verdict is Verdict.VERIFIED:
            plans.append(_boxes(page, ticket, done=True))

        others = [splice for plan in plans for splice in plan.splices]
        settled = page.after(others)

        def expected(document: Document) -> bool:
            # A record that is taken for metadata is in the wrong place.
            apart = settled is not None and len(document.metadata) == len(settled.metadata)
            recorded = _has_section(document, _CLOSED, f"**Closed:** {wanted.today.isoformat()}")
            return apart and outcome_of(document) is wanted.outcome and recorded

        tries = ([*others, *each] for each in _records(page, wanted, verdict))
        found = page.first(tries, expected, f"the resolution {wanted.outcome}")
        fields = _mark(page, _resolutions(page)).fields
        return [*plans, EditPlan(found[len(others) :], expected, fields)]

    return step


def reopening(reason: str, today: date) -> Step:
    """Open a ticket again; what closed it is kept under a heading that says it is of the past.

    Raises (the step does):
        UsageError: It is not closed, or it is a review.
        BadDataError: The document cannot be edited so that it reads back.
    """

    def step(page: Page) -> Sequence[EditPlan]:
        ticket = _ticket(page)
        check_transition(status_of(ticket), "reopen", REOPENED_AS)
        plans = [
            row_plan(page, KEYS["status"], [REOPENED_AS]),
            _mark(page, _resolutions(page)),
            _boxes(page, ticket, done=False),
        ]
        cleared: list[str] = []
        while stated := _stating(page, plans):
            if isinstance(stated, DocumentPart):
                plans.append(_mark(page, [stated]))
            else:
                plans.append(row_plan(page, MetadataKey((stated,), lambda value, _: value, ""), []))
                cleared.append(f"**Before:** {stated} {plain(ticket.metadata[stated].raw)}")
        body = [f"**Reopened:** {today.isoformat()}", f"**Reason:** {reason}", *cleared]

        def expected(document: Document) -> bool:
            return outcome_of(document) is None and _has_section(document, _REOPENED, body[-1])

        others = [splice for plan in plans for splice in plan.splices]
        added = add_section(page, _REOPENED, body, [SectionKind.REMEDIATION, SectionKind.APPENDIX])
        found = page.first(([*others, *each] for each in added), expected, "the reopening")
        return [*plans, EditPlan(found[len(others) :], expected, _FIELDS)]

    return step


def _mark(page: Page, parts: Sequence[DocumentPart]) -> EditPlan:
    """Make sections earlier ones; what is read from them may be read no more."""
    splices = [mark_earlier(part.heading) for part in parts if part.heading]
    fields = (touched(page.document, part.start, part.end) for part in parts)
    return EditPlan(splices, fields=_FIELDS.union(*fields))


def _boxes(page: Page, ticket: Ticket, *, done: bool) -> EditPlan:
    """Tick or clear the items that claims answer on which the verdict rests; the others are for people."""
    items = []
    for item in ticket.checklist:
        answer = ticket.remediation.answer_to(item.text) if ticket.remediation else None
        variants = {claim.partition(".")[0] for claim in answer.claims} if answer else set()
        items += [item] if variants and variants.issubset(_DECIDING) else []
    splices = [tick(page, item, done) for item in items if item.done is not done]
    texts = {item.text for item in items}

    def expected(document: Document) -> bool:
        # What stood in a section that is an earlier one now is read no more.
        return all(item.done is done for item in document.checklist if item.text in texts)

    around = (touched(page.document, splice.start, splice.end) for splice in splices)
    fields = frozenset({"checklist", "categories"}.union(*around)) if splices else frozenset[str]()
    return EditPlan(splices, expected, fields)


def _stating(page: Page, plans: Sequence[EditPlan]) -> str | DocumentPart | None:
    """The row of the metadata or the section from which an outcome is still read after ``plans``."""
    splices = [splice for plan in plans for splice in plan.splices]
    document = page.after(splices)
    outcome = document.outcome if isinstance(document, Ticket) else None
    if document is None or outcome is None:
        return None
    for label, value in document.metadata.items():
        if value.raw and value.span == outcome.span:
            return label
    at = outcome.span.start
    sections = zip(page.parts, document.sections, strict=True)
    parts = (part for part, each in sections if each.heading.start <= at <= each.body.span.end)
    marked = {splice.start for splice in splices}
    return next((part for part in parts if part.heading and part.heading.first not in marked), None)


def original_of(duplicate: Row, original: Row) -> Row:
    """The ticket that another one repeats.

    Raises:
        UsageError: It is the same one, or is closed as a duplicate itself.
    """
    if original.id == duplicate.id:
        raise UsageError(f"{original.id} cannot be a duplicate of itself")
    if original.outcome == Outcome.DUPLICATE:
        hint = "name the ticket that both repeat"
        raise UsageError(f"{original.id} is closed as a duplicate itself", hint=hint)
    return original


def _ticket(page: Page) -> Ticket:
    if not isinstance(page.document, Ticket):
        raise UsageError(f"{page.document.id.value} is a review, which is neither open nor closed")
    return page.document


def _records(page: Page, wanted: Closing, verdict: Verdict | None) -> Iterator[Splices]:
    """Ways to write down how the ticket was closed, beside what its document says of that already."""
    lines, resolutions = wanted.record(verdict), _resolutions(page)
    earlier = _mark(page, resolutions).splices
    outdated = earlier if outcome_of(page.document) not in {None, wanted.outcome} else []
    if not outdated:
        for part in resolutions[:1]:
            if part.heading and part.name == _CLOSED.lower():
                yield add_below(page, part.heading, lines)
    for marked in (outdated, earlier):
        for added in add_section(page, _CLOSED, lines, [SectionKind.REMEDIATION, SectionKind.APPENDIX]):
            yield [*marked, *added]


def _resolutions(page: Page) -> list[DocumentPart]:
    """The sections that say how the ticket was resolved; its title is not one, whatever it says."""
    title = page.document.title.span.start
    below = [part for part in page.parts if part.heading and not part.start <= title < part.heading.end]
    return [part for part in below if part.kind is SectionKind.RESOLUTION]


def _has_section(document: Document, title: str, text: str) -> bool:
    return any(
        each.title.casefold() == title.casefold() and text in each.body.raw for each in document.sections
    )
