"""Problems as workflow commands, which GitHub shows beside the lines of a pull request."""

from __future__ import annotations

from finding_tickets.model.problem import Level, Problem

_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}
_IN_MESSAGE = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTY = {**_IN_MESSAGE, ":": "%3A", ",": "%2C"}
LONGEST = 4_000
"""Characters of a message: more than people read there, and GitHub takes 64 KB with all escapes."""


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
    if len(message) > LONGEST:
        message = message[: LONGEST - 1] + "\u2026"
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"::{_COMMANDS[problem.level]} {listed}::{_escaped(message + hint, _IN_MESSAGE)}"


def _escaped(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(char, char) for char in text)
