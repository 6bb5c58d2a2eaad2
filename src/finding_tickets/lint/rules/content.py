"""Rules about what a ticket must contain: fields, sections, words, dates, reviews, the name of its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import PurePosixPath

from finding_tickets.claims.language import suggest
from finding_tickets.documents.edit.splices import Splice
from finding_tickets.documents.source import plain
from finding_tickets.lint.rules.rule import Context, Remark, rule
from finding_tickets.model.problem import Level
from finding_tickets.model.record import Field, Span, Text
from finding_tickets.model.ticket import Review, Ticket
from finding_tickets.model.vocabulary import Opinion, Words, squeeze, word_for
from finding_tickets.register.disposition import UNSETTLED, status_of


@rule("missing-field", Level.WARNING, of=Ticket)
def missing_field(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Severity and status that are absent or empty."""
    for name, field in (("Severity", ticket.severity), ("Status", ticket.status)):
        if field is None or not field.raw.strip():
            yield Remark(ticket.id.span, f"the ticket states no {name}", f"add a row **{name}**")


@rule("missing-section", Level.WARNING, of=Ticket)
def missing_section(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Summary, location and verification checklist: neither the content nor a heading for it.

    Without any heading, the title is missing, which is said already.
    """
    for name, headings in _absent(ticket):
        if ticket.title.raw and not headings:
            yield Remark(ticket.title.span, f"the ticket has no {name}", f"add a section ## {name}")


@rule("empty-section", Level.NOTE, of=Ticket)
def empty_section(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Headings of summary, location and verification checklist without what belongs there."""
    for name, headings in _absent(ticket):
        for span in headings[:1]:
            yield Remark(span, f"nothing can be read from the section {name}")


def _absent(ticket: Ticket) -> Iterator[tuple[str, list[Span]]]:
    """What a finding ticket must say and does not, each with the headings that begin with its name."""
    needed = {"Summary": ticket.summary, "Location": ticket.locations, "Verification": ticket.checklist}
    for name, content in needed.items():
        if not content:
            found = [each for each in ticket.sections if each.title.casefold().startswith(name.casefold())]
            yield name, [section.heading for section in found]


@rule("file-name", Level.WARNING, of=Ticket)
def file_name(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Finding tickets in a file of another name; a longer name that starts with the ID is fine."""
    path, name = PurePosixPath(ticket.path), ticket.id.value
    stem, own = path.stem.casefold(), name.casefold()
    if stem != own and not stem.startswith((f"{own}-", f"{own}_")):
        yield Remark(ticket.id.span, f"{name} stands in {path.name}", f"rename the file to {name}.md")


@rule("unknown-agent", Level.WARNING, of=Ticket)
def unknown_agent(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Agents that the configuration does not name; without any there, every agent will do."""
    if ticket.agent and context.vocabulary.agents:
        yield from _unknown("agent", [(ticket.agent.value, ticket.agent)], context.vocabulary.agents)


@rule("unknown-domain", Level.WARNING, of=Ticket)
def unknown_domain(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Domains that the configuration does not name; without any there, every domain will do."""
    if context.vocabulary.domains:
        stated = [(domain.value, domain) for domain in ticket.domains]
        yield from _unknown("domain", stated, context.vocabulary.domains)


@rule("unknown-category", Level.WARNING, of=Ticket)
def unknown_category(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Ticked categories that the configuration does not name."""
    ticked = [(category.name, category) for category in ticket.categories if category.ticked]
    yield from _unknown("category", ticked, context.vocabulary.categories)


def _unknown(what: str, stated: Sequence[tuple[str, Text]], words: Words) -> Iterator[Remark]:
    for word, place in stated:
        if word_for(word, words) is None:
            hint = f"{suggest(word, list(words))}; the configuration may name others"
            yield Remark(place.span, f"{word!r} is no {what} of this register", hint)


@rule("spelling", Level.NOTE, of=Ticket, fixable=True)
def spelling(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Words of the vocabulary, standing alone, in other letters; a synonym such as `triaged` says more."""
    for field in (ticket.severity, ticket.status):
        if field is None or field.value is None:
            continue
        written = plain(field.raw)
        # A synonym is another word: only letters and signs may differ.
        if written != field.value and squeeze(written) == squeeze(field.value) and written in field.raw:
            start = field.span.start + len(field.raw[: field.raw.index(written)].encode())
            fix = Splice(start, start + len(written.encode()), field.value.encode())
            yield Remark(field.span, f"{written} is a spelling of {field.value}", fix=[fix])


@rule("date-form", Level.NOTE, of=Ticket)
def date_form(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Created and Updated in another form, or no day at all; a time after the day is fine."""
    for field in filter(None, (ticket.created, ticket.updated)):
        if _day_of(field) is None:
            yield Remark(field.span, f"{field.value!r} is no date", "write YYYY-MM-DD")


@rule("date-order", Level.WARNING, of=Ticket)
def date_order(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Updates from before the creation."""
    if not (ticket.created and ticket.updated):
        return
    created, updated = _day_of(ticket.created), _day_of(ticket.updated)
    if created and updated and updated < created:
        yield Remark(ticket.updated.span, f"updated on {updated}, before it was created on {created}")


@rule("created-before-history", Level.WARNING, of=Ticket)
def created_before_history(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Tickets created before the first commit (in the examples: 2025-12-01); git is asked once, if at all."""
    if ticket.created is None or ticket.code_repository:
        return
    created = _day_of(ticket.created)
    # Asking git starts a process, which tickets without a date do not need.
    if created and context.first_commit and created < context.first_commit:
        message = f"created on {created}, before the repository's first commit on {context.first_commit}"
        yield Remark(ticket.created.span, message)


def _day_of(field: Field[str]) -> date | None:
    """The day that a field begins with, or None."""
    try:
        return date.fromisoformat(field.value[: len("2025-06-01")])
    except ValueError:
        return None


@rule("unanswered-objection", Level.NOTE, of=Ticket)
def unanswered_objection(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Open tickets with objections and no endorsement."""
    if status_of(ticket) not in UNSETTLED:
        return
    objections = [review for review in ticket.reviews if review.opinion is Opinion.OBJECT]
    agreed = any(review.opinion in {Opinion.ENDORSE, Opinion.REFINE} for review in ticket.reviews)
    if objections and not agreed:
        names = ", ".join(map(_name, objections))
        message = f"the ticket is open, but every reviewer who takes a side objects: {names}"
        yield Remark(objections[0].verdict.span, message)


@rule("contrary-reviews", Level.NOTE, of=Ticket)
def contrary_reviews(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """A second opinion of the same reviewer that differs from the first."""
    first: dict[str, Review] = {}
    for review in ticket.reviews:
        if review.reviewer is None or review.opinion is None:
            continue
        before = first.setdefault(review.reviewer.value, review)
        if before.opinion is not review.opinion:
            there = f"{before.opinion} on line {before.span.line}"
            yield Remark(review.verdict.span, f"{_name(review)} says {review.opinion} here and {there}")


def _name(review: Review) -> str:
    return review.reviewer.value if review.reviewer else "somebody"
