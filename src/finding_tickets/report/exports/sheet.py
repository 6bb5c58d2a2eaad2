"""A report as comma-separated values, a row for each document; no cell is a formula in any spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence

from finding_tickets.report.contexts import Report
from finding_tickets.report.exports.cells import cell
from finding_tickets.report.rows import Row

BETWEEN = ", "

COLUMNS: Mapping[str, Callable[[Row], object]] = {
    "id": lambda row: row.id,
    "kind": lambda row: row.stated.kind,
    "title": lambda row: row.title,
    "severity": lambda row: row.stated.severity,
    "disposition": lambda row: row.disposition,
    "status": lambda row: row.stated.status,
    "resolution": lambda row: row.stated.outcome,
    "verdict": lambda row: row.verdict,
    "reason": lambda row: row.reason,
    "disagreement": lambda row: row.disagreement,
    "laws": lambda row: "; ".join(f"{change.metric}: {change.text}" for change in row.changes),
    "consensus": lambda row: row.consensus,
    "unproven": lambda row: "yes" if row.is_unproven else "no",
    "batch": lambda row: row.stated.batch,
    "agent": lambda row: row.stated.agent,
    "assignee": lambda row: row.stated.assignee,
    "domains": lambda row: BETWEEN.join(row.stated.domains),
    "categories": lambda row: BETWEEN.join(row.stated.categories),
    "files": lambda row: BETWEEN.join(row.stated.files),
    "done": lambda row: row.stated.done,
    "undone": lambda row: row.stated.undone,
    "created": lambda row: row.stated.created,
    "updated": lambda row: row.stated.updated,
    "path": lambda row: row.path,
}
"""Each column with its value; None is an empty cell."""


def write(report: Report) -> Iterator[str]:
    """A line with the names of the columns, and a line for each document."""
    yield _line(list(COLUMNS))
    for row in report.rows:
        yield _line([cell(column(row)) for column in COLUMNS.values()])


def _line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()
