"""Rules about a document's ID: the file is named after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from finding_tickets.documents.reading import Document
from finding_tickets.lint.rules.context import Context
from finding_tickets.lint.rules.rule import Remark, rule
from finding_tickets.model.problem import Level
from finding_tickets.model.ticket import Ticket


@rule(
    "file-name",
    Level.WARNING,
    "The file of a finding ticket is called after its ID, so that one can be found by the other.",
    wrong={"tickets/B1-PT-10.md": "| **Ticket ID** | `B1-PT-01` |"},
    right={"tickets/B1-PT-10-clipping.md": "| **Ticket ID** | `B1-PT-10` |"},
)
def file_name(document: Document, context: Context) -> Iterator[Remark]:
    """Finding tickets in a file of another name; a longer name that starts with the ID is fine."""
    if not isinstance(document, Ticket):
        return
    stem, own = PurePosixPath(document.path).stem.casefold(), document.id.value.casefold()
    if stem != own and not stem.startswith((f"{own}-", f"{own}_")):
        yield Remark(
            document.id.span,
            f"{document.id.value} stands in {PurePosixPath(document.path).name}",
            f"rename the file to {document.id.value}.md",
        )
