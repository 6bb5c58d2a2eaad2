"""Output for GitHub's workflows: annotations at lines, and a page for the summary of a step."""

from __future__ import annotations

from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level
from finding_tickets.report.status import StatusReport
from finding_tickets.report.templates import render
from finding_tickets.report.text import printable

# Characters of a message: more than people read there, and GitHub takes 64 KB with all escapes.
LONGEST_MESSAGE = 4_000
# Bytes of the summary that are kept for the line that counts what does not fit.
ROOM_FOR_THE_REST = 200
_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}
# As GitHub's toolkit escapes them; a comma or a colon would end a property.
_IN_MESSAGE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY = {**_IN_MESSAGE, **str.maketrans({":": "%3A", ",": "%2C"})}


def annotation(problem: Problem) -> str:
    """``::error file=...,line=...,col=...,title=RULE::message``."""
    file, title = (
        printable(text).translate(_IN_PROPERTY) for text in (problem.file, problem.rule)
    )
    message = printable(problem.message)
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - 1] + "\u2026"
    said = f"{message} ({problem.hint})" if problem.hint else message
    place = f"file={file},line={problem.line},col={problem.column},title={title}"
    return f"::{_COMMANDS[problem.level]} {place}::{said.translate(_IN_MESSAGE)}"


def summary(report: StatusReport, room: int) -> str:
    """Return counts and open work as Markdown of at most ``room`` bytes; rows without room are counted."""
    made = printable(
        render("report_summary.md.j2", {"status": report.status}, report.templates)
    )
    lines = made.splitlines(keepends=True)
    left = len(lines)
    for line in lines:
        room -= len(line.encode())
        if room < ROOM_FOR_THE_REST:
            break
        left -= 1
    # A summary that is too long would not be shown at all.
    if left > len(report.status.alerts):
        return ""
    more = [f"\n{left} more do not fit.\n"] if left else []
    return "".join([*lines[: len(lines) - left], *more])
