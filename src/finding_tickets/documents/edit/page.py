"""A document opened for an edit: what is read from it, and where its blocks are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from finding_tickets.documents.reading import Document
from finding_tickets.documents.sections import DocumentPart, read_metadata, read_sections
from finding_tickets.documents.source import Block, Source, walk
from finding_tickets.model.ticket import Text
from finding_tickets.model.vocabulary import Vocabulary

ROWS = ("TableRow", "TableHead")
"""The blocks that are rows of a table."""


@dataclass(frozen=True)
class Page:
    """A document, the bytes it was read from, and its parts."""

    source: Source
    document: Document
    parts: tuple[DocumentPart, ...]

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return self.source.data

    @property
    def blocks(self) -> Iterator[Block]:
        """Every block below a heading or before the first one, parents before children."""
        return walk(block for part in self.parts for block in part.blocks)

    def enclosing(self, value: Text, kinds: Sequence[str], label: str = "") -> Block | None:
        """The innermost block of these kinds that a value stands in, or that ends where it would begin.

        Where a row ends without a cell for its value, the next one begins: the ``label`` tells them apart.
        """
        at, named = value.span.start, label.encode()
        found = [block for block in self.blocks if block.kind in kinds and block.start <= at <= block.end]
        own = [block for block in found if named in self.data[block.start : block.end]]
        within = [block for block in own if at < block.end]
        best = within or own
        return best[-1] if best else None


def page_of(document: Document, data: bytes, vocabulary: Vocabulary) -> Page:
    """The page of a document that was read from ``data``."""
    source = Source(document.path, data, vocabulary)
    parts = read_sections(source)
    # A section that is no more than a row of the metadata is one here, too.
    read_metadata(source, parts)
    return Page(source, document, parts)
