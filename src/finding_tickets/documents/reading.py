"""Read one file: from its bytes to a record and the problems on the way; nothing that it contains raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from finding_tickets.documents.fields import Metadata
from finding_tickets.documents.finding import read_finding
from finding_tickets.documents.identity import kind_of, title_of
from finding_tickets.documents.section_kinds import SectionKind
from finding_tickets.documents.sections import read_sections
from finding_tickets.documents.source import Source
from finding_tickets.documents.source_checks import check_source, check_tables, is_text
from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Vocabulary

if TYPE_CHECKING:
    from finding_tickets.model.review import ImplementationReview

# As text: the records of reviews are loaded when the first review is read.
Document: TypeAlias = "Ticket | ImplementationReview"


def read_document(
    data: bytes, path: str, vocabulary: Vocabulary | None = None
) -> tuple[Document | None, tuple[Problem, ...]]:
    """The document in ``data`` and what could not be understood of it.

    ``path`` names the file in the problems. There is no document where ``data`` is not text or is neither a
    finding ticket nor a review; a problem then says why.
    """
    source = Source(path, data, vocabulary or Vocabulary())
    document = _read(source) if is_text(source) else None
    return document, tuple(sorted(source.problems, key=lambda problem: problem.line))


def _read(source: Source) -> Document | None:
    parts = read_sections(source)
    check_source(source, parts)
    title = title_of(parts)
    # Labelled values stand below the title, and in the metadata section.
    holding = [
        part
        for part in parts
        if part.kind is SectionKind.METADATA or part.heading is None or part.heading.level == 1
    ]
    metadata = Metadata(source, (block for part in holding for block in part.blocks))
    kind = kind_of(title, metadata)
    if kind is None:
        message = "neither a finding ticket nor an implementation review"
        hint = "begin a ticket with '# Finding Ticket: ...'"
        source.report("not-a-document", 0, message, hint=hint, level=Level.NOTE)
        return None
    check_tables(source, parts)
    if kind == "finding":
        return read_finding(source, parts, metadata, title)
    # Most registers have none: what reads reviews is loaded with the first.
    from finding_tickets.documents.implementation_review import read_implementation_review

    return read_implementation_review(source, parts, metadata, title)
