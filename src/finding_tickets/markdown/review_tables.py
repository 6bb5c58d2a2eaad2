"""Tables with a column of verdicts: a review in each row, and rows that stray below their table."""

from __future__ import annotations

from collections.abc import Sequence

from finding_tickets.markdown.blocks import Block
from finding_tickets.markdown.parts import Part
from finding_tickets.markdown.reviewers import opinion_of
from finding_tickets.markdown.source import Source
from finding_tickets.markdown.tables import columns, records
from finding_tickets.model.record import Text

Row = dict[str, Text]

_REVIEWER = ("agent", "reviewer", "specialist", "domain")
_EVALUATION = ("evaluation", "comment", "comments", "notes", "rationale", "reasoning")


def review_rows(part: Part, blocks: Sequence[Block]) -> list[Row]:
    """The rows of a table that has a column of verdicts; none where its header is itself a verdict.

    ``blocks`` are the table and what follows it.
    """
    table, *below = blocks
    titles = columns(part.source, table)
    opinions = part.source.vocabulary.opinions
    if "verdict" not in titles or any(opinion_of(title, opinions) for title in titles):
        return []
    rows = list(records(part.source, table))
    paragraphs = [block for block in below if block.kind == "Paragraph"]
    return rows + [row for block in paragraphs if (row := _stray_row(part.source, block, titles))]


def reviewer_of(row: Row) -> Text | None:
    """The cell that names the reviewer."""
    return next((row[title] for title in _REVIEWER if title in row and row[title].raw), None)


def evaluation_of(row: Row) -> Text | None:
    """The cell with the evaluation."""
    return next((row[title] for title in _EVALUATION if title in row), None)


def extent(source: Source, row: Row) -> Text:
    """A row from its first cell to its last."""
    spans = [cell.span for cell in row.values()]
    return source.text(min(span.start for span in spans), max(span.end for span in spans))


def _stray_row(source: Source, block: Block, titles: Sequence[str]) -> Row | None:
    """A paragraph that is written as a row of a table without its header."""
    start, end = source.trimmed(block.start, block.end)
    written = source.data[start:end]
    pieces = written[1:-1].split(b"|", len(titles) - 1)
    if not (written.startswith(b"|") and written.endswith(b"|") and len(pieces) == len(titles)):
        return None
    message = "a table row without a header; read with the table above"
    source.report("table-header", start, message)
    row: Row = {}
    at = start + 1
    for title, piece in zip(titles, pieces, strict=True):
        row[title] = source.text(at, at + len(piece))
        at += len(piece) + 1
    return row
