"""One document as plain text: what it says, what was decided and what was measured."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from finding_tickets.documents.inline import plain
from finding_tickets.model.remediation import Claim, Remediation
from finding_tickets.model.review import ImplementationReview
from finding_tickets.model.ticket import ChecklistItem, Location, Relation, Review, Ticket
from finding_tickets.register.answers import answer_to
from finding_tickets.report.entries import Entry
from finding_tickets.report.export import opinion_of, reviewer_of
from finding_tickets.report.printable import printable
from finding_tickets.report.verification import Styler, aligned, lines

INDENT = "  "
WIDTH = 100
Section = tuple[str, list[str]]


def page(entry: Entry, style: Styler) -> str:
    """The whole document and its verification; ``style`` colours a text."""
    title = printable(f"{entry.id}: {entry.document.title.value}")
    parts = [style(title, "bold"), *map(printable, _metadata(entry))]
    for title, content in _sections(entry):
        if content:
            parts += ["", style(title, "bold"), *(INDENT + printable(line) for line in content)]
    if entry.verification:
        parts += ["", *lines(entry.verification, style)]
    return "\n".join(parts)


def _metadata(entry: Entry) -> Iterator[str]:
    rows = {label: plain(text.raw) for label, text in entry.document.metadata.items() if text.raw}
    rows |= {"File": entry.document.path, "Verdict": verdict_of(entry)}
    width = max(map(len, rows))
    return (f"{INDENT}{label.ljust(width)}  {value}" for label, value in rows.items())


def verdict_of(entry: Entry) -> str:
    """The verdict, why it is stale, and what other meters say where they disagree."""
    others = f" (meters disagree: {entry.disagreement})" if entry.disagreement else ""
    why = f" (changed since it was measured: {', '.join(entry.changed)})" if entry.changed else ""
    return f"{entry.verdict}{why}{others}"


def _sections(entry: Entry) -> Iterator[Section]:
    document = entry.document
    if isinstance(document, Ticket):
        yield from _finding(document)
    else:
        yield from _review(document)
    yield "Checklist", list(_checklist(document.checklist, document.remediation))
    if document.remediation:
        yield from claimed(document.remediation, entry)


def claimed(remediation: Remediation, entry: Entry) -> Iterator[Section]:
    """The claims, unless the verification has them with what came of each, and what is not measured."""
    if not (entry.verification and entry.verification.claims):
        yield "Claims", aligned((claim.id, _claimed(claim)) for claim in remediation.claims)
    yield "Not measured", [f"{item.claim}: {item.why}" for item in remediation.unmeasured]


def _finding(ticket: Ticket) -> Iterator[Section]:
    yield "Summary", _wrapped(ticket.summary.raw) if ticket.summary else []
    yield "Categories", [category.name for category in ticket.categories if category.ticked]
    yield "Locations", [_place(location) for location in ticket.locations]
    yield "Reviews", [line for review in ticket.reviews for line in _opinion(review)]
    yield "Related", [_relation(relation) for relation in ticket.related]
    if ticket.resolution:
        yield "Resolution", ticket.resolution.raw.split("\n")


def _review(review: ImplementationReview) -> Iterator[Section]:
    met = {True: "met", False: "not met", None: "not stated"}
    yield "Requirements", [f"{met[item.met]}: {item.text}" for item in review.requirements]
    yield "Issues", [f"{issue.severity} {issue.id}: {issue.title}" for issue in review.issues]
    yield "Scores", [f"{score.name}: {score.value:g}/{score.out_of:g}" for score in review.scores]
    yield "Performance claims", [claim.text for claim in review.performance_claims]


def _place(location: Location) -> str:
    lines = ", ".join(
        str(span.first) if span.first == span.last else f"{span.first}-{span.last}" for span in location.lines
    )
    place = ":".join(filter(None, (location.file, lines)))
    return " ".join(filter(None, (place, location.symbol)))


def _opinion(review: Review) -> Iterator[str]:
    yield f"{reviewer_of(review) or 'somebody'}: {opinion_of(review)}"
    if review.evaluation:
        yield from (INDENT + line for line in _wrapped(review.evaluation.raw))


def _relation(relation: Relation) -> str:
    note = f": {relation.note}" if relation.note else ""
    return f"{relation.id} ({relation.relationship}){note}"


def _checklist(items: Iterable[ChecklistItem], remediation: Remediation | None) -> Iterator[str]:
    for item in items:
        yield f"[{'x' if item.done else ' '}] {item.text}"
        answer = answer_to(item.text, remediation) if remediation else None
        if answer:
            yield f"    -> {', '.join(answer.claims) or answer.why}"


def _claimed(claim: Claim) -> str:
    where = ", ".join(f"{name} {condition}" for name, condition in claim.at.items())
    expected = f" (expected to be refuted: {claim.why})" if claim.expect == "refuted" else ""
    return f"{claim.value}{f' where {where}' if where else ''}{expected}"


def _wrapped(text: str) -> list[str]:
    return [line for paragraph in text.split("\n") for line in textwrap.wrap(paragraph, WIDTH) or [""]]
