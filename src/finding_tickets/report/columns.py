"""The columns of a list: what each shows of a document."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from finding_tickets.register.index import Row
from finding_tickets.register.query import Facts

DEFAULT = ("id", "severity", "status", "verdict", "title")
BETWEEN = ", "


def _verdict(row: Row, facts: Facts) -> str:
    """The verdict, with those of meters that disagree, and whether it rests on times of one machine."""
    measured = facts.measured(row)
    timed = "timed" if measured.evidence and measured.evidence.is_timed else None
    remarks = ", ".join(filter(None, (measured.disagreement, timed)))
    return f"{measured.verdict} ({remarks})" if remarks else measured.verdict


def _of_row(get: Callable[[Row], object]) -> Callable[[Row, Facts], str]:
    """A column that needs the row alone; what a document does not state is empty."""

    def cell(row: Row, _: Facts) -> str:
        value = get(row)
        return "" if value is None else str(value)

    return cell


def _checklist(row: Row) -> str | None:
    items = row.done + row.undone
    return f"{row.done}/{items}" if items else None


COLUMNS: Mapping[str, Callable[[Row, Facts], str]] = {
    "id": _of_row(lambda row: row.id),
    "kind": _of_row(lambda row: row.kind),
    "severity": _of_row(lambda row: row.severity),
    "status": _of_row(lambda row: row.status),
    "resolution": _of_row(lambda row: row.outcome),
    "verdict": _verdict,
    "batch": _of_row(lambda row: row.batch),
    "agent": _of_row(lambda row: row.agent),
    "assignee": _of_row(lambda row: row.assignee),
    "domain": _of_row(lambda row: BETWEEN.join(row.domains)),
    "category": _of_row(lambda row: BETWEEN.join(row.categories)),
    "file": _of_row(lambda row: BETWEEN.join(row.files)),
    "reviewed-by": _of_row(lambda row: BETWEEN.join(f"{name or '?'}={said}" for name, said in row.reviews)),
    "related": _of_row(lambda row: BETWEEN.join(f"{other}={how}" for other, how in row.related)),
    "checklist": _of_row(_checklist),
    "created": _of_row(lambda row: row.created),
    "updated": _of_row(lambda row: row.updated),
    "path": _of_row(lambda row: row.path),
    "summary": _of_row(lambda row: row.summary),
    "title": _of_row(lambda row: row.title),
}
"""Every column by its name, which is that of the query's key where there is one."""
