"""A report for GitHub's workflows: annotations beside the lines, and a page for the summary of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from finding_tickets.importers.words import words
from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.verdict import Verdict
from finding_tickets.report.annotations import annotation
from finding_tickets.report.contexts import Report, Work
from finding_tickets.report.exports.places import Place, code_of
from finding_tickets.report.exports.sarif import LEVELS, MEANING
from finding_tickets.report.tables import CrossTable

MOST = 10
"""Annotations of a kind that GitHub shows of a step."""
LONGEST = 300
_ROOM_FOR_THE_REST = 200


def write(report: Report) -> Iterator[str]:
    """An annotation for each piece of open work, the worst first, as many as GitHub shows."""
    said: Counter[Level] = Counter()
    left = 0
    for work in _unsettled(report):
        level = Level(LEVELS[work.row.verdict])
        said[level] += 1
        if said[level] <= MOST:
            yield f"{annotation(_problem(report, work, level))}\n"
        else:
            left += 1
    if left:
        yield f"::notice::{left} more, of which GitHub shows no annotation\n"


def summary(report: Report, room: int) -> str:
    """Counts and open work as Markdown of at most ``room`` bytes; what is left out is counted."""
    status = report.status
    chosen = f" chosen by {words(report.query, LONGEST)}" if report.query else ""
    page = [f"## Tickets: {status.total}{chosen}", "", *_table(status.by_verdict)]
    page += [
        "",
        "### Open work",
        "",
        "| ticket | severity | verdict | title | next |",
        "|---|---|---|---|---|",
    ]
    left = room - _ROOM_FOR_THE_REST - _size(page)
    everything = [*_unsettled(report)]
    shown = 0
    for work in everything:
        line = _row(work)
        left -= _size([line])
        if left < 0:
            break
        page.append(line)
        shown += 1
    if shown < len(everything):
        page += ["", f"{len(everything) - shown} more do not fit."]
    text = "\n".join([*page, ""])
    return text if len(text.encode()) <= room else ""


def _unsettled(report: Report) -> Iterator[Work]:
    return (work for work in report.status.open_work if work.row.verdict is not Verdict.VERIFIED)


def _problem(report: Report, work: Work, level: Level) -> Problem:
    row = work.row
    place = code_of(report, row) or Place(row.path)
    return Problem(
        level=level,
        rule=f"{row.id} {row.verdict}",
        file=place.file,
        line=place.first or 1,
        message=f"{row.title}. {row.reason or MEANING[row.verdict]}",
        hint=work.step,
    )


def _table(table: CrossTable) -> Iterator[str]:
    yield f"| severity | {' | '.join(table.columns)} |"
    yield f"|---{'|---:' * len(table.columns)}|"
    for name, counts in table.rows:
        yield f"| {name} | {' | '.join(map(str, counts))} |"


def _row(work: Work) -> str:
    row = work.row
    cells = (row.id, row.severity, row.verdict, row.title, work.step)
    return f"| {' | '.join(words(cell, LONGEST).replace('|', chr(92) + '|') for cell in cells)} |"


def _size(lines: Iterable[str]) -> int:
    return sum(len(line.encode(errors="replace")) + 1 for line in lines)
