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
    """Summary, location and verification checklist, by their content rather than their headings."""
    if not isinstance(document, Ticket):
        return
    wanted = {
        "## Summary": document.summary,
        "## Location": document.locations,
        "## Verification": document.checklist,
    }
    for heading, content in wanted.items():
        if not content:
            name = heading.removeprefix("## ").lower()
            yield Remark(document.title.span.line, f"the ticket has no {name}", f"add a section {heading}")


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
