"""For GitHub's workflows: annotations beside the lines, and a page for the summary of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from finding_tickets.importers.drafts import words
from finding_tickets.model.problem import Level, Problem
from finding_tickets.report.sarif import LEVELS, MEANING, code_of
from finding_tickets.report.status import StatusReport

MOST = 10
"""Annotations of a kind that GitHub shows of a step."""
LONGEST_CELL = 300
"""Characters of a text in the summary."""
LONGEST_MESSAGE = 4_000
"""Characters of a message: more than people read there, and GitHub takes 64 KB with all escapes."""
_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}
_IN_MESSAGE = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTY = {**_IN_MESSAGE, ":": "%3A", ",": "%2C"}
_ROOM_FOR_THE_REST = 200


def annotation(problem: Problem) -> str:
    """``::error file=...,line=...,col=...,title=RULE::message``, escaped as GitHub's toolkit does."""
    properties = {
        "file": problem.file,
        "line": str(problem.line),
        "col": str(problem.column),
        "title": problem.rule,
    }
    listed = ",".join(f"{name}={_escaped(value, _IN_PROPERTY)}" for name, value in properties.items())
    message = problem.message
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - 1] + "\u2026"
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"::{_COMMANDS[problem.level]} {listed}::{_escaped(message + hint, _IN_MESSAGE)}"


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(char, char) for char in text)


def write_annotations(report: StatusReport) -> Iterator[str]:
    """A workflow command for each piece of open work that GitHub shows, and one that counts the rest."""
    said: Counter[Level] = Counter()
    left = 0
    for work in report.status.alerts:
        row, level = work.row, Level(LEVELS[work.row.verdict])
        said[level] += 1
        # GitHub would leave the rest out without a word.
        if said[level] > MOST:
            left += 1
            continue
        place = code_of(report, row)
        problem = Problem(
            level=level,
            rule=f"{row.id} {row.verdict}",
            file=place.file,
            line=place.first or 1,
            message=f"{row.title}. {row.reason or MEANING[row.verdict]}",
            hint=work.step,
        )
        yield f"{annotation(problem)}\n"
    if left:
        yield f"::notice::{left} more, of which GitHub shows no annotation\n"


def summary(report: StatusReport, room: int) -> str:
    """Counts and open work as Markdown of at most ``room`` bytes; what is left out is counted."""
    table = report.status.by_verdict
    chosen = f" chosen by {words(report.query, LONGEST_CELL)}" if report.query else ""
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
    # Room is kept for the line that counts what does not fit.
    left = room - _ROOM_FOR_THE_REST - len("\n".join([*page, ""]).encode(errors="replace"))
    everything = report.status.alerts
    shown = 0
    for work in everything:
        cells = (work.row.id, work.row.severity, work.row.verdict, work.row.title, work.step)
        line = f"| {' | '.join(words(cell, LONGEST_CELL).replace('|', chr(92) + '|') for cell in cells)} |"
        left -= len(line.encode(errors="replace")) + 1
        if left < 0:
            break
        page.append(line)
        shown += 1
    if shown < len(everything):
        page += ["", f"{len(everything) - shown} more do not fit."]
    text = "\n".join([*page, ""])
    # A summary that is too long would not be shown at all.
    return text if len(text.encode()) <= room else ""
