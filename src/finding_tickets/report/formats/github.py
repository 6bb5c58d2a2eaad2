"""Output for GitHub's workflows: annotations at lines, and a page for the summary of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from finding_tickets.importers.drafts import words
from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level
from finding_tickets.report.formats.sarif import VERDICTS, code_of
from finding_tickets.report.status import StatusReport
from finding_tickets.report.text import printable

MOST = 10
"""Annotations of a kind that GitHub shows of a step."""
LONGEST_CELL = 300
"""Characters of a text in the summary."""
LONGEST_MESSAGE = 4_000
"""Characters of a message: more than people read there, and GitHub takes 64 KB with all escapes."""
ROOM_FOR_THE_REST = 200
"""Bytes of the summary that are kept for the line that counts what does not fit."""
_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}
# As GitHub's toolkit escapes them; a comma or a colon would end a property.
_IN_MESSAGE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY = {**_IN_MESSAGE, **str.maketrans({":": "%3A", ",": "%2C"})}


def annotation(problem: Problem) -> str:
    """``::error file=...,line=...,col=...,title=RULE::message``."""
    file, title = (printable(text).translate(_IN_PROPERTY) for text in (problem.file, problem.rule))
    message = printable(problem.message)
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - 1] + "\u2026"
    said = f"{message} ({problem.hint})" if problem.hint else message
    place = f"file={file},line={problem.line},col={problem.column},title={title}"
    return f"::{_COMMANDS[problem.level]} {place}::{said.translate(_IN_MESSAGE)}"


def write_report(report: StatusReport) -> Iterator[str]:
    """A workflow command for each piece of open work that GitHub shows, and one that counts the rest."""
    said: Counter[str] = Counter()
    for work in report.status.alerts:
        row, (level, meaning) = work.row, VERDICTS[work.row.verdict]
        said[level] += 1
        if said[level] <= MOST:
            place = code_of(report, row)
            problem = Problem(
                level=Level(level),
                rule=f"{row.id} {row.verdict}",
                file=place.file,
                line=place.first or 1,
                message=f"{row.title}. {row.reason or meaning}",
                hint=work.step,
            )
            yield f"{annotation(problem)}\n"
    # GitHub would leave the rest out without a word.
    if left := sum(max(count - MOST, 0) for count in said.values()):
        yield f"::notice::{left} more, of which GitHub shows no annotation\n"


def summary(report: StatusReport, room: int) -> str:
    """Counts and open work as Markdown of at most ``room`` bytes; what is left out is counted."""
    table = report.status.by_verdict
    chosen = f" chosen by {words(report.status.query, LONGEST_CELL)}" if report.status.query else ""
    page = [
        f"## Tickets: {report.status.total}{chosen}",
        "",
        f"| severity | {' | '.join(table.columns)} |",
        f"|---{'|---:' * len(table.columns)}|",
        *(f"| {name} | {' | '.join(map(str, counts))} |" for name, counts in table.rows),
        "",
        "### Open work",
        "",
        "| ticket | severity | verdict | title | next |",
        "|---|---|---|---|---|",
    ]
    lines = []
    for work in report.status.alerts:
        cells = (work.row.id, work.row.severity, work.row.verdict, work.row.title, work.step)
        shown = (words(cell, LONGEST_CELL).replace("|", "\\|") for cell in cells)
        lines.append(f"| {' | '.join(shown)} |")
    left = room - ROOM_FOR_THE_REST - len("\n".join([*page, ""]).encode(errors="replace"))
    sizes = accumulate(len(line.encode(errors="replace")) + 1 for line in lines)
    fitting = sum(size <= left for size in sizes)
    page += lines[:fitting]
    page += ["", f"{len(lines) - fitting} more do not fit."] if fitting < len(lines) else []
    text = "\n".join([*page, ""])
    # A summary that is too long would not be shown at all.
    return text if len(text.encode()) <= room else ""
