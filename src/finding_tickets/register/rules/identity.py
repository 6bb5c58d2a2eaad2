"""Rules about a document's ID: one document an ID, and the file named after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from finding_tickets.markdown.reading import Document
from finding_tickets.model.problem import Level
from finding_tickets.model.ticket import Ticket
from finding_tickets.register.rules.context import Context
from finding_tickets.register.rules.rule import Remark, rule


@rule(
    "duplicate-id",
    Level.ERROR,
    "An ID names one document. With two, nobody knows which one a relation or a commit message means.",
    example="**Ticket ID** `B7-PT-02` in two files",
    bad_data=True,
)
def duplicate_id(document: Document, context: Context) -> Iterator[Remark]:
    """Every document whose ID another one has too; each names the others' places."""
    for other in context.named(document.id.value):
        if other.path != document.path:
            place = f"{other.path}:{other.id.span.line}"
            yield Remark(document.id.span.line, f"{document.id.value} is also the ID of {place}")


@rule(
    "file-name",
    Level.WARNING,
    "The file of a finding ticket is called after its ID, so that one can be found by the other.",
    example="B7-PT-02 in tickets/B7-PT-20.md",
)
def file_name(document: Document, context: Context) -> Iterator[Remark]:
    """Finding tickets in a file of another name; a longer name that starts with the ID is fine."""
    if not isinstance(document, Ticket):
        return
    stem, own = PurePosixPath(document.path).stem.casefold(), document.id.value.casefold()
    if stem != own and not stem.startswith((f"{own}-", f"{own}_")):
        yield Remark(
            document.id.span.line,
            f"{document.id.value} stands in {PurePosixPath(document.path).name}",
            f"rename the file to {document.id.value}.md",
        )
