"""Rules about what a ticket must contain: fields, sections, words, dates, reviews, the name of its file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import PurePosixPath

from finding_tickets.claims.language import suggest
from finding_tickets.documents.source import Splice, plain
from finding_tickets.lint.rules.rule import Context, Remark, Rule, check
from finding_tickets.model.ticket import Review, Text, Ticket
from finding_tickets.model.vocabulary import (
    UNSETTLED,
    Level,
    Opinion,
    Words,
    squeeze,
    word_for,
)
from finding_tickets.register.disposition import status_of


@check(
    Rule("missing-field", Level.WARNING),
    Rule("missing-section", Level.WARNING),
    Rule("empty-section", Level.NOTE),
    of=Ticket,
)
def missing_parts(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Severity, status and sections that are not there, and headings without what belongs there."""
    for name, field in (("Severity", ticket.severity), ("Status", ticket.status)):
        if field is None or not field.raw.strip():
            message = f"the ticket states no {name}"
            yield Remark(
                "missing-field", ticket.id.span, message, f"add a row **{name}**"
            )
    needed = {
        "Summary": ticket.summary,
        "Location": ticket.locations,
        "Verification": ticket.checklist,
    }
    for name in (name for name, content in needed.items() if not content):
        found = (
            each
            for each in ticket.sections
            if each.title.casefold().startswith(name.casefold())
        )
        section = next(found, None)
        if section:
            message = f"nothing can be read from the section {name}"
            yield Remark("empty-section", section.heading, message)
        elif ticket.title.raw:
            # Without any heading, the title is missing, which is said already.
            message = f"the ticket has no {name}"
            yield Remark(
                "missing-section",
                ticket.title.span,
                message,
                f"add a section ## {name}",
            )


@check(Rule("file-name", Level.WARNING), of=Ticket)
def file_name(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Tickets in a file of another name; a longer name that starts with the ID is fine."""
    path, name = PurePosixPath(ticket.path), ticket.id.value
    stem, own = path.stem.casefold(), name.casefold()
    if stem != own and not stem.startswith((f"{own}-", f"{own}_")):
        message = f"{name} stands in {path.name}"
        yield Remark(
            "file-name", ticket.id.span, message, f"rename the file to {name}.md"
        )


@check(
    Rule("unknown-agent", Level.WARNING),
    Rule("unknown-domain", Level.WARNING),
    Rule("unknown-category", Level.WARNING),
    of=Ticket,
)
def unknown_words(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Agents, domains and ticked categories that the configuration does not name; any will do without any."""
    words = context.vocabulary
    stated: list[tuple[str, Words, str, Text]] = []
    if ticket.agent:
        stated.append(("agent", words.agents, ticket.agent.value, ticket.agent))
    stated += (
        ("domain", words.domains, domain.value, domain) for domain in ticket.domains
    )
    stated += (
        ("category", words.categories, each.name, each)
        for each in ticket.categories
        if each.ticked
    )
    for what, known, word, place in stated:
        if known and word_for(word, known) is None:
            message = f"{word!r} is no {what} of this register"
            hint = f"{suggest(word, list(known))}; the configuration may name others"
            yield Remark(f"unknown-{what}", place.span, message, hint)


@check(Rule("spelling", Level.NOTE, fixable=True), of=Ticket)
def spelling(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Words of the vocabulary, standing alone, in other letters; a synonym such as `triaged` says more."""
    for field in (ticket.severity, ticket.status):
        if field is None or field.value is None:
            continue
        written = plain(field.raw)
        # A synonym is another word: only letters and signs may differ.
        if (
            written != field.value
            and squeeze(written) == squeeze(field.value)
            and written in field.raw
        ):
            start = field.span.start + len(
                field.raw[: field.raw.index(written)].encode()
            )
            fix = Splice(start, start + len(written.encode()), field.value.encode())
            message = f"{written} is a spelling of {field.value}"
            yield Remark("spelling", field.span, message, fix=[fix])


@check(Rule("date-form", Level.NOTE), of=Ticket)
def dates(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Find dates in another form; a time after the day is fine."""
    for field in (ticket.created, ticket.updated):
        try:
            date.fromisoformat(
                field.value[: len("2025-06-01")] if field else "2025-06-01"
            )
        except ValueError:
            if field:
                yield Remark(
                    "date-form",
                    field.span,
                    f"{field.value!r} is no date",
                    "write YYYY-MM-DD",
                )


@check(
    Rule("unanswered-objection", Level.NOTE),
    Rule("contrary-reviews", Level.NOTE),
    of=Ticket,
)
def reviews(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Open tickets with objections and no endorsement, and reviewers of two opinions."""
    objections = [
        review for review in ticket.reviews if review.opinion is Opinion.OBJECT
    ]
    agreed = any(
        review.opinion in {Opinion.ENDORSE, Opinion.REFINE} for review in ticket.reviews
    )
    if status_of(ticket) in UNSETTLED and objections and not agreed:
        who = ", ".join(
            each.reviewer.value if each.reviewer else "somebody" for each in objections
        )
        message = (
            f"the ticket is open, but every reviewer who takes a side objects: {who}"
        )
        yield Remark("unanswered-objection", objections[0].verdict.span, message)
    first: dict[str, Review] = {}
    for review in ticket.reviews:
        if review.reviewer is None or review.opinion is None:
            continue
        before = first.setdefault(review.reviewer.value, review)
        if before.opinion is not review.opinion:
            there = f"{before.opinion} on line {before.span.line}"
            message = f"{review.reviewer.value} says {review.opinion} here and {there}"
            yield Remark("contrary-reviews", review.verdict.span, message)
