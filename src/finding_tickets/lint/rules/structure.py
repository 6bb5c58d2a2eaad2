"""Rules about what a finding ticket must contain."""

from __future__ import annotations

from collections.abc import Iterator

from finding_tickets.documents.reading import Document
from finding_tickets.lint.rules.context import Context
from finding_tickets.lint.rules.rule import Remark, rule
from finding_tickets.model.problem import Level
from finding_tickets.model.record import Span
from finding_tickets.model.ticket import Ticket


@rule(
    "missing-field",
    Level.WARNING,
    "A finding ticket states its severity and its status; without them no list can sort or filter it.",
    wrong="| **Severity** | |",
    right="| **Severity** | `P2` |",
)
def missing_field(document: Document, context: Context) -> Iterator[Remark]:
    """Severity and status that are absent or empty."""
    if not isinstance(document, Ticket):
        return
    for name, field in (("Severity", document.severity), ("Status", document.status)):
        if field is None or not field.raw.strip():
            yield Remark(document.id.span, f"the ticket states no {name}", f"add a row **{name}**")


_WITHOUT_LOCATION = """\
# Finding Ticket: Clipping waits for the device

| Field | Value |
|---|---|
| **Ticket ID** | `B1-PT-01` |
| **Severity** | `P2` |
| **Status** | `wont-fix` |

## Summary

**One-line summary:** It waits once in every step.

## Verification

- [ ] Count the waits of one step
"""


@rule(
    "missing-section",
    Level.WARNING,
    "A finding ticket says in one line what is wrong, where, and how anybody can check that it is fixed.",
    wrong=_WITHOUT_LOCATION,
    right=f"{_WITHOUT_LOCATION}\n## Location\n\n`src/step.py`, in `clip`\n",
)
def missing_section(document: Document, context: Context) -> Iterator[Remark]:
    """Summary, location and verification checklist: neither the content nor a heading for it.

    Without any heading, the title is missing, which is said already.
    """
    for name in _absent(document):
        if document.title.raw and not _headings(document, name):
            yield Remark(document.title.span, f"the ticket has no {name}", f"add a section ## {name}")


@rule(
    "empty-section",
    Level.NOTE,
    "A section that a finding ticket needs is filled in.",
    wrong="## Verification\n\nStill to be thought of.",
    right="## Verification\n\n- [ ] Count the waits of one step",
)
def empty_section(document: Document, context: Context) -> Iterator[Remark]:
    """Headings of summary, location and verification checklist without what belongs there."""
    for name in _absent(document):
        for span in _headings(document, name)[:1]:
            yield Remark(span, f"nothing can be read from the section {name}")


def _absent(document: Document) -> list[str]:
    """What a finding ticket does not say of that which it must."""
    if not isinstance(document, Ticket):
        return []
    needed = {"Summary": document.summary, "Location": document.locations, "Verification": document.checklist}
    return [name for name, content in needed.items() if not content]


def _headings(document: Document, name: str) -> list[Span]:
    """The headings that begin with a name."""
    return [
        section.heading
        for section in document.sections
        if section.title.casefold().startswith(name.casefold())
    ]
