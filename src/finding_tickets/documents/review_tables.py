"""Tables of verdicts: a review in each row, or in each column, and rows that stray below their table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from finding_tickets.documents.blocks import Block
from finding_tickets.documents.reviewers import opinion_of
from finding_tickets.documents.source import Source
from finding_tickets.documents.tables import Table, table_of
from finding_tickets.model.record import Text

Row = dict[str, Text]

VERDICT = ("verdict", "opinion", "vote", "position", "decision", "assessment", "recommendation", "review")
REVIEWER = ("agent", "reviewer", "specialist", "expert", "by", "domain")
EVALUATION = ("evaluation", "comment", "comments", "notes", "note", "rationale", "reasoning", "justification")
DATE = ("date", "reviewed")
_BESIDE = ("#", "confidence", "severity", "priority", "")
_KNOWN = frozenset([*VERDICT, *REVIEWER, *EVALUATION, *DATE, *_BESIDE])
_LABEL_AND_VALUE = 2
_LINE = re.compile(rb"[^\r\n]*\S[^\r\n]*")


def review_rows(source: Source, block: Block) -> list[Row]:
    """The reviews of a table as ``{column title: cell}``; none where it is not one of verdicts."""
    table = table_of(source, block)
    titles = table.titles
    if len(titles) == _LABEL_AND_VALUE and not _KNOWN.issuperset(titles):
        return []
    rows = [row for row in table.records if any(cell.raw for cell in row.values())]
    if verdict_title(source, titles, rows):
        return rows
    return _of_columns(table)


def verdict_title(source: Source, titles: Sequence[str], rows: Sequence[Row]) -> str | None:
    """The column of the verdicts; one that is called otherwise states an opinion in every row."""
    if VERDICT[0] in titles:
        return VERDICT[0]
    opinions = source.vocabulary.opinions
    return next(
        (
            title
            for title in VERDICT
            if title in titles and rows and all(opinion_of(row[title].raw, opinions) for row in rows)
        ),
        None,
    )


def stray_rows(source: Source, block: Block, titles: Sequence[str]) -> list[Row]:
    """A paragraph that is written as rows of the table above it, which has these ``titles``."""
    lines = [
        source.trimmed(block.start + match.start(), block.start + match.end())
        for match in _LINE.finditer(source.data[block.start : block.end])
    ]
    rows = [_stray_row(source, start, end, titles) for start, end in lines]
    if not rows or not all(rows):
        return []
    source.report("table-header", lines[0][0], "a table row without a header; read with the table above")
    return [row for row in rows if row]


def _stray_row(source: Source, start: int, end: int, titles: Sequence[str]) -> Row | None:
    written = source.data[start:end]
    pieces = written[1:-1].split(b"|", len(titles) - 1)
    if not (written.startswith(b"|") and written.endswith(b"|") and len(pieces) == len(titles)):
        return None
    row: Row = {}
    at = start + 1
    for title, piece in zip(titles, pieces, strict=True):
        row[title] = source.text(at, at + len(piece))
        at += len(piece) + 1
    return row


def _of_columns(table: Table) -> list[Row]:
    """A table with a column for each reviewer and rows Verdict and Evaluation."""
    lines = [table.cells(row) for row in table.body]
    labels = [line[0].raw.strip("*` :").lower() for line in lines]
    if VERDICT[0] not in labels or len(table.titles) <= _LABEL_AND_VALUE:
        return []
    names = table.cells(table.rows[0])
    return [
        {REVIEWER[1]: names[column]}
        | {label: line[column] for label, line in zip(labels, lines, strict=True)}
        for column in range(1, len(table.titles))
    ]
