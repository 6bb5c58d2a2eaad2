"""Rules about what a finding ticket must contain."""

from __future__ import annotations

from collections.abc import Iterator

from finding_tickets.markdown.reading import Document
from finding_tickets.model.problem import Level
from finding_tickets.model.ticket import Ticket
from finding_tickets.register.rules.context import Context
from finding_tickets.register.rules.rule import Remark, rule


@rule(
    "missing-field",
    Level.WARNING,
    "A finding ticket states its severity and its status; without them no list can sort or filter it.",
    example="a metadata table without a row **Severity**",
)
def missing_field(document: Document, context: Context) -> Iterator[Remark]:
    """Severity and status that are absent or empty."""
    if not isinstance(document, Ticket):
        return
    for name, field in (("Severity", document.severity), ("Status", document.status)):
        if field is None or not field.raw.strip():
            yield Remark(document.id.span.line, f"the ticket states no {name}", f"add a row **{name}**")


@rule(
    "missing-section",
    Level.WARNING,
    "A finding ticket says in one line what is wrong, where, and how anybody can check that it is fixed.",
    example="a ticket without a section `## Location`",
)
def missing_section(document: Document, context: Context) -> Iterator[Remark]:
    """Summary, location and verification checklist: neither the content nor a heading for it."""
    for name in _absent(document):
        if not _headings(document, name):
            yield Remark(document.title.span.line, f"the ticket has no {name}", f"add a section ## {name}")


@rule(
    "empty-section",
    Level.NOTE,
    "A section that a finding ticket needs is filled in.",
    example="`## Location` and nothing below it",
)
def empty_section(document: Document, context: Context) -> Iterator[Remark]:
    """Headings of summary, location and verification checklist without what belongs there."""
    for name in _absent(document):
        for line in _headings(document, name)[:1]:
            yield Remark(line, f"nothing can be read from the section {name}")


def _absent(document: Document) -> list[str]:
    """What a finding ticket does not say of that which it must."""
    if not isinstance(document, Ticket):
        return []
    needed = {"Summary": document.summary, "Location": document.locations, "Verification": document.checklist}
    return [name for name, content in needed.items() if not content]


def _headings(document: Document, name: str) -> list[int]:
    """The lines of the headings that begin with a name."""
    return [
        section.heading.line
        for section in document.sections
        if section.title.casefold().startswith(name.casefold())
    ]


@rule(
    "missing-file",
    Level.WARNING,
    "The place a ticket speaks of exists in this repository, unless a metadata row Code Repository says that "
    "the code lives in another one.",
    example="**File(s)** `src/gone.py`",
)
def missing_file(document: Document, context: Context) -> Iterator[Remark]:
    """Locations whose file is not in the repository."""
    if document.code_repository is not None:
        return
    for location in document.locations:
        if location.file and not context.exists(location.file):
            yield Remark(
                location.span.line,
                f"{location.file} does not exist in this repository",
                "add a row **Code Repository** where the code lives elsewhere",
            )
