"""Read one file: from its bytes to a record and the problems on the way; nothing that it contains raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from finding_tickets.documents.finding import read_finding
from finding_tickets.documents.identity import kind_of, title_of
from finding_tickets.documents.metadata import Metadata, metadata_entries, read_metadata
from finding_tickets.documents.parts import Part, sections
from finding_tickets.documents.roles import Role
from finding_tickets.documents.source import Source
from finding_tickets.documents.tables import report_malformed
from finding_tickets.documents.unfinished import report_unfinished
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
    document = _read(source) if _is_text(source) else None
    return document, tuple(sorted(source.problems, key=lambda problem: problem.line))


def _is_text(source: Source) -> bool:
    """Whether the bytes are text; reports the line on which they are not."""
    if not source.data.strip():
        source.report("empty-file", 0, "the file is empty", level=Level.ERROR)
        return False
    nul = source.data.find(b"\0")
    if nul >= 0:
        source.report("binary-file", nul, "a NUL byte: this is not a text file", level=Level.ERROR)
        return False
    try:
        source.data.decode()
    except UnicodeDecodeError as error:
        byte = source.data[error.start]
        message = f"byte 0x{byte:02x} is not UTF-8"
        hint = "save the file as UTF-8"
        source.report("invalid-utf8", error.start, message, hint=hint, level=Level.ERROR)
        return False
    return True


def _read(source: Source) -> Document | None:
    parts = sections(source)
    report_unfinished(source, parts)
    title, metadata = title_of(parts), _metadata(source, parts)
    kind = kind_of(title, metadata, source.path)
    if kind is None:
        message = "neither a finding ticket nor an implementation review"
        hint = "begin a ticket with '# Finding Ticket: ...'"
        source.report("not-a-document", 0, message, hint=hint, level=Level.NOTE)
        return None
    for part in parts:
        report_malformed(source, part.by_kind["Table"], part.by_kind["Paragraph"])
    if kind == "finding":
        return read_finding(source, parts, metadata, title)
    # Most registers have none: what reads reviews is loaded with the first.
    from finding_tickets.documents.review import read_review

    return read_review(source, parts, metadata, title)


def _metadata(source: Source, parts: tuple[Part, ...]) -> Metadata:
    """The labelled values below the title and in the metadata section."""
    holding = [
        part
        for part in parts
        if part.role is Role.METADATA or part.heading is None or part.heading.level == 1
    ]
    return read_metadata(
        source, (entry for part in holding for entry in metadata_entries(source, part.blocks))
    )
